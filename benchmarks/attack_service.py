"""How long an honest client of ``rankstream serve`` waits while others attack it, and how much memory the server takes.

Eight connections send bodies that are expensive to read, with and without a token; an honest client meanwhile writes
20 batches of 10 choices a second. For every attack: the median and the 99th percentile of the honest client's writes,
the ratio of the latter to that without an attack, what attackers were answered, and the server's largest memory.
All traffic goes to this machine, and attackers share its cores with the server.

    python benchmarks/attack_service.py [--seconds 10] [--connections 8] [--only NAME]
"""

import argparse
import http.client
import itertools
import json
import multiprocessing
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rankstream.service.storage import tokens
from service import POST, Served, bodies, serving

MARKET = "shop"
RATE, BATCH = 20.0, 10
AIM_MS, AIM_MB = 250.0, 400.0
SIZE = 7_600_000


def filled(start: str, part: str, end: str, size: int) -> bytes:
    """A body of about that many bytes, one part repeated."""
    return (start + ",".join([part] * (size // (len(part) + 1))) + end).encode()


def permuted() -> bytes:
    """A full batch whose records all name one offer of 200 items, each in another order."""
    generator = np.random.default_rng(0)
    names = np.array([f"i{number}" for number in range(200)])
    records = [{"offered": generator.permutation(names).tolist(), "chosen": "i0"} for _ in range(5000)]
    return json.dumps({"records": records}).encode()


ATTACKS: dict[str, tuple[str, str, Any]] = {
    "pairs": ("decide", "application/json", lambda: filled('{"requires":[', "[1]", "]}", SIZE)),
    "pairs, 0.9 MB": ("decide", "application/json", lambda: filled('{"requires":[', "[1]", "]}", 900_000)),
    "margins": (
        "decide", "application/json", lambda: json.dumps({"margins": {f"{n}": "x" for n in range(70_000)}}).encode(),
    ),
    "offers": ("predict", "application/json", lambda: json.dumps({"offers": [["tea"] * 190] * 500}).encode()),
    "nested": ("decide", "application/json", lambda: b'{"requires":' + b"[" * 900_000),
    "lists": ("choices", "application/json", lambda: filled('{"records":[', "[]", "]}", SIZE)),
    "objects": ("choices", "application/json", lambda: filled('{"records":[', '{"a":{}}', "]}", SIZE)),
    "numbers": ("choices", "application/json", lambda: filled('{"records":[', "1.5", "]}", SIZE)),
    "empty lines": ("choices", "application/x-ndjson", lambda: b"\n" * SIZE),
    "lines": ("choices", "application/x-ndjson", lambda: b"{}\n" * (SIZE // 3)),
    "permutations": ("choices", "application/json", permuted),
}  # fmt: skip


def head(path: str, kind: str, length: int, token: str) -> bytes:
    """The first lines of a request."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", f"Content-Length: {length}"]
    lines += [f"Authorization: Bearer {token}"] if token else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def attack(port: int, name: str, token: str, connections: int, seconds: float, answers: Any) -> None:
    """Send the same body again and again from several connections."""
    word, kind, make = ATTACKS[name]
    body, end, found = make(), time.monotonic() + seconds, Counter()  # type: ignore[var-annotated]
    message = head(f"/v1/markets/{MARKET}/{word}", kind, len(body), token) + body

    def work() -> None:
        while time.monotonic() < end:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
                    link.sendall(message)
                    found[link.recv(100)[9:12].decode()] += 1
            except OSError:
                found["broken"] += 1

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    answers.put(dict(found))


def unfinished(port: int, _name: str, token: str, _connections: int, seconds: float, answers: Any) -> None:
    """Hold 150 connections with bodies of 8 MB that lack their last byte."""
    start = head(f"/v1/markets/{MARKET}/choices", "application/json", 8_000_000, token) + b" " * 7_999_999
    links: list[socket.socket] = []
    end = time.monotonic() + seconds

    def send(link: socket.socket) -> None:
        try:
            link.sendall(start)
        except OSError:
            return

    for _ in range(150):
        links.append(socket.create_connection(("127.0.0.1", port), timeout=seconds))
        threading.Thread(target=send, args=(links[-1],), daemon=True).start()
    time.sleep(max(0.0, end - time.monotonic()))
    answers.put({"open": len(links)})
    for link in links:
        link.close()


def memory(pid: int, which: str) -> float:
    """Megabytes of a process now (VmRSS) or at most so far (VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(which):
            return int(line.split()[1]) / 1024.0
    return float("nan")


def honest(port: int, seconds: float, token: str) -> np.ndarray[Any, Any]:
    """Milliseconds that writes took, sent one after the other at a steady rate."""
    content, took = bodies(BATCH, 100), []
    headers = POST | ({"Authorization": f"Bearer {token}"} if token else {})
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    begin = time.perf_counter()
    for number in itertools.count():
        due = begin + number / RATE
        if max(due, time.perf_counter()) > begin + seconds:
            break
        time.sleep(max(0.0, due - time.perf_counter()))
        started = time.perf_counter()
        link.request("POST", "/v1/markets/honest/choices", content[number % len(content)], headers)
        answer = link.getresponse()
        answer.read()
        if answer.status != 202:
            raise SystemExit(f"An honest write was answered with {answer.status}.")
        took.append(1000.0 * (time.perf_counter() - started))
    link.close()
    return np.array(took)


@contextmanager
def attacked(target: Any, *words: Any) -> Iterator[Any]:
    """An attack in a process of its own, while the block runs; its answers are in the queue afterwards."""
    answers: Any = multiprocessing.Queue()
    process = multiprocessing.Process(target=target, args=(*words, answers))
    process.start()
    try:
        yield answers
    finally:
        process.join(90)
        process.kill()


def measure(served: Served, name: str, token: str, sent: str, options: argparse.Namespace, calm: float) -> bool:
    """One attack, and whether it stays within what we aim at."""
    target = unfinished if name == "unfinished" else attack
    with attacked(target, served.port, name, sent, options.connections, options.seconds) as answers:
        time.sleep(0.5)
        took = honest(served.port, options.seconds - 0.5, token)
        most = answers.get(timeout=90)
    assert served.process is not None
    p50, p99 = np.quantile(took, (0.5, 0.99))
    top, now = memory(served.process.pid, "VmHWM"), memory(served.process.pid, "VmRSS")
    good = bool(p99 < AIM_MS and top < AIM_MB)
    print(
        f"{name:<14} {'token' if sent else 'no token':<9} p50 {p50:7.1f} ms  p99 {p99:7.1f} ms ({p99 / calm:5.1f}x)  "
        f"memory {now:5.0f} MB, at most {top:5.0f} MB  {'ok' if good else 'MISSED':<6}  {most}",
        flush=True,
    )
    return good


def main() -> int:
    """Run the attacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--only", choices=[*ATTACKS, "unfinished"])
    options = parser.parse_args()
    good = True
    for has_tokens in (True, False):
        print("With tokens:" if has_tokens else "On loopback without tokens:")
        with serving() as served:
            token = tokens.create(served.folder, ["*"], ["write", "read", "manage"]) if has_tokens else ""
            calm = float(np.quantile(honest(served.port, options.seconds, token), 0.99))
            print(f"{'calm':<24} p99 {calm:7.1f} ms", flush=True)
            for name in [options.only] if options.only else [*ATTACKS, "unfinished"]:
                for sent in dict.fromkeys(("", token)):
                    good &= measure(served, name, token, sent, options, calm)
    print(f"p99 under {AIM_MS:g} ms and memory under {AIM_MB:g} MB: {'yes' if good else 'no'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
