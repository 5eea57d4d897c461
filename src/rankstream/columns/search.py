"""Column generation for ranges: as near to the data as can be, then as cheap as can be within a radius, proven."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.columns.column_finder import ColumnFinder
from rankstream.columns.data import Columns, Limits, Observed
from rankstream.columns.master import FEASIBILITY_TOLERANCE, Master

BEST_DUAL_SHARE = 0.5  # of the dual that is asked about, the best one so far


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best weights of the columns, their value, and a bound that no distribution over rankings undercuts."""

    weights: Vec
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """How far the value can be from the best one."""
        return self.value - self.bound


@dataclass
class RangeSearch:
    """The known columns, the master over them, and pricing, whose offers may go on after the observed ones.

    First it comes as near to the frequencies as it can; once a ``radius`` is fixed, it makes the offers that go on as
    cheap as they can be within it. Duals are mixed half and half with the best ones so far before the oracle is asked,
    which keeps them from swinging (Wentges); a bound holds at any dual. (Nearest models alone are found sooner by
    ``corrective``.)
    """

    observed: Observed
    master: Master
    finder: ColumnFinder
    columns: Columns
    target: Vec
    radius: float | None = field(default=None, init=False)

    def add(self, rankings: Iterable[Codes]) -> int:
        """Take rankings into columns and master; how many were new."""
        new = self.columns.add(rankings)
        if len(new):
            self.master.add(new[:, : self.master.size], new[:, self.master.size :] @ self.target)
        return len(new)

    def aim(self, target: Vec, radius: float) -> None:
        """Turn to the second phase, or to another target within it."""
        self.target, self.radius = target, radius
        self.master.fix_radius(radius, self.columns.vertices[:, self.master.size :] @ target)

    def run(self, limits: Limits) -> Optimum:
        """Generate columns until the gap is small enough, or patience ends."""
        began, best_bound, score = perf_counter(), self._trivial_bound(), -np.inf
        best_dual = np.zeros(self.master.size)
        best = Optimum(np.zeros(0), np.inf, best_bound)
        for _ in range(limits.max_rounds):
            weights, dual, worth = self.master.solve()
            value = self._value(weights)
            if value <= best.value:
                best = Optimum(weights, value, best_bound)
            if best.gap <= limits.tolerance:
                break
            mix = 0.0 if score == -np.inf else BEST_DUAL_SHARE
            added = 0
            for asked in ((1.0 - mix) * dual + mix * best_dual, dual):
                rankings, bound = self._find_columns(asked)
                if bound > score:
                    best_dual, score, best_bound = asked, bound, max(bound, best_bound)
                added = self.add(self._paying(rankings, dual, worth))
                if added:
                    break
            best = Optimum(best.weights, best.value, best_bound)
            if not added or best.gap <= limits.tolerance or perf_counter() - began > limits.budget:
                break
            if limits.watch(f"{len(self.columns):,} rankings, gap {best.gap:.2g}"):
                break
        return best

    def _costs(self, dual: Vec) -> Vec:
        """What the oracle is asked at a dual."""
        return np.concatenate((-dual, self.target))

    def _find_columns(self, dual: Vec) -> tuple[Codes, float]:
        """Rankings that are cheap at this dual, and its Lagrangian bound."""
        answer = self.finder.cheapest(self._costs(dual))
        slack = float(dual @ self.observed.frequencies) + answer.bound
        width = self.master.ball.width(dual)
        if self.radius is not None:
            return answer.rankings, slack - self.radius * width
        return answer.rankings, slack / width if width > 0.0 else 0.0

    def _paying(self, rankings: Codes, dual: Vec, worth: float) -> list[Codes]:
        """The rankings that improve on the master's solution."""
        costs, vertex = self._costs(dual), self.columns.assortments.vertex
        return [ranking for ranking in rankings if float(costs @ vertex(ranking)) < worth - FEASIBILITY_TOLERANCE]

    def _value(self, weights: Vec) -> float:
        point = weights @ self.columns.vertices
        if self.radius is None:
            return self.master.ball.distance(point[: self.master.size] - self.observed.frequencies)
        return float(point[self.master.size :] @ self.target)

    def _trivial_bound(self) -> float:
        return 0.0 if self.radius is None else float(self.target.min())
