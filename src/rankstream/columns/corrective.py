"""The fully corrective engine: after every oracle call, the best weights for all rankings so far."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from rankstream import distances, oracles
from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Vec
from rankstream._core.watch import Watch, until, unwatched
from rankstream.columns.column_finder import ColumnFinder
from rankstream.columns.column_search import ColumnSearch, Goal, PlainNorm, RestrictedMaster
from rankstream.columns.master import LinearMaster
from rankstream.columns.proofs import Prover
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts, Target, as_target
from rankstream.distances import L1, L2, Distance, HighNorm, LInf
from rankstream.models.nearest import NearestMixture
from rankstream.models.rankings import RankingModel
from rankstream.oracles import DenseOracle, Oracle, SearchOracle, Ties
from rankstream.oracles.selection import proving_table
from rankstream.solver.runs import Estimate, Stop

SEED_GAP = 1e-2  # in l2, at which linear programs take over; benchmarks/corrective.py times both
MIN_SLOW_SETS = 2**25  # sets of items in a table; with half as many, asking it in every round is better
PROVEN_SHARE = 0.999  # of the distance, proven


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

    ``prove`` is for l2 where no table is quick: then rounds are searches, and proofs come from cuts and, where memory
    and time allow, from a table that is asked now and then (``proving.Prover``).

    >>> offers = Assortments([("tea", "pie"), ("tea", "pie", "nothing")])
    >>> found = fit_nearest(offers, [0.4, 0.6, 0.5, 0.2, 0.3])  # tea gains when nothing joins: no ranking does
    >>> round(found.certificate.upper, 6), round(found.certificate.lower, 6)
    (0.092582, 0.092582)
    """
    whole_number("max_rounds", max_rounds, least=1)
    number_between("tolerance", tolerance, 0.0)
    if stop not in ("mae", "gap"):
        raise ValueError(f"Unknown stopping rule {stop!r}: choose 'mae' or 'gap'.")
    if not isinstance(assortments, Assortments):
        raise ValueError(f"The assortments must be an Assortments, not {type(assortments).__name__}.")
    norm = _supported(distances.make(distance, assortments))
    target = as_target(assortments, data)
    offer_weights = seen_weights(norm, target)
    if not offer_weights.any():
        raise ValueError("No offer with a positive weight was observed: observe some choices first.")
    if oracle is None:
        oracle = oracles.auto(assortments, ties, whole_number("seed", seed))
    if not hasattr(oracle, "cheapest"):
        raise ValueError(f"The oracle {oracle!r} has no method cheapest: leave it out, or see oracles.Oracle.")
    for part in (norm, oracle):
        if getattr(part, "assortments", assortments) != assortments:
            raise ValueError(f"The {type(part).__name__} was created for other assortments: create it for these.")
    goal = Goal(stop, tolerance)
    if prove and isinstance(norm, HighNorm) and is_slow(oracle):
        search, nearest = search_and_prove(norm, target, oracle, goal, max_rounds, watch)
        return search.result(nearest)
    search = ColumnSearch(norm, target, ColumnFinder(oracle, assortments), goal, max_rounds, watch)
    return search.result(run_search(search, offer_weights))


def is_slow(oracle: Oracle) -> bool:
    """Whether it is a search, or a table so large that searches find more in the time that it takes to answer."""
    return isinstance(oracle, SearchOracle) or (isinstance(oracle, DenseOracle) and oracle.n_states >= MIN_SLOW_SETS)


def search_and_prove(
    norm: HighNorm, target: Target, oracle: Any, goal: Goal, max_rounds: int = 10_000, watch: Watch = unwatched
) -> tuple[ColumnSearch, NearestMixture]:
    """A fit by searches where an oracle is slow, with proofs before, beside and after it (``proving.Prover``).

    ``oracle`` is a search, or a table that is asked seldom; ``watch`` says when time is up.
    """
    assortments, offer_weights = norm.assortments, seen_weights(norm, target)
    table = oracle if isinstance(oracle, DenseOracle) else proving_table(assortments, oracle.ties, oracle.seed)
    prover = Prover(norm, target, table, watch)
    if isinstance(oracle, DenseOracle):
        oracle = SearchOracle(assortments, oracle.ties, oracle.seed, states=2)
    prover.begin()
    finder = ColumnFinder(oracle, assortments)
    search = ColumnSearch(norm, target, finder, goal, max_rounds, until(watch, prover.searching), prover)
    search.note_proof()
    nearest = NearestMixture(assortments, target.frequencies, offer_weights**2)
    search.run_nearest(nearest, norm)
    if not search.converged:
        prover.finish(PROVEN_SHARE * float(np.sqrt(nearest.squared_distance)))
        search.note_proof()
        if search.stopped and not watch("searching on"):
            search.watch = watch
            search.run_nearest(nearest, norm)
    return search, nearest


def seen_weights(norm: PlainNorm, target: Target) -> Vec:
    """The weights of the offers, but 0 for those that nobody has seen."""
    if target.seen is None:
        return norm.offer_weights
    return np.where(target.seen[norm.assortments.indptr[:-1]], norm.offer_weights, 0.0)


def run_search(search: ColumnSearch, offer_weights: Vec) -> RestrictedMaster:
    """Run the engine that is best for the norm of the search, and return its rankings and weights.

    ``offer_weights`` are those of the norm, but 0 for offers that nobody has seen.
    """
    norm, frequencies, assortments = search.distance, search.target.frequencies, search.finder.assortments
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
        given = f"but not this {type(distance).__name__}: use one of those, or another method"
        raise ValueError(f"The fully corrective engine supports l1, l2 and l-infinity without smoothing, {given}.")
    return cast(PlainNorm, distance)
