"""The compiled loops that read rankings off tables of sets and chains: a walk from the state with everything left."""

from typing import NamedTuple

import numpy as np

from rankstream._core.compilation import compiled, inner
from rankstream._core.types import Codes, Mask, Vec
from rankstream.oracles.tie_kernels import LAST, TieBreak, keep_by_rule

TIE_TOLERANCE = 1e-15  # ways to go on tie when they cost more than the cheapest by at most this times its size


class WalkTable(NamedTuple):
    """The cost to go from every state, and what the states are: a digit for every chain says how much of it is left.

    ``chain_of`` is the chain of each item, -1 for those that win nothing wherever they are, and ``rest`` how much is
    left of it when the turn of the item comes; items that are offered alike share a turn. A set of items is a chain of
    one for each bit. ``radix`` are the sizes of the digits, ``stride`` what each is worth.
    """

    chain_of: Codes
    rest: Codes
    radix: Codes
    stride: Codes
    to_go: Vec


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


@compiled
def next_item(waits: Codes, chain_of: Codes, universal: int, last: bool, reach: Vec) -> int:
    """The item to rank next: among ties the first or the last; no-choice as late as can be, or as soon."""
    # the next items of the chains, also those that wait for items which win nothing: else reach is infinite
    least = np.inf if universal < 0 or waits[universal] else 0.0
    for item in range(waits.size):
        if chain_of[item] >= 0:
            least = min(least, reach[item])
    # 0 is what ending costs from here; the tolerance follows what is still to pay, not a huge cost that is avoided
    most = least + TIE_TOLERANCE * abs(least)
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
def read_ranking(
    raw: Vec, costs: Vec, indptr: Codes, members: Codes, rule: TieBreak, table: WalkTable, forced: Codes, ranking: Codes
) -> float:
    """Write a cheapest ranking that begins with ``forced`` and return what it really costs, by the ``raw`` costs.

    From the table's last state on; once no-choice is ranked, no other item wins anything.
    """
    n_items, n_still, universal, pairs = ranking.size, indptr.size - 1, rule.universal, rule.before
    left, still = np.ones(n_items, dtype=np.bool_), np.arange(n_still)
    waits, free, reach = np.zeros(n_items, dtype=np.int64), table.chain_of.copy(), np.empty(n_items)
    for pair in range(pairs.shape[0]):
        waits[pairs[pair, 1]] += 1
    s, digits = table.to_go.size - 1, table.radix - 1
    for place in range(n_items):
        n_still = add_placing_costs(still, n_still, left, costs, indptr, members, reach)
        for item in range(n_items):
            if free[item] >= 0:
                turn = digits[free[item]] == table.rest[item]
                reach[item] += table.to_go[s - table.stride[free[item]]] if turn else np.inf
        item = forced[place] if place < forced.size else next_item(waits, free, universal, rule.ties == LAST, reach)
        ranking[place] = item
        left[item] = False
        # too many ever to be free again
        waits[item] = n_items
        for pair in range(pairs.shape[0]):
            waits[pairs[pair, 1]] -= 1 if pairs[pair, 0] == item else 0
        chain = free[item]
        if item == universal:
            free[:] = -1
        elif chain >= 0:
            for other in range(n_items):
                # whoever shares the turn can no longer win anything
                if free[other] == chain and table.rest[other] == digits[chain]:
                    free[other] = -1
            s -= table.stride[chain]
            digits[chain] -= 1
    return keep_by_rule(raw, indptr, members, rule, forced.size == 0, ranking)
