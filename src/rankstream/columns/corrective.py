"""The fully corrective engine: every oracle call is followed by the best weights for all rankings so far."""

from array import array
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from rankstream import distances, oracles
from rankstream._core import ROUNDING, Codes, Vec, Watch, number_between, until, unwatched, whole_number
from rankstream.certificate import Certificate
from rankstream.columns.data import ColumnFinder, FoundColumns, by_tie_rule
from rankstream.columns.master import LinearMaster
from rankstream.columns.proofs import Prover, TableSchedule
from rankstream.data import Assortments, ChoiceCounts, Target, as_target
from rankstream.distances import L1, L2, Distance, HighNorm, LInf
from rankstream.models.nearest import NearestMixture
from rankstream.models.rankings import RankingModel
from rankstream.oracles import DenseOracle, Oracle, SearchOracle, Ties
from rankstream.oracles.selection import proving_table
from rankstream.solver.runs import COLUMNS, Estimate, History, Stop

SEED_GAP = 1e-2  # gap in l2 at which linear programs take over; benchmarks/corrective.py times both
MIN_SLOW_SETS = 2**25  # sets of items in a table; with half, querying it in every round is better (in no benchmark)
PROVEN_SHARE = 0.999  # of the distance, proven
MAX_GAP_SHARE = 0.1  # of the distance: a larger gap is too rough to start linear programs from; an estimate
MAX_RETAKES = 5  # how often the rankings of a table are added, since new weights may need others; an estimate
PlainNorm: TypeAlias = L1 | HighNorm | LInf
RestrictedMaster: TypeAlias = NearestMixture | LinearMaster
"""Finds the best weights of the rankings so far."""


@dataclass(frozen=True)
class Goal:
    """The stopping rule: a mean absolute error, a certified gap, or a gap between the squared bounds.

    The last also stops once it is certain whether the least squared distance is below ``against``.
    """

    stop: Literal["mae", "gap", "squared-gap"]
    tolerance: float
    against: float = np.nan

    def is_met(self, mae: float, value: float, lower: float) -> bool:
        """Whether to stop at this error and distance, and this lower bound on any distance."""
        if self.stop == "mae":
            return mae <= self.tolerance
        if self.stop == "gap":
            return value - lower <= self.tolerance
        square, least = value * value, lower * lower
        return square - least <= self.tolerance or square < self.against or least >= self.against


