"""The compiled loops of the union-lattice oracle: building its program once, and running it once per call.

Values are kept in one array: the costs per entry, a zero, and the costs of the transitions as they become known. The
program is an array of unsigned 32-bit words, the states in ascending order of their item sets. Per state: the number of
its transitions; then per transition, one for each item of the state in ascending order: the next state, the value that
is inherited (a transition's, or the zero), and the entries that are added to it (at least one, if only the zero), each
with the bit MORE if another one follows. So most transitions are one sum of two values, without a branch.
"""

import numpy as np

from rankstream._core.compiling import compiled, inner
from rankstream._core.types import Bits, Bytes, Codes, Vec, Words
from rankstream.oracles.tie_kernels import LAST, keep_within

MORE = np.uint32(0x80000000)


@inner
def find(states: Bits, wanted: np.uint64) -> int:
    """The place of a state among the ascending ones, by bisection."""
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
        bits &= bits - np.uint64(1)
        count += 1
    return count


@inner
def lowest(bits: np.uint64) -> int:
    """The place of the lowest bit that is set."""
    return size_of((bits & (~bits + np.uint64(1))) - np.uint64(1))


@inner
def look_inside(state: np.uint64, sets: Bits, inside: Bits, after: Bits) -> None:
    """Mark the offers inside a state, and find where placing each item leads to: the union of those without it."""
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
    """The item whose next state still holds this one at a cost that the fewest entries bring here; -1 if none helps."""
    one = np.uint64(1)
    parent, fewest = -1, 0
    for w in range(inside.size):
        fewest += size_of(inside[w] & holding[item, w])
    for k in range(after.size):
        if k == item or not state >> np.uint64(k) & one or not after[k] >> np.uint64(item) & one:
            continue
        both = 1
        for w in range(inside.size):
            both += size_of(inside[w] & holding[item, w] & holding[k, w])
        if both < fewest:
            parent, fewest = k, both
    return parent


@compiled
def plan_program(states: Bits, sets: Bits, holding: Bits, inside: Bits, after: Bits, parents: Bytes) -> int:
    """Find the parents of all transitions, and return the length of the program.

    ``sets[j]`` are the items of offer j, ``holding[i]`` the offers that hold item i. ``inside`` and ``after`` are space
    to work in, a bit for each offer and an entry for each item.
    """
    length, count = 0, 0
    for s in range(states.size):
        look_inside(states[s], sets, inside, after)
        length += 1
        for i in range(after.size):
            if not states[s] >> np.uint64(i) & np.uint64(1):
                continue
            parent = find_parent(i, states[s], holding, inside, after)
            added = 0
            for w in range(inside.size):
                common = inside[w] & holding[i, w]
                added += size_of(common & holding[parent, w] if parent >= 0 else common)
            parents[count] = parent
            length += 2 + max(added, 1)
            count += 1
    return length


@compiled
def write_program(
    states: Bits,
    sets: Bits,
    holding: Bits,
    inside: Bits,
    after: Bits,
    parents: Bytes,
    entry_of: Codes,
    codes: Codes,
    zero: int,
    states_before: int,
    first: Codes,
    program: Words,
    items: Codes,
    following: Codes,
) -> None:
    """Write the program of one component as planned; ``entry_of[j, i]`` are the entries of offer j.

    Placing item i from state R leads to the union of the offers inside R without i; it costs the entries of i in the
    offers inside R that hold i, or those that also hold its parent k on top of the cost of i in the state that placing
    k leads to.
    """
    one = np.uint64(1)
    at, count, start = 0, 0, first[0]
    for s in range(states.size):
        first[s] = start + count
        look_inside(states[s], sets, inside, after)
        program[at] = np.uint32(size_of(states[s]))
        at += 1
        for i in range(codes.size):
            if not states[s] >> np.uint64(i) & one:
                continue
            parent = parents[count]
            items[count] = codes[i]
            following[count] = states_before + find(states, after[i])
            program[at] = np.uint32(following[count])
            program[at + 1] = np.uint32(zero)
            program[at + 2] = np.uint32(zero)
            if parent >= 0:
                below = find(states, after[parent])
                before = size_of(states[below] & ((one << np.uint64(i)) - one))
                program[at + 1] = np.uint32(zero + 1 + first[below] + before)
            at += 2
            added = 0
            for w in range(inside.size):
                bits = inside[w] & holding[i, w]
                if parent >= 0:
                    bits &= holding[parent, w]
                while bits:
                    program[at + added] = np.uint32(entry_of[64 * w + lowest(bits), i])
                    if added > 0:
                        program[at + added - 1] |= MORE
                    bits &= bits - one
                    added += 1
            at += max(added, 1)
            count += 1
    first[states.size] = start + count


