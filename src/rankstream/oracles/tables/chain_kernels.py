"""The compiled loops of the oracle for chains: a dynamic program over how much of each chain is left to rank.

A state is a number in a mixed radix: the digit of a chain says how many of its items are left, the dearest ones, since
the cheapest come first. Ranking the next item of a chain takes one off its digit, so that a state leads to smaller
numbers only, and one pass in ascending order will do. An offer whose best item of a chain is the v-th from the end
*needs* v left of that chain (0 if it has none); it is untouched in a state that has at least what the offer needs,
chain by chain, and the next item of a chain wins it where the chain has exactly as much left.

The chains of the low digits make up a block of about a hundred states. Blocks are walked in ascending order; a table
has a row over the low digits for each chain, and for each *level*, the place of the lowest high digit that is not 0.
From one block to the next, one high digit grows by one and those below it become 0: only offers that need exactly that
digit, and nothing of those below, come in. Rows that they do not touch are shared with the level above.

High digits are also packed into a word, a field for each with a spare bit on top. With all spare bits set, subtracting
what an offer needs borrows from the spare bit of each field that has too little: one subtraction compares them all.
"""

from typing import NamedTuple

import numpy as np

from rankstream._core.compilation import compiled, inner
from rankstream._core.types import Bits, Codes, Vec

BLOCK_GAP = 8  # numbers between two blocks


class Chains(NamedTuple):
    """The chains, the low ones first, and the offers, sorted by level and by what they need there.

    ``radix`` and ``stride`` are those of the digits, ``field`` the bits of each high digit in a word (0 for low ones),
    ``spare`` the bits on top of the fields. ``first[level, digit]`` is the first of the offers that come in at that
    digit of that level, the last level being for those that need no high chain. Per offer: ``needs`` (a word), and from
    ``ptr`` on its entries, each with its chain and a row of ``shapes``: 1 at the places of a block that have at least
    what the offer needs of the low chains, and if the entry's is one, just as much of that one; else 0.
    """

    radix: Codes
    stride: Codes
    field: Bits
    spare: np.uint64
    n_low: int
    first: Codes
    needs: Bits
    ptr: Codes
    entry: Codes
    chain: Codes
    shape: Codes
    shapes: Vec


@inner
def add_to_row(cost: float, shapes: Vec, shape: int, old: int, new: int, tables: Vec) -> None:
    """Make a row another one plus a cost, where a mask of numbers is 1."""
    # unsigned places: for signed ones numba would first look whether they count from the end, and slices are counted
    m, a, b = np.uint64(shape), np.uint64(old), np.uint64(new)
    # apart, since loops over one row are only vectorised if it is plainly the same one
    if a == b:
        for s in range(np.uint64(tables.shape[1])):
            tables[b, s] += cost * shapes[m, s]
    else:
        for s in range(np.uint64(tables.shape[1])):
            tables[b, s] = tables[a, s] + cost * shapes[m, s]


@inner
def open_block(
    begin: int, end: int, level: int, word: np.uint64, chains: Chains, costs: Vec, tables: Vec, rows: Codes
) -> None:
    """Bring the rows of a level up to date for its next digit: add the offers that come in, if they are untouched.

    The row of a high chain is that of its present digit, so an offer that needs less of the chain is left out of it.
    The field of a low chain is 0: its row has all digits, and the mask says which count.
    """
    spare, field = chains.spare, chains.field
    for j in range(begin, end):
        if ((word | spare) - chains.needs[j]) & spare == spare:
            for e in range(chains.ptr[j], chains.ptr[j + 1]):
                c, cost = chains.chain[e], costs[chains.entry[e]]
                if not (word ^ chains.needs[j]) & field[c]:
                    # copied when first written: until then the row is that of a level above
                    add_to_row(cost, chains.shapes, chains.shape[e], rows[level, c], level * field.size + c, tables)
                    rows[level, c] = level * field.size + c


