"""LinearMaster: the mixture of known rankings nearest to a target in the l1 or l-infinity norm, by HiGHS."""

from typing import Any, Literal

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.columns.master import FEASIBILITY_TOLERANCE, GrowingProgram
from rankstream.data.assortments import Assortments
from rankstream.models.nearest import winning_coordinates
from rankstream.oracles.bounds.corral_kernels import mixture


class LinearMaster:
    """The best weights of the rankings so far.

    Rows are the coordinates that count, for l-infinity twice: the mixture within ``radius`` above and below the target;
    for l1 the mixture less what is too much plus what is missing. The last row says that the weights sum to 1.
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
        """The program without rankings."""
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
        """Add the rankings that pay at the current duals, and solve again; False if none does."""
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
        mixture(used.size, np.arange(used.size), chosen, self.weights[used], self.point)

    def dual(self) -> Vec:
        """The duals as one of the distance: in the box for l1, in the simplex of twice the size for l-infinity."""
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
