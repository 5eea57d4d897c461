"""How well ``--budget`` is kept: the time of fits as a part of what they had, and how good they are.

Maximum-entropy fits, then what ``auto`` picks on two large problems: a table of all sets of 24 items, and a search.

Offers are random, choices are those of a mixture of five logits; everything is compiled before. A fit that ends by
itself is the last of its row of budgets. Run with ``python benchmarks/budget.py [--quick]``.
"""

import sys
import time

import numpy as np

from rankstream import Assortments, ChoiceCounts, fit_within, simulate

CASES = ((14, 300, 50_000), (16, 600, 100_000), (16, 3_000, 300_000), (20, 1_500, 100_000))
LARGE = ((24, 1_500, 100_000), (100, 5_000, 300_000))
BUDGETS = (1.0, 5.0, 20.0, 60.0)


def case(n_items: int, n_offers: int, choices: int) -> ChoiceCounts:
    """Counts over random offers of some items, one of which is in all of them."""
    items, random = tuple(f"item {number}" for number in range(n_items - 1)), np.random.default_rng(0)
    truth = simulate.mixed_mnl(items, 5, 5.0, random)
    offers = Assortments(simulate.random_offers(items, n_offers, random), truth.items)
    counts = ChoiceCounts(offers)
    counts.observe_coordinates(simulate.draw_choices(offers, truth.probabilities(offers), choices, random))
    return counts


def main(quick: bool) -> None:
    """Print the table."""
    for size in ((6, 12, 1_000), (14, 300, 5_000), (20, 200, 2_000)):
        fit_within(case(*size), 0.0, "max-entropy")  # compiles
    for size in ((24, 20, 1_000), (100, 20, 1_000)):
        fit_within(case(*size), 0.0)
    print(
        f"{'items':>5}{'offers':>8}{'choices':>9}{'budget':>8}{'used':>7}{'processor':>11}{'rounds':>8}{'distance':>10}"
        f"{'proven':>8}  method"
    )
    for method, cases in (("max-entropy", CASES[:2] if quick else CASES), ("auto", LARGE)):
        for size in cases:
            follow(size, method)


def follow(size: tuple[int, int, int], method: str) -> None:
    """Fit a case within ever larger budgets, until a fit ends by itself."""
    counts = case(*size)
    for budget in BUDGETS:
        start, busy = time.perf_counter(), time.process_time()
        found = fit_within(counts, budget, method)
        used, busy = time.perf_counter() - start, time.process_time() - busy
        figures = f"{found.rounds:>8}{found.certificate.upper:>10.3f}{found.certificate.lower:>8.3f}"
        ended = ", ended by itself" if found.converged else ""
        times = f"{budget:>7g}s{used:>6.1f}s{busy:>10.1f}s"
        print(f"{size[0]:>5}{size[1]:>8,}{size[2]:>9,}{times}{figures}  {found.method.name}{ended}", flush=True)
        if found.converged:
            return


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
