"""The compiled tie rule: which of the rankings that choose alike is kept, and the hash that draws it."""

from typing import NamedTuple

import numpy as np

from rankstream._core.compilation import compiled, inner
from rankstream._core.types import Codes, Vec

FIRST, LAST, RANDOM = 0, 1, 2


class TieBreak(NamedTuple):
    """The no-choice item (-1: none), the rule for ties and its seed, and the pairs of the order, first before second.

    ``before`` has no rows where every ranking is admissible.
    """

    universal: int
    ties: int
    seed: int
    before: Codes


@compiled
def hashed(state: np.uint64, word: np.uint64) -> np.uint64:
    """Fold a word into a hash: the only source of randomness of the tie rule."""
    z = state ^ word ^ np.uint64(0x9E3779B97F4A7C15)
    for _ in range(2):
        # 32 bits times 32 bits: no product leaves 64 bits, so that nothing wraps, compiled or not
        low = (z & np.uint64(0xFFFFFFFF)) * np.uint64(0x9E3779B1)
        high = (z >> np.uint64(32)) * np.uint64(0x85EBCA77)
        # the upper product turned by 31 bits
        z = low ^ (high << np.uint64(31)) ^ (high >> np.uint64(33))
        z = z ^ (z >> np.uint64(29))
    return z


@inner
def complete(
    chosen: Codes, indptr: Codes, members: Codes, rule: TieBreak, seed: np.uint64, ranking: Codes, space: Codes
) -> None:
    """A ranking in which every offer has its chosen coordinate's item on top, the rest ordered by the tie rule.

    An item can be ranked once every offer with it has its winner ranked, or is won by it: it waits for as many
    items as win an offer with it, or must come before it. ``space`` has two rows more than there are items.
    """
    n_items, universal = ranking.size, rule.universal
    waiting, free, held = space[0], space[1], space[2:]  # held[w]: the items that wait for w
    for winner in range(n_items):
        # one too many for no-choice: it is never among the free in their order, but comes after them
        waiting[winner] = 1 if winner == universal else 0
        for item in range(n_items):
            held[winner, item] = 0
    for offer in range(indptr.size - 1):
        winner = members[chosen[offer]]
        for k in range(indptr[offer], indptr[offer + 1]):
            # a mark, not a count: however many offers a winner takes from an item, it waits once
            held[winner, members[k]] = 1
        held[winner, winner] = 0
    for pair in range(rule.before.shape[0]):
        held[rule.before[pair, 0], rule.before[pair, 1]] = 1
    for winner in range(n_items):
        for item in range(n_items):
            waiting[item] += held[winner, item]
    state = hashed(seed, np.uint64(n_items))
    for place in range(n_items):
        n_free = 0
        for item in range(n_items):
            # written in any case and counted if free, which takes no branch
            free[n_free] = item
            n_free += 1 if waiting[item] == 0 else 0
        if universal >= 0 and waiting[universal] == 1:
            free[n_free] = universal
            n_free += 1
        pick = 0
        if rule.ties == LAST:
            pick = n_free - 1
        elif rule.ties == RANDOM and n_free > 1:
            pick = int(np.int64(state % np.uint64(n_free)))
        winner = free[pick]
        ranking[place] = winner
        state = hashed(state, np.uint64(winner))
        for item in range(n_items):
            waiting[item] -= held[winner, item]
        # too many ever to be free again
        waiting[winner] = n_items + 2


@inner
def keep_within(
    costs: Vec, indptr: Codes, members: Codes, rule: TieBreak, redraw: bool, ranking: Codes, space: Codes
) -> float:
    """What a ranking costs; with ``redraw`` it is replaced by the one that the tie rule keeps of its vertex.

    Random completions are seeded by a hash of the vertex: equal vertices get equal rankings, which keeps models sparse,
    and different vertices independent ones. ``space`` has five rows more than there are items, as long as there are
    items or offers; its first row is left with the coordinate that every offer chooses. The ranking respects the order.
    """
    chosen, position = space[0], space[1]
    for place in range(ranking.size):
        position[ranking[place]] = place
    draw, value = np.uint64(rule.seed), 0.0
    for offer in range(indptr.size - 1):
        best = indptr[offer]
        top = position[members[best]]
        for k in range(best + 1, indptr[offer + 1]):
            here = position[members[k]]
            if here < top:
                best, top = k, here
        chosen[offer] = best
        value += costs[best]
        draw = hashed(draw, np.uint64(best))
    if redraw:
        draw = draw if rule.ties == RANDOM else np.uint64(rule.seed)
        complete(chosen, indptr, members, rule, draw, ranking, space[1:])
    return value


@compiled
def keep_by_rule(costs: Vec, indptr: Codes, members: Codes, rule: TieBreak, redraw: bool, ranking: Codes) -> float:
    """``keep_within`` space of its own."""
    space = np.empty((5 + ranking.size, max(ranking.size, indptr.size)), dtype=np.int64)
    return keep_within(costs, indptr, members, rule, redraw, ranking, space)
