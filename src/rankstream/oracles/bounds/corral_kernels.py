"""Compiled steps of Wolfe's nearest point method: a corral of corners, its Cholesky factor, and the minor cycles.

A corner is what it chooses, a coordinate per slot; the inner product of two is the sum of ``squares``, the squared
weights of the slots, where they choose alike. Corners none of which is an affine mixture of the others have a positive
definite matrix of these products if all lie in a plane that misses the origin, as those of rankings do, which choose
something from every offer. Its factor, upper triangular, gains a column at the end and loses any one by rotations. A
corner that need not choose puts ``SHARED_SLOT`` into one more slot, which all have alike and which keeps the plane away
from the origin, and where it chooses nothing a number above it that is its own: neither is a coordinate.

The corral is the corners in the factor, number i in row ``slots[i]`` of ``chosen``; all rows after them are free.
``settle`` gives them the weights of the mixture nearest to the target and drops what that does not need. Rankings
(``models.nearest``) and parts (``parts``) use the same steps: a corral that kept the inverse of the products took as
long on parts, and gathered more rounding.
"""

import numpy as np

from rankstream._core.compilation import compiled, in_any_order
from rankstream._core.types import Codes, Vec, Words

SHARED_SLOT = 2**31
MIN_INDEPENDENT_PART = 1e-12  # with less of its squared length outside the others' span, a corner is only rounding
MIN_CORNER_WEIGHT = 1e-14  # a weight that is only rounding


@in_any_order
def dot(one: Vec, other: Vec) -> float:
    """The inner product."""
    total = 0.0
    for k in range(one.size):
        total += one[k] * other[k]
    return total


@in_any_order
def agreement(one: Words, other: Words, squares: Vec) -> float:
    """The inner product of two corners."""
    total = 0.0
    for j in range(one.size):
        total += squares[j] if one[j] == other[j] else 0.0
    return total


@compiled
def squared_length(column: Words, squares: Vec) -> float:
    """The inner product of a corner with itself."""
    total = 0.0
    for j in range(column.size):
        total += squares[j] if column[j] <= SHARED_SLOT else 0.0
    return total


@compiled
def linear_term(column: Words, target: Vec, squares: Vec) -> float:
    """The inner product of a corner and the target; what all share is left out, as it makes no difference."""
    total = 0.0
    for j in range(column.size):
        if column[j] < SHARED_SLOT:
            total += squares[j] * target[column[j]]
    return total


@compiled
def solve_transposed(count: int, factor: Vec, right: Vec) -> None:
    """Solve factor' x = right in place, column by column, so that the inner loop runs along a row of the factor."""
    for i in range(count):
        right[i] /= factor[i, i]
        for k in range(i + 1, count):
            right[k] -= factor[i, k] * right[i]


@compiled
def append(count: int, slots: Codes, chosen: Words, linear: float, squares: Vec, factor: Vec, sides: Vec) -> bool:
    """Take the corner in row ``slots[count]`` into the factor; False if it depends on those that are there.

    ``sides`` is the inverse of the factor's transpose times the linear terms, and times ones.
    """
    length = squared_length(chosen[slots[count]], squares)
    new = np.empty(count)
    for i in range(count):
        new[i] = agreement(chosen[slots[i]], chosen[slots[count]], squares)
    solve_transposed(count, factor, new)
    # the squared length outside the span of the others, which becomes the new pivot
    rest = length - dot(new, new)
    if rest <= MIN_INDEPENDENT_PART * length:
        return False
    root = np.sqrt(rest)
    for i in range(count):
        factor[i, count] = new[i]
    factor[count, count] = root
    sides[0, count] = (linear - dot(new, sides[0, :count])) / root
    sides[1, count] = (1.0 - dot(new, sides[1, :count])) / root
    return True


