"""Column generation for the likelihood: interior-point steps over all known rankings, with pricing after each."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from rankstream._core.threads import one_blas_thread
from rankstream._core.types import Codes, Vec
from rankstream.columns.column_finder import ColumnFinder
from rankstream.columns.data import Columns, Limits, Minimum, on_top
from rankstream.columns.losses import KullbackLeibler

CENTRING = 0.2
MAX_STEP_TO_BOUNDARY = 0.99
MAX_HALVINGS = 30


def minimise(loss: KullbackLeibler, finder: ColumnFinder, limits: Limits, first: Iterable[Codes] = ()) -> Minimum:
    """The least divergence of any distribution over rankings, up to the tolerance, with a proven bound.

    The systems are small, so one thread is fastest; with more, busy cores wait for each other.
    """
    with one_blas_thread():
        return _Interior(loss, finder, list(first)).run(limits)


@dataclass
class _Interior:
    """A primal-dual interior-point method whose columns grow.

    Finding columns is cheap, so it happens at every step rather than at optimal masters; the central path's
    well-centred duals make good columns. The barrier follows the proven gap: CENTRING * gap, shared by all columns.
    """

    loss: KullbackLeibler
    finder: ColumnFinder
    first: list[Codes]
    columns: Columns = field(init=False)
    seconds: dict[str, float] = field(default_factory=lambda: {"master": 0.0, "pricing": 0.0})

    def __post_init__(self) -> None:
        offers, frequencies = self.finder.assortments, self.loss.observed.frequencies
        self.columns = Columns(offers)
        self.columns.add([*on_top(offers), *self.finder.cheapest(-frequencies).rankings, *self.first])
        self.weights = np.full(len(self.columns), 1.0 / len(self.columns))
        self.slack = np.full(len(self.columns), 0.1)
        self.barrier = np.inf

    @property
    def _matrix(self) -> Vec:
        return self.columns.vertices[:, self.loss.places]

    def run(self, limits: Limits) -> Minimum:
        """Steps until the gap is small enough, or patience ends."""
        began, bound, best = perf_counter(), -np.inf, (np.inf, self.weights)
        iterations = 0
        while iterations < limits.max_rounds:
            iterations += 1
            point = self.weights @ self._matrix
            value = self.loss.value(point)
            rankings, gap, seen = self._find_columns(point)
            if value <= best[0]:
                best = (value, self.weights)
            bound = max(bound, value - gap)
            stuck = seen <= 0.1 * limits.tolerance  # the oracle sees nothing better, but cannot prove it
            if best[0] - bound <= limits.tolerance or stuck or perf_counter() - began > limits.budget:
                break
            if limits.watch(f"step {iterations:,}, gap {best[0] - bound:.2g}"):
                break
            start = perf_counter()
            self._step(rankings, max(seen, 1e-15))
            self.seconds["master"] += perf_counter() - start
        return self._found(*best, bound, iterations, limits.tolerance)

    def _find_columns(self, point: Vec) -> tuple[Codes, float, float]:
        """Rankings that pay, how much less than now anything can lose, and how much as far as the oracle sees."""
        start = perf_counter()
        slope = self.loss.slope(point)
        costs = np.zeros(self.finder.assortments.n_coordinates)
        costs[self.loss.places] = slope
        now = float(slope @ point)
        answer = self.finder.cheapest(costs, below=now)
        self.seconds["pricing"] += perf_counter() - start
        return answer.rankings, self.loss.slack(answer.bound, now), self.loss.slack(answer.value, now)

    def _step(self, rankings: Codes, gap: float) -> None:
        """Take the columns in, and make one Newton step towards the central path."""
        new = len(self.columns.add(rankings))
        aim = CENTRING * gap / len(self.columns)
        self.barrier = aim if new else min(aim, self.barrier)
        if new:
            self.slack = np.append(self.slack, np.full(new, self.barrier**0.5))
            self.weights = np.append(self.weights, np.full(new, self.barrier**0.5))
            self.weights = self.weights / self.weights.sum()
        matrix = self._matrix
        point = self.weights @ matrix
        pull = self.barrier / self.weights - matrix @ self.loss.slope(point)
        solved = self._solve(matrix, self.loss.curvature(point), np.stack((pull, np.ones(pull.size)), axis=1))
        move = solved[:, 0] - solved[:, 1] * (solved[:, 0].sum() / solved[:, 1].sum())
        change = self.barrier / self.weights - self.slack - self.slack / self.weights * move
        weights = self.weights + self._length(matrix, move, float(pull @ move)) * move
        self.weights = weights / weights.sum()
        self.slack = self.slack + _longest(self.slack, change) * change

    def _length(self, matrix: Vec, move: Vec, gain: float) -> float:
        """How far to go: as far as there is weight left, and not so far that loss and barrier rise."""

        def height(weights: Vec) -> float:
            return self.loss.value(weights @ matrix) - self.barrier * float(np.log(weights).sum())

        length, here = _longest(self.weights, move), height(self.weights)
        for _ in range(MAX_HALVINGS):
            if height(self.weights + length * move) <= here - 1e-4 * length * gain + 1e-14 * abs(here):
                break
            length *= 0.5
        return length

    def _solve(self, matrix: Vec, curvature: Vec, right: Vec) -> Vec:
        """(matrix diag(curvature) matrix^T + diag(slack / weights))^-1 right, with a heavier diagonal if need be."""
        system = (matrix * curvature) @ matrix.T
        diagonal = np.diag_indices_from(system)
        largest = float(system[diagonal].max())
        system[diagonal] += self.slack / self.weights
        for extra in (0.0, 1e-15, 1e-12, 1e-9):
            system[diagonal] += extra * largest
            try:
                factor = cho_factor(system, lower=True, check_finite=False)
            except LinAlgError:
                continue
            solved: Vec = cho_solve(factor, right, check_finite=False)
            return solved
        raise RuntimeError("The Newton system is not positive definite: raise the tolerance.")

    def _found(self, value: float, weights: Vec, bound: float, iterations: int, tolerance: float) -> Minimum:
        """The result, without the columns that it can do without at this tolerance."""
        matrix, orders = self.columns.vertices[: weights.size], self.columns.orders[: weights.size]
        for least in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8):
            kept = np.where(weights >= least, weights, 0.0)
            if not kept.any() or not matrix[kept > 0.0][:, self.loss.places].any(axis=0).all():
                continue
            kept = kept / kept.sum()
            lost = self.loss.value((kept @ matrix)[self.loss.places])
            if lost - bound <= tolerance:
                value, weights = lost, kept
                break
        return Minimum(orders, weights, weights @ matrix, value, bound, iterations, self.seconds)


def _longest(values: Vec, move: Vec) -> float:
    """The longest step that keeps all values positive, at most 1."""
    down = move < 0.0
    return float(min(1.0, MAX_STEP_TO_BOUNDARY * (values[down] / -move[down]).min(initial=np.inf)))