@inner
def meet_high_chains(
    first: int, digits: Codes, n_low: int, level: int, stride: Codes, tables: Vec, rows: Codes, best: Vec, to_go: Vec
) -> None:
    """Lower ``best`` to the cheapest way to go on with a high chain, to an earlier block where it has one less."""
    for c in range(n_low, digits.size):
        if digits[c]:
            row, other = np.uint64(rows[level, c]), np.uint64(first - stride[c])
            for s in range(np.uint64(best.size)):
                reach = tables[row, s] + to_go[other + s]
                best[s] = reach if reach < best[s] else best[s]


@inner
def resolve_low_chains(
    first: int, n_low: int, level: int, radix: Codes, stride: Codes, tables: Vec, rows: Codes, best: Vec, to_go: Vec
) -> None:
    """Lower ``best`` by the chains inside a block, whose smaller states lie in it too, and write the block's results.

    As soon as a low digit has grown, all states with one less of it are done: as many as its stride can be met at once.
    Only the lowest chain goes from one state to the next, with the value of that one at hand.
    """
    at, lowest = np.uint64(first), np.uint64(rows[level, 0])
    for start in range(0, best.size, radix[0]):
        for c in range(1, n_low):
            if start % stride[c] == 0 and start // stride[c] % radix[c]:
                row, here, back = np.uint64(rows[level, c]), np.uint64(start), np.uint64(first + start - stride[c])
                for s in range(np.uint64(stride[c])):
                    reach = tables[row, here + s] + to_go[back + s]
                    best[here + s] = reach if reach < best[here + s] else best[here + s]
        least = best[start]
        to_go[first + start] = least
        for s in range(np.uint64(start + 1), np.uint64(start + radix[0])):
            reach = tables[lowest, s] + least
            least = reach if reach < best[s] else best[s]
            to_go[at + s] = least


@inner
def count_on(digits: Codes, word: np.uint64, n_low: int, radix: Codes, field: Bits) -> tuple[int, np.uint64]:
    """The next block: digits at their end become 0, and the next one grows; returns its chain and the word."""
    c = n_low
    while digits[c] == radix[c] - 1:
        digits[c] = 0
        word &= ~field[c]
        c += 1
    digits[c] += 1
    # field & -field, in unsigned numbers: its lowest bit, which stands for 1 there
    return c, word + (field[c] & (~field[c] + np.uint64(1)))


@compiled
def fill_chains(costs: Vec, stop: float, chains: Chains, tables: Vec, rows: Codes, best: Vec, to_go: Vec) -> None:
    """Write the cost of the cheapest way to go on from every state, given the costs of the entries.

    ``stop`` is 0 where no-choice may end a ranking at any state, else infinity. Between two blocks there is a gap of
    BLOCK_GAP numbers: without it, the blocks that a state leads to would lie whole powers of two apart, in the same few
    lines of the processor's cache.
    """
    n_low, n_chains, radix, stride = chains.n_low, chains.radix.size, chains.radix, chains.stride
    field, starts = chains.field, chains.first
    digits, word = np.zeros(n_chains, dtype=np.int64), np.uint64(0)
    level, digit = rows.shape[0] - 1, 0
    for c in range(n_chains):
        rows[level, c] = level * n_chains + c
        tables[rows[level, c]] = 0.0
    for first in range(0, to_go.size, best.size + BLOCK_GAP):
        for s in range(best.size):
            best[s] = stop
        if first:
            c, word = count_on(digits, word, n_low, radix, field)
            level, digit = c - n_low, digits[c]
            if digit == 1:
                parent = c + 1
                while parent < n_chains and not digits[parent]:
                    parent += 1
                for other in range(n_chains):
                    rows[level, other] = rows[parent - n_low, other]
            # the chain's own row counts the offers that need exactly this digit, so it begins anew
            rows[level, c] = level * n_chains + c
            for s in range(best.size):
                tables[rows[level, c], s] = 0.0
        else:
            # nothing is left to pay where nothing is left, with or without no-choice
            best[0] = 0.0
        begin, end = starts[level, digit], starts[level, digit + 1]
        open_block(begin, end, level, word, chains, costs, tables, rows)
        meet_high_chains(first, digits, n_low, level, stride, tables, rows, best, to_go)
        resolve_low_chains(first, n_low, level, radix, stride, tables, rows, best, to_go)
