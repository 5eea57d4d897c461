"""Every compiled loop of the package: plain functions over arrays, each with a slow twin in ``tests/naive.py``."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba
import numpy as np

from rankstream._types import Codes, Vec

P = ParamSpec("P")
R = TypeVar("R")

FIRST, LAST, RANDOM = 0, 1, 2


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile with numba, cached on disk where the installation allows it."""
    return _compiled(function, no_cfunc_wrapper=True)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only compiled ones call: without a way in from Python, which takes time to compile."""
    return _compiled(function, no_cfunc_wrapper=True, no_cpython_wrapper=True)


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    made: Callable[P, R]
    try:
        made = numba.njit(cache=True, error_model="numpy", **options)(function)
    except RuntimeError:  # numba finds no writable place for its cache
        made = numba.njit(error_model="numpy", **options)(function)
    return made


@compiled
def vertex(ranking: Codes, indptr: Codes, members: Codes, out: Vec) -> bool:
    """Write a(ranking), 1 where an item is the best ranked of its offer and 0 elsewhere; False if not a ranking."""
    n_items = ranking.size
    position = np.full(n_items, -1, dtype=np.int64)
    for place in range(n_items):
        item = ranking[place]
        if item < 0 or item >= n_items or position[item] >= 0:
            return False
        position[item] = place
    for offer in range(indptr.size - 1):
        best = indptr[offer]
        out[best] = 0.0
        for k in range(indptr[offer] + 1, indptr[offer + 1]):
            out[k] = 0.0
            if position[members[k]] < position[members[best]]:
                best = k
        out[best] = 1.0
    return True


@compiled
def mix(state: np.uint64, word: np.uint64) -> np.uint64:
    """Fold a word into a hash: the only source of randomness of the tie rule (no product leaves 64 bits)."""
    z = state ^ word ^ np.uint64(0x9E3779B97F4A7C15)
    for _ in range(2):
        low = (z & np.uint64(0xFFFFFFFF)) * np.uint64(0x9E3779B1)
        high = (z >> np.uint64(32)) * np.uint64(0x85EBCA77)
        z = low ^ (high << np.uint64(31)) ^ (high >> np.uint64(33))
        z = z ^ (z >> np.uint64(29))
    return z


@inner
def complete(
    chosen: Codes,
    indptr: Codes,
    members: Codes,
    universal: int,
    ties: int,
    seed: np.uint64,
    ranking: Codes,
    space: Codes,
) -> None:
    """A ranking in which every offer has its chosen coordinate's item on top, the rest ordered by the tie rule.

    An item can be ranked once every offer that holds it has its winner ranked, or is won by it: it waits for as many
    items as win an offer that holds it. ``space`` has two rows more than there are items.
    """
    n_items = ranking.size
    waiting, free, held = space[0], space[1], space[2:]  # held[w]: the items that wait for w
    for winner in range(n_items):
        waiting[winner] = 1 if winner == universal else 0
        for item in range(n_items):
            held[winner, item] = 0
    for offer in range(indptr.size - 1):
        winner = members[chosen[offer]]
        for k in range(indptr[offer], indptr[offer + 1]):
            held[winner, members[k]] = 1
        held[winner, winner] = 0
    for winner in range(n_items):
        for item in range(n_items):
            waiting[item] += held[winner, item]
    state = mix(seed, np.uint64(n_items))
    for place in range(n_items):
        n_free = 0
        for item in range(n_items):
            free[n_free] = item
            n_free += 1 if waiting[item] == 0 else 0
        if universal >= 0 and waiting[universal] == 1:
            free[n_free] = universal
            n_free += 1
        pick = 0
        if ties == LAST:
            pick = n_free - 1
        elif ties == RANDOM and n_free > 1:
            pick = int(np.int64(state % np.uint64(n_free)))
        winner = free[pick]
        ranking[place] = winner
        state = mix(state, np.uint64(winner))
        for item in range(n_items):
            waiting[item] -= held[winner, item]
        waiting[winner] = n_items + 2


@inner
def keep_within(
    costs: Vec,
    indptr: Codes,
    members: Codes,
    universal: int,
    ties: int,
    seed: int,
    redraw: bool,
    ranking: Codes,
    space: Codes,
) -> float:
    """What a ranking costs; with ``redraw`` it is replaced by the one that the tie rule keeps of its vertex.

    Random completions are seeded by a hash of the vertex: equal vertices get equal rankings, which keeps models sparse,
    and different vertices independent ones. ``space`` has five rows more than there are items, as long as there are
    items or offers; its first row is left with the coordinate that every offer chooses.
    """
    chosen, position = space[0], space[1]
    for place in range(ranking.size):
        position[ranking[place]] = place
    draw, value = np.uint64(seed), 0.0
    for offer in range(indptr.size - 1):
        best = indptr[offer]
        top = position[members[best]]
        for k in range(best + 1, indptr[offer + 1]):
            here = position[members[k]]
            if here < top:
                best, top = k, here
        chosen[offer] = best
        value += costs[best]
        draw = mix(draw, np.uint64(best))
    if redraw:
        draw = draw if ties == RANDOM else np.uint64(seed)
        complete(chosen, indptr, members, universal, ties, draw, ranking, space[1:])
    return value


@compiled
def keep_by_rule(
    costs: Vec, indptr: Codes, members: Codes, universal: int, ties: int, seed: int, redraw: bool, ranking: Codes
) -> float:
    """``keep_within`` space of its own."""
    space = np.empty((5 + ranking.size, max(ranking.size, indptr.size)), dtype=np.int64)
    return keep_within(costs, indptr, members, universal, ties, seed, redraw, ranking, space)


@compiled
def project_onto_power_ball(point: Vec, power: float, out: Vec) -> None:
    """The Euclidean projection onto the unit ball of the l_power norm, power > 2, to machine precision.

    Solves y_i + price * y_i^(power - 1) = |point_i| for every i, and log(sum of y_i^power) = 0 for the price, by Newton
    steps in its logarithm, where the equation is nearly straight for large prices. A Newton step from price 0 and the
    price at which the y_i without their first term would do are the first bracket.
    """
    q = power / (power - 1.0)
    total, slope, high = 0.0, 0.0, 0.0
    for i in range(point.size):
        size = abs(point[i])
        out[i] = size
        total += size**power
        slope += power * size ** (2.0 * power - 2.0)
        high += size**q
    if total > 1.0:
        high = high ** (1.0 / q)
        low = total * np.log(total) / slope if slope < np.inf else 0.0
        price = low if 0.0 < low < high else high
        low = 0.0
        for _ in range(100):
            total, slope = 0.0, 0.0
            for i in range(point.size):
                y = shrink(abs(point[i]), price, power)
                out[i] = y
                if y > 0.0:
                    inner = y ** (power - 2.0)
                    total += inner * y * y
                    slope += power * inner * inner * y * y / (1.0 + price * (power - 1.0) * inner)
            excess = np.log(total)
            if excess > 0.0:
                low = price
            else:
                high = price
            if abs(excess) <= 1e-15 or high - low <= 1e-16 * high:
                break
            price *= np.exp(min(50.0, excess * total / (price * slope)))
            if not low < price < high:
                price = np.sqrt(low * high) if low > 0.0 else 0.01 * high
    for i in range(point.size):
        if point[i] < 0.0:
            out[i] = -out[i]


@compiled
def shrink(size: float, price: float, power: float) -> float:
    """The y >= 0 with y + price * y^(power - 1) = size: Newton's method from above, where it falls without fail."""
    if size == 0.0 or price == 0.0:
        return size
    y = min(size, (size / price) ** (1.0 / (power - 1.0)))
    for _ in range(100):
        curved = price * y ** (power - 2.0)
        step = (y + curved * y - size) / (1.0 + (power - 1.0) * curved)
        y -= step
        if abs(step) <= 4e-16 * y:
            break
    return float(y)


