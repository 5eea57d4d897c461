"""Compiled loops over all offers at once: a cell has a digit for every free item, the last digit counted fastest.

As an offer, a cell's digit is the level that the item is offered at, counted from 0, cheapest first; the number of
levels stands for an item that is not on offer. An item without prices has one level: without prices, a cell is the
bitmask of what is missing. As progress of a ranking that has every item's levels cheapest first, a digit is how many of
the item's levels were passed. An offer is still untouched by all progress that is at most as far in every digit: what
an offer earns is a sum over the cells below its own.

Digits commute in such sums, so the fast ones are done block by block, each block small enough to stay in the cache.
"""

import numpy as np

from rankstream._core.compilation import compiled, inner
from rankstream._core.types import Codes, Vec

BLOCK_CELLS = 2**11
"""Cells of a block: 16 kilobytes, half of a first-level cache."""


@compiled
def spread(start: Codes, item: Codes, weight: Vec, end: Vec, margin: Vec, step: Codes, table: Vec) -> None:
    """Write g: what all lists add to the cells before and after each of their items.

    An offer gets the margin of a level from a list if the progress before it has not touched the offer, and that with
    this level passed has: margin counts in the cell before and against the cell after. ``step[i]`` is how much further
    the cell is once item i was passed.
    """
    for r in range(weight.size):
        cell = 0
        for p in range(start[r], start[r + 1]):
            gain = weight[r] * margin[item[p]]
            table[cell] += gain
            cell += step[item[p]]
            table[cell] -= gain
        table[cell] += weight[r] * end[r]


@inner
def sum_digit(table: Vec, begin: int, stop: int, stride: int, size: int) -> None:
    """Running sums over one digit of ``size`` values, within the cells from ``begin`` up to ``stop``."""
    for first in range(begin, stop, stride * size):
        for value in range(first, first + stride * (size - 1), stride):
            # two slices of their own: that they do not overlap is what lets the compiler add several cells at once
            low, high = table[value : value + stride], table[value + stride : value + 2 * stride]
            for p in range(stride):
                high[p] += low[p]


@compiled
def prefix_sums(table: Vec, sizes: Codes) -> None:
    """In place: every cell becomes the sum over all cells that are at most as far in every digit; the last is fastest.

    Digits commute, so those within a block are all done before the next block.
    """
    low, block = sizes.size, 1
    while low > 0 and block * sizes[low - 1] <= BLOCK_CELLS:
        low -= 1
        block *= sizes[low]
    for begin in range(0, table.size, block):
        stride = 1
        for digit in range(sizes.size - 1, low - 1, -1):
            sum_digit(table, begin, begin + block, stride, sizes[digit])
            stride *= sizes[digit]
    stride = block
    for digit in range(low - 1, -1, -1):
        sum_digit(table, 0, table.size, stride, sizes[digit])
        stride *= sizes[digit]


@compiled
def cell_sums(terms: Vec, sizes: Codes, first: int, stop: int) -> Vec:
    """For every combination of the digits from ``first`` to ``stop``, the sums of what their values add.

    ``terms[d, v]`` has the numbers that value v of digit d adds.
    """
    count = 1
    for digit in range(first, stop):
        count *= sizes[digit]
    out = np.zeros((count, terms.shape[2]))
    count = 1
    for digit in range(stop - 1, first - 1, -1):
        # value 0 last: the sums without this digit stand in its place until then
        for value in range(sizes[digit] - 1, -1, -1):
            for place in range(count):
                for k in range(terms.shape[2]):
                    out[place + value * count, k] = out[place, k] + terms[digit, value, k]
        count *= sizes[digit]
    return out


@inner
def rows_fit(low: Vec, high: Vec, limits: Codes) -> bool:
    """Whether an offer keeps all rows, given their sums over both halves of it."""
    good = True
    for k in range(limits.size):
        good = good and low[k + 3] + high[k + 3] <= limits[k]
    return good


@compiled
def scan(
    table: Vec,
    sizes: Codes,
    terms: Vec,
    room: float,
    least: int,
    most: int,
    limits: Codes,
    best: Vec,
    picks: Codes,
    size_best: Vec,
) -> int:
    """Look at all cells: the best few into ``best`` and ``picks``, and the best of each size. Returns how many fit.

    Of each value of a digit, ``terms`` has the listing cost, the number of items, the space, and the factors of all
    rows. Sums over a cell are those over its slow digits plus those over its fast ones, so that none needs a loop over
    items.
    """
    split, count = sizes.size, 1
    while split > 0 and count * count < table.size:
        split -= 1
        count *= sizes[split]
    high, low = cell_sums(terms, sizes, 0, split), cell_sums(terms, sizes, split, sizes.size)
    found, worst = 0, best[best.size - 1]
    # from the last cell, which offers nothing, on: of equal offers the one that comes first is kept
    for upper in range(high.shape[0] - 1, -1, -1):
        cost_here, size_here, left = high[upper, 0], high[upper, 1], room - high[upper, 2]
        for lower in range(count - 1, -1, -1):
            size = int(size_here + low[lower, 1])
            if size < least or size > most or low[lower, 2] > left:
                continue
            if limits.size and not rows_fit(low[lower], high[upper], limits):
                continue
            found += 1
            cell = upper * count + lower
            value = table[cell] - low[lower, 0] - cost_here
            if value > size_best[size]:
                size_best[size] = value
            if value > worst:
                k = best.size - 1
                while k > 0 and value > best[k - 1]:
                    best[k], picks[k] = best[k - 1], picks[k - 1]
                    k -= 1
                best[k], picks[k] = value, cell
                worst = best[best.size - 1]
    return found
