"""The compiled loops of the maximum-entropy model: the oracle's recursion with sums for minima.

States are unions of offers, ascending, so that what follows a state stands before it; the transitions of a state are
its items in ascending order. ``entries`` lists, transition by transition, the coordinates whose offer is decided by it.
A *part* lists states whose turn it is: all in a row, or some of those that do not depend on each other.
"""

import numpy as np

from rankstream._core.compilation import compiled, in_any_order, released
from rankstream._core.types import Bits, Codes, Vec, Words
from rankstream.oracles.tables.program_kernels import find


@compiled
def write_transitions(
    states: Bits, sets: Bits, where: Codes, first: Codes, items: Codes, following: Codes, starts: Codes, entries: Words
) -> int:
    """Write transitions and their entries; with empty ``items`` only count, into ``first``. Returns how many entries.

    ``where[j, i]`` is the coordinate of item i in offer j, whose items are the bits of ``sets[j]``.
    """
    one = np.uint64(1)
    n_items, writing, count, entry = where.shape[1], items.size > 0, 0, 0
    inside = np.empty(sets.size, dtype=np.int64)
    for s in range(states.size):
        first[s] = count
        n_inside = 0
        for j in range(sets.size):
            # the others are decided by an item that came before
            inside[n_inside] = j
            n_inside += 0 if sets[j] & ~states[s] else 1
        for i in range(n_items):
            if not states[s] >> np.uint64(i) & one:
                continue
            after = np.uint64(0)
            if writing:
                starts[count] = entry
            for k in range(n_inside):
                j = inside[k]
                if sets[j] >> np.uint64(i) & one:
                    if writing:
                        entries[entry] = np.uint32(where[j, i])
                    entry += 1
                else:
                    after |= sets[j]
            if writing:
                items[count] = i
                # a proper subset and a union of offers: it stands before the state
                following[count] = find(states, after)
            count += 1
    first[states.size] = count
    if writing:
        starts[count] = entry
    return entry


@compiled
def turn_round(first: Codes, following: Codes, first_into: Codes, into: Words, origin: Words) -> None:
    """List the transitions into every state, the last ones first, and the state that each of them comes from.

    ``first_into`` must be zero; those of state s become ``into[first_into[s] : first_into[s + 1]]``.
    """
    for t in range(following.size):
        first_into[following[t] + 1] += 1
    for s in range(first_into.size - 1):
        first_into[s + 1] += first_into[s]
    place = first_into[:-1].copy()
    for back in range(first.size - 1):
        s = first.size - 2 - back
        for t in range(first[s + 1] - 1, first[s] - 1, -1):
            e = place[following[t]]
            into[e], origin[e] = np.uint32(t), np.uint32(s)
            place[following[t]] += 1


@released
def transition_costs(duals: Vec, first_entry: Codes, entries: Words, costs: Vec) -> None:
    """What every transition costs."""
    for t in range(costs.size):
        total = 0.0
        for e in range(first_entry[t], first_entry[t + 1]):
            total += duals[entries[e]]
        costs[t] = total


@released
def collect(flow: Vec, first_entry: Codes, entries: Words, out: Vec) -> None:
    """Add every transition's probability to the coordinates that it decides."""
    for t in range(flow.size):
        for e in range(first_entry[t], first_entry[t + 1]):
            out[entries[e]] += flow[t]


@released
def tilts_of(part: Codes, costs: Vec, first: Codes, following: Codes, shifts: Vec, tilts: Vec) -> None:
    """The factor exp(-cost) of every transition, relative to the cheapest way on from its state.

    ``shifts[s]`` is minus the least cost to go from a state. What is left of the factors is at most 1, and 1 on a
    cheapest way, so that products along a ranking neither overflow nor all vanish; the same for all classes, so that
    there is one exp per transition however many classes there are.
    """
    for s in part:
        # in the empty state all is decided
        top = -np.inf if s > 0 else 0.0
        for t in range(first[s], first[s + 1]):
            tilts[t] = shifts[following[t]] - costs[t]
            top = max(top, tilts[t])
        for t in range(first[s], first[s + 1]):
            tilts[t] = np.exp(tilts[t] - top)
        shifts[s] = top


@in_any_order
def mixture_values(
    part: Codes, tilts: Vec, attraction: Vec, totals: Vec, first: Codes, items: Codes, following: Codes, values: Vec
) -> None:
    """E exp(-cost to go) from every state in every Plackett-Luce class, in units of exp(``shifts``).

    ``attraction[i, k]`` is class k's attraction to item i, ``totals[s, k]`` its sum over a state. Classes stand side by
    side, so that the innermost loop takes several at a time.
    """
    n_classes = attraction.shape[1]
    for s in part:
        for k in range(n_classes):
            values[s, k] = 0.0 if s > 0 else 1.0
        for t in range(first[s], first[s + 1]):
            tilt, i, after = tilts[t], items[t], following[t]
            if tilt > 0.0:
                for k in range(n_classes):
                    values[s, k] += tilt * attraction[i, k] * values[after, k]
        if s > 0:
            for k in range(n_classes):
                values[s, k] /= totals[s, k]


