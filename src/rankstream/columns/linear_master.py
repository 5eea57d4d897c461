"""LinearMaster: the mixture of known rankings nearest to a target in the l1 or l-infinity norm, by HiGHS."""

from typing import Any, Literal

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.models.nearest import winning_coordinates
from rankstream.oracles.bounds.corral_kernels import mixture

FEASIBLE = 1e-9


class LinearMaster:
    """A linear program in HiGHS that grows by columns; the primal simplex method goes on from its last basis.

    Rows are the coordinates that count, for l-infinity twice: the mixture within ``radius`` above and below the target;
    for l1 the mixture less what is too much plus what is missing. The last row says that the weights sum to 1.
    """

    def __init__(self, assortments: Assortments, norm: Literal["l1", "linf"], target: Vec, offer_weights: Vec) -> None:
        import highspy

        self.assortments, self.norm = assortments, norm
        each = offer_weights[assortments.owner]
        self._places = np.flatnonzero(each > 0.0)
        self._scale = each[self._places]
        self._row_of = np.full(each.size, -1, dtype=np.int64)
        self._row_of[self._places] = np.arange(self._places.size)
        self.point: Vec = np.zeros(each.size)
        self.orders: Codes = np.zeros((0, assortments.n_items), dtype=np.int64)
        self.weights: Vec = np.zeros(0)
        self._infinity = highspy.kHighsInf
        self._highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        settings: dict[str, Any] = {"output_flag": False, "presolve": "off", "simplex_strategy": 4, "threads": 1}
        for option, value in settings.items():
            self._highs.setOptionValue(option, value)
        for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self._highs.setOptionValue(option, FEASIBLE)
        self._write(highspy, self._scale * target[self._places])

    def _write(self, highspy: Any, aim: Vec) -> None:
        """The program without rankings."""
        size, free = aim.size, np.full(aim.size, self._infinity)
        program = highspy.HighsLp()
        if self.norm == "l1":
            costs, lower, upper = np.ones(2 * size), aim, aim
            rows, values = np.tile(np.arange(size), 2), np.repeat((-1.0, 1.0), size)
            starts = np.arange(2 * size + 1)
        else:
            costs, lower, upper = np.ones(1), np.append(-free, aim), np.append(aim, free)
            rows, values = np.arange(2 * size), np.repeat((-1.0, 1.0), size)
            starts = np.array([0, 2 * size])
        self._n_fixed, self._n_rows = costs.size, lower.size + 1
        program.num_col_, program.num_row_ = self._n_fixed, self._n_rows
        program.col_cost_, program.col_lower_ = costs, np.zeros(costs.size)
        program.col_upper_ = np.full(costs.size, self._infinity)
        program.row_lower_, program.row_upper_ = np.append(lower, 1.0), np.append(upper, 1.0)
        matrix = program.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kColwise
        matrix.start_, matrix.index_, matrix.value_ = starts, rows, values
        self._highs.passModel(program)

    def take(self, rankings: Codes) -> bool:
        """Add the rankings that pay at the current prices, and solve again; False if none does."""
        columns = winning_coordinates(self.assortments, rankings)
        if self.weights.size:
            costs = np.zeros(self.point.size)
            costs[self._places] = self._scale * self._prices.reshape(-1, self._places.size).sum(axis=0)
            pays = costs[columns].sum(axis=1) < self._level - FEASIBLE
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
        rows = np.hstack((rows, np.full((count, 1), self._n_rows - 1))).astype(np.int32)
        values = np.hstack((values, np.ones((count, 1))))
        starts = np.arange(0, rows.size, rows.shape[1], dtype=np.int32)
        nothing, free = np.zeros(count), np.full(count, self._infinity)
        self._highs.addCols(count, nothing, nothing, free, rows.size, starts, rows.ravel(), values.ravel())

    def _solve(self) -> None:
        self._highs.run()
        if self._status() != "Optimal":
            self._highs.clearSolver()  # the basis may be at fault
            self._highs.run()
        status = self._status()
        if status != "Optimal":
            raise RuntimeError(f"HiGHS could not solve the restricted problem: it says {status!r}.")
        solution = self._highs.getSolution()
        weights = np.maximum(np.array(solution.col_value[self._n_fixed :]), 0.0)
        self.weights = weights / weights.sum()
        duals = np.array(solution.row_dual)
        self._prices, self._level = -duals[:-1], float(duals[-1])
        used = np.flatnonzero(self.weights)
        chosen = winning_coordinates(self.assortments, self.orders[used])
        mixture(used.size, np.arange(used.size), chosen, self.weights[used], self.point)

    def _status(self) -> str:
        return str(self._highs.modelStatusToString(self._highs.getModelStatus()))

    def dual(self) -> Vec:
        """The prices as a dual of the distance: in the box for l1, in the simplex of twice the size for l-infinity."""
        size = self.point.size
        if self.norm == "l1":
            box = np.zeros(size)
            box[self._places] = np.clip(self._prices, -1.0, 1.0)
            return box
        halves = np.zeros((2, size))
        above, below = self._prices.reshape(2, -1)
        halves[0, self._places], halves[1, self._places] = np.maximum(above, 0.0), np.maximum(-below, 0.0)
        halves /= max(1.0, halves.sum())
        halves += (1.0 - halves.sum()) / halves.size
        return halves.ravel()
