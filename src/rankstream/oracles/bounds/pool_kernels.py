"""Compiled steps of Hildreth's method: the nearest point within half-spaces and simplices, one multiplier at a time.

Everything is in coordinates in which the norm is Euclidean (a share times its offer's weight). The point always is the
data less the sum of all pulls, and every step makes one multiplier best while the others stay: the dual value never
falls, and any multipliers, at any time, prove a bound.
"""

from typing import NamedTuple

import numpy as np

from rankstream._core.compilation import compiled
from rankstream._core.types import Codes, Vec


class CutRows(NamedTuple):
    """Half-spaces <row, z> <= right end to end: row k is ``value`` at ``where``, from ``ptr[k]`` to ``ptr[k + 1]``."""

    ptr: Codes
    where: Codes
    value: Vec
    right: Vec
    square: Vec


@compiled
def excess(rows: CutRows, number: int, point: Vec) -> float:
    """How far a point is beyond a half-space, times the length of its row."""
    total = -rows.right[number]
    for k in range(rows.ptr[number], rows.ptr[number + 1]):
        total += rows.value[k] * point[rows.where[k]]
    return float(total)


@compiled
def press(rows: CutRows, number: int, multipliers: Vec, point: Vec) -> None:
    """Make the multiplier of one half-space best: to its surface, or as far as the multiplier can fall."""
    step = max(-multipliers[number], excess(rows, number, point) / rows.square[number])
    if step != 0.0:
        multipliers[number] += step
        for k in range(rows.ptr[number], rows.ptr[number + 1]):
            point[rows.where[k]] -= step * rows.value[k]


@compiled
def level(indptr: Codes, radii: Vec, levels: Vec, lifts: Vec, point: Vec) -> None:
    """The same for the simplices: sums that are as they must be (``levels``, of any sign), shares >= 0 (``lifts``)."""
    for offer in range(radii.size):
        begin, end = indptr[offer], indptr[offer + 1]
        total = 0.0
        for k in range(begin, end):
            total += point[k]
        step = (total - radii[offer]) / (end - begin)
        levels[offer] += step
        for k in range(begin, end):
            # without its lift, then lifted to 0 if it is below
            bare = point[k] - step - lifts[k]
            point[k] = max(0.0, bare)
            lifts[k] = point[k] - bare


@compiled
def climb(
    rows: CutRows,
    multipliers: Vec,
    indptr: Codes,
    radii: Vec,
    levels: Vec,
    lifts: Vec,
    point: Vec,
    passes: int,
    between: int,
) -> None:
    """``passes`` over all half-spaces and simplices, with ``between`` over those with a multiplier alone after each."""
    active = np.empty(multipliers.size, dtype=np.int64)
    for _ in range(passes):
        count = 0
        for number in range(multipliers.size):
            press(rows, number, multipliers, point)
            if multipliers[number] > 0.0:
                active[count] = number
                count += 1
        level(indptr, radii, levels, lifts, point)
        for _ in range(between):
            for k in range(count):
                press(rows, active[k], multipliers, point)
            level(indptr, radii, levels, lifts, point)
