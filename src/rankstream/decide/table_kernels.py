"""Compiled loops over all offers at once: an offer is a bitmask of the free items, bit i for free item i.

Subset sums: with g(D) for every set D, adding for one bit after the other the entry without the bit to the entry with
it leaves in place D the sum of g over all subsets of D. The bits commute, so the low ones are done block by block, each
block small enough to stay in the cache, and the high ones two at a time, which halves the passes over memory.
"""

import numpy as np

from rankstream._core.compiling import compiled
from rankstream._core.types import Bits, Codes, Vec

BLOCK = 14


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
            before |= 1 << item[p]
            table[before] -= gain
        table[before] += weight[r] * end[r]


@compiled
def subset_sums(table: Vec, bits: int) -> None:
    """In place: every entry becomes the sum of the entries of all subsets of its set."""
    low = min(bits, BLOCK)
    for block in range(0, table.size, 1 << low):
        for bit in range(low):
            step = 1 << bit
            for base in range(block, block + (1 << low), 2 * step):
                for place in range(base, base + step):
                    table[place + step] += table[place]
    bit = low
    while bit < bits:
        step = 1 << bit
        if bit + 1 < bits:
            # two bits at once: 01 += 00, 10 += 00, 11 += 00 + 01 + 10, as two passes would have it
            for base in range(0, table.size, 4 * step):
                for place in range(base, base + step):
                    none, one, two = table[place], table[place + step], table[place + 2 * step]
                    table[place + step] = none + one
                    table[place + 2 * step] = none + two
                    table[place + 3 * step] += none + one + two
            bit += 2
        else:
            for base in range(0, table.size, 2 * step):
                for place in range(base, base + step):
                    table[place + step] += table[place]
            bit += 1


@compiled
def half_sums(numbers: Vec, first: int, count: int) -> Vec:
    """The sum of ``numbers`` over every set of ``count`` items from ``first`` on: the set without its lowest bit is
    done before.
    """
    out = np.zeros(1 << count)
    for bit in range(count):
        for place in range(1 << bit):
            out[place + (1 << bit)] = out[place] + numbers[first + bit]
    return out


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
    best: Vec,
    picks: Bits,
    size_best: Vec,
    size_pick: Bits,
) -> int:
    """Look at all offers: the best few into ``best`` and ``picks``, and the best of each size. Returns how many fit.

    What offer S earns is ``table[S ^ flip]``: with all bits in ``flip`` the table is by complement. ``needs[i]`` are
    the items that i cannot be without, ``bans[i]`` those that it cannot be with. Sums over a set are looked up as the
    sum over its low half plus that over its high half, so that none needs a loop over items.
    """
    low = bits // 2
    mask = (1 << low) - 1
    low_cost, high_cost = half_sums(costs, 0, low), half_sums(costs, low, bits - low)
    low_space, high_space = half_sums(space, 0, low), half_sums(space, low, bits - low)
    ones = np.ones(bits)
    low_size, high_size = half_sums(ones, 0, low), half_sums(ones, low, bits - low)
    pairs = 0
    for i in range(bits):
        if needs[i] | bans[i]:
            pairs |= 1 << i
    found = 0
    for offer in range(table.size):
        size = int(low_size[offer & mask] + high_size[offer >> low])
        if size < least or size > most or low_space[offer & mask] + high_space[offer >> low] > room:
            continue
        bad = False
        left = offer & pairs
        while left:
            # the lowest bit that is set, and its number by comparison: few items have constraints
            bit = left & -left
            left ^= bit
            i = 0
            while (1 << i) != bit:
                i += 1
            held = np.uint64(offer)
            if needs[i] & ~held or bans[i] & held:
                bad = True
                break
        if bad:
            continue
        found += 1
        value = table[offer ^ flip] - low_cost[offer & mask] - high_cost[offer >> low]
        if value > size_best[size]:
            size_best[size], size_pick[size] = value, np.uint64(offer)
        if value > best[best.size - 1]:
            k = best.size - 1
            while k > 0 and value > best[k - 1]:
                best[k], picks[k] = best[k - 1], picks[k - 1]
                k -= 1
            best[k], picks[k] = value, np.uint64(offer)
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
