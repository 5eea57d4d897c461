"""Column generation: solve over the known rankings, ask the oracle for better ones, and stop with a proof."""

from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.columns.data import Columns, Observed, price
from rankstream.columns.master import FEASIBLE, Master
from rankstream.oracles import Oracle


@dataclass(frozen=True)
class Limits:
    """When to stop: at a small gap, at a value that is low or a bound that is high enough, or out of patience."""

    tolerance: float = 1e-7
    enough: float = -np.inf
    certain: float = np.inf
    max_iterations: int = 10_000
    max_seconds: float = np.inf


@dataclass(frozen=True, eq=False)
class Outcome:
    """The best weights of the columns, their value, and a bound that no distribution over rankings undercuts."""

    weights: Vec
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """How far the value can be from the best one."""
        return self.value - self.bound


@dataclass
class Search:
    """The known columns, the master over them, and the oracle, whose offers may go on after the observed ones.

    First it comes as near to the frequencies as it can; once a ``radius`` is fixed, it makes the offers that go on as
    cheap as they can be within it. Duals are mixed half and half with the best ones so far before the oracle is asked,
    which keeps them from swinging (Wentges); a bound holds at any dual.
    """

    observed: Observed
    master: Master
    oracle: Oracle
    columns: Columns
    smoothing: float = 0.5
    target: Vec = field(default_factory=lambda: np.zeros(0))
    radius: float | None = None
    iterations: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"master": 0.0, "pricing": 0.0})

    def add(self, rankings: list[Codes]) -> int:
        """Take rankings into columns and master; how many were new."""
        new = self.columns.add(rankings)
        if len(new):
            start = perf_counter()
            self.master.add(new[:, : self.master.size], new[:, self.master.size :] @ self.target)
            self.seconds["master"] += perf_counter() - start
        return len(new)

    def aim(self, target: Vec, radius: float) -> None:
        """Turn to the second phase, or to another target within it."""
        self.target, self.radius = target, radius
        self.master.fix_radius(radius, self.columns.vertices[:, self.master.size :] @ target)

    def run(self, limits: Limits) -> Outcome:
        """Generate columns until the gap is small enough, or patience ends."""
        began, best_bound, score = perf_counter(), self._trivial_bound(), -np.inf
        best_dual = np.zeros(self.master.size)
        best = Outcome(np.zeros(0), np.inf, best_bound)
        for _ in range(limits.max_iterations):
            weights, dual, worth = self._solve()
            value = self._value(weights)
            if value <= best.value:
                best = Outcome(weights, value, best_bound)
            if best.value <= limits.enough or best.gap <= limits.tolerance:
                break
            self.iterations += 1
            mix = 0.0 if score == -np.inf else self.smoothing
            added = 0
            for asked in ((1.0 - mix) * dual + mix * best_dual, dual):
                rankings, bound = self._price(asked)
                if bound > score:
                    best_dual, score, best_bound = asked, bound, max(bound, best_bound)
                added = self.add(self._paying(rankings, dual, worth))
                if added:
                    break
            best = Outcome(best.weights, best.value, best_bound)
            done = best.gap <= limits.tolerance or best.bound >= limits.certain
            if not added or done or perf_counter() - began > limits.max_seconds:
                break
        return best

    def _solve(self) -> tuple[Vec, Vec, float]:
        start = perf_counter()
        found = self.master.solve()
        self.seconds["master"] += perf_counter() - start
        return found

    def _costs(self, dual: Vec) -> Vec:
        """What the oracle is asked at a dual."""
        target = self.target if self.target.size else np.zeros(self.columns.assortments.n_coordinates - dual.size)
        return np.concatenate((-dual, target))

    def _price(self, dual: Vec) -> tuple[list[Codes], float]:
        """Rankings that are cheap at this dual, and its Lagrangian bound."""
        start = perf_counter()
        priced = price(self.oracle, self._costs(dual))
        self.seconds["pricing"] += perf_counter() - start
        slack = float(dual @ self.observed.frequencies) + priced.bound
        width = self.master.ball.width(dual)
        if self.radius is not None:
            return priced.rankings, slack - self.radius * width
        return priced.rankings, slack / width if width > 0.0 else 0.0

    def _paying(self, rankings: list[Codes], dual: Vec, worth: float) -> list[Codes]:
        """The rankings that improve on the master's solution."""
        costs, vertex = self._costs(dual), self.columns.assortments.vertex
        return [ranking for ranking in rankings if float(costs @ vertex(ranking)) < worth - FEASIBLE]

    def _value(self, weights: Vec) -> float:
        point = weights @ self.columns.vertices
        if self.radius is None:
            return self.master.ball.distance(point[: self.master.size] - self.observed.frequencies)
        return float(point[self.master.size :] @ self.target)

    def _trivial_bound(self) -> float:
        return 0.0 if self.radius is None else float(self.target.min())
