"""Where no oracle is exact: how good the search's rankings are, how good its bounds, and what is proven of a fit.

Offers are drawn as in the paper, of at most 8 items, for the oracles, and of at most 5 items for the fits, with 50
choices from each. The instances are fresh: the search was tuned on others. Run with
``python benchmarks/quality.py [--quick]``.
"""

import sys
import time
from array import array
from collections.abc import Sequence

import numpy as np

from oracle import market
from rankstream import Assortments, simulate
from rankstream._core.types import Codes, Vec
from rankstream._core.watch import Deadline
from rankstream.certificate import Proof
from rankstream.columns.corrective import fit_nearest
from rankstream.oracles import DenseOracle, SearchOracle
from rankstream.oracles.protocol import TIE_RULES
from rankstream.oracles.search import local_kernels as search_kernels
from rankstream.oracles.search.local import fewer

BUDGET, LATE, OFFERS = 10.0, 4.0, 200
SHORT, LONG, FRESH = 20.0, 120.0, (101, 102, 103)
MOMENTS, SEEDS = (0.5, 2.0, 5.0, 20.0), (451, 452, 453)  # seconds of the processor; instances that were not tuned on


def print_bounds(quick: bool) -> None:
    """Print the search's values and bounds."""
    print(f"the cheapest ranking, m = {OFFERS}: the search (250 rounds), and its bound (30 rounds of cuts)")
    titles = f"{'value':>10}{'bound':>10}{'gap':>8}{'seconds':>9}"
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
            print(line, flush=True)


def choices(n: int, sizes: simulate.Sizes, seed: int = 0, m: int = OFFERS, largest: int = 5) -> tuple[Assortments, Vec]:
    """Offers of at most 5 items, or another number, and the frequencies of 50 choices from each."""
    random = np.random.default_rng(seed)
    items = [f"item {k}" for k in range(n - 1)]
    drawn = simulate.random_offers(items, m, random, sizes, largest=largest)
    offers = Assortments(drawn, [*items, simulate.NOTHING])
    truth = np.split(simulate.mixed_mnl(items, 5, 5.0, random).probabilities(offers), offers.indptr[1:-1].tolist())
    return offers, np.concatenate([random.multinomial(50, part / part.sum()) / 50.0 for part in truth])


def corrective_fit(offers: Assortments, p: Vec, seconds: float) -> Vec:
    """The probabilities of the nearest model that the search finds in so many seconds of the processor."""
    oracle = SearchOracle(offers)
    watch = Deadline(seconds, clock=time.process_time)
    return fit_nearest(offers, p, oracle=oracle, tolerance=0.0, watch=watch).model.probabilities(offers)


class Insertions(SearchOracle):
    """Searches around rankings as they were: longer ones from the 30 cheapest, by insertions and full noise alone."""

    def around(self, costs: Vec, rankings: Codes, turn: int) -> Codes:
        """Both rankings of each of eight searches of twenty rounds."""
        random = np.random.default_rng([self.seed, turn])
        values = search_kernels.pool_costs(costs, self._offers, np.argsort(rankings, axis=1))
        near = np.argsort(values, kind="stable")[:30]
        found = np.empty((16, self.assortments.n_items), dtype=np.int64)
        for number in range(8):
            start, draw = near[0] if number == 0 else random.choice(near), np.uint64(random.integers(2**62))
            pair = found[2 * number : 2 * number + 2]
            pair[:] = rankings[start]
            given = costs, self._offers, self._universal, pair[0], pair[1], np.inf, 0, TIE_RULES[self.ties]
            search_kernels.search(*given, draw, fewer(20, self.assortments), 1.0, -np.inf)
        found = np.unique(found, axis=0)
        return found[
            np.argsort(search_kernels.pool_costs(costs, self._offers, np.argsort(found, axis=1)), kind="stable")
        ]


