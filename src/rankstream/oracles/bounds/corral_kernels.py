"""Compiled steps of Wolfe's nearest point method: a corral of corners, its Cholesky factor, and the minor cycles.

A corner is what it chooses, a coordinate per slot; the inner product of two is the sum of ``squares``, the squared
weights of the slots, where they choose alike. Corners none of which is an affine mixture of the others have a positive
definite matrix of these products if all lie in a plane that misses the origin, as those of rankings do, which choose
something from every offer. Its factor, upper triangular, gains a column at the end and loses any one by rotations. A
corner that need not choose puts ``SHARED_SLOT`` into one more slot, which all have alike and which keeps the plane away
from the origin, and where it chooses nothing a number above it that is its own: neither is a coordinate.

``settle`` gives the corners the weights of the mixture nearest to the target and drops what that does not need.
Rankings (``models.nearest``) and parts (``rounds``) use the same steps: a corral that kept the inverse of the products
took as long on parts, and gathered more rounding.
"""

from typing import NamedTuple

import numpy as np

from rankstream._core.compilation import compiled, in_any_order
from rankstream._core.types import Codes, Vec, Words

SHARED_SLOT = 2**31
MIN_INDEPENDENT_PART = 1e-12  # with less of its squared length outside the others' span, a corner is only rounding
MIN_CORNER_WEIGHT = 1e-14  # a weight that is only rounding
MIN_SLOPE_SHARE = 0.1  # of the best column's slope: flatter ones are weighed for nothing, as most are dropped again


class Corral(NamedTuple):
    """The corners in the factor: ``known[0]`` of them, number i in row ``slots[i]`` of ``chosen``; other rows are free.

    ``sides`` is the inverse of the factor's transpose times the linear terms, and times ones.
    """

    known: Codes
    slots: Codes
    chosen: Words
    weights: Vec
    factor: Vec
    sides: Vec
    squares: Vec


def empty_corral(squares: Vec, most: int) -> Corral:
    """Room for that many corners over slots of these squared weights."""
    chosen = np.zeros((most, squares.size), dtype=np.uint32)
    work = np.zeros(most), np.zeros((most, most)), np.zeros((2, most))
    return Corral(np.zeros(1, dtype=np.int64), np.arange(most), chosen, *work, squares)


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
def append(corral: Corral, linear: float) -> bool:
    """Take in the corner of the first free row, without weight; False if it depends on those that are there.

    ``linear`` is its inner product with the target.
    """
    count, slots, chosen, sides = corral.known[0], corral.slots, corral.chosen, corral.sides
    length = squared_length(chosen[slots[count]], corral.squares)
    new = np.empty(count)
    for i in range(count):
        new[i] = agreement(chosen[slots[i]], chosen[slots[count]], corral.squares)
    solve_transposed(count, corral.factor, new)
    # the squared length outside the span of the others, which becomes the new pivot
    rest = length - dot(new, new)
    if rest <= MIN_INDEPENDENT_PART * length:
        return False
    root = np.sqrt(rest)
    for i in range(count):
        corral.factor[i, count] = new[i]
    corral.factor[count, count] = root
    sides[0, count] = (linear - dot(new, sides[0, :count])) / root
    sides[1, count] = (1.0 - dot(new, sides[1, :count])) / root
    corral.weights[count] = 0.0 if count else 1.0
    corral.known[0] = count + 1
    return True


@compiled
def remove(corral: Corral, gone: int) -> None:
    """Take a column out of the factor by rotations of neighbouring rows; its slot is free then."""
    count, slots, weights, factor, sides = corral.known[0], corral.slots, corral.weights, corral.factor, corral.sides
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
    corral.known[0] = count - 1


@compiled
def turn(cosine: float, sine: float, upper: Vec, lower: Vec) -> None:
    """Rotate two rows into each other."""
    for k in range(upper.size):
        kept = upper[k]
        upper[k] = cosine * kept + sine * lower[k]
        lower[k] = cosine * lower[k] - sine * kept


@compiled
def nearest_in_span(corral: Corral, out: Vec) -> None:
    """The weights, of any sign but with sum 1, whose mixture is nearest to the target."""
    count, factor, sides = corral.known[0], corral.factor, corral.sides
    ones = sides[1, :count]
    # the multiplier of the condition that the weights sum to 1
    shift = (1.0 - dot(sides[0, :count], ones)) / dot(ones, ones)
    for i in range(count - 1, -1, -1):
        known = dot(factor[i, i + 1 : count], out[i + 1 : count])
        out[i] = (sides[0, i] + shift * ones[i] - known) / factor[i, i]


