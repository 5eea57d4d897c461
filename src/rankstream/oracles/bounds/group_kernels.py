"""Compiled loops over groups of offers: the lattice of states of a group, its dynamic program, and projections."""

from typing import NamedTuple

import numpy as np

from rankstream._core.compiling import compiled
from rankstream._core.types import Bits, Codes, Vec
from rankstream.oracles.tie_kernels import mix

MOST_SLOTS = 48  # offers of a group, so that an item and a set of offers fit into one word


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
    step_item: Codes
    step_entry: Codes
    step_target: Codes
    entry_ptr: Codes
    parent: Codes
    seat: Codes


@compiled
def find(keys: Bits, used: Codes, key: np.uint64) -> int:
    """The place of a key in an open hash table (``used`` is -1 where free), or the free place where it belongs."""
    top = np.uint64(keys.size - 1)
    place = mix(np.uint64(0), key) & top
    while used[place] >= 0 and keys[place] != key:
        place = (place + np.uint64(1)) & top
    return int(place)


@compiled
def close(takes: Bits, full: np.uint64, states: Bits) -> int:
    """Collect every state that can be reached from ``full`` by items that take offers away; -1 if too many."""
    size = 4
    while size < 2 * states.size:
        size *= 2
    keys, used = np.zeros(size, dtype=np.uint64), np.full(size, -1, dtype=np.int64)
    states[0] = full
    place = find(keys, used, full)
    keys[place], used[place] = full, 0
    count, done = 1, 0
    while done < count:
        state = states[done]
        done += 1
        for item in range(takes.size):
            after = state & ~takes[item]
            place = find(keys, used, after)
            if used[place] < 0:
                if count == states.size:
                    return -1
                keys[place], used[place] = after, count
                states[count] = after
                count += 1
    return count


@compiled
def link(takes: Bits, seat_of: Codes, states: Bits, step_ptr: Codes, steps: Codes, entries: Codes) -> int:
    """Write the steps (item, entry, target) of every state and the entries (parent, seat); return how many entries.

    ``states`` are sorted, so that steps lead to earlier ones. Entry 0 is the empty sum.
    """
    size = 4
    while size < 2 * entries.shape[0]:
        size *= 2
    keys, used = np.zeros(size, dtype=np.uint64), np.full(size, -1, dtype=np.int64)
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
                    key = (np.uint64(item) << np.uint64(MOST_SLOTS)) | seen
                    place = find(keys, used, key)
                    if used[place] < 0:
                        keys[place], used[place] = key, n_entries
                        entries[n_entries, 0], entries[n_entries, 1] = entry, seat_of[item, slot]
                        n_entries += 1
                    entry = used[place]
                slot += 1
            steps[n_steps, 0], steps[n_steps, 1] = item, entry
            steps[n_steps, 2] = np.searchsorted(states, states[number] & ~takes[item])
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
    sums[first] = 0.0
    for entry in range(first + 1, groups.entry_ptr[group + 1]):
        sums[entry] = sums[groups.parent[entry]] + level[groups.seat[entry]]
    start, stop = groups.state_ptr[group], groups.state_ptr[group + 1]
    for state in range(start, stop):
        best = 0.0 if ends or state == start else np.inf
        for step in range(groups.step_ptr[state], groups.step_ptr[state + 1]):
            best = min(best, sums[groups.step_entry[step]] + to_go[groups.step_target[step]])
        to_go[state] = best
    return float(base + to_go[stop - 1])


@compiled
def choose(groups: Lattices, group: int, sums: Vec, to_go: Vec, chosen: Codes) -> None:
    """Read the seats that a cheapest ranking of the group chooses off its tables, one per slot."""
    for slot in range(groups.slot_ptr[group], groups.slot_ptr[group + 1]):
        chosen[slot] = groups.none[slot]
    state = groups.state_ptr[group + 1] - 1
    while True:
        found = -1
        for step in range(groups.step_ptr[state], groups.step_ptr[state + 1]):
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


class Corners(NamedTuple):
    """For every group, corners of its polytope with weights that sum to 1, and the point that they make."""

    known: Codes
    chosen: Codes
    weight: Vec
    point: Vec


