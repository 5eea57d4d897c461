"""The restricted master problem of column generation: a linear program in HiGHS that grows by columns."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.columns.data import Observed
from rankstream.data.assortments import Assortments

FEASIBLE = 1e-9
Norm = Literal["l1", "linf"]


@dataclass(frozen=True, eq=False)
class Ball:
    """Points whose weighted l1 distance from the frequencies is at most radius * budget in every group of coordinates.

    One group is the l1 ball, a group per coordinate the l-infinity ball, a group per offer a confidence region.
    """

    weights: Vec
    groups: Codes
    budgets: Vec

    def distance(self, residual: Vec) -> float:
        """The smallest radius whose ball contains frequencies + residual."""
        spent = np.bincount(self.groups, weights=self.weights * np.abs(residual), minlength=self.budgets.size)
        open_groups = self.budgets > 0.0
        return float((spent[open_groups] / self.budgets[open_groups]).max(initial=0.0))

    def width(self, dual: Vec) -> float:
        """The largest <dual, residual> over the ball of radius 1."""
        most = np.zeros(self.budgets.size)
        np.maximum.at(most, self.groups, np.abs(dual) / self.weights)
        return float(self.budgets @ most)


def ball(assortments: Assortments, norm: Norm, weights: Vec | None = None) -> Ball:
    """The ball of a norm, with a weight per offer."""
    size = assortments.n_coordinates
    each = np.ones(size) if weights is None else weights[assortments.owner]
    if norm == "l1":
        return Ball(each, np.zeros(size, dtype=np.int64), np.ones(1))
    if norm == "linf":
        return Ball(each, np.arange(size), np.ones(size))
    raise ValueError(f"There is no column generation for the norm {norm!r}: choose 'l1' or 'linf'.")


class Master:
    """Weights of the known columns: first as near to the frequencies as can be, then cheapest within a radius.

    Columns: up and down (the residual's parts), the radius, then the rankings. Rows: ranking mixture + up - down =
    frequencies; per group what the residual spends <= budget * radius; the weights sum to 1.
    """

    def __init__(self, observed: Observed, region: Ball) -> None:
        import highspy

        self.frequencies, self.ball = observed.frequencies, region
        self.size = observed.assortments.n_coordinates
        self._infinity = highspy.kHighsInf
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        fixed: dict[str, Any] = {"output_flag": False, "presolve": "off", "simplex_strategy": 4}
        for option, value in fixed.items():
            self._highs.setOptionValue(option, value)
        for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self._highs.setOptionValue(option, FEASIBLE)
        self._highs.passModel(self._empty(highspy))

    def _empty(self, highspy: Any) -> Any:
        size, n_groups, region = self.size, self.ball.budgets.size, self.ball
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = 2 * size + 1, size + n_groups + 1
        program.col_cost_ = np.append(np.zeros(2 * size), 1.0)
        program.col_lower_ = np.zeros(2 * size + 1)
        program.col_upper_ = np.full(2 * size + 1, self._infinity)
        program.row_lower_ = np.concatenate((self.frequencies, np.full(n_groups, -self._infinity), [1.0]))
        program.row_upper_ = np.concatenate((self.frequencies, np.zeros(n_groups), [1.0]))
        rows = np.stack((np.arange(size), size + region.groups), axis=1).ravel()
        up = np.stack((np.ones(size), region.weights), axis=1).ravel()
        down = np.stack((-np.ones(size), region.weights), axis=1).ravel()
        matrix = program.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kColwise
        matrix.start_ = np.append(np.arange(0, 4 * size + 1, 2), 4 * size + n_groups)
        matrix.index_ = np.concatenate((rows, rows, size + np.arange(n_groups)))
        matrix.value_ = np.concatenate((up, down, -region.budgets))
        return program

    def add(self, vertices: Vec, offsets: Vec | None = None) -> None:
        """More columns: their vertices, and what a unit of each costs in the second phase."""
        count = len(vertices)
        chosen = np.nonzero(vertices)[1].reshape(count, -1)
        last = np.full((count, 1), self.size + self.ball.budgets.size)
        rows = np.hstack((chosen, last)).astype(np.int32)
        costs = np.zeros(count) if offsets is None else offsets
        starts = np.arange(0, rows.size, rows.shape[1], dtype=np.int32)
        free = np.full(count, self._infinity)
        self._highs.addCols(count, costs, np.zeros(count), free, rows.size, starts, rows.ravel(), np.ones(rows.size))

    def fix_radius(self, radius: float, offsets: Vec) -> None:
        """Second phase: from now on the known columns cost something, and the radius is bounded."""
        place = 2 * self.size
        self._highs.changeColCost(place, 0.0)
        self._highs.changeColBounds(place, 0.0, radius)
        columns = np.arange(place + 1, place + 1 + offsets.size, dtype=np.int32)
        self._highs.changeColsCost(offsets.size, columns, offsets)

    def solve(self) -> tuple[Vec, Vec, float]:
        """The columns' weights, at least 0 and summing to 1; the rows' duals y and nu.

        A new column pays if its cost is less than <y, vertex> + nu.
        """
        self._highs.run()
        status = self._highs.modelStatusToString(self._highs.getModelStatus())
        if status != "Optimal":
            raise RuntimeError(f"HiGHS could not solve the restricted problem: it says {status!r}.")
        solution = self._highs.getSolution()
        weights = np.maximum(np.array(solution.col_value[2 * self.size + 1 :]), 0.0)
        return weights / weights.sum(), np.array(solution.row_dual[: self.size]), float(solution.row_dual[-1])
