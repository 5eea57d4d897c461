"""The compiled loops of the dense oracle: a dynamic program over all sets of unranked items that keeps one number each.

Sets are numbers whose seven lowest bits count within a block. Blocks are walked in increasing order, so that every
smaller set comes first. From one block to the next, one more high bit is set and those below it are cleared: the offers
that this bit completes are added to tables of placing costs over the low bits, one row per level (the lowest high bit
of a block) and item. Rows that a bit does not touch are shared with the level above.
"""

import numpy as np

from rankstream._core.compiling import compiled
from rankstream._core.types import Bits, Codes, Mask, Vec
from rankstream.oracles.tie_kernels import LAST, keep_by_rule

LOW_BITS = 7
WIDTH = np.uint64(2**LOW_BITS)
OCTET = np.uint64(8)
SHIFT = np.uint64(LOW_BITS)
# uint64 with uint64 only: beside a signed number, numba and numpy go over to floats, which have no bits
ZERO, ONE, TWO, FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4)
TOLERANCE = 1e-15  # ways to go on tie when they cost more than the cheapest by at most this times its size


@compiled
def lowest_bit(number: np.uint64, none: int) -> int:
    """The place of the lowest bit that is set, or ``none``."""
    if number == ZERO:
        return none
    place = 0
    while not number & ONE:
        number >>= ONE
        place += 1
    return place


@compiled
def add_offer(
    offer: int,
    level: int,
    costs: Vec,
    indptr: Codes,
    members: Codes,
    offer_sets: Bits,
    universal: int,
    tables: Vec,
    rows: Bits,
) -> None:
    """Add an offer's costs to the rows of its items, wherever the low bits hold the low items of the offer.

    That is the zeta transform of one number over the low bits. With hundreds of offers, a row gets one or two numbers
    at a time, and adding each at once takes a small part of the time that it takes to transform a row.
    """
    # the caller has seen that the block holds the high items of the offer
    low = offer_sets[offer] & (WIDTH - ONE)
    for k in range(indptr[offer], indptr[offer + 1]):
        item = members[k]
        if item != universal:
            cost = costs[k]
            # copied when first written: until then the row is that of a level above
            old = rows[level, item]
            new = np.uint64(level) * np.uint64(rows.shape[1]) + np.uint64(item)
            if old == new:  # apart, since loops over one row are only vectorised if it is plainly the same one
                for s in range(ZERO, WIDTH):
                    tables[new, s] += cost if s & low == low else 0.0
            else:
                for s in range(ZERO, WIDTH):
                    tables[new, s] = tables[old, s] + (cost if s & low == low else 0.0)
                rows[level, item] = new


@compiled
def meet_high_items(
    first: np.uint64, level: int, high_items: Codes, bit_of: Bits, tables: Vec, rows: Bits, to_go: Vec, best: Vec
) -> None:
    """Lower ``best`` to the cheapest way to go on with an item whose bit is above the block."""
    for h in range(high_items.size):
        item = high_items[h]
        bit = bit_of[item]
        if first & bit:
            row = rows[level, item]
            # an earlier block, as it lacks the bit; s last, since both rows lie in its order
            other = first ^ bit
            for s in range(ZERO, WIDTH):
                reach = tables[row, s] + to_go[other + s]
                best[s] = reach if reach < best[s] else best[s]


@compiled
def find_low_rows(level: int, low_items: Codes, low_places: Codes, tables: Vec, rows: Bits, low_rows: Bits) -> None:
    """The row of placing costs of each low bit; for items that share a bit, a spare row with the least of theirs."""
    for h in range(low_items.size):
        place = low_places[h]
        row = rows[level, low_items[h]]
        # low_items are sorted by bit, so that those who share one stand side by side
        if h > 0 and low_places[h - 1] == place:
            old = low_rows[place]
            # the last rows of all, one per place, belong to no level and item
            spare = np.uint64(tables.shape[0] - 1 - place)
            for s in range(ZERO, WIDTH):
                tables[spare, s] = min(tables[old, s], tables[row, s])
            low_rows[place] = spare
        else:
            low_rows[place] = row


