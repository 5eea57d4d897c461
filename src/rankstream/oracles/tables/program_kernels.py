"""Compiled loops that build the program of the union-lattice oracle, once per problem: unions, planning and writing.

The program is an array of unsigned 32-bit words, the states in ascending order of their item sets. Per state: the
number of its transitions; then per transition, one for each move of the state in ascending order (its items; where
there is an order, those of them that no other one must come before): the next state, the value that is inherited (a
transition's, or the zero), and the entries that are added to it (at least one, if only the zero), each with the bit
MORE_ENTRIES if another one follows. So most transitions are one sum of two values, without a branch.
``lattice_kernels`` runs it.
"""

import numpy as np

from rankstream._core.compilation import compiled, inner
from rankstream._core.types import Bits, Bytes, Codes, Words
from rankstream.oracles.tie_kernels import hashed

MORE_ENTRIES = np.uint32(0x80000000)  # no entry has this bit: there are fewer than 2**31


@inner
def find(states: Bits, wanted: np.uint64) -> int:
    """The place of a state among the ascending ones, by bisection."""
    # states[low] <= wanted < states[high] all along, since states[0] is the empty set; what is looked for is a union of
    # offers, so one of the states, and the only one left is it
    low, high = 0, states.size
    while high - low > 1:
        middle = (low + high) >> 1
        if states[middle] <= wanted:
            low = middle
        else:
            high = middle
    return low


@inner
def size_of(bits: np.uint64) -> int:
    """How many bits are set."""
    count = 0
    while bits:
        # clears the lowest bit that is set: as many turns as there are bits
        bits &= bits - np.uint64(1)
        count += 1
    return count


@inner
def lowest(bits: np.uint64) -> int:
    """The place of the lowest bit that is set."""
    # bits & -bits, in unsigned numbers, is the lowest bit alone; one less has all the bits below it
    return size_of((bits & (~bits + np.uint64(1))) - np.uint64(1))


@inner
def look_inside(state: np.uint64, sets: Bits, inside: Bits, after: Bits) -> None:
    """Mark the offers inside a state, and find where placing each item leads to: the union of those without it."""
    # uint64 with uint64 only: beside a signed number, numba and numpy go over to floats
    one = np.uint64(1)
    inside[:] = 0
    after[:] = 0
    for j in range(sets.size):
        if sets[j] & ~state:
            continue
        inside[j >> 6] |= one << np.uint64(j & 63)
        for i in range(after.size):
            if not sets[j] >> np.uint64(i) & one:
                after[i] |= sets[j]


@inner
def find_parent(item: int, state: np.uint64, holding: Bits, inside: Bits, after: Bits) -> int:
    """The item whose next state still has this one at a cost that the fewest entries bring here; -1 if none helps."""
    one = np.uint64(1)
    parent, fewest = -1, 0
    for w in range(inside.size):
        fewest += size_of(inside[w] & holding[item, w])
    for k in range(after.size):
        if k == item or not state >> np.uint64(k) & one or not after[k] >> np.uint64(item) & one:
            continue
        # the inherited value is a number to add, too: a parent must save more entries than that one
        both = 1
        for w in range(inside.size):
            both += size_of(inside[w] & holding[item, w] & holding[k, w])
        if both < fewest:
            parent, fewest = k, both
    return parent


@compiled
def find_key(keys: Bits, used: Codes, key: np.uint64) -> int:
    """The place of a key in an open hash table (``used`` is -1 where free), or the free place where it belongs."""
    # sizes are powers of two, so that & top is a remainder; at least half of the places are free, so that it ends
    top = np.uint64(keys.size - 1)
    place = hashed(np.uint64(0), key) & top
    while used[place] >= 0 and keys[place] != key:
        place = (place + np.uint64(1)) & top
    return int(place)