@in_any_order
def mixture_flow(
    part: Codes,
    posterior: Vec,
    tilts: Vec,
    attraction: Vec,
    totals: Vec,
    first_into: Codes,
    into: Words,
    origin: Words,
    items: Codes,
    values: Vec,
    reach: Vec,
    flow: Vec,
) -> None:
    """How likely every transition into the states of a part is, given the classes' posterior.

    ``reach[s, k]`` becomes how likely class k comes to state s, over what it expects from there. It is gathered from
    where the transitions begin, in an order of its own, so that threads can share the states without changing a digit.
    """
    last, n_classes = values.shape[0] - 1, posterior.size
    for s in part:
        for k in range(n_classes):
            # all rankings begin at the last state, the union of all offers
            reach[s, k] = posterior[k] if s == last else 0.0
        for e in range(first_into[s], first_into[s + 1]):
            t, before = into[e], origin[e]
            tilt, i, total = tilts[t], items[t], 0.0
            if tilt > 0.0:
                for k in range(n_classes):
                    share = reach[before, k] * tilt * attraction[i, k] * values[s, k]
                    reach[s, k] += share
                    total += share
            flow[t] = total
        if s > 0:
            for k in range(n_classes):
                # a value that vanished belongs to a class whose posterior did, too
                reach[s, k] = reach[s, k] / (totals[s, k] * values[s, k]) if values[s, k] > 0.0 else 0.0


@released
def hitting(states: Bits, arrival: Vec, moves: Vec, first: Codes, items: Codes, hits: Vec) -> None:
    """Where a chain first meets a state's items, from every item outside (and, in the last row, from its start).

    ``hits[n_rows * first[s] + row * size + place]``, with n_rows = n_items + 1. Gauss and Jordan without pivots, which
    is stable here: the matrix is I minus part of a stochastic one.
    """
    n_items = arrival.size
    left, right = np.empty((n_items, n_items)), np.empty((n_items, n_items))
    outside = np.empty(n_items, dtype=np.int64)
    for s in range(states.size):
        size = first[s + 1] - first[s]
        if size == 0:  # in the empty state there is nothing to hit
            continue
        n_out = 0
        for i in range(n_items):
            if not states[s] >> np.uint64(i) & np.uint64(1):
                outside[n_out] = i
                n_out += 1
        for a in range(n_out):
            for b in range(n_out):
                left[a, b] = (1.0 if a == b else 0.0) - moves[outside[a], outside[b]]
            for c in range(size):
                right[a, c] = moves[outside[a], items[first[s] + c]]
        for a in range(n_out):
            # 0 only where the chain never gets out of what has been eliminated: the rest of the row is 0, too
            pivot = 1.0 / max(left[a, a], 1e-300)
            for b in range(n_out):
                left[a, b] *= pivot
            for c in range(size):
                right[a, c] *= pivot
            for r in range(n_out):
                factor = left[r, a]
                if r == a or factor == 0.0:
                    continue
                for b in range(n_out):
                    left[r, b] -= factor * left[a, b]
                for c in range(size):
                    right[r, c] -= factor * right[a, c]
        base = (n_items + 1) * first[s]
        for c in range(size):
            for i in range(n_items):
                hits[base + i * size + c] = 0.0
            # the start counts as a row of its own: a first item inside is hit at once
            total = arrival[items[first[s] + c]]
            for a in range(n_out):
                hits[base + outside[a] * size + c] = right[a, c]
                total += arrival[outside[a]] * right[a, c]
            hits[base + n_items * size + c] = total


@released
def chain_values(
    part: Codes, costs: Vec, hits: Vec, first: Codes, items: Codes, following: Codes, values: Vec, tilts: Vec, sums: Vec
) -> None:
    """The same for a Markov chain, from every state and last item (or the start, the last row)."""
    n_rows = values.shape[1]
    for s in part:
        if s == 0:
            for row in range(n_rows):
                values[0, row] = 0.0
            continue
        size = first[s + 1] - first[s]
        # one factor for all rows of the state: the tilts do not depend on where the chain comes from
        top = -np.inf
        for t in range(first[s], first[s + 1]):
            tilts[t] = values[following[t], items[t]] - costs[t]
            top = max(top, tilts[t])
        for t in range(first[s], first[s + 1]):
            tilts[t] = np.exp(tilts[t] - top)
        for row in range(n_rows):
            total = 0.0
            base = n_rows * first[s] + row * size
            for c in range(size):
                total += hits[base + c] * tilts[first[s] + c]
            sums[s, row] = total
            # a row that can hit nothing is never reached
            values[s, row] = top + np.log(total) if total > 0.0 else -np.inf


@released
def chain_flow(
    part: Codes,
    weight: float,
    hits: Vec,
    first: Codes,
    items: Codes,
    first_into: Codes,
    into: Words,
    tilts: Vec,
    sums: Vec,
    reach: Vec,
    flow: Vec,
) -> None:
    """How likely every transition out of the states of a part is, times the chain's posterior weight."""
    n_rows = reach.shape[1]
    for s in part:
        if s == 0:
            continue
        for row in range(n_rows):
            reach[s, row] = 0.0
        if s == reach.shape[0] - 1:
            reach[s, n_rows - 1] = weight
        for e in range(first_into[s], first_into[s + 1]):
            reach[s, items[into[e]]] += flow[into[e]]
        size = first[s + 1] - first[s]
        for t in range(first[s], first[s + 1]):
            flow[t] = 0.0
        for row in range(n_rows):
            if reach[s, row] == 0.0:
                continue
            factor = reach[s, row] / sums[s, row]
            base = n_rows * first[s] + row * size
            for c in range(size):
                t = first[s] + c
                flow[t] += factor * hits[base + c] * tilts[t]