@compiled
def balance(groups: Lattices, group: int, corners: Corners, slope: Vec, room: float, most: int) -> None:
    """Move weight between known corners until no pair gains more than ``room``: min of <slope, .> + |. - point|^2 / 2.

    ``slope`` (the gradient, at the group's seats) and the point are kept up to date.
    """
    first, last = groups.slot_ptr[group], groups.slot_ptr[group + 1]
    weight, chosen, count = corners.weight[group], corners.chosen, corners.known[group]
    for _ in range(most):
        low, high, cheap, dear = np.inf, -np.inf, 0, 0
        for a in range(count):
            value = 0.0
            for slot in range(first, last):
                value += slope[chosen[slot, a]]
            if value < low:
                low, cheap = value, a
            if value > high and weight[a] > 0.0:
                high, dear = value, a
        if high - low <= room:
            break
        differ = 0.0
        for slot in range(first, last):
            if chosen[slot, cheap] != chosen[slot, dear]:
                differ += 2.0
        amount = min(weight[dear], (high - low) / differ)
        weight[cheap] += amount
        weight[dear] -= amount
        for slot in range(first, last):
            to, fro = chosen[slot, cheap], chosen[slot, dear]
            slope[to] += amount
            slope[fro] -= amount
            corners.point[to] += amount
            corners.point[fro] -= amount


@compiled
def forget_corners(groups: Lattices, group: int, corners: Corners) -> None:
    """Drop the corners without weight."""
    kept = 0
    for a in range(corners.known[group]):
        if corners.weight[group, a] > 0.0:
            corners.weight[group, kept] = corners.weight[group, a]
            for slot in range(groups.slot_ptr[group], groups.slot_ptr[group + 1]):
                corners.chosen[slot, kept] = corners.chosen[slot, a]
            kept += 1
    corners.known[group] = kept


@compiled
def refresh_point(groups: Lattices, group: int, corners: Corners) -> None:
    """Add the point up from its corners again, so that rounding does not pile up."""
    first, last = groups.slot_ptr[group], groups.slot_ptr[group + 1]
    corners.point[groups.seat_ptr[first] : groups.seat_ptr[last]] = 0.0
    total = 0.0
    for a in range(corners.known[group]):
        total += corners.weight[group, a]
    for a in range(corners.known[group]):
        corners.weight[group, a] /= total
        for slot in range(first, last):
            corners.point[corners.chosen[slot, a]] += corners.weight[group, a]


@compiled
def project(
    groups: Lattices, group: int, aim: Vec, corners: Corners, slope: Vec, work: Vec, sums: Vec, to_go: Vec, calls: int
) -> None:
    """Move the group's point towards the projection of ``aim`` on its polytope: pairwise Frank-Wolfe steps.

    At most ``calls`` dynamic programs find new corners; between them weight is moved among the known ones.
    """
    first, last = groups.slot_ptr[group], groups.slot_ptr[group + 1]
    start, stop = groups.seat_ptr[first], groups.seat_ptr[last]
    fresh = np.empty(groups.slot_ptr[groups.slot_ptr.size - 1], dtype=np.int64)
    refresh_point(groups, group, corners)
    for k in range(start, stop):
        slope[k] = corners.point[k] - aim[k]
    room = 1e-4
    for _ in range(calls):
        balance(groups, group, corners, slope, room, 200)
        least = solve(groups, group, slope, work, sums, to_go)
        gap = -least
        for k in range(start, stop):
            gap += slope[k] * corners.point[k]
        if gap <= 1e-9:
            break
        room = min(room, 0.1 * gap)
        if corners.known[group] == corners.weight.shape[1]:
            forget_corners(groups, group, corners)
            if corners.known[group] == corners.weight.shape[1]:
                break
        choose(groups, group, sums, to_go, fresh)
        a = corners.known[group]
        for slot in range(first, last):
            corners.chosen[slot, a] = fresh[slot]
        corners.weight[group, a] = 0.0
        corners.known[group] = a + 1
    balance(groups, group, corners, slope, room, 200)


@compiled
def sweep(
    groups: Lattices, pull: Vec, point: Vec, corners: Corners, aim: Vec, slope: Vec, sums: Vec, to_go: Vec, calls: int
) -> None:
    """One round of Dykstra's method: project on one group's polytope after the other, remembering each ``pull``.

    A pull is the normal vector of the group's projection; ``point`` + the sum of all pulls never changes.
    """
    work = np.empty(aim.size)
    for group in range(groups.entry_ptr.size - 1):
        start = groups.seat_ptr[groups.slot_ptr[group]]
        stop = groups.seat_ptr[groups.slot_ptr[group + 1]]
        for k in range(start, stop):
            aim[k] = point[groups.where[k]] + pull[k]
        project(groups, group, aim, corners, slope, work, sums, to_go, calls)
        for k in range(start, stop):
            pull[k] = aim[k] - corners.point[k]
            point[groups.where[k]] = corners.point[k]


@compiled
def least_costs(groups: Lattices, costs: Vec, sums: Vec, to_go: Vec, out: Vec) -> None:
    """The least cost of every group for one cost per seat, all tables filled."""
    level = np.empty(costs.size)
    for group in range(out.size):
        out[group] = solve(groups, group, costs, level, sums, to_go)
