"""A service on a simulated market whose tastes change after a minute: ``make live`` runs this until Ctrl-C.

python examples/live.py [FOLDER] [--port 8000] [--change 60] [--seconds 0]
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator, Sequence

import numpy as np

import rankstream as rs

MARKET = "simulated"
LOOK = """
Open {url}/markets/{market} in a browser.

Look at it in another terminal while it learns ({rate} choices a second; tastes change after {change:g} s):

    curl -s {url}/v1/markets
    curl -s {url}/v1/markets/{market}/certificate
    curl -s {url}/v1/markets/{market}/drift?last=5000
    curl -sN {url}/v1/markets/{market}/events
    curl -s {url}/v1/markets/{market}/predict -H 'Content-Type: application/json' -d '{{"offers": [{offer}]}}'
    curl -s {url}/metrics | grep market_
"""
RATE, BATCH = 200, 50


def batches(seed: int, offers: rs.Assortments) -> Iterator[list[rs.Record]]:
    """Choices of customers with the tastes of a seed, from the same offers."""
    truth = rs.simulate.market(seed, n_items=6, n_offers=12, n_test=1).truth
    shares, random = truth.probabilities(offers), np.random.default_rng(seed)
    each = [rs.Record(offers.offers[j], offers.items[k]) for j, k in zip(offers.owner, offers.members, strict=True)]
    while True:
        yield [each[k] for k in rs.simulate.draw_choices(offers, shares, BATCH, random).tolist()]


def listen(url: str) -> None:
    """Print changes as they are noticed, and now and then how far it is."""
    last = 0.0
    with rs.Client(url) as client:
        for name, content in client.events(MARKET):
            if name == "alarm":
                print(
                    f"Change detected at choice {content['choice']:,}; it began about choice {content['since']:,}.",
                    flush=True,
                )
            elif name == "gap" and time.monotonic() - last > 5:
                last = time.monotonic()
                print(f"{content['position']:,} records known to the model; gap {content['gap']:.4f}", flush=True)


def send(url: str, change: float, seconds: float) -> None:
    """Send choices at a steady rate; after ``change`` seconds, those of customers with other tastes."""
    offers = rs.simulate.market(1, n_items=6, n_offers=12, n_test=1).assortments
    before, after, began = batches(1, offers), batches(2, offers), time.monotonic()
    with rs.Client(url) as client:
        client.send(MARKET, next(before))
        client.settings(MARKET, detect=True)
        offer = json.dumps(list(map(str, offers.offers[0])))
        print(LOOK.format(url=url, market=MARKET, offer=offer, rate=RATE, change=change), flush=True)
        if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
            webbrowser.open(f"{url}/markets/{MARKET}")
        threading.Thread(target=listen, args=(url,), daemon=True).start()
        for number in itertools.count(1):
            now = time.monotonic() - began
            if seconds and now > seconds:
                return
            client.send(MARKET, next(before if now < change else after))
            time.sleep(max(0.0, began + number * BATCH / RATE - time.monotonic()))


def main(words: Sequence[str] | None = None) -> None:
    """Start the service, and feed it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default="rankstream-live", help="where everything is")
    parser.add_argument("--port", default="8000", help="the port; 0 for a free one")
    parser.add_argument("--change", type=float, default=60.0, help="seconds until tastes change")
    parser.add_argument("--seconds", type=float, default=0.0, help="how long; 0 until Ctrl-C")
    given = parser.parse_args(words)
    command = [sys.executable, "-m", "rankstream", "serve", "run", given.folder, "--port", given.port, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            sys.exit(f"The service did not start: try '{' '.join(command)}'.")
        try:
            send(json.loads(line)["url"], given.change, given.seconds)
        except KeyboardInterrupt:
            print("Stopping.")
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
