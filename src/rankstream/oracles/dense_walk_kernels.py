"""The compiled loops that read rankings off the dense oracle's table: a walk from the set of all items down."""

import numpy as np

from rankstream._core.compiling import compiled
from rankstream._core.types import Bits, Codes, Mask, Vec
from rankstream.oracles.tie_kernels import LAST, keep_by_rule

ZERO = np.uint64(0)
TOLERANCE = 1e-15  # ways to go on tie when they cost more than the cheapest by at most this times its size


@compiled
def walk_down(
    costs: Vec,
    indptr: Codes,
    members: Codes,
    offer_sets: Bits,
    bit_of: Bits,
    universal: int,
    to_go: Vec,
    forced: Codes,
    last: bool,
    ranking: Codes,
) -> None:
    """Read one cheapest ranking that begins with ``forced`` off the table; among ties the first item, or the last.

    The costs of placing an item next are added up anew, from the offers that are still untouched.
    """
    n_items = bit_of.size
    left = np.ones(n_items, dtype=np.bool_)
    tied = np.empty(n_items, dtype=np.int64)
    reach = np.empty(n_items)
    s = ZERO
    for offer in range(offer_sets.size):
        # the union of the offers: items in none of them have bit 0 and can go anywhere
        s |= offer_sets[offer]
    ended = universal < 0
    for place in range(n_items):
        if place < forced.size:
            item = forced[place]
        else:
            add_placing_costs(s, costs, indptr, members, offer_sets, bit_of, to_go, reach)
            n_tied = list_ties(s, left, bit_of, universal, ended, reach, tied)
            item = tied[n_tied - 1 if last else 0]
        ranking[place] = item
        left[item] = False
        if item == universal:
            ended = True
            s = ZERO
        else:
            # the bit goes for all items that share it: none of them can win any more
            s &= ~bit_of[item]


@compiled
def add_placing_costs(
    s: np.uint64, costs: Vec, indptr: Codes, members: Codes, offer_sets: Bits, bit_of: Bits, to_go: Vec, reach: Vec
) -> None:
    """What it costs to rank an item next and to go on from there, for the items in a set."""
    for item in range(bit_of.size):
        reach[item] = 0.0
    for offer in range(offer_sets.size):
        if not offer_sets[offer] & ~s:
            for k in range(indptr[offer], indptr[offer + 1]):
                reach[members[k]] += costs[k]
    for item in range(bit_of.size):
        if s & bit_of[item]:
            reach[item] += to_go[s ^ bit_of[item]]


@compiled
def list_ties(s: np.uint64, left: Mask, bit_of: Bits, universal: int, ended: bool, reach: Vec, tied: Codes) -> int:
    """List the items that may come next, the one that ends the ranking last, and return their number.

    The tolerance follows what is still to pay, so that a huge cost which is avoided does not make the others tie.
    """
    least = np.inf if ended else 0.0
    for item in range(bit_of.size):
        if s & bit_of[item]:
            least = min(least, reach[item])
    # 0 is what ending costs from here
    most = least + TOLERANCE * abs(least)
    n_tied = 0
    for item in range(bit_of.size):
        if left[item] and item != universal and (not s & bit_of[item] or reach[item] <= most):
            tied[n_tied] = item
            n_tied += 1
    if not ended and most >= 0.0:
        tied[n_tied] = universal
        n_tied += 1
    return n_tied


@compiled
def read_ranking(
    raw_costs: Vec,
    costs: Vec,
    indptr: Codes,
    members: Codes,
    offer_sets: Bits,
    bit_of: Bits,
    universal: int,
    to_go: Vec,
    forced: Codes,
    ties: int,
    seed: int,
    ranking: Codes,
) -> float:
    """Write a cheapest ranking that begins with ``forced`` and return what it really costs."""
    walk_down(costs, indptr, members, offer_sets, bit_of, universal, to_go, forced, ties == LAST, ranking)
    return keep_by_rule(raw_costs, indptr, members, universal, ties, seed, forced.size == 0, ranking)
