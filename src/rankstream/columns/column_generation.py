"""Bertsimas and Misic's estimator: the nearest ranking model in the l1 or l-infinity norm, by column generation."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Codes, Vec
from rankstream.columns.data import Columns, MakeOracle, Observed, observe, oracle_for, price
from rankstream.columns.master import Ball, Master, Norm, ball
from rankstream.columns.search import Limits, Search
from rankstream.columns.solved import Solved
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts, Target
from rankstream.distances import L2, observation_weights
from rankstream.learners import MirrorDescent
from rankstream.oracles import Ties, auto
from rankstream.solver.loop import Solver
from rankstream.solver.runs import Run


@dataclass(frozen=True, eq=False)
class ColumnGeneration(Solved):
    """The nearest model; ``value`` is its distance.

    ``seconds`` says how long the start, the restricted masters and the pricing took, and all of it together.
    """


def fit(
    data: ChoiceCounts | ArrayLike,
    assortments: Assortments | None = None,
    *,
    norm: Norm = "l1",
    weighted: bool = False,
    tolerance: float = 1e-7,
    warm_rounds: int = 1000,
    smoothing: float = 0.5,
    max_iterations: int = 10_000,
    max_seconds: float = np.inf,
    oracle: MakeOracle | None = None,
    ties: Ties = "random",
    seed: int = 0,
) -> ColumnGeneration:
    """The distribution over rankings nearest to the frequencies (Appendix B.3), proven nearest up to ``tolerance``.

    The restricted master is solved by the primal simplex method from its last basis; the oracle prices, and gives a
    column per first item. It starts from the rankings of ``warm_rounds`` rounds of mirror descent (0: from scratch, as
    published); answers are the same, sooner. ``weighted`` weighs offers by the roots of their observations.

    >>> offers = Assortments([("tea", "pie"), ("tea", "pie", "nothing")])
    >>> found = fit([0.4, 0.6, 0.5, 0.2, 0.3], offers)       # tea gains when nothing joins: no ranking model does that
    >>> found.proven, round(found.value, 6), round(found.bound, 6)
    (True, 0.2, 0.2)
    """
    started = perf_counter()
    number_between("tolerance", tolerance, 0.0)
    number_between("smoothing", smoothing, 0.0, 0.99)
    number_between("max_seconds", max_seconds, 0.0)
    whole_number("max_iterations", max_iterations, least=1)
    limits = Limits(tolerance, max_iterations=max_iterations, max_seconds=max_seconds)
    observed = observe(data, assortments)
    search = begin(observed, ball(observed.assortments, norm, _weights(data, weighted)), oracle, ties, seed)
    search.smoothing = smoothing
    search.add(warm_start(observed, whole_number("warm_rounds", warm_rounds), seed))
    begun = perf_counter()
    best = search.run(limits)
    model = observed.model(search.columns.orders[: best.weights.size], best.weights, ties, seed)
    search.seconds |= {"start": begun - started, "total": perf_counter() - started}
    proven = best.gap <= max(tolerance, 1e-12)
    return ColumnGeneration(
        model, best.value, best.bound, proven, search.iterations, len(search.columns), search.seconds
    )


def begin(observed: Observed, region: Ball, oracle: MakeOracle | None, ties: Ties, seed: int) -> Search:
    """A search over the observed offers, with the rankings that please the data best as first columns."""
    offers = observed.assortments
    search = Search(observed, Master(observed, region), oracle_for(offers, oracle, ties, seed), Columns(offers))
    search.add(price(search.oracle, -observed.frequencies)[0])
    return search


def warm_start(observed: Observed, rounds: int, seed: int) -> list[Codes]:
    """The rankings that mirror descent finds for the l2 distance in so many rounds."""
    if not rounds:
        return []
    offers = observed.assortments
    solver = Solver(offers, L2(offers), MirrorDescent(horizon=rounds), auto(offers, seed=seed))
    run = Run(solver, tolerance=0.0)
    run.advance_many(Target(observed.frequencies), rounds)
    return list(solver.model(run.state).orders)


def _weights(data: ChoiceCounts | ArrayLike, weighted: bool) -> Vec | None:
    if not weighted:
        return None
    if not isinstance(data, ChoiceCounts):
        raise ValueError("Frequencies do not say how often an offer was seen: give ChoiceCounts to weigh by them.")
    weights = np.array(observation_weights(data))
    return weights[weights > 0.0]
