"""Compiled rounds of Dykstra's method over groups of offers: the projection onto each group's polytope, by corners."""

from typing import NamedTuple

import numpy as np

from rankstream._core.compilation import compiled
from rankstream._core.types import Codes, Vec
from rankstream.oracles.bounds.group_kernels import Lattices, choose, solve


class Corners(NamedTuple):
    """For every group, corners of its polytope with weights that sum to 1, and the point that they make."""

    known: Codes
    chosen: Codes
    weight: Vec
    point: Vec


@compiled
def balance(groups: Lattices, group: int, corners: Corners, slope: Vec, tolerance: float, most: int) -> None:
    """Move weight between known corners until no pair gains over ``tolerance``: min of <slope, .> + |. - point|^2 / 2.

    ``slope`` (the gradient, at the group's seats) and the point are kept up to date.
    """
    first, last = groups.slot_ptr[group], groups.slot_ptr[group + 1]
    weight, chosen, count = corners.weight[group], corners.chosen, corners.known[group]
    for _ in range(most):
        low, high, cheap, dear = np.inf, -np.inf, 0, 0
        for a in range(count):
            value = 0.0
            for slot in range(first, last):
                value += slope[chosen[slot, a]]
            if value < low:
                low, cheap = value, a
            # only a corner with weight can give some away
            if value > high and weight[a] > 0.0:
                high, dear = value, a
        if high - low <= tolerance:
            break
        differ = 0.0
        for slot in range(first, last):
            if chosen[slot, cheap] != chosen[slot, dear]:
                # the squared length of the way from one corner to the other: 1 at each of two seats
                differ += 2.0
        # where the slope along that way comes to 0, or the weight runs out
        amount = min(weight[dear], (high - low) / differ)
        weight[cheap] += amount
        weight[dear] -= amount
        for slot in range(first, last):
            to, fro = chosen[slot, cheap], chosen[slot, dear]
            slope[to] += amount
            slope[fro] -= amount
            corners.point[to] += amount
            corners.point[fro] -= amount


@compiled
def forget_corners(groups: Lattices, group: int, corners: Corners) -> None:
    """Drop the corners without weight."""
    kept = 0
    for a in range(corners.known[group]):
        if corners.weight[group, a] > 0.0:
            # kept is never ahead of a, so that nothing is overwritten before it has moved
            corners.weight[group, kept] = corners.weight[group, a]
            for slot in range(groups.slot_ptr[group], groups.slot_ptr[group + 1]):
                corners.chosen[slot, kept] = corners.chosen[slot, a]
            kept += 1
    corners.known[group] = kept


@compiled
def refresh_point(groups: Lattices, group: int, corners: Corners) -> None:
    """Add the point up from its corners again, so that rounding does not pile up."""
    first, last = groups.slot_ptr[group], groups.slot_ptr[group + 1]
    corners.point[groups.seat_ptr[first] : groups.seat_ptr[last]] = 0.0
    total = 0.0
    for a in range(corners.known[group]):
        total += corners.weight[group, a]
    for a in range(corners.known[group]):
        corners.weight[group, a] /= total
        for slot in range(first, last):
            corners.point[corners.chosen[slot, a]] += corners.weight[group, a]


@compiled
def project(
    groups: Lattices, group: int, aim: Vec, corners: Corners, slope: Vec, work: Vec, sums: Vec, to_go: Vec, calls: int
) -> None:
    """Move the group's point towards the projection of ``aim`` on its polytope: pairwise Frank-Wolfe steps.

    At most ``calls`` dynamic programs find new corners; between them weight is moved among the known ones.
    """
    first, last = groups.slot_ptr[group], groups.slot_ptr[group + 1]
    start, stop = groups.seat_ptr[first], groups.seat_ptr[last]
    fresh = np.empty(groups.slot_ptr[groups.slot_ptr.size - 1], dtype=np.int64)
    refresh_point(groups, group, corners)
    for k in range(start, stop):
        slope[k] = corners.point[k] - aim[k]
    tolerance = 1e-4
    for _ in range(calls):
        balance(groups, group, corners, slope, tolerance, 200)
        least = solve(groups, group, slope, work, sums, to_go)
        # <slope, point> - least bounds how far the squared distance, halved, is from its least
        gap = -least
        for k in range(start, stop):
            gap += slope[k] * corners.point[k]
        if gap <= 1e-9:
            break
        # known corners need to be balanced only a little better than the corner to come improves
        tolerance = min(tolerance, 0.1 * gap)
        # full: the corners without weight make place
        if corners.known[group] == corners.weight.shape[1]:
            forget_corners(groups, group, corners)
            if corners.known[group] == corners.weight.shape[1]:
                break
        choose(groups, group, sums, to_go, fresh)
        a = corners.known[group]
        for slot in range(first, last):
            corners.chosen[slot, a] = fresh[slot]
        corners.weight[group, a] = 0.0
        corners.known[group] = a + 1
    balance(groups, group, corners, slope, tolerance, 200)


@compiled
def sweep(
    groups: Lattices, pull: Vec, point: Vec, corners: Corners, aim: Vec, slope: Vec, sums: Vec, to_go: Vec, calls: int
) -> None:
    """One round of Dykstra's method: project on one group's polytope after the other, remembering each ``pull``.

    A pull is the normal vector of the group's projection; ``point`` + the sum of all pulls never changes.
    """
    work = np.empty(aim.size)
    for group in range(groups.entry_ptr.size - 1):
        start = groups.seat_ptr[groups.slot_ptr[group]]
        stop = groups.seat_ptr[groups.slot_ptr[group + 1]]
        for k in range(start, stop):
            # the pull of the last round is given back before the projection: that makes it Dykstra's method, not plain
            # projections in turn, and brings it to the nearest common point
            aim[k] = point[groups.where[k]] + pull[k]
        project(groups, group, aim, corners, slope, work, sums, to_go, calls)
        for k in range(start, stop):
            pull[k] = aim[k] - corners.point[k]
            point[groups.where[k]] = corners.point[k]
