"""The compiled loops of the laminar oracle, linear in the number of entries."""

import numpy as np

from rankstream._types import Codes, Vec
from rankstream.kernels import LAST, RANDOM, compiled, mix


@compiled
def choose_winners(
    entries: Vec, starts: Codes, above: Codes, inner: Codes, stop: float, whole: Vec, won: Vec, winner: Codes
) -> None:
    """The cheapest winner of every offer of a laminar family, smaller offers first.

    ``won[e]`` is the least cost of an offer and all inside it if the entry's item is the best ranked: its own cost, the
    least of each offer inside without the item, and ``won`` of the one inside that holds it (``inner[e]``, -1: none).
    ``whole`` is the least over all items, or ``stop`` where the no-choice item may win. ``winner`` becomes the entry of
    the best ranked item of every offer, -1 for no-choice; ``above`` is the smallest offer around each, -1 for none.
    """
    n_offers = starts.size - 1
    inside = np.zeros(n_offers)
    owner = np.zeros(entries.size, dtype=np.int64)
    for v in range(n_offers):
        best = stop
        winner[v] = -1
        for e in range(starts[v], starts[v + 1]):
            owner[e] = v
            won[e] = entries[e] + inside[v]
            if inner[e] >= 0:
                won[e] += won[inner[e]] - whole[owner[inner[e]]]
            if won[e] < best:
                best = won[e]
                winner[v] = e
        whole[v] = best
        if above[v] >= 0:
            inside[above[v]] += best
    for v in range(n_offers - 1, -1, -1):
        if above[v] < 0:
            continue
        over = winner[above[v]]
        if over < 0:
            winner[v] = -1
        elif inner[over] >= 0 and owner[inner[over]] == v:
            winner[v] = inner[over]


@compiled
def complete(
    winners: Codes, indptr: Codes, members: Codes, universal: int, ties: int, seed: np.uint64, ranking: Codes
) -> None:
    """A ranking in which every offer has the given winner (an item each), the rest ordered by the tie rule.

    An item can be ranked once every offer that holds it has its winner ranked, or is won by it.
    """
    n_items = ranking.size
    waiting = np.zeros(n_items, dtype=np.int64)
    left = np.ones(n_items, dtype=np.bool_)
    free = np.empty(n_items, dtype=np.int64)
    for offer in range(indptr.size - 1):
        for k in range(indptr[offer], indptr[offer + 1]):
            if members[k] != winners[offer]:
                waiting[members[k]] += 1
    state = mix(seed, np.uint64(n_items))
    for place in range(n_items):
        n_free = 0
        for item in range(n_items):
            if left[item] and waiting[item] == 0 and item != universal:
                free[n_free] = item
                n_free += 1
        if universal >= 0 and left[universal] and waiting[universal] == 0:
            free[n_free] = universal
            n_free += 1
        pick = 0
        if ties == LAST:
            pick = n_free - 1
        elif ties == RANDOM and n_free > 1:
            pick = int(np.int64(state % np.uint64(n_free)))
        item = free[pick]
        ranking[place] = item
        left[item] = False
        state = mix(state, np.uint64(item))
        for offer in range(indptr.size - 1):
            if winners[offer] == item:
                for k in range(indptr[offer], indptr[offer + 1]):
                    if members[k] != item:
                        waiting[members[k]] -= 1
