"""The fully corrective engine: after every oracle call, the best weights for all rankings so far."""

from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from rankstream import distances, oracles
from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.columns.column_search import ColumnSearch, Goal, PlainNorm, RestrictedMaster
from rankstream.columns.linear_master import LinearMaster
from rankstream.columns.pricing import Pricing
from rankstream.columns.proving import table_prover
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts, Target, as_target
from rankstream.distances import L1, L2, Distance, HighNorm, LInf
from rankstream.models.nearest import NearestMixture
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Oracle, Ties
from rankstream.solver.runs import Estimate, Stop

SEED_GAP = 1e-2


def fit_nearest(
    assortments: Assortments,
    data: ChoiceCounts | Target | ArrayLike,
    distance: str | Distance = "l2",
    oracle: Oracle | None = None,
    ties: Ties = "random",
    tolerance: float = 1e-6,
    stop: Stop = "gap",
    max_rounds: int = 10_000,
    seed: int = 0,
    watch: Watch = unwatched,
    prove: bool = False,
) -> Estimate[RankingModel]:
    """The ranking model nearest to frequencies or counts that stand still, to a small certified gap, with few rankings.

    Every oracle call gives many rankings at once, and all weights are then chosen anew: for l2 by Wolfe's method for
    the nearest point of a polytope, for l1 and l-infinity by linear programs that start from the l2 rankings, which
    data that some model fits do not need. Rankings that lose their weight are dropped, and come back if the oracle
    finds them again. A weight per offer goes with the distance object. It ends with tight bounds on both sides, whether
    a ranking model fits the data or not; earlier if ``watch``, which hears the round, the error and the number of
    rankings, says that it is enough.

    Where the oracle is a search, ``prove`` also asks for proofs that take seconds: a table of all sets of items, where
    one fits into memory and the time of the watch (``proving``).

    >>> offers = Assortments([("tea", "pie"), ("tea", "pie", "nothing")])
    >>> found = fit_nearest(offers, [0.4, 0.6, 0.5, 0.2, 0.3])  # tea gains when nothing joins: no ranking does
    >>> round(found.certificate.upper, 6), round(found.certificate.lower, 6)
    (0.092582, 0.092582)
    """
    whole_number("max_rounds", max_rounds, least=1)
    number_between("tolerance", tolerance, 0.0)
    if stop not in ("mae", "gap"):
        raise ValueError(f"There is no stopping rule {stop!r}: choose 'mae' or 'gap'.")
    if not isinstance(assortments, Assortments):
        raise ValueError(f"The assortments must be an Assortments, not {type(assortments).__name__}.")
    norm = _supported(distances.make(distance, assortments))
    target = as_target(assortments, data)
    offer_weights = norm.offer_weights
    if target.seen is not None:
        offer_weights = np.where(target.seen[assortments.indptr[:-1]], offer_weights, 0.0)
    if not offer_weights.any():
        raise ValueError("No offer with a positive weight was observed: observe some choices first.")
    if oracle is None:
        oracle = oracles.auto(assortments, ties, whole_number("seed", seed))
    if not hasattr(oracle, "cheapest"):
        raise ValueError(f"The oracle {oracle!r} has no method cheapest: leave it out, or see oracles.Oracle.")
    for part in (norm, oracle):
        if getattr(part, "assortments", assortments) != assortments:
            raise ValueError(f"The {type(part).__name__} was made for other assortments: make it for these.")
    pricing = Pricing(oracle, assortments)
    prover = table_prover(oracle, watch) if prove and isinstance(norm, HighNorm) else None
    search = ColumnSearch(norm, target, pricing, Goal(stop, tolerance), max_rounds, watch, prover)
    return search.result(run_search(search, offer_weights))


def run_search(search: ColumnSearch, offer_weights: Vec) -> RestrictedMaster:
    """Run the engine that is best for the norm of the search, and return its rankings and weights.

    ``offer_weights`` are those of the norm, but 0 for offers that nobody has seen.
    """
    norm, frequencies, assortments = search.distance, search.target.frequencies, search.pricing.assortments
    nearest = NearestMixture(assortments, frequencies, offer_weights**2)
    if isinstance(norm, HighNorm):
        search.run_nearest(nearest, norm)
        return nearest
    search.run_nearest(nearest, L2(assortments, weights=norm.weights), SEED_GAP)
    if search.converged or search.rounds == search.max_rounds or search.stopped:
        return nearest
    master = LinearMaster(assortments, "l1" if isinstance(norm, L1) else "linf", frequencies, offer_weights)
    master.take(nearest.orders)
    search.run_linear(master)
    return master


def with_fewer(found: Estimate[RankingModel], target: Target, distance: Distance, most: int) -> Estimate[RankingModel]:
    """The same fit with at most ``most`` rankings, those that lose least, certified as the smaller model it is."""
    assortments = cast(PlainNorm, distance).assortments
    model = found.model.sparsify(max_rankings=whole_number("max_rankings", most, least=1), assortments=assortments)
    point = model.probabilities(assortments)
    aim = target.frequencies if target.seen is None else np.where(target.seen, target.frequencies, point)
    upper, before = distance.value(point, aim), found.certificate
    payoff = before.lower + before.oracle_regret
    certificate = replace(before, upper=upper, dual_regret=upper - payoff)
    return replace(found, model=model, certificate=certificate, converged=False)


def _supported(distance: Distance) -> PlainNorm:
    known = isinstance(distance, L1 | LInf | HighNorm) and not distance.smoothing
    if not known or (isinstance(distance, HighNorm) and distance.q != 2.0):
        given = f"not for this {type(distance).__name__}: use one of those, or another method"
        raise ValueError(f"The fully corrective engine is for l1, l2 and l-infinity without smoothing, {given}.")
    return cast(PlainNorm, distance)
