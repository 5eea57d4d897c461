"""Cuts: half-spaces that hold every model, and those of groups of whole offers.

Where offers are large and few, groups of them prove more than parts of the items.
"""

from dataclasses import dataclass

import numpy as np

from rankstream._core.types import ROUNDING, Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.oracles.bounds import dykstra_kernels, group_kernels
from rankstream.oracles.bounds.cost_splits import Relaxation
from rankstream.oracles.bounds.groups import Groups


@dataclass(frozen=True)
class Cut:
    """<``normal``, x at the coordinates ``where``> >= ``least`` for every model x.

    ``depth`` is how far the point is beyond it for which it was made.
    """

    where: Codes
    normal: Vec
    least: float
    depth: float = 0.0


PROJECTION_CALLS = 30  # dynamic programs for the projection on a group


class GroupCuts:
    """The half-spaces of the groups' polytopes that a point is beyond; squared weights of offers play no part in them.

    >>> cuts = GroupCuts(Assortments([("a", "b"), ("b", "c"), ("c", "a")]))
    >>> [found] = cuts.violated(np.array([0.9, 0.1, 0.9, 0.1, 0.9, 0.1]), 1e-6)
    >>> found.where, (found.normal / found.normal[1]).round(2), round(float(found.least / found.normal[1]), 2)
    (array([0, 1, 2, 3, 4, 5]), array([-1.,  1., -1.,  1., -1.,  1.]), -1.0)
    """

    def __init__(self, assortments: Assortments, states: int = 300, overlap: int = 2) -> None:
        self._relaxation = Relaxation(Groups(assortments, states, overlap))
        self._slope: Vec = np.zeros(self._relaxation.pulls.size)

    def violated(self, point: Vec, shallow: float) -> list[Cut]:
        """A cut of every group that the point is beyond by more than ``shallow``, by projecting it on each of them."""
        relaxation, groups = self._relaxation, self._relaxation.groups.lattices
        corners, tables = relaxation.corners, (relaxation.sums, relaxation.to_go)
        aim, work = point[groups.where], np.empty(groups.where.size)
        count = len(relaxation.groups.offers)
        for group in range(count):
            dykstra_kernels.project(groups, group, aim, corners, self._slope, work, *tables, PROJECTION_CALLS)
        normals, least, found = corners.point - aim, np.empty(count), []
        group_kernels.least_costs(groups, normals, *tables, least)
        for group in range(count):
            seats = slice(*groups.seat_ptr[groups.slot_ptr[[group, group + 1]]].tolist())
            normal = normals[seats]
            proven = float(least[group]) - ROUNDING * 2 * normal.size * float(np.abs(normal).sum())
            depth = (proven - float(normal @ aim[seats])) / (float(np.linalg.norm(normal)) or 1.0)
            if depth > shallow:
                found.append(Cut(groups.where[seats], normal, proven, depth))
        return found
