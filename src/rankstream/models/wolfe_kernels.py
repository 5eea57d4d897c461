"""Compiled loops of Wolfe's active-set method: a Cholesky factor that grows and shrinks, and the cycles that use it.

A vertex is its chosen coordinates, one per offer. All vertices lie in a plane that misses the origin, so vertices none
of which is an affine mixture of the others have a positive definite matrix of inner products: the squared weights of
the offers (their number, where all weights are 1) from which two of them choose alike. Its factor, upper triangular,
gains a column at the end and loses any one by rotations. The active set is the vertices in the factor: ``settle`` gives
them the weights of the mixture nearest to the target and drops what that does not need, ``correct`` takes in more.
"""

from collections.abc import Callable

import numba
import numpy as np

from rankstream._core.compiling import P, R, compiled
from rankstream._core.types import Codes, Vec, Words

DEPENDENT = 1e-12  # a vertex with less of its squared length outside the span of the others adds only rounding
WORTHWHILE = 0.1  # of the best column's slope
NOTHING = 1e-14  # a weight that is only rounding


def summed_in_any_order(function: Callable[P, R]) -> Callable[P, R]:
    """Compile sums so that they can be taken several terms at a time."""
    # only these two: NaN and infinity must still mean what they mean
    kind = {"reassoc", "contract"}
    try:
        return numba.njit(cache=True, fastmath=kind)(function)
    except RuntimeError:  # numba finds no writable place for its cache
        return numba.njit(fastmath=kind)(function)


@summed_in_any_order
def dot(one: Vec, other: Vec) -> float:
    """The inner product."""
    total = 0.0
    for k in range(one.size):
        total += one[k] * other[k]
    return total


@summed_in_any_order
def agreement(one: Words, other: Words, squares: Vec) -> float:
    """The inner product of two vertices."""
    total = 0.0
    for j in range(one.size):
        total += squares[j] if one[j] == other[j] else 0.0
    return total


@compiled
def append(count: int, slots: Codes, chosen: Words, linear: float, squares: Vec, factor: Vec, sides: Vec) -> bool:
    """Take the vertex in slot ``slots[count]`` into the factor; False if it depends on those that are there.

    ``sides`` holds the inverse of the factor's transpose times the linear terms, and times ones.
    """
    length = squares.sum()
    new = np.empty(count)
    for i in range(count):
        new[i] = agreement(chosen[slots[i]], chosen[slots[count]], squares)
    # solve factor' new = products, column by column, so that the inner loop runs along a row of the factor
    for i in range(count):
        new[i] /= factor[i, i]
        for k in range(i + 1, count):
            new[k] -= factor[i, k] * new[i]
    # the squared length outside the span of the others, which becomes the new pivot
    rest = length - dot(new, new)
    if rest <= DEPENDENT * length:
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
    # the price of the condition that the weights sum to 1
    shift = (1.0 - dot(sides[0, :count], ones)) / dot(ones, ones)
    for i in range(count - 1, -1, -1):
        known = dot(factor[i, i + 1 : count], out[i + 1 : count])
        out[i] = (sides[0, i] + shift * ones[i] - known) / factor[i, i]


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
def settle(count: int, slots: Codes, weights: Vec, factor: Vec, sides: Vec) -> int:
    """Wolfe's minor cycles: towards the nearest mixture, dropping what reaches weight 0, until all are positive.

    Returns how many vertices are left.
    """
    wanted = np.empty(count)
    while True:
        nearest_in_span(count, factor, sides, wanted)
        step, stops = 1.0, -1
        for i in range(count):
            if wanted[i] <= NOTHING:
                # how much of the way leads to weight 0; a vertex that has none yet and should get none stops it at once
                reach = weights[i] / (weights[i] - min(wanted[i], 0.0)) if weights[i] > 0.0 else 0.0
                if reach <= step:
                    step, stops = reach, i
        for i in range(count):
            weights[i] += step * (wanted[i] - weights[i])
        if stops < 0:
            return count
        # from the end, so that what is still to be looked at keeps its place
        for i in range(count - 1, -1, -1):
            if i == stops or (wanted[i] <= NOTHING and weights[i] <= NOTHING):
                remove(count, i, slots, weights, factor, sides)
                count -= 1


@compiled
def mixture(count: int, slots: Codes, chosen: Words, weights: Vec, out: Vec) -> None:
    """The choice probabilities of weighted vertices."""
    out[:] = 0.0
    for i in range(count):
        for j in range(chosen.shape[1]):
            out[chosen[slots[i], j]] += weights[i]


@compiled
def linear_term(column: Words, target: Vec, squares: Vec) -> float:
    """The inner product of a vertex and the target."""
    total = 0.0
    for j in range(squares.size):
        total += squares[j] * target[column[j]]
    return total


@compiled
def refactor(
    count: int, target: Vec, squares: Vec, slots: Codes, chosen: Words, weights: Vec, factor: Vec, sides: Vec
) -> int:
    """The factor from scratch, without the rounding it has gathered; vertices that depend on others are dropped."""
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


@compiled
def correct(
    count: int,
    columns: Words,
    rankings: Codes,
    target: Vec,
    squares: Vec,
    owner: Codes,
    slots: Codes,
    chosen: Words,
    orders: Codes,
    weights: Vec,
    factor: Vec,
    sides: Vec,
    point: Vec,
) -> int:
    """Take in the columns that lead nearer to the target, best first, and settle all weights; ``point`` is the mixture.

    Several at once are as safe as one: the nearest mixture gives at least one new column a positive weight, and those
    to which it gives none are dropped. Returns how many vertices are left.
    """
    slope = squares[owner] * (point - target)
    # of half the squared distance, on the way from the point to each column: negative where it leads nearer
    slopes = np.full(columns.shape[0], -dot(slope, point))
    for row in range(columns.shape[0]):
        for j in range(columns.shape[1]):
            slopes[row] += slope[columns[row, j]]
    # with no vertex yet there is no point to come from: every column is welcome
    enough = min(WORTHWHILE * slopes.min(), 0.0) if count else np.inf
    before = count
    for row in np.argsort(slopes):
        if not slopes[row] < enough:
            break
        # slots[count] is free; a column that depends on others leaves it so
        chosen[slots[count]] = columns[row]
        linear = linear_term(columns[row], target, squares)
        if append(count, slots, chosen, linear, squares, factor, sides):
            orders[slots[count]] = rankings[row]
            weights[count] = 0.0 if count else 1.0
            count += 1
    if count > before:
        count = settle(count, slots, weights, factor, sides)
        mixture(count, slots, chosen, weights, point)
    return count