@compiled
def settle(corral: Corral, point: Vec) -> None:
    """Wolfe's minor cycles: towards the nearest mixture, dropping what reaches weight 0, until all are positive.

    ``point`` becomes that mixture.
    """
    weights, wanted = corral.weights, np.empty(corral.known[0])
    stops = 0
    while stops >= 0:
        count = corral.known[0]
        nearest_in_span(corral, wanted)
        step, stops = 1.0, -1
        for i in range(count):
            if wanted[i] <= MIN_CORNER_WEIGHT:
                # how much of the way leads to weight 0; a corner that has none yet and should get none stops it at once
                reach = weights[i] / (weights[i] - min(wanted[i], 0.0)) if weights[i] > 0.0 else 0.0
                if reach <= step:
                    step, stops = reach, i
        for i in range(count):
            weights[i] += step * (wanted[i] - weights[i])
        # from the end, so that what is still to be looked at keeps its place
        for i in range(count - 1 if stops >= 0 else -1, -1, -1):
            if i == stops or (wanted[i] <= MIN_CORNER_WEIGHT and weights[i] <= MIN_CORNER_WEIGHT):
                remove(corral, i)
    mixture(corral, point)


@compiled
def mixture(corral: Corral, out: Vec) -> None:
    """The point that weighted corners make: for those of rankings, choice probabilities."""
    out[:] = 0.0
    for i in range(corral.known[0]):
        column = corral.chosen[corral.slots[i]]
        for j in range(column.size):
            if column[j] < SHARED_SLOT:
                out[column[j]] += corral.weights[i]


@compiled
def retarget(corral: Corral, target: Vec) -> None:
    """Aim at another target with the same corners, whose weights stay as they are until they are settled."""
    for i in range(corral.known[0]):
        corral.sides[0, i] = linear_term(corral.chosen[corral.slots[i]], target, corral.squares)
    solve_transposed(corral.known[0], corral.factor, corral.sides[0])


@compiled
def refactor(corral: Corral, target: Vec) -> None:
    """The factor from scratch, without the rounding it has gathered; corners that depend on others are dropped."""
    count, slots, weights = corral.known[0], corral.slots, corral.weights
    corral.known[0] = 0
    for i in range(count):
        # a swap: slots stay a permutation, with those that are dropped behind the others, where they are free
        kept, weight = corral.known[0], weights[i]
        slots[kept], slots[i] = slots[i], slots[kept]
        weights[i] = weights[kept]
        append(corral, linear_term(corral.chosen[slots[kept]], target, corral.squares))
        weights[kept] = weight
    weights[: corral.known[0]] /= weights[: corral.known[0]].sum()


@compiled
def winners(rankings: Codes, indptr: Codes, members: Codes, chosen: Words) -> None:
    """The coordinate that each ranking chooses from each offer."""
    position = np.empty(rankings.shape[1], dtype=np.int64)
    for row in range(rankings.shape[0]):
        for place in range(rankings.shape[1]):
            position[rankings[row, place]] = place
        for offer in range(indptr.size - 1):
            best = indptr[offer]
            for k in range(indptr[offer] + 1, indptr[offer + 1]):
                if position[members[k]] < position[members[best]]:
                    best = k
            chosen[row, offer] = best


@compiled
def correct(
    corral: Corral, columns: Words, rankings: Codes, target: Vec, owner: Codes, orders: Codes, point: Vec
) -> None:
    """Take in the columns that lead nearer to the target, best first, and settle all weights; ``point`` is the mixture.

    Several at once are as safe as one: the nearest mixture gives at least one new column a positive weight, and those
    to which it gives none are dropped. ``orders`` has the ranking of every row of the corral.
    """
    slots, before = corral.slots, corral.known[0]
    slope = corral.squares[owner] * (point - target)
    # of half the squared distance, on the way from the point to each column: negative where it leads nearer
    slopes = np.full(columns.shape[0], -dot(slope, point))
    for row in range(columns.shape[0]):
        for j in range(columns.shape[1]):
            slopes[row] += slope[columns[row, j]]
    # with no vertex yet there is no point to come from: every column is welcome
    enough = min(MIN_SLOPE_SHARE * slopes.min(), 0.0) if before else np.inf
    for row in np.argsort(slopes):
        if not slopes[row] < enough:
            break
        # a free row; a column that depends on others leaves it so
        free = slots[corral.known[0]]
        corral.chosen[free] = columns[row]
        if append(corral, linear_term(columns[row], target, corral.squares)):
            orders[free] = rankings[row]
    if corral.known[0] > before:
        settle(corral, point)
