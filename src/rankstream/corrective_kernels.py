"""The compiled loops of the fully corrective engine: Wolfe's active-set method, and many columns from one program."""

import numpy as np

from rankstream._core.compiling import compiled
from rankstream._core.types import Codes, Vec, Words
from rankstream.factor_kernels import append, dot, nearest_in_span, remove

WORTHWHILE = 0.1  # of the best column's slope
NOTHING = 1e-14  # a weight that is only rounding


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
                reach = weights[i] / (weights[i] - min(wanted[i], 0.0)) if weights[i] > 0.0 else 0.0
                if reach <= step:
                    step, stops = reach, i
        for i in range(count):
            weights[i] += step * (wanted[i] - weights[i])
        if stops < 0:
            return count
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
    slopes = np.full(columns.shape[0], -dot(slope, point))
    for row in range(columns.shape[0]):
        for j in range(columns.shape[1]):
            slopes[row] += slope[columns[row, j]]
    enough = min(WORTHWHILE * slopes.min(), 0.0) if count else np.inf
    before = count
    for row in np.argsort(slopes):
        if not slopes[row] < enough:
            break
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
