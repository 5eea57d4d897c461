"""Fuzz: odd requests to a service in this process: headers, JSON of wrong kinds, extreme numbers, names with blanks.

A run is a service of its own that gets some dozens of requests, and learns now and then. No answer may be a failure
of the server (500, or "could not be computed"), whatever is refused must say so in one sentence, a page must be whole,
nothing may be noted that means a failure, and in the end every market must have learned all of its records and go on
learning. A run depends on nothing but its number and the seed: ``--first 471 --runs 1 --loud`` shows one again.
``make fuzz`` runs 40 of them; ``PYTHONPATH=tests`` is where the service within this process comes from.
"""

import argparse
import io
import json
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from local_service import Shop, drawn, shop
from odd_requests import Maker, Odd
from rankstream.service.limits import ServiceLimits

FAILURES = (
    "a request failed", "a question could not be answered", "a market cannot be learned",
    "a model could not be refreshed", "a saved state cannot be read; rebuilding it from the log",
)  # fmt: skip
LIMITS = ServiceLimits(markets=5, offers=40, items=20, records=300, body=300_000, asked=20)


def complaint(status: int, kind: str, text: str, noted: str) -> str | None:
    """What is wrong with an answer, if anything is."""
    failed = [line for line in noted.splitlines() if any(f'"{event}"' in line for event in FAILURES)]
    if failed or "Traceback" in noted:
        return f"it was noted: {(failed or [noted[-500:]])[0]}"
    if status == 500 or "could not be computed" in text:
        return f"status {status}: {text[:200]}"
    if "text/html" in kind:
        return "the page is not whole" if "<!DOCTYPE" in text and "</html>" not in text else None
    if status >= 400:
        try:
            sentence = json.loads(text)["error"]
        except (ValueError, KeyError, TypeError):
            return f"status {status} without a sentence: {text[:200]!r}"
        return None if sentence.endswith(".") else f"no sentence: {sentence!r}"
    return None


def play(number: int, seed: int = 0, requests: int = 60, loud: bool = False) -> tuple[Counter[int], list[str]]:
    """A run: the answers by their status, and what was wrong."""
    maker, statuses, wrong = Maker(number, seed), Counter[int](), list[str]()
    with tempfile.TemporaryDirectory(prefix="rankstream-fuzz-") as folder, shop(Path(folder), limits=LIMITS) as one:
        drawn(one)
        for place in range(requests):
            odd, noted = maker.request(), io.StringIO()
            with redirect_stderr(noted):
                status, kind, text = _answer(one, odd)
                if place % 12 == 11:
                    _learn(one)
            statuses[status] += 1
            found = complaint(status, kind, text, noted.getvalue())
            if loud:
                print(f"{status} {odd.method} {odd.path} {odd.headers} {odd.body[:2000]!r}\n    {text[:300]!r}")
            if found is not None:
                wrong.append(f"request {place}: {odd.method} {odd.path} {odd.headers} {odd.body[:500]!r}\n    {found}")
        wrong += append_point(one)
    return statuses, wrong


def _answer(one: Shop, odd: Odd) -> tuple[int, str, str]:
    headers = {name: value.encode("utf-8", "replace") for name, value in odd.headers.items()}
    answer: Any = one.http.request(odd.method, odd.path, headers=headers, content=odd.body)
    return answer.status_code, answer.headers.get("content-type", ""), answer.text


def _learn(one: Shop) -> None:
    try:
        one.learn()
    except AssertionError:
        sys.stderr.write("Traceback: learning does not end\n")


def append_point(one: Shop) -> list[str]:
    """What is wrong in the end: a market that has not learned everything, or does not go on."""
    noted = io.StringIO()
    with redirect_stderr(noted):
        for market in one.get("").json()["markets"]:
            record = {"offered": ["tea", "pie"], "chosen": "tea", "time": time.time()}
            one.send(market["market"], [record] * 60)
        _learn(one)
        markets = one.get("").json()["markets"]
    failed = [line for line in noted.getvalue().splitlines() if any(f'"{event}"' in line for event in FAILURES)]
    behind = [f"market {row['market']} has learned {row['learned']:,} of {row['records']:,} records" for row in markets
              if row["learned"] < row["records"]]  # fmt: skip
    return [*(f"in the end it was noted: {line}" for line in failed), *behind]


def main() -> None:
    """Run the runs, and print what went wrong as it comes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--loud", action="store_true", help="print every request")
    given = parser.parse_args()
    statuses, failures, began = Counter[int](), 0, time.monotonic()
    for number in range(given.first, given.first + given.runs):
        found, wrong = play(number, given.seed, given.requests, given.loud)
        statuses += found
        failures += len(wrong)
        for sentence in wrong:
            print(f"run {number}, seed {given.seed}, {sentence}", flush=True)
    told = ", ".join(f"{status}: {often:,}" for status, often in sorted(statuses.items()))
    print(f"{given.runs:,} runs in {time.monotonic() - began:,.0f} s; answers by status: {told}")
    print(f"{failures} failures")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