@compiled
def remove(count: int, gone: int, slots: Codes, weights: Vec, factor: Vec, sides: Vec) -> None:
    """Take a column out of the factor by rotations of neighbouring rows; its slot is free then."""
    free = slots[gone]
    for k in range(gone, count - 1):
        slots[k] = slots[k + 1]
        weights[k] = weights[k + 1]
    slots[count - 1] = free
    for i in range(count):
        # row i began at column i, at i - 1 after the move: one entry below the diagonal, which the rotation clears
        for k in range(max(gone, i - 1), count - 1):
            factor[i, k] = factor[i, k + 1]
    for i in range(gone, count - 1):
        root = np.hypot(factor[i, i], factor[i + 1, i])
        cosine, sine = factor[i, i] / root, factor[i + 1, i] / root
        factor[i, i] = root
        turn(cosine, sine, factor[i, i + 1 : count - 1], factor[i + 1, i + 1 : count - 1])
        # right-hand sides go with the rows
        turn(cosine, sine, sides[0, i : i + 1], sides[0, i + 1 : i + 2])
        turn(cosine, sine, sides[1, i : i + 1], sides[1, i + 1 : i + 2])


@compiled
def turn(cosine: float, sine: float, upper: Vec, lower: Vec) -> None:
    """Rotate two rows into each other."""
    for k in range(upper.size):
        kept = upper[k]
        upper[k] = cosine * kept + sine * lower[k]
        lower[k] = cosine * lower[k] - sine * kept


@compiled
def nearest_in_span(count: int, factor: Vec, sides: Vec, out: Vec) -> None:
    """The weights, of any sign but with sum 1, whose mixture is nearest to the target."""
    ones = sides[1, :count]
    # the multiplier of the condition that the weights sum to 1
    shift = (1.0 - dot(sides[0, :count], ones)) / dot(ones, ones)
    for i in range(count - 1, -1, -1):
        known = dot(factor[i, i + 1 : count], out[i + 1 : count])
        out[i] = (sides[0, i] + shift * ones[i] - known) / factor[i, i]


@compiled
def settle(count: int, slots: Codes, weights: Vec, factor: Vec, sides: Vec) -> int:
    """Wolfe's minor cycles: towards the nearest mixture, dropping what reaches weight 0, until all are positive.

    Returns how many corners are left.
    """
    wanted = np.empty(count)
    while True:
        nearest_in_span(count, factor, sides, wanted)
        step, stops = 1.0, -1
        for i in range(count):
            if wanted[i] <= MIN_CORNER_WEIGHT:
                # how much of the way leads to weight 0; a corner that has none yet and should get none stops it at once
                reach = weights[i] / (weights[i] - min(wanted[i], 0.0)) if weights[i] > 0.0 else 0.0
                if reach <= step:
                    step, stops = reach, i
        for i in range(count):
            weights[i] += step * (wanted[i] - weights[i])
        if stops < 0:
            return count
        # from the end, so that what is still to be looked at keeps its place
        for i in range(count - 1, -1, -1):
            if i == stops or (wanted[i] <= MIN_CORNER_WEIGHT and weights[i] <= MIN_CORNER_WEIGHT):
                remove(count, i, slots, weights, factor, sides)
                count -= 1


@compiled
def mixture(count: int, slots: Codes, chosen: Words, weights: Vec, out: Vec) -> None:
    """The point that weighted corners make: for those of rankings, choice probabilities."""
    out[:] = 0.0
    for i in range(count):
        column = chosen[slots[i]]
        for j in range(column.size):
            if column[j] < SHARED_SLOT:
                out[column[j]] += weights[i]


@compiled
def retarget(count: int, target: Vec, squares: Vec, slots: Codes, chosen: Words, factor: Vec, sides: Vec) -> None:
    """Aim at another target with the same corners, whose weights stay as they are until they are settled."""
    for i in range(count):
        sides[0, i] = linear_term(chosen[slots[i]], target, squares)
    solve_transposed(count, factor, sides[0])


@compiled
def refactor(
    count: int, target: Vec, squares: Vec, slots: Codes, chosen: Words, weights: Vec, factor: Vec, sides: Vec
) -> int:
    """The factor from scratch, without the rounding it has gathered; corners that depend on others are dropped."""
    kept = 0
    for i in range(count):
        # a swap: slots stay a permutation, with those that are dropped behind the others, where they are free
        slots[kept], slots[i] = slots[i], slots[kept]
        weights[kept], weights[i] = weights[i], weights[kept]
        linear = linear_term(chosen[slots[kept]], target, squares)
        if append(kept, slots, chosen, linear, squares, factor, sides):
            kept += 1
    weights[:kept] /= weights[:kept].sum()
    return kept
