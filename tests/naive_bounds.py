"""Slow twins of the kernels that bound by groups and parts: all corners of a polytope, and least squares over them."""

from itertools import permutations, product

import numpy as np
from scipy.optimize import nnls

from rankstream._core.types import Codes, Vec
from rankstream.oracles.bounds.groups import Groups
from rankstream.oracles.bounds.part_kernels import Part

Corner = tuple[int, ...]
"""The seat chosen in each slot, -1 for none."""


def as_vectors(corners: list[Corner] | Codes, size: int, first: int = 0) -> Vec:
    """Corners as rows of zeros and ones, from seat ``first`` on."""
    rows = np.zeros((len(corners), size))
    for row, corner in zip(rows, corners, strict=True):
        for seat in corner:
            if seat >= 0:
                row[seat - first] += 1.0
    return rows


def nearest(corners: Vec, aim: Vec) -> Vec:
    """The mixture of the rows nearest to a point."""
    heavy = 1e4
    system = np.vstack([corners.T, heavy * np.ones(len(corners))])
    weights, _ = nnls(system, np.append(aim, heavy), maxiter=100 * len(corners))
    point: Vec = (weights / weights.sum()) @ corners
    return point


def slots_of(groups: Groups, group: int) -> list[dict[int, int]]:
    """For every slot of a group, the seat of each item in it."""
    lattices, members = groups.lattices, groups.assortments.members
    slots = range(lattices.slot_ptr[group], lattices.slot_ptr[group + 1])
    return [
        {int(members[lattices.where[k]]): k for k in range(lattices.seat_ptr[slot], lattices.seat_ptr[slot + 1])}
        for slot in slots
    ]


def corners_of(slots: list[dict[int, int]]) -> list[Corner]:
    """What the rankings of the items choose from slots that all hold a seat for each of their items."""
    items = sorted({item for slot in slots for item in slot})
    return sorted(
        {tuple(slot[min(slot, key=order.index)] for slot in slots) for order in permutations(items)},
    )


def least(corners: list[Corner], costs: Vec) -> float:
    return min(float(sum(costs[seat] for seat in corner if seat >= 0)) for corner in corners)


def untouched(slots: list[dict[int, int]], ranked: set[int]) -> list[dict[int, int]]:
    return [slot for slot in slots if not ranked & set(slot)]


def above_no_choice(groups: Groups, group: int, ranked: set[int], costs: Vec) -> float:
    """The least cost of the offers of a group that no ranked item is in, less what no-choice costs there."""
    left, none = untouched(slots_of(groups, group), ranked), groups.assortments.no_choice_code
    base = 0.0 if none is None else sum(float(costs[slot[none]]) for slot in left)
    return least(corners_of(left), costs) - base


def dykstra_round(groups: Groups, pull: Vec, point: Vec) -> tuple[Vec, Vec]:
    """One projection on every group's polytope after the other; the pulls and the point that it comes to."""
    pull, point, lattices = pull.copy(), point.copy(), groups.lattices
    for group in range(len(groups.offers)):
        start, stop = (int(lattices.seat_ptr[lattices.slot_ptr[group + k]]) for k in (0, 1))
        where = lattices.where[start:stop]
        aim = point[where] + pull[start:stop]
        corners = as_vectors(corners_of(slots_of(groups, group)), stop - start, start)
        point[where] = nearest(corners, aim)
        pull[start:stop] = aim - point[where]
    return pull, point


def part_slots(part: Part) -> list[dict[int, int]]:
    """For every slot of a part, the seat of each item in it, -1 being no-choice."""
    return [
        {int(part.item[seat]): seat for seat in range(part.seat_ptr[slot], part.seat_ptr[slot + 1])}
        for slot in range(part.inside.size)
    ]


def part_corners(part: Part) -> list[Corner]:
    """What the rankings of a part's items choose, where a slot that is not whole may go to an item outside, too."""
    found: set[Corner] = set()
    for corner in corners_of(part_slots(part)):
        found |= set(
            product(*((seat,) if whole else (seat, -1) for seat, whole in zip(corner, part.whole, strict=True)))
        )
    return sorted(found)


def place_costs(part: Part, costs: Vec) -> tuple[dict[tuple[int, int], float], float]:
    """The cost of ranking an item first in a set that holds it, less that of no-choice, and the cost of no-choice."""
    slots, table = part_slots(part), {}
    paid = [costs if whole else np.minimum(costs, 0.0) for whole in part.whole]
    nothing = [float(pays[slot[-1]]) if -1 in slot else 0.0 for slot, pays in zip(slots, paid, strict=True)]
    for number in range(2**part.n_items):
        for item in range(part.n_items):
            if number >> item & 1:
                table[item, number] = sum(
                    float(pays[slot[item]]) - none
                    for slot, pays, none in zip(slots, paid, nothing, strict=True)
                    if item in slot and all(number >> other & 1 for other in slot if other >= 0)
                )
    return table, sum(nothing)
