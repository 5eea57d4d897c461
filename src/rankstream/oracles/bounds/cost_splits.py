"""Lower bounds by cost splitting: overlapping groups of offers share the costs, and each is solved exactly."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Vec
from rankstream.data.assortments import Assortments
from rankstream.oracles.bounds import dykstra_kernels, group_kernels
from rankstream.oracles.bounds.dykstra_kernels import Corners
from rankstream.oracles.bounds.groups import Groups

MAX_CORNERS = 128  # of a group's projection: with more, a sweep takes longer than it adds (benchmarks/proofs.py)


class Relaxation:
    """The points that are choice probabilities on every group of offers: a relaxation of the ranking models.

    Dykstra's method projects onto it, one group after the other. The normal vector of a group's projection is kept in
    ``pulls``. Any pulls, at any time, give a valid bound.
    """

    def __init__(self, groups: Groups) -> None:
        lattices = groups.lattices
        self.groups = groups
        n_groups, n_slots, n_seats = len(groups.offers), lattices.none.size, lattices.where.size
        self.pulls: Vec = np.zeros(n_seats)
        self.sums: Vec = np.zeros(int(lattices.entry_ptr[-1]))
        self.to_go: Vec = np.zeros(int(lattices.state_ptr[-1]))
        self._aim, self._slope = np.zeros(n_seats), np.zeros(n_seats)
        self.corners = Corners(
            known=np.ones(n_groups, dtype=np.int64),
            chosen=np.zeros((n_slots, MAX_CORNERS), dtype=np.int64),
            weight=np.zeros((n_groups, MAX_CORNERS)),
            point=np.zeros(n_seats),
        )
        self.corners.weight[:, 0] = 1.0
        self.least(np.zeros(n_seats))
        for group in range(n_groups):
            group_kernels.choose(lattices, group, self.sums, self.to_go, self.corners.chosen[:, 0])

    def total(self) -> Vec:
        """The sum of the groups' pulls at every coordinate."""
        where, size = self.groups.lattices.where, self.groups.assortments.n_coordinates
        return np.bincount(where, weights=self.pulls, minlength=size).astype(np.float64, copy=False)

    def sweep(self, aim: Vec, calls: int = 3) -> Vec:
        """Make one round of Dykstra's method towards the point nearest to ``aim``; return the current point."""
        point = aim - self.total()
        dykstra_kernels.sweep(
            self.groups.lattices, self.pulls, point, self.corners, self._aim, self._slope, self.sums, self.to_go, calls
        )
        return point

    def least(self, costs: Vec) -> float:
        """Return the sum of the groups' least costs, for one cost per seat; fills the groups' tables."""
        out = np.zeros(len(self.groups.offers))
        group_kernels.least_costs(self.groups.lattices, costs, self.sums, self.to_go, out)
        return float(out.sum())


class SplittingBound:
    """Lower bounds on the cost of any ranking: the sum of the groups' least costs, for any split of the costs.

    A call starts from the shares of the last call and improves them by proximal steps. Dykstra's method finds the
    relaxation's point nearest to (centre - costs); its pulls are the shares, and the point is the next centre. The
    bound never falls during a call. It holds for all rankings, and so for those that respect an order.

    >>> bound = SplittingBound(Assortments([("tea", "cake", "nothing"), ("tea", "pie", "nothing")]))
    >>> bound.lower([-1.0, 2.0, 0.0, 1.5, -1.0, 0.0])
    -2.0
    """

    def __init__(self, assortments: Assortments, states: int = 500, overlap: int = 3, reach: float = 3.0) -> None:
        self.groups = Groups(assortments, states, overlap)
        self.assortments = assortments
        self.relaxation = Relaxation(self.groups)
        self.reach = number_between("reach", reach, 0.0)
        self._centre: Vec = (1.0 / np.diff(assortments.indptr))[assortments.owner]
        self.shares: Vec = np.zeros(self.relaxation.pulls.size)

    def lower(self, costs: ArrayLike, sweeps: int = 10, calls: int = 3) -> float:
        """Return the best bound of ``sweeps`` sweeps, and set ``shares`` to its shares."""
        vector = np.ascontiguousarray(costs, dtype=np.float64)
        whole_number("sweeps", sweeps)
        norm = float(np.linalg.norm(vector))
        if norm == 0.0:
            self.shares[:] = 0.0
            return 0.0
        scale = self.reach * np.sqrt(self.assortments.n_offers) / norm
        aim = vector * scale
        best = -np.inf
        for turn in range(sweeps + 1):
            if turn:
                self._centre = self.relaxation.sweep(self._centre - aim, calls)
            shares = self._share(aim)
            bound = self.relaxation.least(shares)
            if bound > best:
                best = bound
                self.shares = shares / scale
        return float(best / scale)

    def memory(self) -> dict[str, Any]:
        """Return the state that the next call starts from, as arrays."""
        corners = self.relaxation.corners._asdict()
        return {"centre": self._centre, "shares": self.shares, "pulls": self.relaxation.pulls, **corners}

    def remember(self, memory: dict[str, Any]) -> None:
        """Restore the state that ``memory`` returned."""
        self._centre, self.shares, self.relaxation.pulls = (
            np.array(memory[name]) for name in ("centre", "shares", "pulls")
        )
        for name, array in self.relaxation.corners._asdict().items():
            array[:] = memory[name]

    def _share(self, aim: Vec) -> Vec:
        """Return the pulls as costs, with the rest of the costs shared equally."""
        rest = (aim + self.relaxation.total()) / self.groups.copies
        return rest[self.groups.lattices.where] - self.relaxation.pulls