@compiled
def softmax_by_offer(scores: Vec, factor: float, indptr: Codes, out: Vec) -> None:
    """On every offer, positive numbers that sum to 1, proportional to exp(factor * score)."""
    for offer in range(indptr.size - 1):
        top = -np.inf
        for k in range(indptr[offer], indptr[offer + 1]):
            top = max(top, factor * scores[k])
        total = 0.0
        for k in range(indptr[offer], indptr[offer + 1]):
            out[k] = np.exp(factor * scores[k] - top)
            total += out[k]
        for k in range(indptr[offer], indptr[offer + 1]):
            out[k] /= total


@compiled
def project_onto_simplices(point: Vec, indptr: Codes, out: Vec) -> None:
    """On every offer, the nearest probabilities: subtract the level at which what stays positive sums to 1."""
    for offer in range(indptr.size - 1):
        count, level = indptr[offer + 1] - indptr[offer] + 1, -np.inf
        while True:
            total, kept = 0.0, 0
            for k in range(indptr[offer], indptr[offer + 1]):
                if point[k] > level:
                    total += point[k]
                    kept += 1
            if kept >= count or kept == 0:
                break
            count, level = kept, (total - 1.0) / kept
        for k in range(indptr[offer], indptr[offer + 1]):
            out[k] = max(0.0, point[k] - level)
