"""Bertsimas and Misic's estimator: the nearest ranking model in the l1 or l-infinity norm, by column generation."""

from dataclasses import dataclass
from time import perf_counter
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from rankstream import distances
from rankstream._core.arguments import number_between, whole_number
from rankstream._core.watch import Deadline
from rankstream.columns.column_search import ColumnSearch, Goal, PlainNorm
from rankstream.columns.corrective import run_search
from rankstream.columns.data import MakeOracle, observe
from rankstream.columns.master import Norm
from rankstream.columns.solved import ProvenFit
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts, Target
from rankstream.oracles import Ties


@dataclass(frozen=True, eq=False)
class ColumnGeneration(ProvenFit):
    """The nearest model; ``value`` is its distance.

    ``seconds`` says how long the start, the restricted masters and the pricing took, and all of it together.
    """


def fit_column_generation(
    data: ChoiceCounts | ArrayLike,
    assortments: Assortments | None = None,
    *,
    norm: Norm = "l1",
    weighted: bool = False,
    tolerance: float = 1e-7,
    max_iterations: int = 10_000,
    max_seconds: float = np.inf,
    oracle: MakeOracle | None = None,
    ties: Ties = "random",
    seed: int = 0,
) -> ColumnGeneration:
    """The distribution over rankings nearest to the frequencies (Appendix B.3), proven nearest up to ``tolerance``.

    By the engine of ``corrective.fit_nearest``: first the rankings of the nearest model in l2, then linear programs,
    solved by the primal simplex method from their last basis, whose prices the oracle answers with a column per first
    item.

    Parameters
    ----------
    data : ChoiceCounts, or array of frequencies
        The choices; frequencies need ``assortments`` as well.
    assortments : Assortments, optional
        The offers that frequencies belong to.
    norm : "l1" or "linf"
        The norm of the distance.
    weighted : bool
        Whether an offer counts by the root of its observations; needs ChoiceCounts.
    tolerance : float
        The proven gap at which the search ends, in units of the distance.
    max_iterations : int
        How often the oracle is asked at most.
    max_seconds : float
        The most seconds; what is not proven by then is reported as such.
    oracle : callable, optional
        From assortments to an oracle; without it ``oracles.auto``.
    ties : "random", "first" or "last"
        Which of the rankings that choose alike from all offers is kept.
    seed : int
        Seed for the ties.

    >>> offers = Assortments([("tea", "pie"), ("tea", "pie", "nothing")])
    >>> found = fit_column_generation([0.4, 0.6, 0.5, 0.2, 0.3], offers)  # tea gains when nothing joins
    >>> found.proven, round(found.value, 6), round(found.bound, 6)
    (True, 0.2, 0.2)

    """
    started = perf_counter()
    number_between("tolerance", tolerance, 0.0)
    deadline = Deadline(number_between("max_seconds", max_seconds, 0.0))
    rounds = whole_number("max_iterations", max_iterations, least=1)
    if norm not in ("l1", "linf"):
        raise ValueError(f"There is no column generation for the norm {norm!r}: choose 'l1' or 'linf'.")
    observed = observe(data, assortments)
    offers, goal = observed.assortments, Goal("gap", max(tolerance, 1e-12))
    distance = cast(PlainNorm, distances.make(norm, offers, weights=_weights(data, weighted)))
    pricing = observed.pricing(oracle, ties, seed)
    begun = perf_counter()
    search = ColumnSearch(distance, Target(observed.frequencies), pricing, goal, rounds, deadline)
    master = run_search(search, distance.offer_weights)
    found = search.certificate(master)
    model = observed.model(master.orders, master.weights, ties, seed)
    seconds = search.seconds | {"start": begun - started, "total": perf_counter() - started}
    return ColumnGeneration(
        model, found.upper, found.lower, search.converged, search.rounds, len(master.orders), seconds
    )


def _weights(data: ChoiceCounts | ArrayLike, weighted: bool) -> tuple[float, ...] | None:
    if not weighted:
        return None
    if not isinstance(data, ChoiceCounts):
        raise ValueError("Frequencies do not say how often an offer was seen: give ChoiceCounts to weigh by them.")
    return tuple(weight for weight in distances.observation_weights(data) if weight > 0.0)
