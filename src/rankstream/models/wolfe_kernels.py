"""Compiled major cycles of Wolfe's method over rankings: which columns to take in; the corral does the rest."""

import numpy as np

from rankstream._core.compilation import compiled
from rankstream._core.types import Codes, Vec, Words
from rankstream.oracles.bounds.corral_kernels import append, dot, linear_term, mixture, settle

MIN_SLOPE_SHARE = 0.1  # of the best column's slope: flatter ones are weighed for nothing, as most are dropped again


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
    enough = min(MIN_SLOPE_SHARE * slopes.min(), 0.0) if count else np.inf
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
