"""Compiled loops that run the program of the union-lattice oracle, once per call: fold the costs, run, read a ranking.

Values are kept in one array: the costs per entry, a zero, and the costs of the transitions as they become known. What
the program looks like, ``program_kernels`` says, which builds it.
"""

import numpy as np

from rankstream._core.compilation import compiled, inner
from rankstream._core.types import Codes, Vec, Words
from rankstream.oracles.tables.program_kernels import MORE_ENTRIES
from rankstream.oracles.tie_kernels import LAST, TieBreak, keep_within


@inner
def run_program(program: Words, zero: int, stop: float, values: Vec, to_go: Vec) -> None:
    """One pass: the cost of every transition, and the cheapest way to go on from every state."""
    # unsigned places: for signed ones numba would first look whether they count from the end
    one, more = np.uint64(1), np.uint64(MORE_ENTRIES)
    at, transition = np.uint64(0), np.uint64(zero + 1)
    for s in range(to_go.size):
        members = program[at]
        at += one
        # the empty state costs nothing; stop is 0 where no-choice may end a ranking at any state, else infinity
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
            # not an if: the processor takes the smaller one without guessing which it is
            best = reach if reach < best else best
        to_go[s] = best


@inner
def fold_costs(costs: Vec, entry_at: Codes, base_at: Codes, entries: Vec) -> None:
    """Costs per entry: less the no-choice item's in the same offer, and equal offers together; then the zero."""
    # the last entry is the zero, which no coordinate adds to
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
    before: Codes,
    forced: Codes,
    ranking: Codes,
    space: Codes,
) -> None:
    """Read one cheapest ranking off the tables, all components at once; among exact ties the first item, or the last.

    ``here`` are the components' full states. An item that is not in its component's state can go anywhere at no
    cost. ``forced`` items come first. ``before`` are the pairs of the order: an item waits for those before it, free or
    not.
    """
    step, dear, component, ranked = space[1], space[2], space[3], space[4]
    n_items = ranking.size
    for i in range(n_items):
        # the scan below must not find no-choice, which has a rule of its own
        ranked[i] = 1 if i == universal else 0
    for pair in range(before.shape[0]):
        # not 0, like that of a ranked item, until all that must come before the item are
        ranked[before[pair, 1]] += 1
    ended = universal < 0
    for place in range(n_items):
        may_end = not ended
        for i in range(n_items):
            # -1: the item is in no state
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
                # exact: run_program added the same two numbers, so that rounding cannot hide the way it took
                tight = costs_of[t] + to_go[following[t]] == to_go[s]
                dear[items[t]] = ranked[items[t]] if tight else 1
        item = -1
        for k in range(n_items):
            # from the end that is not wanted, so that the wanted one is written last
            i = k if last else n_items - 1 - k
            item = item if dear[i] else i
        if may_end and (last or item < 0):
            item = universal
        if place < forced.size:
            item = forced[place]
        ranking[place] = item
        ranked[item] = 1
        for pair in range(before.shape[0]):
            ranked[before[pair, 1]] -= 1 if before[pair, 0] == item else 0
        if item == universal:
            ended = True
            for c in range(here.size):
                here[c] = -1
        elif step[item] >= 0:
            here[component[item]] = following[step[item]]


@compiled
def cheapest_on_lattice(
    costs: Vec, numbers: Codes, shape: Codes, program: Words, work: Vec, space: Codes, forced: Codes, ranking: Codes
) -> float:
    """The union-lattice oracle in one call; ``numbers`` pack sizes and settings, ``shape`` arrays, ``work`` the tables.

    An empty ``program`` means that the tables are those of the call before: other ``forced`` items are then read off
    them, and the ranking is kept as it is read. The first row of ``space`` is left with the coordinates chosen.
    """
    n_offers, n_components, n_states, n_transitions, n_entries, universal, ties, seed, n_pairs = numbers
    # one sum shows whether any of them is NaN or infinite
    total = 0.0
    for k in range(costs.size):
        total += abs(costs[k])
    if not np.isfinite(total):
        return np.nan
    # the arrays lie end to end in the order of LatticeOracle._lay_out
    a = n_offers + 1
    b = a + costs.size
    indptr, members, entry_at = shape[:a], shape[a:b], shape[b : b + costs.size]
    a = b + 2 * costs.size
    base_at = shape[b + costs.size : a]
    tops, first = shape[a : a + n_components], shape[a + n_components : a + n_components + n_states + 1]
    a += n_components + n_states + 1
    items, following = shape[a : a + n_transitions], shape[a + n_transitions : a + 2 * n_transitions]
    before = shape[a + 2 * n_transitions :].reshape((n_pairs, 2))
    a = n_entries + 1 + n_transitions
    costs_of, to_go = work[n_entries + 1 : a], work[a : a + n_states]
    if program.size:
        fold_costs(costs, entry_at, base_at, work[: n_entries + 1])
        run_program(program, n_entries, 0.0 if universal >= 0 else np.inf, work, to_go)
    here = space[0, :n_components]
    for c in range(n_components):
        here[c] = tops[c]
    ways = here, first, items, following, costs_of, to_go
    walk_lattice(*ways, universal, ties == LAST, before, forced, ranking, space)
    rule = TieBreak(universal, ties, seed, before)
    return keep_within(costs, indptr, members, rule, forced.size == 0, ranking, space)


@compiled
def columns_on_lattice(
    costs: Vec,
    numbers: Codes,
    shape: Codes,
    program: Words,
    work: Vec,
    space: Codes,
    beginnings: Codes,
    rankings: Codes,
) -> float:
    """Write the cheapest ranking, then the cheapest with each beginning; returns the least cost, NaN for bad costs."""
    unforced = np.empty(0, dtype=np.int64)
    least = cheapest_on_lattice(costs, numbers, shape, program, work, space, unforced, rankings[0])
    # the tables have not been filled, so there is nothing to read
    if np.isnan(least):
        return least
    for row in range(beginnings.shape[0]):
        beginning, ranking = beginnings[row], rankings[row + 1]
        # no program: the tables of the first call are read again, since only the beginning is another
        cheapest_on_lattice(costs, numbers, shape, program[:0], work, space, beginning, ranking)
    return least
