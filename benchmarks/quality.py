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
from rankstream._core.types import Codes, Vec
from rankstream.certificate import fit_bound
from rankstream.models.nearest import NearestMixture
from rankstream.oracles import BranchOracle, DenseOracle, SearchOracle, search_kernels
from rankstream.oracles.search import index_offers

BUDGET, LATE, OFFERS = 10.0, 4.0, 200
SEARCHES, SEARCH_ROUNDS = 8, 20


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


def choices(n: int, sizes: simulate.Sizes, seed: int = 0) -> tuple[Assortments, Vec]:
    """Offers of at most 5 items and the frequencies of 50 choices from each."""
    random = np.random.default_rng(seed)
    items = [f"item {k}" for k in range(n - 1)]
    drawn = simulate.random_offers(items, OFFERS, random, sizes, largest=5)
    offers = Assortments(drawn, [*items, simulate.NOTHING])
    truth = np.split(simulate.mixed_mnl(items, 5, 5.0, random).probabilities(offers), offers.indptr[1:-1].tolist())
    return offers, np.concatenate([random.multinomial(50, part / part.sum()) / 50.0 for part in truth])


def corrective_fit(offers: Assortments, p: Vec, seconds: float) -> Vec:
    """The best mixture of the rankings that short searches find: all weights anew in every round."""
    index, random = index_offers(offers), np.random.default_rng(1)
    none = -1 if offers.no_choice_code is None else offers.no_choice_code
    nearest = NearestMixture(offers, p, np.ones(offers.n_offers))
    pool: Codes = np.arange(offers.n_items)[None, :]
    nearest.take(pool)
    start, rounds = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        slope, rounds = nearest.point - p, rounds + 1
        order = np.argsort(search_kernels.pool_costs(slope, index, np.argsort(pool, axis=1)))[:30]
        found = []
        for number in range(SEARCHES):
            best = pool[order[0] if number == 0 else random.choice(order)].copy()
            draw = np.uint64(random.integers(2**62))
            current = best.copy()
            search_kernels.search(slope, index, none, best, current, np.inf, 0, 2, draw, SEARCH_ROUNDS)
            found += [best, current]
        found.sort(key=lambda ranking: float(slope @ offers.vertex(ranking)))
        nearest.take(np.array(found))
        pool = np.unique(np.vstack([nearest.orders, found]), axis=0)
        if rounds % 40 == 0:
            nearest.refresh()
    return nearest.point


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
    """Print all three tables."""
    print_bounds(quick)
    print_fits(quick)
    print_hits(quick)


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
