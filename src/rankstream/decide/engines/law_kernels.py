"""Compiled loops over how far rankings can come: maximum entropy by cells (see ``table_kernels``), chains by sets.

A set of items is a bitmask; bit b stands for item ``codes[b]``. The free items have the low bits, those that are never
offered the high ones, so that ``& inside`` leaves the free items of a set; items that are always on offer have no bit,
as they end a ranking. Sets come in ascending order, after all of their subsets. The set without its lowest bit has one
bit less and was the last of its size, so that what is remembered of it can stand in a stack by size.
"""

import numpy as np

from rankstream._core.compilation import compiled, inner
from rankstream._core.types import Bytes, Codes, Vec

CLASSES_AT_ONCE = 8
"""Classes whose numbers lie side by side: 8 take 7.5 s where one took 3.7 s (4.8 million cells of 28 levels)."""


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
def add_classes(
    weights: Vec,
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
    """Add ``CLASSES_AT_ONCE`` tilted Plackett-Luce classes, lifted to respect the order of levels, to g.

    From progress, the next item that matters is a level not yet passed of any item, drawn in proportion to attraction
    times how the tilt values what follows; the cheaper levels left of the same item come in front of it. ``steps[i]``
    is how much further the table's cell is once level i was passed, 0 for one that is never offered, and -1 for one
    that always is, and ends the ranking. ``lengths[c]`` is how many levels item c has; ``reach`` is zero before and
    after. The last index of every table is the class: most of the time goes into fetching distant cells.
    """
    n_chains, n_classes = sizes.size, CLASSES_AT_ONCE
    digits, chance = np.zeros(n_chains, dtype=np.int64), np.zeros((attraction.shape[0], n_classes))
    rest, mass, scale, inverse = np.zeros(n_classes), np.zeros(n_classes), np.zeros(n_classes), np.zeros(n_classes)
    for j in range(n_classes):
        reach[0, j] = weights[j]
    for cell in range(reach.shape[0]):
        if cell:
            next_cell(digits, sizes)
        here, at, left = 0.0, 0, 0
        for j in range(n_classes):
            here += reach[cell, j]
            rest[j] = 0.0
        if here <= 0.0:
            continue
        for c in range(n_chains):
            for k in range(lengths[c]):
                i = chains[c, k]
                passed = k < digits[c]
                left += not passed
                at += max(steps[i], 0) if passed else 0
                for j in range(n_classes):
                    chance[i, j] = 0.0 if passed else attraction[i, j]
                    rest[j] += chance[i, j]
        state = state_of[cell]
        for j in range(n_classes):
            scale[j] = reach[cell, j] / rest[j] if left else 0.0
            inverse[j] = 1.0 / values[state, j]
            reach[cell, j] = 0.0
        for t in range(first[state], first[state + 1]):
            i, then, tilt = items[t], following[t], tilts[t]
            for j in range(n_classes):
                chance[i, j] *= tilt * values[then, j] * inverse[j]
        for c in range(n_chains):
            # all that comes from level k or a dearer one passes k; what comes from k itself goes no further
            place = at
            mass[:] = 0.0
            for k in range(digits[c], lengths[c]):
                i = chains[c, k]
                for j in range(n_classes):
                    chance[i, j] *= scale[j]
                    mass[j] += chance[i, j]
            for k in range(digits[c], lengths[c]):
                i, share = chains[c, k], 0.0
                for j in range(n_classes):
                    share += mass[j]
                if steps[i] != 0:
                    table[place] += share * margins[i]
                if steps[i] < 0:
                    break
                if steps[i] > 0:
                    place += steps[i]
                    table[place] -= share * margins[i]
                after = cell + (k + 1 - digits[c]) * strides[c]
                for j in range(n_classes):
                    reach[after, j] += chance[i, j]
                    mass[j] -= chance[i, j]


@inner
def lowest(mask: int) -> int:
    """The number of the lowest bit that is set."""
    bit = 0
    # shift until the bit stands last, where & 1 sees it
    while not mask >> bit & 1:
        bit += 1
    return bit


@inner
def absorb(moves: Vec, inside: Bytes, hits: Vec, new: int, out: Vec) -> None:
    """Hitting probabilities once one more item is passed through, from those before.

    ``hits[a, c]``: from a, which is ``inside``, the chain first meets outside at c. From the new item it goes outside
    at once or by way of an inside item, until it does not come back; from the others it may first come to the new one.
    ``inside`` is as it was before.
    """
    n = moves.shape[0]
    back = moves[new, new]
    for a in range(n):
        if inside[a]:
            back += moves[new, a] * hits[a, new]
    # coming back once, twice, ... is a geometric series
    stays = 1.0 / max(1.0 - back, 1e-300)
    for c in range(n):
        total = 0.0
        if not inside[c] and c != new:
            total = moves[new, c]
            for a in range(n):
                if inside[a]:
                    total += moves[new, a] * hits[a, c]
        out[new, c] = total * stays
    for a in range(n):
        if inside[a]:
            for c in range(n):
                out[a, c] = 0.0 if inside[c] or c == new else hits[a, c] + hits[a, new] * out[new, c]


@compiled
def add_chain(
    weight: float,
    arrival: Vec,
    moves: Vec,
    values: Vec,
    costs: Vec,
    first: Codes,
    items: Codes,
    following: Codes,
    state_of: Codes,
    codes: Codes,
    bit_of: Codes,
    margins: Vec,
    inside: int,
    reach: Vec,
    table: Vec,
) -> None:
    """Add a tilted Markov chain to g, from every set and its last item (``reach[set, bit of the last]``).

    An item is sold by offers that miss all of the set and not the item: g(set) gains what g(set with it) loses. Items
    that are never offered are missed by every offer, so that ``& inside`` may forget them.
    """
    n, bits = arrival.size, codes.size
    stack = np.zeros((bits + 1, n, n))
    chance, gain, mass = np.zeros(n), np.zeros(n), np.zeros(n)
    on_offer = np.zeros(n, dtype=np.int8)
    for mask in range(reach.shape[0]):
        size = 0
        for b in range(bits):
            on_offer[codes[b]] = mask >> b & 1
            size += mask >> b & 1
        if mask:
            # the set without its lowest bit was the last one of its size: it still stands in the stack
            new = codes[lowest(mask)]
            on_offer[new] = 0
            absorb(moves, on_offer, stack[size - 1], new, stack[size])
            on_offer[new] = 1
        hits, state = stack[size], state_of[mask]
        top = -np.inf
        for i in range(n):
            gain[i] = values[state, i]
        for t in range(first[state], first[state + 1]):
            gain[items[t]] = values[following[t], items[t]] - costs[t]
        for i in range(n):
            if not on_offer[i]:
                top = max(top, gain[i])
        for i in range(n):
            gain[i] = 0.0 if on_offer[i] else np.exp(gain[i] - top)
            mass[i] = 0.0
        for last in range(-1, bits):
            # the empty set has no last item: -1 stands for arriving
            here = (weight if last < 0 else 0.0) if mask == 0 else (0.0 if last < 0 else reach[mask, last])
            if here <= 0.0:
                continue
            total = 0.0
            for i in range(n):
                chance[i] = gain[i] * (arrival[i] if last < 0 else hits[codes[last], i])
                total += chance[i]
            if total <= 0.0:
                continue
            for i in range(n):
                mass[i] += here * chance[i] / total
        for i in range(n):
            if on_offer[i] or mass[i] == 0.0:
                continue
            bit = bit_of[i]
            if bit >= 0:
                reach[mask | 1 << bit, bit] += mass[i]
            if bit < 0 or inside >> bit & 1:
                table[mask & inside] += mass[i] * margins[i]
                if bit >= 0:
                    table[(mask | 1 << bit) & inside] -= mass[i] * margins[i]


@compiled
def chain_table(arrival: Vec, moves: Vec, codes: Codes, free: int, margins: Vec, table: Vec) -> None:
    """What a Markov chain earns from every offer, by the set of free items that are missing from it.

    ``codes[free:]`` are the items that are never offered: the chain passes through them from the beginning.
    """
    n = arrival.size
    stack, met = np.zeros((free + 1, n, n)), np.zeros((free + 1, n))
    on_offer = np.zeros(n, dtype=np.int8)
    met[0] = arrival
    work = np.zeros((n, n))
    for k in range(free, codes.size):
        new = codes[k]
        absorb(moves, on_offer, stack[0], new, work)
        stack[0] = work
        on_offer[new] = 1
        through = met[0, new]
        for c in range(n):
            met[0, c] = 0.0 if on_offer[c] else met[0, c] + through * work[new, c]
    for mask in range(table.size):
        size = 0
        for b in range(free):
            on_offer[codes[b]] = mask >> b & 1
            size += mask >> b & 1
        if mask:
            new = codes[lowest(mask)]
            on_offer[new] = 0
            absorb(moves, on_offer, stack[size - 1], new, stack[size])
            on_offer[new] = 1
            through = met[size - 1, new]
            for c in range(n):
                met[size, c] = 0.0 if on_offer[c] else met[size - 1, c] + through * stack[size, new, c]
        total = 0.0
        for c in range(n):
            total += met[size, c] * margins[c]
        table[mask] = total
