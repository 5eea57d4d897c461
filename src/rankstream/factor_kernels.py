"""A Cholesky factor that grows and shrinks, for the inner products of vertices.

A vertex is its chosen coordinates, one per offer. All vertices lie in a plane that misses the origin, so vertices none
of which is an affine mixture of the others have a positive definite matrix of inner products: the squared weights of
the offers (their number, where all weights are 1) from which two of them choose alike. Its factor, upper triangular,
gains a column at the end and loses any one by rotations.
"""

from collections.abc import Callable

import numba
import numpy as np

from rankstream._core.compiling import P, R, compiled
from rankstream._core.types import Codes, Vec, Words

DEPENDENT = 1e-12  # a vertex with less of its squared length outside the span of the others adds only rounding


def summed_in_any_order(function: Callable[P, R]) -> Callable[P, R]:
    """Compile sums so that they can be taken several terms at a time."""
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
    for i in range(count):
        new[i] /= factor[i, i]
        for k in range(i + 1, count):
            new[k] -= factor[i, k] * new[i]
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
        for k in range(max(gone, i - 1), count - 1):
            factor[i, k] = factor[i, k + 1]
    for i in range(gone, count - 1):
        root = np.hypot(factor[i, i], factor[i + 1, i])
        cosine, sine = factor[i, i] / root, factor[i + 1, i] / root
        factor[i, i] = root
        turn(cosine, sine, factor[i, i + 1 : count - 1], factor[i + 1, i + 1 : count - 1])
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
    shift = (1.0 - dot(sides[0, :count], ones)) / dot(ones, ones)
    for i in range(count - 1, -1, -1):
        known = dot(factor[i, i + 1 : count], out[i + 1 : count])
        out[i] = (sides[0, i] + shift * ones[i] - known) / factor[i, i]
