"""A pool of cuts (half-spaces that contain every model), and the point nearest to the data that satisfies them."""

from dataclasses import dataclass

import numpy as np

from rankstream._core.types import ROUNDING, Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.oracles.bounds import pool_kernels
from rankstream.oracles.bounds.pool_kernels import CutRows

CLIMB_PASSES = 10  # over all multipliers, between two searches for cuts (benchmarks/proofs.py)
MAX_IDLE_CLIMBS = 8  # times that a cut may have no multiplier before it is forgotten (benchmarks/proofs.py)


@dataclass(frozen=True)
class Cut:
    """<``normal``, x at the coordinates ``where``> >= ``least`` for every model x.

    ``depth`` is how far it cuts off the point it was made for.
    """

    where: Codes
    normal: Vec
    least: float
    depth: float = 0.0


class CutPool:
    """Cuts <normal, x> >= least that hold for every model x, and the lower bound that they prove.

    Hildreth's method finds the point nearest to the data that satisfies all cuts. Its ``multipliers`` prove a bound at
    any time: with Y the sum of normals times multipliers and h that of the least values, no model is nearer to the data
    p than (h - <Y, p>) / |Y|, in the dual of the weighted norm. ``weights`` has one number > 0 per offer; internally,
    coordinates are multiplied by it, so that the norm is Euclidean.

    >>> pool = CutPool(Assortments([("tea", "pie"), ("pie", "tea")]), np.array([0.9, 0.1, 0.6, 0.4]), np.ones(2))
    >>> pool.add(Cut(np.array([0, 2]), np.array([-1.0, -1.0]), -1.0))   # tea here and pie there exclude each other
    >>> pool.climb(20)
    >>> round(pool.bound(), 6), pool.point.round(3)
    (0.5, array([0.65, 0.35, 0.35, 0.65]))
    """

    def __init__(self, assortments: Assortments, data: Vec, weights: Vec) -> None:
        self.assortments, self._weights = assortments, weights
        self._scale: Vec = weights[assortments.owner]
        self._data: Vec = data * self._scale
        self._levels: Vec = np.zeros(assortments.n_offers)
        self._lifts: Vec = np.zeros(data.size)
        self._within: Vec = self._data.copy()
        self._where: list[Codes] = []
        self._values: list[Vec] = []
        self._right: list[float] = []
        self.multipliers: Vec = np.zeros(0)
        self._idle: Codes = np.zeros(0, dtype=np.int64)
        self._rows: CutRows | None = None

    def __len__(self) -> int:
        return len(self._right)

    @property
    def point(self) -> Vec:
        """The point of the current multipliers: at their optimum, the nearest one that satisfies all cuts."""
        return self._within / self._scale

    def distance(self) -> float:
        """Return the distance of the point from the data: the limit of the bound without more cuts."""
        return float(np.linalg.norm(self._within - self._data))

    def misfits(self) -> Vec:
        """Return how far the point is from the data in each offer; equal numbers while it is still the data."""
        apart = np.sqrt(np.add.reduceat((self._within - self._data) ** 2, self.assortments.indptr[:-1]))
        return apart + (0.1 * float(apart.mean()) or 1.0)

    def retarget(self, data: Vec) -> None:
        """Take other data, with the same cuts and multipliers."""
        moved = data * self._scale
        self._within, self._data = self._within + moved - self._data, moved

    def add(self, cut: Cut) -> None:
        """Add a cut, unless its normal is zero."""
        # rows are scaled to about 1: very different lengths would lose digits
        size = float(np.abs(cut.normal).max(initial=0.0))
        if size > 0.0 and np.isfinite(cut.least):
            self._where.append(cut.where)
            self._values.append(-cut.normal / size / self._scale[cut.where])
            self._right.append(-cut.least / size)
            self._rows = None

    def _cut_rows(self) -> CutRows:
        if self._rows is None:
            ptr = np.concatenate([[0], np.cumsum([where.size for where in self._where])]).astype(np.int64)
            where = np.concatenate([*self._where, np.zeros(0, dtype=np.int64)])
            value = np.concatenate([*self._values, np.zeros(0)])
            square = np.array([float(value @ value) for value in self._values])
            fresh = len(self) - self.multipliers.size
            self.multipliers = np.concatenate([self.multipliers, np.zeros(fresh)])
            self._idle = np.concatenate([self._idle, np.zeros(fresh, dtype=np.int64)])
            self._rows = CutRows(ptr, where, value, np.array(self._right), square)
        return self._rows

    def climb(self, passes: int, between: int = 4) -> None:
        """Make passes of Hildreth's method over all cuts, each followed by some over cuts with a multiplier."""
        rows = self._cut_rows()
        simplices = self.assortments.indptr, self._weights, self._levels, self._lifts
        pool_kernels.climb(rows, self.multipliers, *simplices, self._within, passes, between)
        self._idle = np.where(self.multipliers > 0.0, 0, self._idle + 1)

    def forget(self) -> None:
        """Drop cuts without a multiplier for a while: they contribute nothing."""
        self._cut_rows()
        kept = np.flatnonzero((self._idle < MAX_IDLE_CLIMBS) | (self.multipliers > 0.0)).tolist()
        if len(kept) < len(self):
            self._where = [self._where[k] for k in kept]
            self._values = [self._values[k] for k in kept]
            self._right = [self._right[k] for k in kept]
            self.multipliers, self._idle = self.multipliers[kept], self._idle[kept]
            self._rows = None

    def _combined(self) -> tuple[Vec, float, float]:
        """Return the sum Y of all normals times their multipliers, as <Y, x> <= right, and a margin for rounding."""
        rows = self._cut_rows()
        terms = np.repeat(self.multipliers, np.diff(rows.ptr)) * rows.value
        total: Vec = np.bincount(rows.where, terms, self._data.size).astype(np.float64, copy=False)
        right = float(self.multipliers @ rows.right)
        size = float(self.multipliers @ np.abs(rows.right) + np.abs(terms).sum())
        pulls = self._levels[self.assortments.owner] - self._lifts
        total += pulls
        largest = np.maximum.reduceat(pulls, self.assortments.indptr[:-1])
        right += float(largest @ self._weights)
        size += float(np.abs(pulls) @ self._scale) + float(np.abs(total) @ np.abs(self._data))
        return total, right, ROUNDING * (self._data.size + len(self)) * size

    def bound(self) -> float:
        """Return the bound of the multipliers, minus a margin for rounding; never below 0."""
        total, right, rounding = self._combined()
        norm = float(np.linalg.norm(total))
        if norm == 0.0:
            return 0.0
        return max(0.0, (float(total @ self._data) - right - rounding) / (norm * (1.0 + ROUNDING * self._data.size)))

    def normal(self) -> Vec:
        """Return the normal of the combined cut, whose depth is the bound."""
        return -self._combined()[0] * self._scale

    def least_cost(self, costs: Vec) -> float:
        """Return a lower bound on the costs of any model, for weights of 1: what the combined cut leaves of them."""
        total, right, rounding = self._combined()
        left = costs + total
        rounding += ROUNDING * left.size * float(np.abs(left).sum())
        return float(np.minimum.reduceat(left, self.assortments.indptr[:-1]).sum()) - right - rounding