@compiled
def collect_unions(sets: Bits, states: Bits) -> int:
    """Write every union of the given sets, the empty one first; returns how many, or -1 if there is no room.

    A set that is a union of those before adds nothing and costs one look: give small sets first.
    """
    size = 4
    while size < 2 * states.size:
        size *= 2
    keys, used = np.zeros(size, dtype=np.uint64), np.full(size, -1, dtype=np.int64)
    states[0] = 0
    used[find_key(keys, used, states[0])] = 0
    count = 1
    for j in range(sets.size):
        if used[find_key(keys, used, sets[j])] >= 0:
            continue
        # those written in this turn contain the set already
        for s in range(count):
            union = states[s] | sets[j]
            place = find_key(keys, used, union)
            if used[place] < 0:
                if count == states.size:
                    return -1
                keys[place], used[place] = union, count
                states[count] = union
                count += 1
    return count


@compiled
def plan_program(
    states: Bits, moves: Bits, sets: Bits, holding: Bits, after: Bits, inside: Bits, following: Codes, parents: Bytes
) -> int:
    """Find what is inside every state, where its transitions lead and their parents; returns the program's length.

    ``sets[j]`` are the items of offer j and all that must come after one of them, ``holding[i]`` the offers that item i
    can win, ``inside[s]`` those inside state s, a bit for each, ``moves[s]`` its items that can come next. ``after`` is
    space to work in, an entry for each item.
    """
    length, count = 0, 0
    for s in range(states.size):
        look_inside(states[s], sets, inside[s], after)
        length += 1
        for i in range(after.size):
            if not moves[s] >> np.uint64(i) & np.uint64(1):
                continue
            # what can come next does so in every smaller state that still has it, too
            parent = find_parent(i, moves[s], holding, inside[s], after)
            added = 0
            for w in range(inside.shape[1]):
                common = inside[s, w] & holding[i, w]
                added += size_of(common & holding[parent, w] if parent >= 0 else common)
            following[count] = find(states[: s + 1], after[i])
            # an item is below 64 and -1 means none, so a signed byte will do
            parents[count] = parent
            length += 2 + max(added, 1)
            count += 1
    return length


@compiled
def write_program(
    moves: Bits,
    holding: Bits,
    inside: Bits,
    following: Codes,
    parents: Bytes,
    entry_of: Codes,
    codes: Codes,
    zero: int,
    states_before: int,
    first: Codes,
    program: Words,
    items: Codes,
) -> None:
    """Write the program of one component as planned; ``entry_of[j, i]`` are the entries of offer j.

    Placing item i from state R leads to the union of the offers inside R without i; it costs the entries of i in the
    offers inside R with i, or those that also contain its parent k on top of the cost of i in the state that placing
    k leads to. ``following`` becomes the place among the states of all components.
    """
    one = np.uint64(1)
    # first[0] comes in as the number of transitions of the components before
    at, count, start = 0, 0, first[0]
    for s in range(moves.size):
        first[s] = start + count
        n_moves = size_of(moves[s])
        program[at] = np.uint32(n_moves)
        at += 1
        place = count
        for i in range(codes.size):
            if not moves[s] >> np.uint64(i) & one:
                continue
            # state by state and item by item as in plan_program, so that place finds the same transition again
            parent = parents[place]
            items[place] = codes[i]
            program[at] = np.uint32(states_before + following[place])
            program[at + 1] = np.uint32(zero)
            program[at + 2] = np.uint32(zero)
            if parent >= 0:
                # the state below is a proper subset, so a smaller number: it stands before this one, and its cost of
                # placing i is known by then, at the place of i among the moves from there
                below = following[count + size_of(moves[s] & ((one << np.uint64(parent)) - one))]
                before = size_of(moves[below] & ((one << np.uint64(i)) - one))
                program[at + 1] = np.uint32(zero + 1 + first[below] + before)
            at += 2
            added = 0
            for w in range(inside.shape[1]):
                bits = inside[s, w] & holding[i, w]
                if parent >= 0:
                    bits &= holding[parent, w]
                while bits:
                    program[at + added] = np.uint32(entry_of[64 * w + lowest(bits), i])
                    if added > 0:
                        program[at + added - 1] |= MORE_ENTRIES
                    bits &= bits - one
                    added += 1
            at += max(added, 1)
            place += 1
        count += n_moves
    first[moves.size] = start + count
    for place in range(count):
        following[place] += states_before
