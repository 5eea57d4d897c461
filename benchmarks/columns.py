"""How many columns to take from one run of a large dense oracle: one per first item, some of the pairs, or all pairs.

Fits by the fully corrective engine to the exact probabilities of simulated markets with 200 offers, on one thread,
stopped by a clock that counts processor time alone, so that other work on the machine does not matter. Prints the
processor seconds until the certified gap is 0.01 and 0.001, and the gap at the end. Run with
``python benchmarks/columns.py [--items 24 26] [--seeds 11 12 13] [--seconds 12]``.
"""

import argparse
import time
from unittest.mock import patch

import numba
import numpy as np

from oracle import market
from rankstream._core.types import Vec
from rankstream._core.watch import Deadline
from rankstream.columns import data as finder
from rankstream.columns.corrective import fit_nearest
from rankstream.oracles import DenseOracle

NEVER = 2**62
WAYS = {
    "first items": (NEVER, 1),
    f"{finder.PAIRS_PER_ITEM} n pairs": (1, finder.PAIRS_PER_ITEM),
    "all pairs": (1, NEVER),
}
GAPS = (1e-2, 1e-3)


class Clock:
    """Processor seconds of this process from now on."""

    def __init__(self) -> None:
        self.start = time.process_time()

    def __call__(self) -> float:
        """How many have passed."""
        return time.process_time() - self.start


def first_below(gaps: Vec, goal: float, times: list[float]) -> str:
    """When the gap first was as small as the goal."""
    reached = np.flatnonzero(gaps <= goal)
    return f"{times[int(reached[0])]:.1f} s" if reached.size else "-"


def run(n: int, seed: int, seconds: float) -> None:
    """Fit one market in every way, and print a row for each."""
    offers, target = market(n, 200, seed)
    oracle = DenseOracle(offers)
    for name, (pairs_from, kept) in WAYS.items():
        times: list[float] = []
        clock = Clock()
        watch = Deadline(seconds, tell=lambda *_, times=times, clock=clock: times.append(clock()), clock=clock)
        with patch.object(finder, "MIN_STATES_FOR_PAIRS", pairs_from), patch.object(finder, "PAIRS_PER_ITEM", kept):
            fit = fit_nearest(offers, target, oracle=oracle, tolerance=GAPS[-1], watch=watch)
        times.append(clock())  # a last call that meets the goal does not ask the watch
        passed = [first_below(fit.history.gap, goal, times) for goal in GAPS]
        found = f"{fit.rounds:>7}{len(fit.model.weights):>10}{passed[0]:>10}{passed[1]:>10}{fit.certificate.gap:>11.1e}"
        print(f"{n:>3}{seed:>6}  {name:<12}{found}", flush=True)


def main() -> None:
    """Print one row per market and way."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--items", type=int, nargs="+", default=[24, 26])
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13])
    parser.add_argument("--seconds", type=float, default=12.0)
    given = parser.parse_args()
    numba.set_num_threads(1)
    print("  n  seed  columns      calls  rankings   to 0.01  to 0.001        gap")
    for n in given.items:
        for seed in given.seeds:
            run(n, seed, given.seconds)


if __name__ == "__main__":
    main()