def distances_at(oracle: SearchOracle, p: Vec, moments: Sequence[float]) -> list[float]:
    """How near one fit is after each of so many seconds of the processor."""
    spent, start = array("d"), time.process_time()

    def clock() -> float:
        spent.append(time.process_time() - start)
        return spent[-1]

    watch = Deadline(moments[-1], clock=clock)  # which asks once when it is made, then after every round
    history = fit_nearest(oracle.assortments, p, oracle=oracle, tolerance=0.0, watch=watch).history
    rounds = np.maximum(np.searchsorted(spent[1:], moments, side="right"), 1)
    return [float(history.distance[number - 1]) for number in rounds]


def print_searches(quick: bool) -> None:
    """Print how near ``nearest`` is after some seconds, beside the searches around rankings as they were."""
    print("\nnearest, Euclidean distance after seconds of the processor: searches by insertions alone, and as they are")
    titles = "".join(f"{f'{moment:g} s':>26}" for moment in MOMENTS)
    print(f"{'n':>4}{'m':>6}{'seed':>6}{titles}   (before, now, ratio)")
    small, few = choices(14, "subsets")
    for kind in (Insertions, SearchOracle):
        fit_nearest(small, few, oracle=kind(small), max_rounds=2)  # compiles
    for n, m in ((31, 200), (51, 500)):
        for seed in SEEDS[:1] if quick else SEEDS:
            offers, p = choices(n, "subsets", seed, m)
            before, now = (distances_at(kind(offers), p, MOMENTS) for kind in (Insertions, SearchOracle))
            cells = (f"{one:>10.4f}{other:>9.4f}{other / one:>7.3f}" for one, other in zip(before, now, strict=True))
            print(f"{n:>4}{m:>6}{seed:>6}{''.join(cells)}", flush=True)


def late_costs(offers: Assortments, p: Vec) -> Vec:
    """The dual of a fit that has nearly converged, of length 1: duals of some hundred mirror steps are far easier."""
    residual = corrective_fit(offers, p, LATE) - p
    costs: Vec = residual / np.linalg.norm(residual)
    return costs


def print_fits(quick: bool) -> None:
    """Print how near a model came to the frequencies, and how near any model can come."""
    print(f"\nfits, m = {OFFERS}, Euclidean distance: a fully corrective fit of 30 s, and a proof of {BUDGET:.0f} s")
    print(f"{'n':>4}  {'sizes':9}{'upper':>9}{'lower':>9}{'ratio':>8}{'seconds':>9}")
    small, few = choices(14, "sizes")
    Proof(small, few).advance(rounds=30)  # compiles
    kinds: list[tuple[int, simulate.Sizes]] = [(51, "sizes"), (31, "sizes"), (51, "subsets"), (31, "subsets")]
    for n, sizes in kinds[:1] if quick else kinds:
        offers, p = choices(n, sizes)
        upper = float(np.linalg.norm(corrective_fit(offers, p, 3.0 * BUDGET) - p))
        start = time.perf_counter()
        lower = Proof(offers, p).advance(BUDGET, target=0.999 * upper)
        took = time.perf_counter() - start
        print(f"{n:>4}  {sizes:9}{upper:>9.4f}{lower:>9.4f}{lower / upper:>8.1%}{took:>9.1f}", flush=True)


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
        search = SearchOracle(offers, sweeps=0)
        start = time.perf_counter()
        hits += search.cheapest(costs).value <= least + 0.01 * abs(least)
        spent += time.perf_counter() - start
    print(
        f"\nlate costs, n = {n}, m = {OFFERS}: {hits} of {count} searches from nothing within 1 % of the minimum, ",
        end="",
    )
    print(f"{1e3 * spent / count:.0f} ms per call")


def main(quick: bool) -> None:
    """Print all tables."""
    print_bounds(quick)
    print_fits(quick)
    print_nearest(quick)
    print_searches(quick)
    print_hits(quick)


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
