"""How fast ``rankstream serve`` takes choices while it learns, predicts meanwhile, and what killing it does.

All traffic goes to this machine, from this process: sender, server and learner share its cores.

    python benchmarks/service.py [--seconds 120] [--rate 10000] [--kills 30]
"""

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import rankstream as rs

MARKET = "bench"
POST = {"Content-Type": "application/json"}


class Served:
    """A server in a process of its own; it can be killed and started again at the same address."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder, self.words, self.port = folder, words, 0
        self.process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and wait for its address."""
        command = [sys.executable, "-m", "rankstream", "serve", "run", str(self.folder), "--json"]
        command += ["--port", str(self.port), *self.words]
        log = (self.folder.parent / "log.jsonl").open("a")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        log.close()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"The server did not start: see {self.folder.parent / 'log.jsonl'}.")
        self.port = int(json.loads(line)["url"].rpartition(":")[2])

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def pids(self) -> dict[str, int]:
        """The processes by what they do, as soon as both run."""
        assert self.process is not None
        limit = time.monotonic() + 600
        while not (learner := self._learner()):
            if time.monotonic() > limit:
                raise SystemExit("There is no learner after ten minutes.")
            time.sleep(0.05)
        return {"server": self.process.pid, "learner": learner}

    def _learner(self) -> int | None:
        """The learner, if it runs: the number in the file may be of one that is gone, and belong to another process."""
        try:
            pid = int((self.folder / "learner" / "pid").read_text())
            command = Path(f"/proc/{pid}/cmdline")
            return pid if not Path("/proc").is_dir() or str(self.folder) in command.read_text() else None
        except (OSError, ValueError):
            return None

    def kill(self, which: str) -> None:
        """Kill the server or the learner, without a warning; the server is started again."""
        assert self.process is not None
        os.kill(self.pids()[which], signal.SIGKILL)
        if which == "server":
            self.process.wait()
            self._close()
            self.start()

    def stop(self) -> int:
        """End it by a signal; the exit code."""
        assert self.process is not None
        self.process.terminate()
        code = self.process.wait(600)
        self._close()
        return code

    def _close(self) -> None:
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def serving(*words: str) -> Iterator[Served]:
    """A server in a folder that is removed afterwards."""
    with TemporaryDirectory() as folder:
        served = Served(Path(folder) / "shop", *words)
        try:
            yield served
        finally:
            if served.process is not None and served.process.poll() is None:
                served.process.kill()
                served.process.wait()
            served._close()


def bodies(size: int, number: int, seed: int = 0) -> list[bytes]:
    """Batches of choices in a market of 10 items and 40 offers, as they are sent."""
    market = rs.simulate.market(seed, n_items=10, n_offers=40)
    offers, generator = market.assortments, np.random.default_rng(seed)
    where = rs.simulate.draw_choices(offers, market.frequencies(), size * number, generator)
    owner = np.searchsorted(offers.indptr, where, side="right") - 1
    records = [
        {"offered": offers.offers[one], "chosen": offers.offers[one][place - offers.indptr[one]]}
        for one, place in zip(owner.tolist(), where.tolist(), strict=True)
    ]
    return [json.dumps({"records": records[at : at + size]}).encode() for at in range(0, len(records), size)]


