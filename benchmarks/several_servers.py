"""Two servers and two learners of one empty PostgreSQL database: records a second over HTTP, and times of predictions.

``python benchmarks/several_servers.py postgresql://shop@127.0.0.1/empty``, or without a URL, with ``tests/helpers`` in
PYTHONPATH, on a server of its own. Everything runs on one machine, this client included, so that the CPU seconds tell
more than the clock.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import httpx
import numpy as np

MARKETS = ("bar", "cafe", "pub", "shop")
ITEMS = ["tea", "pie", "cake", "nothing"]
BATCH = 100
QUESTION = {"offers": [["tea", "pie", "nothing"]]}
RECORDS = [{"offered": ITEMS, "chosen": ITEMS[number % 4]} for number in range(BATCH)]


@contextmanager
def database(url: str | None) -> Iterator[str]:
    """Yield the URL, or that of an empty database of a server that runs meanwhile."""
    if url:
        yield url
        return
    from postgres_server import postgres_server

    with postgres_server() as server:
        yield server.make("load")


def start(kind: str, url: str) -> tuple["subprocess.Popen[str]", str]:
    """Start a server or a learner; return it, and the address of a server."""
    words = ["--port", "0"] if kind == "run" else []
    command = [sys.executable, "-m", "rankstream", "serve", kind, url, "--json", *words]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    assert process.stdout is not None
    return process, str(json.loads(process.stdout.readline())["url"])


def send(url: str, number: int, stop: Event, sent: list[int]) -> None:
    """Send batches to all markets in turn, until it is time to stop."""
    body = json.dumps({"records": RECORDS})
    with httpx.Client(base_url=url, timeout=60.0, headers={"Content-Type": "application/json"}) as client:
        while not stop.is_set():
            market = MARKETS[sent[number] // BATCH % len(MARKETS)]
            if client.post(f"/v1/markets/{market}/choices", content=body).status_code == 202:
                sent[number] += BATCH


def ask(url: str, stop: Event, seconds: list[float], refusals: list[str]) -> None:
    """Ask for predictions, ten a second, and note how long each takes, or why there is none."""
    with httpx.Client(base_url=url, timeout=60.0) as client:
        while not stop.wait(0.1):
            began = time.perf_counter()
            found = client.post(f"/v1/markets/{MARKETS[0]}/predict", json=QUESTION)
            if found.status_code == 200:
                seconds.append(time.perf_counter() - began)
            else:
                refusals.append(found.text)


def measure(servers: list[str], duration: float, n_senders: int) -> dict[str, Any]:
    """Send and ask for a while, after every market has a model."""
    with httpx.Client(timeout=60.0) as client:
        for market in MARKETS:
            client.post(f"{servers[0]}/v1/markets/{market}/choices", json={"records": RECORDS})
        while any(market["kind"] is None for market in client.get(f"{servers[0]}/v1/markets").json()["markets"]):
            time.sleep(0.2)
        for url in servers:  # the processes that answer are started by the first question
            while client.post(f"{url}/v1/markets/{MARKETS[0]}/predict", json=QUESTION).status_code != 200:
                time.sleep(0.2)
    stop, sent, seconds, refusals = Event(), [0] * n_senders, list[float](), list[str]()
    threads = [Thread(target=send, args=(servers[n % 2], n, stop, sent)) for n in range(n_senders)]
    threads += [Thread(target=ask, args=(url, stop, seconds, refusals)) for url in servers]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    time.sleep(duration)
    stop.set()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    p50, p99 = np.percentile(seconds, (50, 99)) * 1000
    print(Counter(refusals))
    return {
        "records a second": sum(sent) / took, "predictions": len(seconds), "refused predictions": len(refusals),
        "p50 ms": p50, "p99 ms": p99,
    }  # fmt: skip


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url", nargs="?", help="an empty database; without it, one of a server that is started")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--senders", type=int, default=4)
    given = parser.parse_args()
    with database(given.url) as place:
        started = [start(kind, place) for kind in ("run", "run", "learn", "learn")]
        try:
            found = measure([url for _, url in started[:2]], given.seconds, given.senders)
        finally:
            for process, _ in started:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    found["CPU s of servers and learners, start included"] = children.ru_utime + children.ru_stime
    found["load of the machine"] = os.getloadavg()[0]
    print("| | |\n|---|---|")
    for name, value in found.items():
        print(f"| {name} | {value:,.1f} |")


if __name__ == "__main__":
    main()
