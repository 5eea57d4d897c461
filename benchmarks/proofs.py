"""Where tables end: which part of the best known distance is proven to be unavoidable, against time, fit included.

Offers are drawn as subsets of at most 5 (or 8) items and no-choice, with 50 choices from each. The seeds are fresh:
settings were tuned on others. Every row is one call of ``fit_within`` with ``method="nearest"``; the share is what its
certificate proves, of the least distance that any run has found for the same market (kept in ``build/proofs.json``).
Run with ``python benchmarks/proofs.py [--sizes 31x200 51x500] [--seeds 501 502] [--seconds 90] [--picture FILE]``.
"""

import argparse
import json
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from quality import choices
from rankstream import ChoiceCounts
from rankstream._core.types import Vec
from rankstream._core.watch import Deadline, compile_time
from rankstream.estimation.methods import Nearest
from rankstream.estimation.task import Task

KEPT = Path("build/proofs.json")
SIZES = {"31x200": 90.0, "31x200up8": 90.0, "31x500": 90.0, "51x500": 120.0}
MARKS = (0.25, 0.5, 0.75, 1.0)


class Trace(Deadline):
    """A deadline that remembers when it was asked, which is once in every round."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds, clock=lambda: monotonic() - compile_time.seconds)
        self.times: list[float] = []

    def __call__(self, text: str, share: float = 1.0) -> bool:
        """As ``Watch`` says."""
        self.times.append(self.clock() - self.start)
        return super().__call__(text, share)


def market(size: str, seed: int) -> ChoiceCounts:
    """The choices of a market such as "31x200" or, with offers of up to 8 items, "31x200up8"."""
    numbers, _, largest = size.partition("up")
    n, m = (int(number) for number in numbers.split("x"))
    offers, shares = choices(n, "subsets", seed, m, int(largest or 5))
    return ChoiceCounts(offers, np.round(50.0 * shares))


def least_known(size: str, seed: int, distance: float) -> float:
    """The least distance that was found for a market in this or an earlier run."""
    known = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    name = f"{size} {seed}"
    known[name] = min(distance, known.get(name, np.inf))
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps(known, indent=1), encoding="utf-8")
    return float(known[name])


class Course(NamedTuple):
    """Which part of the best known distance was proven when, and what it is called."""

    name: str
    times: Vec
    shares: Vec

    def at(self, passed: float) -> float:
        """The part that was proven when this many seconds had passed."""
        return float(self.shares[self.times <= passed].max(initial=0.0))


def draw(courses: list[Course], path: Path) -> None:
    """One line for each market, in a colour for each size."""
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axes = figure.subplots()
    sizes = list(dict.fromkeys(course.name for course in courses))
    drawn = set[str]()
    for course in courses:
        words = course.name.replace("x", " items, ").replace("up", " offers of up to ")
        label = None if course.name in drawn else words if "up" in course.name else f"{words} offers"
        axes.step(course.times, course.shares, where="post", color=f"C{sizes.index(course.name)}", label=label)
        drawn.add(course.name)
    axes.set(
        xlabel="seconds, fit included", ylabel="part of the distance that is proven", ylim=(0.0, 1.02), xlim=(0.0, None)
    )
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=150)


def run(size: str, seed: int, seconds: float) -> Course:
    """Fit one market and print its row."""
    counts, watch = market(size, seed), Trace(seconds)
    found = Nearest().fit(Task(counts.assortments, counts, 0, watch))
    took = watch.clock() - watch.start
    upper, lower = found.certificate.upper, found.certificate.lower
    best = least_known(size, seed, upper)
    if lower > best:
        raise AssertionError(f"{size}, seed {seed}: {lower} is proven, but {best} was found.")
    proven = np.maximum.accumulate(found.history.distance - found.history.gap)
    count = min(len(watch.times), proven.size)
    times = np.append(watch.times[:count], took)
    course = Course(size, times, np.append(proven[:count], lower) / best)
    shares = "".join(f"{course.at(mark * seconds):>9.1%}" for mark in MARKS)
    numbers = f"{upper:>9.4f}{best:>9.4f}{lower:>9.4f}{lower / best:>8.1%}{took:>8.1f}"
    print(f"{size:>10}{seed:>6}{numbers}{shares}", flush=True)
    return course


def main() -> None:
    """Print a row for each market."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", nargs="+", default=list(SIZES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[501, 502, 503])
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    marks = "".join(f"{f'at {mark:.0%}':>9}" for mark in MARKS)
    print(f"{'market':>10}{'seed':>6}{'fit':>9}{'best':>9}{'proven':>9}{'share':>8}{'seconds':>8}{marks}")
    courses = [run(size, seed, given.seconds or SIZES.get(size, 90.0)) for size in given.sizes for seed in given.seeds]
    if given.picture:
        draw(courses, given.picture)


if __name__ == "__main__":
    main()
