"""Compiled loops over all offers at once: an offer is a bitmask of the free items, bit i for free item i.

Subset sums: with g(D) for every set D, adding for one bit after the other the entry without the bit to the entry with
it leaves in place D the sum of g over all subsets of D. The bits commute, so the low ones are done block by block, each
block small enough to stay in the cache, and three bits are done at a time: eight entries are read once, added up in
registers, and written once, where bit by bit they would be read and written three times.
"""

import numpy as np

from rankstream._core.compiling import compiled, inner, released
from rankstream._core.types import Bits, Codes, Vec

BLOCK = 11
"""Bits of a block: 16 kilobytes, half of a first-level cache."""


@compiled
def spread(start: Codes, item: Codes, weight: Vec, end: Vec, margin: Vec, table: Vec) -> None:
    """Write g: what all lists add to the sets of items before, and before and including, each of theirs.

    An offer gets the margin of i from a list if all before i are missing from it and i is not: if B is inside the
    complement of the offer and B with i is not. So margin(i) counts in g(B) and against g(B with i).
    """
    for r in range(weight.size):
        before = 0
        for p in range(start[r], start[r + 1]):
            gain = weight[r] * margin[item[p]]
            table[before] += gain
            # the set of all items so far, as a number: item i is its bit i
            before |= 1 << item[p]
            table[before] -= gain
        table[before] += weight[r] * end[r]


@inner
def add_three(table: Vec, begin: int, stop: int, step: int) -> None:
    """Subset sums over three bits, ``step`` the lowest, for the sets without them from ``begin`` to ``stop``.

    With the eight entries a to h named by three bits, 001 += 000 and 011 += 010 do the first bit, 010 += 000 and
    011 += 001 the second, and so on: the same additions in the same order as bit by bit.
    """
    for p in range(begin, stop):
        a, b, c, d = table[p], table[p + step], table[p + 2 * step], table[p + 3 * step]
        e, f, g, h = table[p + 4 * step], table[p + 5 * step], table[p + 6 * step], table[p + 7 * step]
        b, d, f, h = b + a, d + c, f + e, h + g
        c, d, g, h = c + a, d + b, g + e, h + f
        e, f, g, h = e + a, f + b, g + c, h + d
        table[p + step], table[p + 2 * step], table[p + 3 * step] = b, c, d
        table[p + 4 * step], table[p + 5 * step] = e, f
        table[p + 6 * step], table[p + 7 * step] = g, h


@inner
def add_bits(table: Vec, begin: int, stop: int, low: int, high: int) -> None:
    """Subset sums over the bits from ``low`` up to ``high``, within the entries from ``begin`` up to ``stop``."""
    bit = low
    while bit < high:
        step = 1 << bit
        if bit + 2 < high:
            for base in range(begin, stop, 8 * step):
                add_three(table, base, base + step, step)
            bit += 3
        else:
            for base in range(begin, stop, 2 * step):
                for p in range(base, base + step):
                    table[p + step] += table[p]
            bit += 1


@released
def subset_sums(table: Vec, bits: int) -> None:
    """In place: every entry becomes the sum of the entries of all subsets of its set."""
    low = min(bits, BLOCK)
    for block in range(0, table.size, 1 << low):
        # the lowest three bits by a call of their own: their step is known to be 1
        add_bits(table, block, block + (1 << low), 0, min(low, 3))
        add_bits(table, block, block + (1 << low), min(low, 3), low)
    add_bits(table, 0, table.size, low, bits)


@released
def join(table: Vec, bits: int, begin: int, stop: int) -> None:
    """The three highest bits, which number the rows of the table, in the columns from ``begin`` to ``stop``."""
    add_three(table, begin, stop, 1 << (bits - 3))


@compiled
def half_sums(numbers: Vec, first: int, count: int) -> Vec:
    """The sum of ``numbers`` over every set of ``count`` items from ``first`` on."""
    out = np.zeros(1 << count)
    for bit in range(count):
        # the sets below 2^bit are those of the bits before: with this bit they are the next as many
        for place in range(1 << bit):
            out[place + (1 << bit)] = out[place] + numbers[first + bit]
    return out


