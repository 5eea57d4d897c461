"""The compiled loops of the union-lattice oracle: building its program once, and running it once per call.

The program is one array of unsigned 32-bit words, the states in ascending order of their item sets. Per state: the
number of its transitions; then per transition, one for each item of the state in ascending order: the next state, the
transition whose cost is inherited (NONE: none), how many entries are added to it, and those entries.
"""

import numpy as np

from rankstream._types import Bits, Codes, Vec, Words
from rankstream.kernels import LAST, compiled, keep_by_rule

NONE = np.uint32(0xFFFFFFFF)


@compiled
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


@compiled
def rank_of(subset: np.uint64, item: int) -> int:
    """How many members of the subset come before an item."""
    below = subset & ((np.uint64(1) << np.uint64(item)) - np.uint64(1))
    count = 0
    while below:
        below &= below - np.uint64(1)
        count += 1
    return count


@compiled
def write_program(
    states: Bits,
    sets: Bits,
    entry_of: Codes,
    codes: Codes,
    states_before: int,
    first: Codes,
    program: Words,
    items: Codes,
    following: Codes,
) -> int:
    """Write the program of one component and return its length; an empty ``program`` only counts.

    ``sets[j]`` are the items of offer j, ``entry_of[j, i]`` its entries. Placing item i from state R leads to the union
    of the offers inside R without i; it costs the entries of i in the offers inside R that hold i, or those that also
    hold some item k on top of the cost of i in the state that placing k leads to, whichever is shorter.
    """
    one = np.uint64(1)
    n_items = codes.size
    at, count = 0, 0
    writing = program.size > 0
    start = first[0]
    both = np.zeros((n_items, n_items), dtype=np.int64)
    after = np.zeros(n_items, dtype=np.uint64)
    for s in range(states.size):
        state = states[s]
        first[s] = start + count
        both[:] = 0
        after[:] = 0
        for j in range(sets.size):
            if sets[j] & ~state:
                continue
            for i in range(n_items):
                if not sets[j] >> np.uint64(i) & one:
                    after[i] |= sets[j]
                    continue
                for k in range(n_items):
                    if sets[j] >> np.uint64(k) & one:
                        both[i, k] += 1
        at += 1
        head = at - 1
        members = 0
        for i in range(n_items):
            if not state >> np.uint64(i) & one:
                continue
            members += 1
            parent, fewest = -1, both[i, i]
            for k in range(n_items):
                stays = after[k] >> np.uint64(i) & one
                if k != i and state >> np.uint64(k) & one and stays and both[i, k] + 1 < fewest:
                    parent, fewest = k, both[i, k] + 1
            if writing:
                items[count] = codes[i]
                following[count] = states_before + find(states, after[i])
                program[at] = np.uint32(following[count])
                program[at + 1] = NONE
                program[at + 2] = np.uint32(both[i, i] if parent < 0 else both[i, parent])
                if parent >= 0:
                    below = find(states, after[parent])
                    program[at + 1] = np.uint32(first[below] + rank_of(states[below], i))
            at += 3
            for j in range(sets.size):
                inside = not sets[j] & ~state and sets[j] >> np.uint64(i) & one
                if inside and (parent < 0 or sets[j] >> np.uint64(parent) & one):
                    if writing:
                        program[at] = np.uint32(entry_of[j, i])
                    at += 1
            count += 1
        if writing:
            program[head] = np.uint32(members)
    first[states.size] = start + count
    return at


@compiled
def run_program(program: Words, entries: Vec, stop: float, costs_of: Vec, to_go: Vec) -> None:
    """One pass: the cost of every transition, and the cheapest way to go on from every state."""
    at = np.uint64(0)
    one = np.uint64(1)
    transition = np.uint64(0)
    for s in range(to_go.size):
        best = stop
        members = program[at]
        at += one
        if members == 0:
            best = 0.0
        for _ in range(members):
            following = np.uint64(program[at])
            parent = program[at + one]
            added = program[at + np.uint64(2)]
            at += np.uint64(3)
            total = 0.0 if parent == NONE else costs_of[np.uint64(parent)]
            for _ in range(added):
                total += entries[np.uint64(program[at])]
                at += one
            costs_of[transition] = total
            transition += one
            best = min(best, total + to_go[following])
        to_go[s] = best


@compiled
def fold_costs(costs: Vec, entry_at: Codes, base_at: Codes, entries: Vec) -> None:
    """Costs per entry: less the no-choice item's in the same offer, and equal offers together."""
    for e in range(entries.size):
        entries[e] = 0.0
    for k in range(costs.size):
        if entry_at[k] >= 0:
            entries[entry_at[k]] += costs[k] - (costs[base_at[k]] if base_at[k] >= 0 else 0.0)


@compiled
def walk_lattice(
    tops: Codes,
    first: Codes,
    items: Codes,
    following: Codes,
    costs_of: Vec,
    to_go: Vec,
    universal: int,
    last: bool,
    forced: Codes,
    ranking: Codes,
) -> None:
    """Read one cheapest ranking off the tables, all components at once; among exact ties the first item, or the last.

    An item that its component's state does not hold can go anywhere at no cost. ``forced`` items come first.
    """
    n_items = ranking.size
    here = tops.copy()
    step = np.full(n_items, -1, dtype=np.int64)
    cheap = np.ones(n_items, dtype=np.bool_)
    component = np.zeros(n_items, dtype=np.int64)
    left = np.ones(n_items, dtype=np.bool_)
    tied = np.empty(n_items, dtype=np.int64)
    ended = universal < 0
    for place in range(n_items):
        may_end = not ended
        for i in range(n_items):
            step[i] = -1
            cheap[i] = True
        for c in range(here.size):
            s = here[c]
            if s < 0:
                continue
            may_end = may_end and to_go[s] == 0.0
            for t in range(first[s], first[s + 1]):
                component[items[t]] = c
                step[items[t]] = t
                cheap[items[t]] = costs_of[t] + to_go[following[t]] == to_go[s]
        n_tied = 0
        for i in range(n_items):
            if left[i] and i != universal and cheap[i]:
                tied[n_tied] = i
                n_tied += 1
        if may_end:
            tied[n_tied] = universal
            n_tied += 1
        item = forced[place] if place < forced.size else tied[n_tied - 1 if last else 0]
        ranking[place] = item
        left[item] = False
        if item == universal:
            ended = True
            for c in range(here.size):
                here[c] = -1
        elif step[item] >= 0:
            here[component[item]] = following[step[item]]


@compiled
def cheapest_on_lattice(
    costs: Vec,
    sizes: Codes,
    shape: Codes,
    program: Words,
    work: Vec,
    ties: int,
    seed: int,
    forced: Codes,
    ranking: Codes,
) -> float:
    """The union-lattice oracle in one call; ``shape`` packs the integer arrays, ``work`` the tables.

    An empty ``program`` means that the tables are those of the call before: other ``forced`` items are then read off
    them, and the ranking is kept as it is read.
    """
    n_offers, n_components, n_states, n_transitions, n_entries, universal = sizes
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
    entries, to_go = work[:n_entries], work[n_entries : n_entries + n_states]
    costs_of = work[n_entries + n_states :]
    if program.size:
        fold_costs(costs, entry_at, base_at, entries)
        run_program(program, entries, 0.0 if universal >= 0 else np.inf, costs_of, to_go)
    last = ties == LAST
    walk_lattice(tops, first, items, following, costs_of, to_go, universal, last, forced, ranking)
    return keep_by_rule(costs, indptr, members, universal, ties, seed, forced.size == 0, ranking)