@dataclass
class ColumnSearch:
    """The loop of finding columns and weights, with the best bound so far, the history and timings."""

    distance: PlainNorm
    target: Target
    finder: ColumnFinder
    goal: Goal
    max_rounds: int
    watch: Watch = unwatched
    prover: Prover | None = None
    rounds: int = 0
    converged: bool = False
    stopped: bool = False
    lower: float = 0.0  # the bound of the dual 0
    exact: bool = True
    best_dual: Vec | None = None
    rows: "array[float]" = field(default_factory=lambda: array("d"))
    seconds: dict[str, float] = field(default_factory=lambda: {"master": 0.0, "pricing": 0.0})

    def run_nearest(self, master: NearestMixture, guide: HighNorm, enough: float = 0.0) -> None:
        """Run Wolfe's method with the duals of an l2 distance, until the goal, the gap ``enough``, or no progress.

        The gap must also be a small part of the distance, so that it goes on if a model fits the data.
        """
        lower, fruitless = 0.0, 0
        while self.rounds < self.max_rounds:
            dual = guide.respond(master.point, self._aim(master))
            bound, rankings = self._find_columns(guide, dual, self._aim(master), master.orders)
            lower = max(lower, bound)
            if guide is self.distance:
                self._note(dual, bound)
            moved = self._take(master, rankings)
            value = guide.value(master.point, self._aim(master))
            fruitless = 0 if moved else fruitless + 1
            table = None if self.prover is None or guide is not self.distance else self.prover.table
            if table is not None and table.is_due(value, self.lower, fruitless):
                fruitless = 0 if self._query(table, master, guide) else fruitless
                lower, value = self.lower, guide.value(master.point, self._aim(master))
            self._record(master, master.count)
            near = value - lower <= min(enough, MAX_GAP_SHARE * value)
            if self.converged or near or fruitless == self.finder.max_fruitless or self._is_stopped():
                break
            if not moved:
                master.refresh()

    def _query(self, table: TableSchedule, master: NearestMixture, guide: HighNorm) -> bool:
        """Query the table and add its rankings while they help. Returns whether the fit or the bound improved."""
        aim, before = self._aim(master), self.lower
        dual = table.dual(guide.respond(master.point, aim), self.best_dual)
        start, costs = perf_counter(), guide.costs(dual)
        answer = table(costs)
        self.seconds["pricing"] += perf_counter() - start
        self._note(dual, self._proven(guide, dual, aim, answer))
        if self.prover is not None:
            self.prover.learn(costs, answer.bound)
            self.note_proof()
        moved = 0
        while moved < MAX_RETAKES and self._take(master, answer.rankings):
            moved += 1
        return moved > 0 or self.lower > before

    def note_proof(self) -> None:
        """Use the bound of the prover's cuts if it is better."""
        if self.prover is not None:
            dual, lower = self.prover.proven()
            if dual is not None:
                self._note(dual, lower)

    def run_linear(self, master: LinearMaster) -> None:
        """Run column generation with the duals of the restricted program, until no ranking pays."""
        moved = True
        while self.rounds < self.max_rounds and moved and not self.converged:
            dual = master.dual()
            bound, rankings = self._find_columns(self.distance, dual, self._aim(master), master.orders)
            self._note(dual, bound)
            moved = self._take(master, rankings)
            self._record(master, int(np.count_nonzero(master.weights)))
            if self._is_stopped():
                break

    def _is_stopped(self) -> bool:
        error, rankings = self.rows[-5], int(self.rows[-2])
        self.stopped = self.watch(f"round {self.rounds:,}, error {error:.5f}, {rankings:,} rankings")
        return self.stopped

    def _aim(self, master: RestrictedMaster) -> Vec:
        """Return the frequencies; for offers without data, the model's own probabilities."""
        if self.target.seen is None:
            return self.target.frequencies
        return np.where(self.target.seen, self.target.frequencies, master.point)

    def _find_columns(
        self, distance: PlainNorm, dual: Vec, aim: Vec, known: Codes | None = None
    ) -> tuple[float, Codes]:
        """Return the bound of a dual and its rankings; ``known`` are the rankings in use."""
        costs = distance.costs(dual)
        start = perf_counter()
        answer = self.finder(costs, known)
        self.seconds["pricing"] += perf_counter() - start
        self.exact = self.exact and answer.exact
        return self._proven(distance, dual, aim, answer), answer.rankings

    def _proven(self, distance: PlainNorm, dual: Vec, aim: Vec, answer: FoundColumns) -> float:
        """Return the lower bound from the answer to a dual, minus a margin for rounding."""
        costs, offset = distance.costs(dual), distance.offset(dual, aim)
        return answer.bound - offset - ROUNDING * costs.size * (1.0 + float(np.abs(costs).sum()) + abs(offset))

    def _take(self, master: RestrictedMaster, rankings: Codes) -> bool:
        start = perf_counter()
        moved = master.take(rankings)
        self.seconds["master"] += perf_counter() - start
        return moved

    def _note(self, dual: Vec, bound: float) -> None:
        if bound > self.lower:
            self.lower, self.best_dual = bound, dual

    def _record(self, master: RestrictedMaster, n_rankings: int) -> None:
        self.rounds += 1
        aim, seen = self._aim(master), self.target.seen
        errors = np.abs(master.point - aim)
        mae = float((errors if seen is None else errors[seen]).mean())
        value = self.distance.value(master.point, aim)
        self.rows.extend((self.target.observations, mae, mae, value, n_rankings, value - self.lower))
        self.converged = self.goal.is_met(mae, value, self.lower)

    def result(self, master: RestrictedMaster) -> Estimate[RankingModel]:
        """Return the model, largest weight first, and the certificate."""
        assortments = self.distance.assortments
        used = np.flatnonzero(master.weights)
        heaviest = used[np.argsort(-master.weights[used], kind="stable")]
        orders = by_tie_rule(assortments, self.finder.oracle, master.orders[heaviest])
        model = RankingModel.from_codes(
            assortments.items, orders, master.weights[heaviest] / master.weights.sum(), assortments.no_choice_code
        )
        certificate = self.certificate(master)
        history = History(*np.frombuffer(self.rows).reshape(-1, len(COLUMNS)).T.copy())
        history.gap[-1] = certificate.gap
        return Estimate(model, certificate, self.rounds, self.converged, history)

    def certificate(self, master: RestrictedMaster) -> Certificate:
        """Return the bounds. Price the last dual too, unless there is a prover or the gap is met."""
        aim, payoff = self._aim(master), 0.0
        if self.prover is None and (self.goal.stop == "mae" or not self.converged):
            dual = master.dual() if isinstance(master, LinearMaster) else self.distance.respond(master.point, aim)
            self._note(dual, self._find_columns(self.distance, dual, aim)[0])
        if self.best_dual is not None:
            payoff = float(self.distance.costs(self.best_dual) @ master.point)
            payoff -= self.distance.offset(self.best_dual, aim)
        upper = self.distance.value(master.point, aim)
        self.converged |= self.goal.is_met(np.inf, upper, self.lower)
        return Certificate(upper, self.lower, payoff - self.lower, upper - payoff, self.exact)


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
    """Fit the ranking model nearest to constant frequencies or counts, to a small certified gap, with few rankings.

    Every oracle call gives many rankings at once; then all weights are optimised again. For l2 that is Wolfe's method
    for the nearest point of a polytope. For l1 and l-infinity it is a linear program that starts from the l2 rankings
    (not needed if some model fits the data). Rankings without weight are dropped. Weights per offer belong to the
    distance object. The fit ends with tight bounds on both sides, or earlier if ``watch`` returns True.

    ``prove`` is for l2 when no table is fast: rounds are then searches, and proofs come from cuts and, if memory and
    time allow, from occasional queries to a table (``proofs.Prover``).

    >>> offers = Assortments([("tea", "pie"), ("tea", "pie", "nothing")])
    >>> fit = fit_nearest(offers, [0.4, 0.6, 0.5, 0.2, 0.3])  # no ranking model: tea gains from a larger offer
    >>> round(fit.certificate.upper, 6), round(fit.certificate.lower, 6)
    (0.092582, 0.092582)
    """
    whole_number("max_rounds", max_rounds, least=1)
    number_between("tolerance", tolerance, 0.0)
    if stop not in ("mae", "gap"):
        raise ValueError(f"Unknown stopping rule {stop!r}: choose 'mae' or 'gap'.")
    if not isinstance(assortments, Assortments):
        raise ValueError(f"The assortments must be an Assortments, not {type(assortments).__name__}.")
    norm = _check_norm(distances.make(distance, assortments))
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
    """Whether it is a search, or a table so large that searches find more in the time of one query."""
    return isinstance(oracle, SearchOracle) or (isinstance(oracle, DenseOracle) and oracle.n_states >= MIN_SLOW_SETS)


