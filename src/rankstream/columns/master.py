"""Linear programs over the known rankings: the nearest mixture in l1 and l-infinity, the cheapest within a radius."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.columns.data import Observed
from rankstream.data.assortments import Assortments
from rankstream.models.nearest import winning_coordinates

FEASIBILITY_TOLERANCE = 1e-9  # of HiGHS; a ranking that gains less is not added
MAX_PIVOTS_PER_SIDE = 100  # of a program's rows and columns; beyond, the simplex method most likely cycles
Norm = Literal["l1", "linf"]
Region = Literal["l1", "linf", "confidence"]


@dataclass(frozen=True, eq=False)
class Ball:
    """The points with an l1 distance from the frequencies of at most radius * budget in every group.

    One group gives the l1 ball, a group per coordinate the l-infinity ball, a group per offer a confidence region. With
    ``sides``, only deviations above (1) or below (-1) the frequencies count.
    """

    groups: Codes
    budgets: Vec
    sides: Codes | None = None

    def distance(self, residual: Vec) -> float:
        """The smallest radius whose ball contains frequencies + residual."""
        far = np.abs(residual) if self.sides is None else np.maximum(residual * self.sides, 0.0)
        spent = np.bincount(self.groups, weights=far, minlength=self.budgets.size)
        open_groups = self.budgets > 0.0
        return float((spent[open_groups] / self.budgets[open_groups]).max(initial=0.0))

    def width(self, dual: Vec) -> float:
        """The largest <dual, residual> over the ball of radius 1, for a dual that ``clip`` returned."""
        most = np.zeros(self.budgets.size)
        np.maximum.at(most, self.groups, np.abs(dual))
        return float(self.budgets @ most)

    def clip(self, dual: Vec) -> Vec:
        """The dual without what is not bounded over the ball: a side that is free."""
        return dual if self.sides is None else np.where(dual * self.sides > 0.0, 0.0, dual)


def ball(size: int, norm: Norm, sides: Codes | None = None) -> Ball:
    """Return the ball of a norm around ``size`` frequencies."""
    if norm == "l1":
        return Ball(np.zeros(size, dtype=np.int64), np.ones(1), sides)
    if norm == "linf":
        return Ball(np.arange(size), np.ones(size), sides)
    raise ValueError(f"Column generation does not support the norm {norm!r}: choose 'l1' or 'linf'.")


def quiet_highs(**options: Any) -> Any:
    """Return a silent HiGHS solver with these options; HiGHS is imported here, since that takes a while."""
    import highspy

    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in {"output_flag": False, **options}.items():
        highs.setOptionValue(option, value)
    return highs


class GrowingProgram:
    """A linear program in HiGHS to which columns are added; the primal simplex method restarts from its last basis.

    All variables are at least 0. ``starts``, ``rows`` and ``values`` are the first columns.
    """

    def __init__(self, costs: Vec, lower: Vec, upper: Vec, starts: Codes, rows: Codes, values: Vec) -> None:
        import highspy

        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = costs.size, lower.size
        program.col_cost_, program.col_lower_ = costs, np.zeros(costs.size)
        program.col_upper_ = np.full(costs.size, np.inf)
        program.row_lower_, program.row_upper_ = lower, upper
        matrix = program.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kColwise
        matrix.start_, matrix.index_, matrix.value_ = starts, rows, values
        tolerances = {f"{side}_feasibility_tolerance": FEASIBILITY_TOLERANCE for side in ("primal", "dual")}
        self.highs = quiet_highs(presolve="off", simplex_strategy=4, **tolerances)
        self.highs.passModel(program)
        self._n_fixed = costs.size

    def add(self, costs: Vec, rows: Codes, values: Vec) -> None:
        """Add columns, one per row of ``rows`` and ``values``."""
        count, rows = len(rows), rows.astype(np.int32)
        starts = np.arange(0, rows.size, rows.shape[1], dtype=np.int32)
        free = np.full(count, np.inf)
        self.highs.addCols(count, costs, np.zeros(count), free, rows.size, starts, rows.ravel(), values.ravel())

    def solve(self) -> tuple[Vec, Vec]:
        """Return the weights of the added columns, at least 0 and summing to 1, and the duals of all rows."""
        max_pivots = MAX_PIVOTS_PER_SIDE * (self.highs.getNumRow() + self.highs.getNumCol())
        self.highs.setOptionValue("simplex_iteration_limit", max_pivots)  # HiGHS has none of its own
        self.highs.run()
        if self._status() != "Optimal":
            self.highs.clearSolver()  # the basis may be at fault
            self.highs.run()
        if self._status() != "Optimal":
            raise RuntimeError(f"HiGHS could not solve the restricted problem: its status is {self._status()!r}.")
        solution = self.highs.getSolution()
        weights = np.maximum(np.array(solution.col_value[self._n_fixed :]), 0.0)
        return weights / weights.sum(), np.array(solution.row_dual)

    def _status(self) -> str:
        return str(self.highs.modelStatusToString(self.highs.getModelStatus()))


class Master:
    """The weights of the known columns: first nearest to the frequencies, then cheapest within a radius.

    Columns: up and down (the residual's parts), the radius, then the rankings. Rows: ranking mixture + up - down =
    frequencies; weighted residual of each group <= budget * radius; the weights sum to 1.
    """

    def __init__(self, observed: Observed, region: Ball) -> None:
        self.observed, self.ball = observed, region
        self.frequencies, self.size = observed.frequencies, observed.frequencies.size
        size, n_groups = self.size, region.budgets.size
        rows = np.stack((np.arange(size), size + region.groups), axis=1).ravel()
        sides = np.zeros(size) if region.sides is None else region.sides
        up = np.stack((np.ones(size), np.where(sides > 0, 0.0, 1.0)), axis=1).ravel()
        down = np.stack((-np.ones(size), np.where(sides < 0, 0.0, 1.0)), axis=1).ravel()
        self._program = GrowingProgram(
            costs=np.append(np.zeros(2 * size), 1.0),
            lower=np.concatenate((self.frequencies, np.full(n_groups, -np.inf), [1.0])),
            upper=np.concatenate((self.frequencies, np.zeros(n_groups), [1.0])),
            starts=np.append(np.arange(0, 4 * size + 1, 2), 4 * size + n_groups),
            rows=np.concatenate((rows, rows, size + np.arange(n_groups))),
            values=np.concatenate((up, down, -region.budgets)),
        )

    def add(self, vertices: Vec, offsets: Vec | None = None) -> None:
        """Add columns: their vertices, and their unit costs in the second phase."""
        count, read = len(vertices), self.observed.read(vertices)
        chosen = np.nonzero(read if self.observed.rows is None else np.ones(read.shape))[1].reshape(count, -1)
        last = np.full((count, 1), self.size + self.ball.budgets.size)
        values = np.hstack((np.take_along_axis(read, chosen, axis=1), np.ones((count, 1))))
        self._program.add(np.zeros(count) if offsets is None else offsets, np.hstack((chosen, last)), values)

    def fix_radius(self, radius: float, offsets: Vec) -> None:
        """Start the second phase: the known columns have costs, and the radius is bounded."""
        place, highs = 2 * self.size, self._program.highs
        highs.changeColCost(place, 0.0)
        highs.changeColBounds(place, 0.0, radius)
        columns = np.arange(place + 1, place + 1 + offsets.size, dtype=np.int32)
        highs.changeColsCost(offsets.size, columns, offsets)

    def solve(self) -> tuple[Vec, Vec, float]:
        """Return the columns' weights, at least 0 and summing to 1, and the rows' duals y and nu.

        A new column pays if its cost is less than <y, vertex> + nu.
        """
        weights, duals = self._program.solve()
        return weights, self.ball.clip(duals[: self.size]), float(duals[-1])


class LinearMaster:
    """The best weights of the rankings so far, in l1 or l-infinity.

    There is a row for each coordinate that counts. In l1 it is mixture - excess + shortage = target. In l-infinity
    there are two: the mixture is within ``radius`` above and below the target. In the last row the weights sum to 1.
    """

    def __init__(self, assortments: Assortments, norm: Literal["l1", "linf"], target: Vec, offer_weights: Vec) -> None:
        self.assortments, self.norm = assortments, norm
        each = offer_weights[assortments.owner]
        self._places = np.flatnonzero(each > 0.0)
        self._scale = each[self._places]
        self._row_of = np.full(each.size, -1, dtype=np.int64)
        self._row_of[self._places] = np.arange(self._places.size)
        self.point: Vec = np.zeros(each.size)
        self.orders: Codes = np.zeros((0, assortments.n_items), dtype=np.int64)
        self.weights: Vec = np.zeros(0)
        self._program = self._empty(self._scale * target[self._places])

    def _empty(self, aim: Vec) -> GrowingProgram:
        size, free = aim.size, np.full(aim.size, np.inf)
        if self.norm == "l1":
            costs, lower, upper = np.ones(2 * size), aim, aim
            rows, values = np.tile(np.arange(size), 2), np.repeat((-1.0, 1.0), size)
            starts = np.arange(2 * size + 1)
        else:
            costs, lower, upper = np.ones(1), np.append(-free, aim), np.append(aim, free)
            rows, values = np.arange(2 * size), np.repeat((-1.0, 1.0), size)
            starts = np.array([0, 2 * size])
        self._n_rows = lower.size + 1
        return GrowingProgram(costs, np.append(lower, 1.0), np.append(upper, 1.0), starts, rows, values)

    def take(self, rankings: Codes) -> bool:
        """Add the rankings that pay at the current duals and solve again. Returns False if none does."""
        columns = winning_coordinates(self.assortments, rankings)
        if self.weights.size:
            costs = np.zeros(self.point.size)
            costs[self._places] = self._scale * self._duals.reshape(-1, self._places.size).sum(axis=0)
            pays = costs[columns].sum(axis=1) < self._worth - FEASIBILITY_TOLERANCE
            columns, rankings = columns[pays], rankings[pays]
        _, fresh = np.unique(columns, axis=0, return_index=True)
        if not fresh.size:
            return False
        self.orders = np.concatenate((self.orders, rankings[fresh]))
        self._add(columns[fresh])
        self._solve()
        return True

    def _add(self, columns: Any) -> None:
        rows = self._row_of[columns]
        counted = rows[0] >= 0  # offers count as a whole or not at all
        rows = rows[:, counted]
        values = self._scale[rows]
        if self.norm == "linf":
            rows, values = np.hstack((rows, rows + self._places.size)), np.hstack((values, values))
        count = len(rows)
        rows = np.hstack((rows, np.full((count, 1), self._n_rows - 1)))
        self._program.add(np.zeros(count), rows, np.hstack((values, np.ones((count, 1)))))

    def _solve(self) -> None:
        self.weights, duals = self._program.solve()
        self._duals, self._worth = -duals[:-1], float(duals[-1])
        used = np.flatnonzero(self.weights)
        chosen = winning_coordinates(self.assortments, self.orders[used])
        each = np.repeat(self.weights[used], chosen.shape[1])
        self.point = np.bincount(chosen.ravel(), each, self.point.size).astype(np.float64, copy=False)

    def dual(self) -> Vec:
        """Return the duals as a dual of the distance: in the box for l1, in the 2N-simplex for l-infinity."""
        size = self.point.size
        if self.norm == "l1":
            box = np.zeros(size)
            box[self._places] = np.clip(self._duals, -1.0, 1.0)
            return box
        halves = np.zeros((2, size))
        above, below = self._duals.reshape(2, -1)
        halves[0, self._places], halves[1, self._places] = np.maximum(above, 0.0), np.maximum(-below, 0.0)
        halves /= max(1.0, halves.sum())
        halves += (1.0 - halves.sum()) / halves.size
        return halves.ravel()