def paced(url: str, path: str, content: list[bytes], per_second: float, seconds: float, threads: int) -> list[float]:
    """Send requests at a rate, or as fast as they are answered; how long each took, from when it was due."""
    host, port = url.removeprefix("http://").split(":")
    took: list[list[float]] = [[] for _ in range(threads)]
    begin = time.perf_counter()

    def work(own: int) -> None:
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        number = own
        while max(due := begin + number / per_second, time.perf_counter()) < begin + seconds:
            time.sleep(max(0.0, due - time.perf_counter()))
            started = time.perf_counter()
            connection.request("POST", path, content[number % len(content)], POST)
            answer = connection.getresponse()
            answer.read()
            if answer.status not in (200, 202):
                raise SystemExit(f"A request was answered with {answer.status}.")
            took[own].append(time.perf_counter() - started)
            number += threads
        connection.close()

    workers = [threading.Thread(target=work, args=(own,)) for own in range(threads)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    return [value for one in took for value in one]


def described(took: list[float]) -> str:
    """Percentiles in milliseconds."""
    middle, high = (1000 * float(np.percentile(took, share)) for share in (50, 99))
    return f"p50 {middle:6.1f} ms, p99 {high:6.1f} ms"


def memory(pid: int) -> float:
    """Megabytes that a process has in memory, where the system says so."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), float("nan"))


def lag(client: rs.Client, most: float = 120.0) -> float:
    """Seconds until everything is learned."""
    began = time.perf_counter()
    while time.perf_counter() - began < most:
        if all(facts["learned"] == facts["records"] for facts in client.markets()):
            break
        time.sleep(0.05)
    return time.perf_counter() - began


def sizes(seconds: float) -> None:
    """Batches of several sizes, each as fast as they are answered to four senders."""
    print(f"As fast as it goes, 4 senders, {seconds:g} s each, with learning:")
    for size in (1, 10, 100, 1000):
        with serving() as served:
            content = bodies(size, max(2, 20_000 // size))
            paced(served.url, f"/v1/markets/{MARKET}/choices", content, 50, 2.0, 2)
            began = time.perf_counter()
            took = paced(served.url, f"/v1/markets/{MARKET}/choices", content, 1e9, seconds, 4)
            rate = size * len(took) / (time.perf_counter() - began)
            print(f"  batches of {size:5,}: {rate:9,.0f} records/s, {described(took)}")


def steady(seconds: float, rate: float) -> None:
    """A steady rate in batches of 100, with predictions meanwhile."""
    with serving() as served, rs.Client(served.url) as client:
        content, path = bodies(100, 400), f"/v1/markets/{MARKET}"
        paced(served.url, f"{path}/choices", content, 20, 3.0, 2)
        lag(client)
        offer = json.loads(content[0])["records"][0]["offered"]
        question = [json.dumps({"offers": [offer, offer[1:] or offer]}).encode()]
        client.predict(MARKET, [offer])
        before = {name: memory(pid) for name, pid in served.pids().items()}
        asked: list[float] = []
        asker = threading.Thread(
            target=lambda: asked.extend(paced(served.url, f"{path}/predict", question, 20, seconds, 1))
        )
        asker.start()
        began = time.perf_counter()
        took = paced(served.url, f"{path}/choices", content, rate / 100, seconds, 4)
        reached = 100 * len(took) / (time.perf_counter() - began)
        behind = lag(client)
        asker.join()
        after = {name: memory(pid) for name, pid in served.pids().items()}
        print(f"{rate:,.0f} records/s asked for in batches of 100 for {seconds:g} s: {reached:,.0f} records/s.")
        print(f"  batches: {described(took)}")
        print(f"  predictions: {described(asked)}")
        print(f"  the learner was {behind:.1f} s behind at the end")
        for name in before:
            print(f"  memory of the {name}: {before[name]:.0f} MB, then {after[name]:.0f} MB")
        print(f"  market: {client.markets()[0]}")
        print(f"  exit code after SIGTERM: {served.stop()}")


def kills(number: int, seed: int, say: Callable[[str], Any] = print) -> None:
    """Kill server or learner at random under load; every acknowledged batch must be counted exactly once."""
    chance = random.Random(seed)
    with serving("--limit", "waiting=50") as served:
        stop, acknowledged, refused = threading.Event(), [0] * 3, [0] * 3
        content = [bodies(20, 200, seed=own) for own in range(3)]

        def send(own: int) -> None:
            with rs.Client(served.url, retries=40, timeout=60) as client:
                sent = 0
                while not stop.is_set():
                    batch = json.loads(content[own][sent % 200])["records"]
                    if sent % 10 == 9:
                        batch[5]["chosen"] = "not on offer"
                        try:
                            client.send(f"market{own}", batch)
                        except ValueError:
                            refused[own] += 1
                    else:
                        client.send(f"market{own}", batch)
                        acknowledged[own] += 1
                    sent += 1

        senders = [threading.Thread(target=send, args=(own,)) for own in range(3)]
        for one in senders:
            one.start()
        for count in range(number):
            time.sleep(chance.uniform(0.5, 3.0))
            which = chance.choice(["server", "learner"])
            try:
                served.kill(which)
            except ProcessLookupError:
                which += ", which was dead already"
            say(f"  killed the {which} ({count + 1} of {number})")
        stop.set()
        for one in senders:
            one.join()
        check_counts(served, acknowledged)
        say(f"  {sum(acknowledged):,} batches acknowledged, {sum(refused):,} refused: each counted once or not at all")


def check_counts(served: Served, acknowledged: list[int]) -> None:
    """Compare what was acknowledged with the log, and with what the learner has counted."""
    with rs.Client(served.url, timeout=600) as client:
        limit = time.monotonic() + 600
        while any(one["learned"] < one["records"] for one in client.markets()) and time.monotonic() < limit:
            time.sleep(0.2)
        for own, batches in enumerate(acknowledged):
            facts = next(one for one in client.markets() if one["market"] == f"market{own}")
            counted = client.certificate(f"market{own}")["choices"]
            if not 20 * batches == facts["records"] == facts["learned"] == counted:
                raise SystemExit(
                    f"market{own}: {20 * batches} records acknowledged, {facts}, {counted} choices counted."
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long the steady rate goes on")
    parser.add_argument("--rate", type=float, default=10_000.0, help="records a second")
    parser.add_argument("--each", type=float, default=5.0, help="seconds for each size of batches; 0 leaves them out")
    parser.add_argument("--kills", type=int, default=0, help="how often server or learner is killed, instead")
    parser.add_argument("--seed", type=int, default=0, help="when they are killed")
    given = parser.parse_args()
    if given.kills:
        print(f"Killing server or learner {given.kills} times under load:")
        kills(given.kills, given.seed)
    else:
        if given.each:
            sizes(given.each)
        steady(given.seconds, given.rate)