@inner
def run_program(program: Words, zero: int, stop: float, values: Vec, to_go: Vec) -> None:
    """One pass: the cost of every transition, and the cheapest way to go on from every state."""
    one, more = np.uint64(1), np.uint64(MORE)
    at, transition = np.uint64(0), np.uint64(zero + 1)
    for s in range(to_go.size):
        members = program[at]
        at += one
        best = stop if members else 0.0
        for _ in range(members):
            following = np.uint64(program[at])
            inherited = np.uint64(program[at + one])
            entry = np.uint64(program[at + np.uint64(2)])
            at += np.uint64(3)
            total = values[inherited] + values[entry & ~more]
            while entry & more:
                entry = np.uint64(program[at])
                total += values[entry & ~more]
                at += one
            values[transition] = total
            transition += one
            reach = total + to_go[following]
            best = reach if reach < best else best
        to_go[s] = best


@inner
def fold_costs(costs: Vec, entry_at: Codes, base_at: Codes, entries: Vec) -> None:
    """Costs per entry: less the no-choice item's in the same offer, and equal offers together; then the zero."""
    for e in range(entries.size):
        entries[e] = 0.0
    for k in range(costs.size):
        if entry_at[k] >= 0:
            entries[entry_at[k]] += costs[k] - (costs[base_at[k]] if base_at[k] >= 0 else 0.0)


@inner
def walk_lattice(
    here: Codes,
    first: Codes,
    items: Codes,
    following: Codes,
    costs_of: Vec,
    to_go: Vec,
    universal: int,
    last: bool,
    forced: Codes,
    ranking: Codes,
    space: Codes,
) -> None:
    """Read one cheapest ranking off the tables, all components at once; among exact ties the first item, or the last.

    ``here`` holds the components' full states. An item that its component's state does not hold can go anywhere at no
    cost. ``forced`` items come first.
    """
    step, dear, component, ranked = space[1], space[2], space[3], space[4]
    n_items = ranking.size
    for i in range(n_items):
        ranked[i] = 1 if i == universal else 0
    ended = universal < 0
    for place in range(n_items):
        may_end = not ended
        for i in range(n_items):
            step[i] = -1
            dear[i] = ranked[i]
        for c in range(here.size):
            s = here[c]
            if s < 0:
                continue
            may_end = may_end and to_go[s] == 0.0
            for t in range(first[s], first[s + 1]):
                component[items[t]] = c
                step[items[t]] = t
                tight = costs_of[t] + to_go[following[t]] == to_go[s]
                dear[items[t]] = ranked[items[t]] if tight else 1
        item = -1
        for k in range(n_items):
            i = k if last else n_items - 1 - k
            item = item if dear[i] else i
        if may_end and (last or item < 0):
            item = universal
        if place < forced.size:
            item = forced[place]
        ranking[place] = item
        ranked[item] = 1
        if item == universal:
            ended = True
            for c in range(here.size):
                here[c] = -1
        elif step[item] >= 0:
            here[component[item]] = following[step[item]]


@compiled
def cheapest_on_lattice(
    costs: Vec,
    numbers: Codes,
    shape: Codes,
    program: Words,
    work: Vec,
    space: Codes,
    forced: Codes,
    ranking: Codes,
) -> float:
    """The union-lattice oracle in one call; ``numbers`` pack sizes and settings, ``shape`` arrays, ``work`` the tables.

    An empty ``program`` means that the tables are those of the call before: other ``forced`` items are then read off
    them, and the ranking is kept as it is read. The first row of ``space`` is left with the coordinates chosen.
    """
    n_offers, n_components, n_states, n_transitions, n_entries, universal, ties, seed = numbers
    total = 0.0
    for k in range(costs.size):
        total += abs(costs[k])
    if not np.isfinite(total):
        return np.nan
    a = n_offers + 1
    b = a + costs.size
    indptr, members, entry_at = shape[:a], shape[a:b], shape[b : b + costs.size]
    a = b + 2 * costs.size
    base_at = shape[b + costs.size : a]
    tops, first = shape[a : a + n_components], shape[a + n_components : a + n_components + n_states + 1]
    a += n_components + n_states + 1
    items, following = shape[a : a + n_transitions], shape[a + n_transitions : a + 2 * n_transitions]
    a = n_entries + 1 + n_transitions
    costs_of, to_go = work[n_entries + 1 : a], work[a : a + n_states]
    if program.size:
        fold_costs(costs, entry_at, base_at, work[: n_entries + 1])
        run_program(program, n_entries, 0.0 if universal >= 0 else np.inf, work, to_go)
    here = space[0, :n_components]
    for c in range(n_components):
        here[c] = tops[c]
    walk_lattice(here, first, items, following, costs_of, to_go, universal, ties == LAST, forced, ranking, space)
    return keep_within(costs, indptr, members, universal, ties, seed, forced.size == 0, ranking, space)