def search_and_prove(
    norm: HighNorm, target: Target, oracle: Any, goal: Goal, max_rounds: int = 10_000, watch: Watch = unwatched
) -> tuple[ColumnSearch, NearestMixture]:
    """Fit by searches when the oracle is slow, with proofs before, during and after (``proofs.Prover``).

    ``oracle`` is a search, or a table that is queried rarely.
    """
    assortments, offer_weights = norm.assortments, seen_weights(norm, target)
    table = oracle if isinstance(oracle, DenseOracle) else proving_table(assortments, oracle.ties, oracle.seed)
    prover = Prover(norm, target, table, watch)
    if isinstance(oracle, DenseOracle):
        oracle = SearchOracle(assortments, oracle.ties, oracle.seed)
    prover.begin()
    finder = ColumnFinder(oracle, assortments)
    search = ColumnSearch(norm, target, finder, goal, max_rounds, until(watch, prover.searching), prover)
    search.note_proof()
    nearest = NearestMixture(assortments, target.frequencies, offer_weights**2)
    search.run_nearest(nearest, norm)
    if not search.converged:
        prover.finish(PROVEN_SHARE * float(np.sqrt(nearest.squared_distance)))
        search.note_proof()
        if search.stopped and not watch("searching again"):
            search.watch = watch
            search.run_nearest(nearest, norm)
    return search, nearest


def seen_weights(norm: PlainNorm, target: Target) -> Vec:
    """Return the weights of the offers, with 0 for offers without data."""
    if target.seen is None:
        return norm.offer_weights
    return np.where(target.seen[norm.assortments.indptr[:-1]], norm.offer_weights, 0.0)


def run_search(search: ColumnSearch, offer_weights: Vec) -> RestrictedMaster:
    """Run the best engine for the norm, and return its rankings and weights.

    ``offer_weights`` are those of the norm, with 0 for offers without data (``seen_weights``).
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


def with_fewer(
    fit: Estimate[RankingModel], target: Target, distance: Distance, max_rankings: int
) -> Estimate[RankingModel]:
    """Reduce a fit to ``max_rankings`` rankings that lose least, and adapt its certificate."""
    assortments = cast(PlainNorm, distance).assortments
    whole_number("max_rankings", max_rankings, least=1)
    model = fit.model.sparsify(max_rankings=max_rankings, assortments=assortments)
    point = model.probabilities(assortments)
    aim = target.frequencies if target.seen is None else np.where(target.seen, target.frequencies, point)
    upper, before = distance.value(point, aim), fit.certificate
    payoff = before.lower + before.oracle_regret
    certificate = replace(before, upper=upper, dual_regret=upper - payoff)
    return replace(fit, model=model, certificate=certificate, converged=False)


def _check_norm(distance: Distance) -> PlainNorm:
    supported = isinstance(distance, L1 | LInf | HighNorm) and not distance.smoothing
    if not supported or (isinstance(distance, HighNorm) and distance.q != 2.0):
        raise ValueError(
            "The fully corrective engine supports l1, l2 and l-infinity without smoothing, but not this "
            f"{type(distance).__name__}: use one of those, or another method."
        )
    return cast(PlainNorm, distance)