@compiled
def resolve_low_items(first: np.uint64, tables: Vec, low_rows: Bits, best: Vec, to_go: Vec) -> None:
    """Lower ``best`` by the items inside a block, whose smaller sets lie in it too, and write the block's results.

    Eight sets at a time: bits 3 to 6 lead to earlier octets, bits 0 to 2 stay within the octet.
    """
    # from an earlier octet, which is done, eight sums can be taken at once; within the octet the smaller sets must be
    # done first, one after the other
    a, b, c = low_rows[0], low_rows[1], low_rows[2]
    for start in range(ZERO, WIDTH, OCTET):
        for place in range(3, LOW_BITS):
            bit = ONE << np.uint64(place)
            if start & bit:
                other = first + (start ^ bit)
                for s in range(ZERO, OCTET):
                    reach = tables[low_rows[place], start + s] + to_go[other + s]
                    best[start + s] = reach if reach < best[start + s] else best[start + s]
        for s in range(start, start + OCTET):
            least = best[s]
            if s & ONE:
                least = min(least, tables[a, s] + to_go[first + (s ^ ONE)])
            if s & TWO:
                least = min(least, tables[b, s] + to_go[first + (s ^ TWO)])
            if s & FOUR:
                least = min(least, tables[c, s] + to_go[first + (s ^ FOUR)])
            to_go[first + s] = least


@compiled
def fill_to_go(
    costs: Vec,
    indptr: Codes,
    members: Codes,
    offer_sets: Bits,
    order: Codes,
    starts: Codes,
    bit_of: Bits,
    high_items: Codes,
    low_items: Codes,
    low_places: Codes,
    universal: int,
    tables: Vec,
    rows: Bits,
    to_go: Vec,
) -> None:
    """Write the cost of the cheapest way to go on from every set, given costs from which no-choice was subtracted.

    ``order[starts[level] : starts[level + 1]]`` are the offers that are complete as soon as the bit of that level is,
    the last level being the root, whose offers have low items only.
    """
    root = rows.shape[0] - 1
    n_items = rows.shape[1]
    low_rows = np.empty(LOW_BITS, dtype=np.uint64)
    for place in range(LOW_BITS):
        # places that no item has, of fewer than seven, keep infinity: no way leads over them
        low_rows[place] = np.uint64(tables.shape[0] - 1 - place)
        for s in range(ZERO, WIDTH):
            tables[low_rows[place], s] = np.inf
    best = np.empty(WIDTH)
    for item in range(n_items):
        rows[root, item] = np.uint64(root * n_items + item)
        for s in range(ZERO, WIDTH):
            tables[rows[root, item], s] = 0.0
    for block in range(ZERO, np.uint64(to_go.size) >> SHIFT):
        level = lowest_bit(np.uint64(block), root)
        if level < root:
            # the block without its lowest bit came before, and since then only blocks of lower levels: the rows of
            # its level are still its own
            parent = lowest_bit(block & (block - ONE), root)
            for item in range(n_items):
                rows[level, item] = rows[parent, item]
        first = block << SHIFT
        # an offer with an item in these bits is not inside any set of the block
        outside = ~(first | (WIDTH - ONE))
        for place in range(starts[level], starts[level + 1]):
            if not offer_sets[order[place]] & outside:
                add_offer(order[place], level, costs, indptr, members, offer_sets, universal, tables, rows)
        for s in range(ZERO, WIDTH):
            best[s] = 0.0 if universal >= 0 else np.inf
        if block == ZERO:
            # nothing is left to pay for the empty set, with or without no-choice
            best[0] = 0.0
        meet_high_items(first, level, high_items, bit_of, tables, rows, to_go, best)
        find_low_rows(level, low_items, low_places, tables, rows, low_rows)
        resolve_low_items(first, tables, low_rows, best, to_go)


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
