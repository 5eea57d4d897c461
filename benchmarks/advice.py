"""Follow the README's path from the exports of a simulated shop, and hold every claim against the known truth.

    python benchmarks/advice.py [--seeds 0,1,2] [--visits 40000] [--exports till,visits,log] [--load 6]

For each export, with and without its prices: ``fit``, ``decide`` and ``show`` at the shell, as an analyst would call
them. A row prints what ``decide`` claims for its offer and for today's, what both truly earn, the best possible, how
many of the most likely substitutes are right, and how many of the intervals of shares cover the truth. An export whose
offers contain prices cannot be read without them: there is no such row. With ``--load``, everything is repeated beside
that many busy processes, and all but the time has to be the same.
"""

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "shop"))

from simulate import NAMES as NAMES
from simulate import NOTHING, PRODUCTS
from simulate import Shop as Shop
from simulate import write_exports as write_exports

FILES = {"till": "till.csv", "visits": "visits.csv", "log": "log.jsonl"}
PRICES = {"till": "Price", "visits": ",".join(f"price_{name}" for name in NAMES), "log": "offered"}
MAX_ITEMS = 10
HEAD = (
    f"{'seed':>4} {'export':<7} {'prices':<7} {'load':<5} {'CPU s':>6} | {'claimed':>8} {'interval':>17} {'true':>6} "
    f"{'today':>6} {'best':>6} {'of best':>8} | {'warned':<6} {'substitutes':>11} {'covered':>8}"
)


@dataclass(frozen=True)
class Outcome:
    """What was claimed and what is true, along one path; values are per 100 visits."""

    claimed: float
    interval: tuple[float, float] | None
    true: float
    today: float
    best: float
    warned: bool
    substitutes: tuple[int, int]
    covered: tuple[int, int]
    seconds: float
    offer: tuple[str, ...]


def run(folder: Path, *words: str) -> tuple[dict[str, Any], float]:
    """Run a command in a folder; its JSON, with the warnings on standard error, and the CPU seconds it took."""
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "rankstream", *words, "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**json.loads(done.stdout), "said": done.stderr}, seconds


def follow(shop: Shop, folder: Path, export: str, priced: bool) -> Outcome:
    """Go from an export to advice, and compare it with the truth."""
    reading = ["--no-choice", NOTHING] if export != "log" else []
    reading += ["--price-columns", PRICES[export]] if priced else []
    model = f"{export}-{priced}.json"
    _, fit_seconds = run(folder, "fit", FILES[export], "-o", model, *reading)
    decision, decide_seconds = run(
        folder, "decide", model, "--margins", "items.csv", "--at-most", str(MAX_ITEMS), "--data", FILES[export]
    )
    show, show_seconds = run(folder, "show", model)
    prices = _prices(decision["offer"])
    today = _prices(decision["context"]["present"])
    usual = {name: PRODUCTS[name][1] for name in NAMES}
    rows = {_product(row["item"]): row for row in show["items"]}
    usual |= _prices([row["item"] for row in show["items"] if row["item"] != NOTHING])
    right = [_first(rows[name]["gains"]) == shop.substitute(name, usual) for name in NAMES if rows[name]["gains"]]
    truth = shop.shares(usual)
    ends = [(row["low"], row["high"], truth[name]) for name, row in rows.items() if "low" in row and name in truth]
    return Outcome(
        claimed=100 * decision["expected"],
        interval=None if not decision.get("interval") else tuple(100 * end for end in decision["interval"]),
        true=100 * shop.profit(prices),
        today=100 * shop.profit(today),
        best=100 * shop.best(MAX_ITEMS)[1],
        warned=bool(decision["warnings"]),
        substitutes=(sum(right), len(right)),
        covered=(sum(low <= true <= high for low, high, true in ends), len(ends)),
        seconds=fit_seconds + decide_seconds + show_seconds,
        offer=tuple(sorted(decision["offer"])),
    )


def _first(gains: dict[str, float]) -> str:
    """The substitute with most buyers, leaving aside."""
    return _product(max((name for name in gains if name != NOTHING), key=lambda name: gains[name]))


def _product(label: str) -> str:
    """The product of a label, which may have a price."""
    return label.partition(" @ ")[0]


def _prices(labels: list[str]) -> dict[str, float]:
    """An offer as prices; without levels, every product has its regular one."""
    found = {}
    for label in labels:
        name, _, price = label.partition(" @ ")
        found[name] = float(price) if price else PRODUCTS[name][1]
    return found


def _spin() -> None:
    while True:
        pass


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep the machine busy."""
    started = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(processes)]
    for process in started:
        process.start()
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.join()


def line(seed: int, export: str, priced: bool, load: int, found: Outcome) -> str:
    """One row of the table."""
    ends = "" if found.interval is None else f"[{found.interval[0]:.1f}, {found.interval[1]:.1f}]"
    return (
        f"{seed:>4} {export:<7} {'used' if priced else 'ignored':<7} {load:<5} {found.seconds:>6.0f} | "
        f"{found.claimed:>8.1f} {ends:>17} {found.true:>6.1f} {found.today:>6.1f} {found.best:>6.1f} "
        f"{100 * found.true / found.best:>7.1f}% | {'yes' if found.warned else 'no':<6} "
        f"{found.substitutes[0]:>5} of {found.substitutes[1]:<3} {found.covered[0]:>3} of {found.covered[1]:<3}"
    )


def main() -> None:
    """Print a row for every path, then what the rows have to show."""
    parser = argparse.ArgumentParser(description="Hold advice against the truth of a simulated shop.")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--visits", type=int, default=40_000)
    parser.add_argument("--exports", default="till,visits,log")
    parser.add_argument("--load", type=int, default=0)
    given = parser.parse_args()
    print(HEAD)
    rows: list[tuple[bool, Outcome]] = []
    same = True
    for seed in map(int, given.seeds.split(",")):
        shop = Shop(seed)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_exports(folder, shop, given.visits)
            for export in given.exports.split(","):
                for priced in (True,) if export == "log" else (False, True):
                    found = follow(shop, folder, export, priced)
                    rows.append((priced, found))
                    print(line(seed, export, priced, 0, found), flush=True)
                    if given.load:
                        with busy(given.load):
                            again = follow(shop, folder, export, priced)
                        same &= replace(again, seconds=found.seconds) == found
                        print(line(seed, export, priced, given.load, again), flush=True)
    near = [abs(found.claimed - found.true) <= 0.05 * found.true or found.warned for _, found in rows]
    used = [found for priced, found in rows if priced]
    worse = [found for _, found in rows if found.true < found.today]
    weak = [found for found in used if found.true < 0.95 * found.best]
    print(f"claims within 5 % of the truth, or warned about: {sum(near)} of {len(near)}")
    print(f"advice at least as good as today's offer: {len(rows) - len(worse)} of {len(rows)}")
    print(f"with prices, at least 95 % of the best: {len(used) - len(weak)} of {len(used)}")
    if given.load:
        print(f"the same claims, intervals and advice under load: {'yes' if same else 'NO'}")


if __name__ == "__main__":
    main()
