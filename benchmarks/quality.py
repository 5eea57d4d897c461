"""Where no oracle is exact: how good the search's rankings are, how good its bounds, and what is proven of a fit.

Offers are drawn as in the paper, of at most 8 items, for the oracles, and of at most 5 items for the fits, with 50
choices from each. The instances are fresh: the search was tuned on others. Run with
``python benchmarks/quality.py [--quick]``.
"""

import sys
import time

import numpy as np

from oracle import market
from rankstream import Assortments, simulate
from rankstream._core.types import Vec
from rankstream._core.watch import Deadline
from rankstream.certificate import fit_bound
from rankstream.columns.corrective import fit_nearest
from rankstream.oracles import BranchOracle, DenseOracle, SearchOracle

BUDGET, LATE, OFFERS = 10.0, 4.0, 200
SHORT, LONG, FRESH = 20.0, 120.0, (101, 102, 103)


def print_bounds(quick: bool) -> None:
    """Print the search's values and bounds beside what branch and bound makes of them."""
    print(f"the cheapest ranking, m = {OFFERS}: the search (250 rounds, 30 sweeps), branch and bound ({BUDGET:.0f} s)")
    titles = f"{'value':>10}{'bound':>10}{'gap':>8}{'seconds':>9}{'branch':>12}{'bound':>10}{'seconds':>9}"
    print(f"{'n':>4}  {'costs':9}{titles}")
    for n in (31,) if quick else (31, 51, 101):
        offers, p = market(n, OFFERS)
        late = late_costs(offers, p)
        for kind, costs in (("gaussian", np.random.default_rng(0).normal(size=late.size)), ("late", late)):
            search = SearchOracle(offers, sweeps=30)
            search.cheapest(-costs)
            start = time.perf_counter()
            found = search.cheapest(costs)
            took = time.perf_counter() - start
            line = f"{n:>4}  {kind:9}{found.value:>10.4f}{found.bound:>10.4f}"
            line += f"{(found.value - found.bound) / abs(found.value):>8.1%}{took:>9.2f}"
            if n <= 64:
                start = time.perf_counter()
                answer = BranchOracle(offers, budget=BUDGET).cheapest(costs)
                closed = "closed" if answer.exact else "open"
                line += f"{answer.value:>12.4f}{answer.bound:>10.4f}{time.perf_counter() - start:>9.2f} {closed}"
            print(line, flush=True)


def choices(
    n: int, sizes: simulate.Sizes, seed: int = 0, m: int = OFFERS, largest: int = 5
) -> tuple[Assortments, Vec]:
    """Offers of at most 5 items, or another number, and the frequencies of 50 choices from each."""
    random = np.random.default_rng(seed)
    items = [f"item {k}" for k in range(n - 1)]
    drawn = simulate.random_offers(items, m, random, sizes, largest=largest)
    offers = Assortments(drawn, [*items, simulate.NOTHING])
    truth = np.split(simulate.mixed_mnl(items, 5, 5.0, random).probabilities(offers), offers.indptr[1:-1].tolist())
    return offers, np.concatenate([random.multinomial(50, part / part.sum()) / 50.0 for part in truth])


def corrective_fit(offers: Assortments, p: Vec, seconds: float) -> Vec:
    """The probabilities of the nearest model that the search finds in so many seconds of the processor."""
    oracle = SearchOracle(offers, states=2)
    watch = Deadline(seconds, clock=time.process_time)
    return fit_nearest(offers, p, oracle=oracle, tolerance=0.0, watch=watch).model.probabilities(offers)


def late_costs(offers: Assortments, p: Vec) -> Vec:
    """The dual of a fit that has nearly converged, of length 1: duals of some hundred mirror steps are far easier."""
    residual = corrective_fit(offers, p, LATE) - p
    costs: Vec = residual / np.linalg.norm(residual)
    return costs


def print_fits(quick: bool) -> None:
    """Print how near a model came to the frequencies, and how near any model can come."""
    print(
        f"\nfits, m = {OFFERS}, Euclidean distance: a fully corrective fit of 30 s, and fit_bound within {BUDGET:.0f} s"
    )
    print(f"{'n':>4}  {'sizes':9}{'upper':>9}{'lower':>9}{'ratio':>8}{'seconds':>9}")
    small, few = choices(14, "sizes")
    fit_bound(small, few, states=50, sweeps=3)  # compiles
    kinds: list[tuple[int, simulate.Sizes]] = [(51, "sizes"), (31, "sizes"), (51, "subsets"), (31, "subsets")]
    for n, sizes in kinds[:1] if quick else kinds:
        offers, p = choices(n, sizes)
        upper = float(np.linalg.norm(corrective_fit(offers, p, 3.0 * BUDGET) - p))
        start = time.perf_counter()
        bound = fit_bound(offers, p, upper, seconds=BUDGET)
        took = time.perf_counter() - start
        print(f"{n:>4}  {sizes:9}{upper:>9.4f}{bound.lower:>9.4f}{bound.ratio:>8.1%}{took:>9.1f}", flush=True)


def print_nearest(quick: bool) -> None:
    """Print how near the default way of ``nearest`` comes in 20 s of the processor to what six times as long gives."""
    print(
        f"\nnearest, {SHORT:.0f} s against {LONG:.0f} s of the processor, Euclidean distance; offers of up to 5 items"
    )
    print(f"{'n':>4}{'m':>6}{'seed':>6}{'short':>9}{'long':>9}{'ratio':>8}")
    for n, m in ((40, 200), (60, 1000)):
        for seed in FRESH[:1] if quick else FRESH:
            offers, p = choices(n, "sizes", seed, m)
            near, best = (float(np.linalg.norm(corrective_fit(offers, p, budget) - p)) for budget in (SHORT, LONG))
            print(f"{n:>4}{m:>6}{seed:>6}{near:>9.4f}{best:>9.4f}{near / best:>8.3f}", flush=True)


def print_hits(quick: bool) -> None:
    """Print how often a cold search comes within 1 % of the minimum."""
    n, hits, spent, count = 24, 0, 0.0, 5 if quick else 40
    for seed in range(count):
        offers, p = market(n, OFFERS, seed)
        costs = late_costs(offers, p)
        least = DenseOracle(offers).cheapest(costs).value
        search = SearchOracle(offers, sweeps=0, states=2)
        start = time.perf_counter()
        hits += search.cheapest(costs).value <= least + 0.01 * abs(least)
        spent += time.perf_counter() - start
    print(
        f"\nlate costs, n = {n}, m = {OFFERS}: {hits} of {count} searches from nothing within 1 % of the minimum, ",
        end="",
    )
    print(f"{1e3 * spent / count:.0f} ms per call")


def main(quick: bool) -> None:
    """Print all four tables."""
    print_bounds(quick)
    print_fits(quick)
    print_nearest(quick)
    print_hits(quick)


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
