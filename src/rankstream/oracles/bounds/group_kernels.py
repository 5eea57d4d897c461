"""Compiled loops over groups of offers: the lattice of states of a group, by hashing, and its dynamic program."""

from typing import NamedTuple

import numpy as np

from rankstream._core.compilation import compiled
from rankstream._core.types import Bits, Codes, Vec
from rankstream.oracles.tie_kernels import hashed

MAX_GROUP_OFFERS = 48  # offers of a group, so that an item and a set of offers fit into one word


class Lattices(NamedTuple):
    """The dynamic programs of all groups, end to end.

    A *slot* is an offer in a group, a *seat* one of its items there; group vectors have one number per seat. A state
    of a group is the set of its offers that no ranked item has touched. A step of a state ranks one more item: it
    costs ``entry``, a sum over a chain of seats (``parent``, ``seat``), and leads to the state ``target``.
    """

    slot_ptr: Codes
    seat_ptr: Codes
    none: Codes
    slot_of: Codes
    where: Codes
    state_ptr: Codes
    step_ptr: Codes
    step_entry: Codes
    step_target: Codes
    entry_ptr: Codes
    parent: Codes
    seat: Codes


@compiled
def find(keys: Bits, used: Codes, key: np.uint64) -> int:
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
    used[find(keys, used, states[0])] = 0
    count = 1
    for j in range(sets.size):
        if used[find(keys, used, sets[j])] >= 0:
            continue
        # those written in this turn contain the set already
        for s in range(count):
            union = states[s] | sets[j]
            place = find(keys, used, union)
            if used[place] < 0:
                if count == states.size:
                    return -1
                keys[place], used[place] = union, count
                states[count] = union
                count += 1
    return count


@compiled
def link(takes: Bits, seat_of: Codes, states: Bits, step_ptr: Codes, steps: Codes, entries: Codes) -> int:
    """Write the steps (entry, target) of every state and the entries (parent, seat); return how many entries.

    ``states`` are sorted, so that steps lead to earlier ones. Entry 0 is the empty sum.
    """
    size = 4
    while size < 2 * entries.shape[0]:
        size *= 2
    keys, used = np.zeros(size, dtype=np.uint64), np.full(size, -1, dtype=np.int64)
    # a sum over some seats of an item is the one without the last seat plus that seat, so that states share sums
    entries[0, 0], entries[0, 1] = 0, 0
    n_entries, n_steps = 1, 0
    for number in range(states.size):
        step_ptr[number] = n_steps
        for item in range(takes.size):
            left = states[number] & takes[item]
            if not left:
                continue
            entry, slot, seen = 0, 0, np.uint64(0)
            while left:
                bit = np.uint64(1) << np.uint64(slot)
                if left & bit:
                    left ^= bit
                    seen |= bit
                    # the offers seen so far in the lower 48 bits, the item's number in its group above them
                    key = (np.uint64(item) << np.uint64(MAX_GROUP_OFFERS)) | seen
                    place = find(keys, used, key)
                    if used[place] < 0:
                        keys[place], used[place] = key, n_entries
                        entries[n_entries, 0], entries[n_entries, 1] = entry, seat_of[item, slot]
                        n_entries += 1
                    entry = used[place]
                slot += 1
            steps[n_steps, 0] = entry
            # a proper subset, so a smaller number, which stands before
            steps[n_steps, 1] = np.searchsorted(states, states[number] & ~takes[item])
            n_steps += 1
    step_ptr[states.size] = n_steps
    return n_entries


@compiled
def solve(groups: Lattices, group: int, costs: Vec, level: Vec, sums: Vec, to_go: Vec) -> float:
    """The dynamic program of one group: fill its ``sums`` (entries) and ``to_go`` (states), return its least cost.

    ``level`` (seats) gets the costs above those of the no-choice item, where there is one; ``to_go`` counts from it.
    """
    base, ends = 0.0, False
    for slot in range(groups.slot_ptr[group], groups.slot_ptr[group + 1]):
        none = 0.0
        if groups.none[slot] >= 0:
            none = costs[groups.none[slot]]
            base += none
            ends = True
        for k in range(groups.seat_ptr[slot], groups.seat_ptr[slot + 1]):
            level[k] = costs[k] - none
    first = groups.entry_ptr[group]
    # entry 0 is the empty sum; the parent of any other stands before it
    sums[first] = 0.0
    for entry in range(first + 1, groups.entry_ptr[group + 1]):
        sums[entry] = sums[groups.parent[entry]] + level[groups.seat[entry]]
    start, stop = groups.state_ptr[group], groups.state_ptr[group + 1]
    for state in range(start, stop):
        # the first state is the empty set, the last one all offers; without no-choice only the first can end
        best = 0.0 if ends or state == start else np.inf
        for step in range(groups.step_ptr[state], groups.step_ptr[state + 1]):
            best = min(best, sums[groups.step_entry[step]] + to_go[groups.step_target[step]])
        to_go[state] = best
    return float(base + to_go[stop - 1])


@compiled
def choose(groups: Lattices, group: int, sums: Vec, to_go: Vec, chosen: Codes) -> None:
    """Read the seats that a cheapest ranking of the group chooses off its tables, one per slot."""
    # what no step takes is left to no-choice
    for slot in range(groups.slot_ptr[group], groups.slot_ptr[group + 1]):
        chosen[slot] = groups.none[slot]
    state = groups.state_ptr[group + 1] - 1
    while True:
        found = -1
        for step in range(groups.step_ptr[state], groups.step_ptr[state + 1]):
            # exact: solve added the same two numbers
            if sums[groups.step_entry[step]] + to_go[groups.step_target[step]] == to_go[state]:
                found = step
                break
        if found < 0:
            return
        entry = groups.step_entry[found]
        while entry != groups.entry_ptr[group]:
            k = groups.seat[entry]
            chosen[groups.slot_of[k]] = k
            entry = groups.parent[entry]
        state = groups.step_target[found]


@compiled
def least_costs(groups: Lattices, costs: Vec, sums: Vec, to_go: Vec, out: Vec) -> None:
    """The least cost of every group for one cost per seat, all tables filled."""
    level = np.empty(costs.size)
    for group in range(out.size):
        out[group] = solve(groups, group, costs, level, sums, to_go)
