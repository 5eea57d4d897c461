"""The compiled loops of the dense oracle: a dynamic program over all sets of unranked items that keeps one number each.

Sets are numbers whose seven lowest bits count within a block. Blocks are walked in increasing order, so that every
smaller set comes first. From one block to the next, one more high bit is set and those below it are cleared: the offers
that this bit completes are added to tables of placing costs over the low bits, one row per level (the lowest high bit
of a block) and item. Rows that a bit does not touch are shared with the level above.
"""

from typing import NamedTuple

import numpy as np

from rankstream._core.compilation import compiled, inner, released
from rankstream._core.types import Bits, Codes, Vec

LOW_BITS = 7
WIDTH = np.uint64(2**LOW_BITS)
OCTET = np.uint64(8)
SHIFT = np.uint64(LOW_BITS)
# uint64 with uint64 only: beside a signed number, numba and numpy go over to floats, which have no bits
ZERO, ONE, TWO, FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4)


class SetProblem(NamedTuple):
    """The offers as sets of bits, and the items by their bits.

    ``order[starts[level] : starts[level + 1]]`` are the offers that are complete as soon as the bit of that level is,
    the last level being the root, whose offers have low items only. ``low_places`` are the bits of ``low_items``.
    """

    indptr: Codes
    members: Codes
    offer_sets: Bits
    order: Codes
    starts: Codes
    bit_of: Bits
    high_items: Codes
    low_items: Codes
    low_places: Codes
    universal: int


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
def add_offer(offer: int, level: int, costs: Vec, problem: SetProblem, tables: Vec, rows: Bits) -> None:
    """Add an offer's costs to the rows of its items, wherever the low bits contain the low items of the offer.

    That is the zeta transform of one number over the low bits. With hundreds of offers, a row gets one or two numbers
    at a time, and adding each at once takes a small part of the time that it takes to transform a row.
    """
    # the caller has seen that the block contains the high items of the offer
    low = problem.offer_sets[offer] & (WIDTH - ONE)
    for k in range(problem.indptr[offer], problem.indptr[offer + 1]):
        item = problem.members[k]
        if item != problem.universal:
            cost = costs[k]
            # of the table's own kind: beside a double, all sums of a table of single precision would be doubles
            nothing = cost - cost
            # copied when first written: until then the row is that of a level above
            old = rows[level, item]
            new = np.uint64(level) * np.uint64(rows.shape[1]) + np.uint64(item)
            if old == new:  # apart, since loops over one row are only vectorised if it is plainly the same one
                for s in range(ZERO, WIDTH):
                    tables[new, s] += cost if s & low == low else nothing
            else:
                for s in range(ZERO, WIDTH):
                    tables[new, s] = tables[old, s] + (cost if s & low == low else nothing)
                rows[level, item] = new


@compiled
def meet_high_items(
    first: np.uint64, level: int, problem: SetProblem, tables: Vec, rows: Bits, to_go: Vec, best: Vec
) -> None:
    """Lower ``best`` to the cheapest way to go on with an item whose bit is above the block."""
    for h in range(problem.high_items.size):
        item = problem.high_items[h]
        bit = problem.bit_of[item]
        if first & bit:
            row = rows[level, item]
            # an earlier block, as it lacks the bit; s last, since both rows lie in its order
            other = first ^ bit
            for s in range(ZERO, WIDTH):
                reach = tables[row, s] + to_go[other + s]
                best[s] = reach if reach < best[s] else best[s]


@compiled
def find_low_rows(level: int, problem: SetProblem, tables: Vec, rows: Bits, low_rows: Bits) -> None:
    """The row of placing costs of each low bit; for items that share a bit, a spare row with the least of theirs."""
    for h in range(problem.low_items.size):
        place = problem.low_places[h]
        row = rows[level, problem.low_items[h]]
        # low_items are sorted by bit, so that those who share one stand side by side
        if h > 0 and problem.low_places[h - 1] == place:
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


@inner
def open_block(block: np.uint64, costs: Vec, problem: SetProblem, tables: Vec, rows: Bits) -> int:
    """Bring the rows of a block's level up to date: those of the block without its lowest bit, and what that bit adds.

    Returns the level. The block without its lowest bit must have been opened, and since then only blocks of lower
    levels: the rows of its level are still its own.
    """
    root = rows.shape[0] - 1
    level = lowest_bit(block, root)
    if level < root:
        parent = lowest_bit(block & (block - ONE), root)
        for item in range(rows.shape[1]):
            rows[level, item] = rows[parent, item]
    # an offer with an item in these bits is not inside any set of the block
    outside = ~((block << SHIFT) | (WIDTH - ONE))
    for place in range(problem.starts[level], problem.starts[level + 1]):
        offer = problem.order[place]
        if not problem.offer_sets[offer] & outside:
            add_offer(offer, level, costs, problem, tables, rows)
    return level


@released
def fill_part(
    part: np.uint64, n_blocks: np.uint64, costs: Vec, problem: SetProblem, to_go: Vec, tables: Vec, rows: Bits
) -> None:
    """Write the cost of the cheapest way to go on from every set of a part, given costs less those of no-choice.

    A part is ``n_blocks`` blocks, a power of two, that agree in the bits above; one part may be all. Parts with one
    of those bits less must be done.
    """
    root = rows.shape[0] - 1
    low_rows = np.empty(LOW_BITS, dtype=np.uint64)
    for place in range(LOW_BITS):
        # places that no item has, of fewer than seven, keep infinity: no way leads over them
        low_rows[place] = np.uint64(tables.shape[0] - 1 - place)
        for s in range(ZERO, WIDTH):
            tables[low_rows[place], s] = np.inf
    best = np.empty(WIDTH, dtype=to_go.dtype)
    for item in range(rows.shape[1]):
        rows[root, item] = np.uint64(root * rows.shape[1] + item)
        for s in range(ZERO, WIDTH):
            tables[rows[root, item], s] = 0.0
    first_block = part * n_blocks
    # the blocks that the first one descends from, by one more of its bits each, from the top: whatever the parts, the
    # costs of a row are added in the same order, so that they are the same to the last digit
    opened = ZERO
    for back in range(root):
        bit = ONE << np.uint64(root - 1 - back)
        if first_block & bit:
            open_block(opened, costs, problem, tables, rows)
            opened |= bit
    for block in range(first_block, first_block + n_blocks):
        level = open_block(np.uint64(block), costs, problem, tables, rows)
        for s in range(ZERO, WIDTH):
            best[s] = 0.0 if problem.universal >= 0 else np.inf
        if block == ZERO:
            # nothing is left to pay for the empty set, with or without no-choice
            best[0] = 0.0
        first = block << SHIFT
        meet_high_items(first, level, problem, tables, rows, to_go, best)
        find_low_rows(level, problem, tables, rows, low_rows)
        resolve_low_items(first, tables, low_rows, best, to_go)