@inner
def pairs_fit(offer: int, pairs: int, needs: Bits, bans: Bits) -> bool:
    """Whether an offer keeps all pairs; ``pairs`` has the bits of the items that have any."""
    left, held = offer & pairs, np.uint64(offer)
    while left:
        # x & -x leaves the lowest bit that is set; its number by comparison, as few items have constraints
        bit = left & -left
        left ^= bit
        i = 0
        while (1 << i) != bit:
            i += 1
        if needs[i] & ~held or bans[i] & held:
            return False
    return True


@inner
def rows_fit(low: Vec, high: Vec, limits: Codes) -> bool:
    """Whether an offer keeps all rows, given their sums over both halves of it."""
    good = True
    for k in range(limits.size):
        good = good and low[k] + high[k] <= limits[k]
    return good


@compiled
def scan(
    table: Vec,
    flip: int,
    bits: int,
    costs: Vec,
    space: Vec,
    room: float,
    least: int,
    most: int,
    needs: Bits,
    bans: Bits,
    factors: Codes,
    limits: Codes,
    best: Vec,
    picks: Bits,
    size_best: Vec,
) -> int:
    """Look at all offers: the best few into ``best`` and ``picks``, and the best of each size. Returns how many fit.

    What offer S earns is ``table[S ^ flip]``: with all bits in ``flip`` the table is by complement. ``needs[i]`` are
    the items that i cannot be without, ``bans[i]`` those that it cannot be with; ``factors`` and ``limits`` are those
    of ``Rows``. Sums over a set are looked up as the sum over its low half plus that over its high half, so that none
    needs a loop over items.
    """
    low = bits // 2
    low_cost, high_cost = half_sums(costs, 0, low), half_sums(costs, low, bits - low)
    low_space, high_space = half_sums(space, 0, low), half_sums(space, low, bits - low)
    ones = np.ones(bits)
    low_size, high_size = half_sums(ones, 0, low).astype(np.int64), half_sums(ones, low, bits - low).astype(np.int64)
    low_rows, high_rows = np.zeros((limits.size, low_cost.size)), np.zeros((limits.size, high_cost.size))
    for k in range(limits.size):
        numbers = factors[k].astype(np.float64)
        low_rows[k], high_rows[k] = half_sums(numbers, 0, low), half_sums(numbers, low, bits - low)
    pairs = 0
    for i in range(bits):
        if needs[i] | bans[i]:
            pairs |= 1 << i
    found, worst = 0, best[best.size - 1]
    for upper in range(high_cost.size):
        first, size_here, left, cost_here = upper << low, high_size[upper], room - high_space[upper], high_cost[upper]
        for lower in range(low_cost.size):
            offer, size = first | lower, size_here + low_size[lower]
            if size < least or size > most or low_space[lower] > left:
                continue
            if offer & pairs and not pairs_fit(offer, pairs, needs, bans):
                continue
            if limits.size and not rows_fit(low_rows[:, lower], high_rows[:, upper], limits):
                continue
            found += 1
            value = table[offer ^ flip] - low_cost[lower] - cost_here
            if value > size_best[size]:
                size_best[size] = value
            if value > worst:
                k = best.size - 1
                while k > 0 and value > best[k - 1]:
                    best[k], picks[k] = best[k - 1], picks[k - 1]
                    k -= 1
                best[k], picks[k] = value, np.uint64(offer)
                worst = best[best.size - 1]
    return found


@compiled
def logit_table(attraction: Vec, always: float, always_gain: float, margin: Vec, share: float, table: Vec) -> None:
    """Add what a logit class earns from every offer: the parts of sums over sets, each from the set without one bit.

    ``always`` is the attraction of what is always there, ``always_gain`` the same times its margin.
    """
    bits = attraction.size
    low = bits // 2
    mask = (1 << low) - 1
    gains = attraction * margin
    low_top, high_top = half_sums(gains, 0, low), half_sums(gains, low, bits - low)
    low_all, high_all = half_sums(attraction, 0, low), half_sums(attraction, low, bits - low)
    for offer in range(table.size):
        top = always_gain + low_top[offer & mask] + high_top[offer >> low]
        whole = always + low_all[offer & mask] + high_all[offer >> low]
        if whole > 0.0:
            table[offer] += share * top / whole
