"""Baselines with our pricing, and what they take with the paper's integer program in HiGHS as pricing instead.

The same masters, one thread, the paper's market: n counts all items, no-choice included, choices are drawn at random.
Our oracle gives a column per first item and call, the integer program one: both are counted as they come. The integer
program gets a limit of seconds, checked between its calls; what it has not proven by then counts as a lower bound on
its time ("at least"), and is never extrapolated. Run with ``python benchmarks/baselines.py [--quick]``.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from brute import ProvenFit
from milp_oracle import MilpOracle
from rankstream import Assortments, ChoiceCounts, estimate, methods, oracles, rationality, revenue_range, simulate
from rankstream._core.watch import Deadline, Watch, unwatched
from rankstream.columns.corrective import ColumnSearch, Goal, run_search
from rankstream.columns.data import ColumnFinder
from rankstream.columns.mle import fit_mle
from rankstream.distances import L1
from revenue_approximations import revenue_by_relaxation, revenue_by_sampling

REPEATS, LIMIT, SEED = 5, 60.0, 0


def drawn(n_items: int, n_offers: int, choices: int = 2000) -> ChoiceCounts:
    """Simulated choices from the paper's market, whose items come without no-choice."""
    market = simulate.market(SEED, n_items=n_items, n_offers=n_offers, n_test=1)
    return next(market.stream(first=choices)).copy()


def best(run: Callable[[], Any], repeats: int = REPEATS) -> Any:
    """The fastest of several runs, after one that compiles."""
    run()
    return min((run() for _ in range(repeats)), key=lambda found: found.seconds["total"])


def line(name: str, found: Any) -> str:
    """Seconds by component, and what was proven."""
    parts = ", ".join(f"{part} {found.seconds[part]:.3f}" for part in ("start", "master", "pricing"))
    proof = f"gap {found.gap:.1e}{'' if found.proven else ' (not proven)'}, {found.iterations} iterations"
    return f"  {name:26} {found.seconds['total']:8.3f} s ({parts}); {proof}, {len(found.model.weights)} rankings"


def nearest_in_l1(counts: ChoiceCounts, oracle: Any = oracles.auto, watch: Watch = unwatched) -> ProvenFit:
    """The nearest model in l1, with the seconds of its parts."""
    start, offers = time.perf_counter(), counts.assortments
    goal, norm = Goal("gap", 1e-7), L1(offers)
    search = ColumnSearch(norm, counts.target(), ColumnFinder(oracle(offers), offers), goal, 10_000, watch)
    begun = time.perf_counter()
    master = run_search(search, norm.offer_weights)
    bounds, model = search.certificate(master), search.result(master).model
    seconds = search.seconds | {"start": begun - start, "total": time.perf_counter() - start}
    return ProvenFit(model, bounds.upper, bounds.lower, search.converged, search.rounds, seconds)


def frank_wolfe(counts: ChoiceCounts, loss: str, gap: float) -> ProvenFit:
    """Follow the leader on a smooth loss, which is Frank-Wolfe, with the seconds that it took."""
    settings = methods.PrimalDual(distance=loss, learner="follow-the-leader", gap=gap, max_rounds=2000)
    start = time.perf_counter()
    found = estimate(counts, method=settings)
    seconds = {"start": 0.0, "master": 0.0, "pricing": 0.0, "total": time.perf_counter() - start}
    ends = found.certificate
    return ProvenFit(found.model, ends.upper, ends.lower, found.converged, found.rounds, seconds)


def against_milp(name: str, fit: Callable[..., Any], limit: float, **options: Any) -> None:
    """Our pricing, then the integer program's, on the same master and from the same start."""
    ours = best(lambda: fit(**options))
    theirs = fit(**options, oracle=MilpOracle, watch=Deadline(limit))
    print(name)
    print(line("our oracle", ours))
    print(line("HiGHS integer program", theirs))
    at_least = "" if theirs.proven else "at least "
    calls = theirs.seconds["pricing"] / max(theirs.iterations, 1)
    print(
        f"  ratio: {at_least}{theirs.seconds['total'] / ours.seconds['total']:,.0f} in all; one pricing "
        f"{calls / (ours.seconds['pricing'] / max(ours.iterations, 1)):,.0f} times longer ({1e3 * calls:,.0f} ms)",
        flush=True,
    )


def ranges(n_offers: int) -> None:
    """What an offer can earn: exact, sampled and relaxed."""
    market = simulate.market(SEED, n_offers=n_offers)
    offers, p, offer = market.assortments, market.frequencies(), market.test.offers[0]
    prices = {item: 1.0 + number for number, item in enumerate(offers.items[:-1])}
    revenue_range(p, offer, prices, assortments=offers)
    share = market.truth.probabilities(Assortments([offer], offers.items))
    print(
        f"revenue of an offer never shown, m = {n_offers}; the truth is "
        f"{float(np.array([prices.get(item, 0.0) for item in offer]) @ share):.3f}"
    )
    start = time.perf_counter()
    exact = revenue_range(p, offer, prices, assortments=offers)
    took = time.perf_counter() - start
    print(f"  exact     {exact.low:6.3f} to {exact.high:6.3f} in {took:.3f} s (proven: {exact.proven})")
    for name, ask in (("sampled", revenue_by_sampling), ("relaxed", revenue_by_relaxation)):
        start = time.perf_counter()
        low, high, at = ask(p, offer, prices, assortments=offers)
        print(
            f"  {name:9} {low:6.3f} to {high:6.3f} in {time.perf_counter() - start:.3f} s (fits within {at:.2g} in l1)"
        )


def main(quick: bool) -> None:
    """Print everything."""
    limit = 5.0 if quick else LIMIT
    small, few, many = drawn(6, 10), drawn(10, 20), drawn(10, 60)
    for title, data in (("n = 7, m = 10", small), ("n = 11, m = 20", few)):
        against_milp(f"l1, {title}", nearest_in_l1, limit, counts=data)
        against_milp(f"maximum likelihood, {title}, gap 1e-4", fit_mle, limit, counts=data)
    against_milp("maximum likelihood, n = 11, m = 60, gap 1e-4", fit_mle, limit, counts=many)
    print(line("our oracle, gap 1e-8", best(lambda: fit_mle(many, tolerance=1e-8))))
    for loss, tolerance in (("kl", 1e-4), ("squared-l2", 1e-6)):
        print(f"Frank-Wolfe on {loss}, n = 11, m = 60, gap {tolerance:g} or 2,000 steps")
        print(line("plain", best(partial(frank_wolfe, many, loss, tolerance), 2)))
    for n_offers in (20, 60):
        ranges(n_offers)
    rationality(few, samples=1)
    start = time.perf_counter()
    rationality(few, samples=200)
    print(f"test of rationality, n = 11, m = 20, 200 samples: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
