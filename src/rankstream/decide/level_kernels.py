"""Compiled loops over all offers of items at price levels: a cell has a digit for every item.

As an offer, a cell's digit is the level that the item is offered at, counted from 0, cheapest first; the number of
levels stands for an item that is not on offer. As progress of a ranking that has every item's levels cheapest first, it
is how many of the item's levels were passed. An offer is still untouched by all progress that is at most as far in
every digit: what an offer earns is a sum over the cells below its own.
"""

import numpy as np

from rankstream._core.compiling import compiled, inner
from rankstream._core.types import Bytes, Codes, Mask, Vec

BLOCK = 2048
"""About how many cells are summed at a time, so that they stay in the cache."""


@compiled
def keep_order(orders: Codes, above: Codes) -> bool:
    """Whether no ranking has an item before ``above[item]``, the next cheaper level of it (-1: there is none)."""
    seen = np.full(above.size, -1, dtype=np.int64)
    for r in range(orders.shape[0]):
        for k in range(orders.shape[1]):
            i = orders[r, k]
            if above[i] >= 0 and seen[above[i]] != r:
                return False
            seen[i] = r
    return True


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
        for p in range(first + stride, first + stride * size):
            table[p] += table[p - stride]


@compiled
def prefix_sums(table: Vec, sizes: Codes) -> None:
    """In place: every cell becomes the sum over all cells that are at most as far in every digit; the last is fastest.

    Digits commute, so those within a block are all done before the next block.
    """
    low, block = sizes.size, 1
    while low > 0 and block * sizes[low - 1] <= BLOCK:
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
def scan(values: Vec, allowed: Mask, size: Bytes, best: Vec, picks: Codes, size_best: Vec) -> int:
    """Look at all cells: the best few into ``best`` and ``picks``, and the best of each size. Returns how many fit."""
    found, worst = 0, best[best.size - 1]
    for cell in range(values.size):
        if not allowed[cell]:
            continue
        found += 1
        value = values[cell]
        if value > size_best[size[cell]]:
            size_best[size[cell]] = value
        if value > worst:
            k = best.size - 1
            while k > 0 and value > best[k - 1]:
                best[k], picks[k] = best[k - 1], picks[k - 1]
                k -= 1
            best[k], picks[k] = value, cell
            worst = best[best.size - 1]
    return found


@inner
def next_cell(digits: Codes, sizes: Codes) -> None:
    """Count on by one, the last digit first."""
    k = sizes.size - 1
    while k >= 0:
        digits[k] += 1
        if digits[k] < sizes[k]:
            return
        digits[k] = 0
        k -= 1


@compiled
def states_of(
    chains: Codes, sizes: Codes, strides: Codes, first: Codes, items: Codes, following: Codes, out: Codes
) -> None:
    """For every progress, the state of the program there: from that with one level less of the last item begun.

    ``chains[c, k]`` is level k of item c. A level that no offer has makes no transition, and leaves the state.
    """
    digits = np.zeros(sizes.size, dtype=np.int64)
    out[0] = first.size - 2
    for cell in range(1, out.size):
        next_cell(digits, sizes)
        c = sizes.size - 1
        while digits[c] == 0:
            c -= 1
        state = out[cell - strides[c]]
        out[cell] = state
        for t in range(first[state], first[state + 1]):
            if items[t] == chains[c, digits[c] - 1]:
                out[cell] = following[t]


@compiled
def add_class(
    weight: float,
    attraction: Vec,
    values: Vec,
    tilts: Vec,
    first: Codes,
    items: Codes,
    following: Codes,
    state_of: Codes,
    chains: Codes,
    lengths: Codes,
    sizes: Codes,
    strides: Codes,
    margins: Vec,
    steps: Codes,
    reach: Vec,
    table: Vec,
) -> None:
    """Add a tilted Plackett-Luce class, lifted to respect the order of levels, to g.

    From progress, the next item that matters is a level not yet passed of any item, drawn in proportion to attraction
    times how the tilt values what follows; the cheaper levels left of the same item come in front of it. ``steps[i]``
    is how much further the table's cell is once level i was passed, 0 for one that is never offered, and -1 for one
    that always is, and ends the ranking. ``lengths[c]`` is how many levels item c has; ``reach`` is zero before and
    after.
    """
    n, n_chains = attraction.size, sizes.size
    digits, chance = np.zeros(n_chains, dtype=np.int64), np.zeros(n)
    reach[0] = weight
    for cell in range(reach.size):
        if cell:
            next_cell(digits, sizes)
        here = reach[cell]
        reach[cell] = 0.0
        if here <= 0.0:
            continue
        rest, at = 0.0, 0
        chance[:] = 0.0
        for c in range(n_chains):
            for k in range(lengths[c]):
                i = chains[c, k]
                if k < digits[c]:
                    at += max(steps[i], 0)
                else:
                    chance[i] = attraction[i]
                    rest += attraction[i]
        if rest <= 0.0:
            continue
        state = state_of[cell]
        for t in range(first[state], first[state + 1]):
            chance[items[t]] *= tilts[t] * values[following[t]] / values[state]
        for c in range(n_chains):
            # all that comes from level k or a dearer one passes k; what comes from k itself goes no further
            mass, place = 0.0, at
            for k in range(digits[c], lengths[c]):
                mass += chance[chains[c, k]]
            for k in range(digits[c], lengths[c]):
                i = chains[c, k]
                share = here * mass / rest
                if steps[i] != 0:
                    table[place] += share * margins[i]
                if steps[i] < 0:
                    break
                if steps[i] > 0:
                    place += steps[i]
                    table[place] -= share * margins[i]
                reach[cell + (k + 1 - digits[c]) * strides[c]] += here * chance[i] / rest
                mass -= chance[i]
