"""The compiled loops that read rankings off the table for chains: a walk from the state with everything left down."""

import numpy as np

from rankstream._core.compiling import compiled, inner
from rankstream._core.types import Codes, Mask, Vec
from rankstream.oracles.dense_walk_kernels import TOLERANCE
from rankstream.oracles.tie_kernels import LAST, keep_in_order


@inner
def add_placing_costs(
    still: Codes, n_still: int, left: Mask, costs: Vec, indptr: Codes, members: Codes, reach: Vec
) -> int:
    """Add up what it costs to rank each item next, from the offers that are untouched; keep those, and count them."""
    reach[:] = 0.0
    kept = 0
    for place in range(n_still):
        offer = still[place]
        untouched = True
        for k in range(indptr[offer], indptr[offer + 1]):
            untouched = untouched and left[members[k]]
        if untouched:
            for k in range(indptr[offer], indptr[offer + 1]):
                reach[members[k]] += costs[k]
            still[kept] = offer
            kept += 1
    return kept


@inner
def next_item(waits: Codes, chain_of: Codes, universal: int, last: bool, reach: Vec) -> int:
    """The item to rank next: among ties the first or the last; no-choice as late as can be, or as soon."""
    # the next items of the chains, also those that wait for items which win nothing: else reach is infinite
    least = np.inf if universal < 0 or waits[universal] else 0.0
    for item in range(waits.size):
        if chain_of[item] >= 0:
            least = min(least, reach[item])
    # 0 is what ending costs from here
    most = least + TOLERANCE * abs(least)
    found = -1
    for item in range(waits.size):
        if (
            not waits[item]
            and item != universal
            and (chain_of[item] < 0 or reach[item] <= most)
            and (last or found < 0)
        ):
            found = item
    if universal >= 0 and not waits[universal] and most >= 0.0 and (last or found < 0):
        found = universal
    return found


@compiled
def walk_chains(
    costs: Vec,
    indptr: Codes,
    members: Codes,
    universal: int,
    pairs: Codes,
    chain_of: Codes,
    rest: Codes,
    radix: Codes,
    stride: Codes,
    to_go: Vec,
    forced: Codes,
    last: bool,
    ranking: Codes,
) -> None:
    """Read one cheapest ranking that begins with ``forced`` off the table, from its last state on.

    ``chain_of`` is -1 for items that win nothing wherever they are, and ``rest`` is how much is left of its chain when
    the turn of an item comes. Once no-choice is ranked, no other item wins anything.
    """
    n_items, n_still = ranking.size, indptr.size - 1
    left, still = np.ones(n_items, dtype=np.bool_), np.arange(n_still)
    waits, free, reach = np.zeros(n_items, dtype=np.int64), chain_of.copy(), np.empty(n_items)
    for pair in range(pairs.shape[0]):
        waits[pairs[pair, 1]] += 1
    s, digits = to_go.size - 1, radix - 1
    for place in range(n_items):
        n_still = add_placing_costs(still, n_still, left, costs, indptr, members, reach)
        for item in range(n_items):
            if free[item] >= 0:
                turn = digits[free[item]] == rest[item]
                reach[item] += to_go[s - stride[free[item]]] if turn else np.inf
        item = forced[place] if place < forced.size else next_item(waits, free, universal, last, reach)
        ranking[place] = item
        left[item] = False
        # too many ever to be free again
        waits[item] = n_items
        for pair in range(pairs.shape[0]):
            waits[pairs[pair, 1]] -= 1 if pairs[pair, 0] == item else 0
        if item == universal:
            free[:] = -1
        elif free[item] >= 0:
            s -= stride[free[item]]
            digits[free[item]] -= 1


@compiled
def read_chains(
    raw_costs: Vec,
    costs: Vec,
    indptr: Codes,
    members: Codes,
    universal: int,
    pairs: Codes,
    chain_of: Codes,
    rest: Codes,
    radix: Codes,
    stride: Codes,
    to_go: Vec,
    forced: Codes,
    ties: int,
    seed: int,
    ranking: Codes,
) -> float:
    """Write a cheapest ranking that begins with ``forced`` and return what it really costs."""
    table = chain_of, rest, radix, stride, to_go
    walk_chains(costs, indptr, members, universal, pairs, *table, forced, ties == LAST, ranking)
    return keep_in_order(raw_costs, indptr, members, universal, ties, seed, forced.size == 0, pairs, ranking)
