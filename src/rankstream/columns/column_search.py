"""ColumnSearch: ask the oracle, take its rankings in, choose all weights anew; with bounds and a history."""

from array import array
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal, Protocol, TypeAlias

import numpy as np

from rankstream._core.types import ROUNDING, Codes, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.certificate import Certificate
from rankstream.columns.column_finder import ColumnFinder, FoundColumns, by_tie_rule
from rankstream.columns.master import LinearMaster
from rankstream.columns.proofs import Prover, TableSchedule
from rankstream.data.counts import Target
from rankstream.distances import L1, HighNorm, LInf
from rankstream.models.nearest import NearestMixture
from rankstream.models.rankings import RankingModel
from rankstream.solver.runs import COLUMNS, Estimate, History

MAX_GAP_SHARE = 0.1  # of the distance: a larger gap is too rough to begin linear programs from
MAX_RETAKES = 5  # how often the rankings of a table are taken in, as weights that have moved may want others of them
PlainNorm: TypeAlias = L1 | HighNorm | LInf


@dataclass(frozen=True)
class Goal:
    """When it is enough: at a mean absolute error, a certified gap, or a gap between the squares of its bounds.

    The last also ends as soon as it is known whether the least square is below ``against``.
    """

    stop: Literal["mae", "gap", "squared-gap"]
    tolerance: float
    against: float = np.nan

    def is_met(self, mae: float, value: float, lower: float) -> bool:
        """Whether a mixture with this error and distance, and this bound on any distance, will do."""
        if self.stop == "mae":
            return mae <= self.tolerance
        if self.stop == "gap":
            return value - lower <= self.tolerance
        square, least = value * value, lower * lower
        return square - least <= self.tolerance or square < self.against or least >= self.against


class RestrictedMaster(Protocol):
    """What finds the best weights of the rankings so far."""

    point: Vec

    @property
    def orders(self) -> Codes:
        """The rankings."""

    @property
    def weights(self) -> Vec:
        """Their weights."""

    def take(self, rankings: Codes) -> bool:
        """Take in new rankings; False if they change nothing."""


@dataclass
class ColumnSearch:
    """The loop of finding columns and re-weighting: the best bound so far, history, and the seconds of each part."""

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
    lower: float = 0.0  # what the dual 0 proves
    exact: bool = True
    best_dual: Vec | None = None
    rows: "array[float]" = field(default_factory=lambda: array("d"))
    seconds: dict[str, float] = field(default_factory=lambda: {"master": 0.0, "pricing": 0.0})

    def run_nearest(self, master: NearestMixture, guide: HighNorm, enough: float = 0.0) -> "ColumnSearch":
        """Wolfe's method with the duals of an l2 distance, until the goal, a gap of its own, or no progress.

        A gap that is ``enough`` must also be a small part of the distance: where a model fits the data, it goes on.
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
                fruitless = 0 if self._ask(table, master, guide) else fruitless
                lower, value = self.lower, guide.value(master.point, self._aim(master))
            self._record(master, master.count)
            near = value - lower <= min(enough, MAX_GAP_SHARE * value)
            if self.converged or near or fruitless == self.finder.patience or self._is_stopped():
                break
            if not moved:
                master.refresh()
        return self

    def _ask(self, table: TableSchedule, master: NearestMixture, guide: HighNorm) -> bool:
        """Ask the table, and take its rankings as often as they lead nearer; whether they did, or more is proven."""
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
        """Take over what the prover's cuts prove."""
        if self.prover is not None:
            dual, lower = self.prover.proven()
            if dual is not None:
                self._note(dual, lower)

    def run_linear(self, master: LinearMaster) -> "ColumnSearch":
        """Column generation: the duals of the restricted program, until no ranking pays."""
        moved = True
        while self.rounds < self.max_rounds and moved and not self.converged:
            dual = master.dual()
            bound, rankings = self._find_columns(self.distance, dual, self._aim(master), master.orders)
            self._note(dual, bound)
            moved = self._take(master, rankings)
            self._record(master, int(np.count_nonzero(master.weights)))
            if self._is_stopped():
                break
        return self

    def _is_stopped(self) -> bool:
        error, rankings = self.rows[-5], int(self.rows[-2])
        self.stopped = self.watch(f"round {self.rounds:,}, error {error:.5f}, {rankings:,} rankings")
        return self.stopped

    def _aim(self, master: RestrictedMaster) -> Vec:
        """The frequencies, where there are none the model's own probabilities."""
        if self.target.seen is None:
            return self.target.frequencies
        return np.where(self.target.seen, self.target.frequencies, master.point)

    def _find_columns(
        self, distance: PlainNorm, dual: Vec, aim: Vec, known: Codes | None = None
    ) -> tuple[float, Codes]:
        """What a dual proves, less rounding, and the rankings that answer it; ``known`` are those in use."""
        costs = distance.costs(dual)
        start = perf_counter()
        answer = self.finder(costs, known)
        self.seconds["pricing"] += perf_counter() - start
        self.exact = self.exact and answer.exact
        return self._proven(distance, dual, aim, answer), answer.rankings

    def _proven(self, distance: PlainNorm, dual: Vec, aim: Vec, answer: FoundColumns) -> float:
        """What the answer to a dual proves, less rounding."""
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
        """The model, heaviest ranking first, and the certificate."""
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
        """The bounds; the last weights are asked what they prove, unless that is enough, or a prover's business."""
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
