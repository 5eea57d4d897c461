"""Compiled loops over parts, sets of items with all that offers contain of them: dynamic program and projection."""

from typing import NamedTuple

import numpy as np

from rankstream._core.compiling import compiled
from rankstream._core.types import Codes, Vec, Words
from rankstream.oracles.bounds.corral_kernels import (
    SHARED,
    append,
    linear_term,
    mixture,
    refactor,
    retarget,
    settle,
)

LANES = 8  # sets of items that differ in the first three only are worked on together


class Part(NamedTuple):
    """Offers cut down to some items: a *slot* is an offer, a *seat* one of its items that belong to the part.

    ``inside`` are the part's items in each slot, as bits, and ``whole`` is 1 where the offer has no others. ``item`` is
    the seat's item, -1 for no-choice, whose seats are ``none`` (-1: there is none); ``where`` is the seat's coordinate.
    """

    n_items: int
    inside: Codes
    whole: Codes
    seat_ptr: Codes
    none: Codes
    item: Codes
    where: Codes


class Corral(NamedTuple):
    """The corners that make up the last projection on a part, as ``corral_kernels`` keeps them.

    ``known`` is how many there are; ``chosen`` has a column for every slot of the part and one that all share.
    """

    known: Codes
    slots: Codes
    chosen: Words
    weights: Vec
    factor: Vec
    sides: Vec
    squares: Vec


@compiled
def without(items: int, item: int) -> int:
    """The place of a set among the sets without an item."""
    # bits below the item stay, those above it come down by one: half as many different sets are left
    return (items & ((1 << item) - 1)) | (items >> (item + 1) << item)


@compiled
def add_over_subsets(sums: Vec) -> None:
    """Replace the number of every set by the sum of those of its subsets."""
    step = 1
    while step < sums.size:
        for start in range(0, sums.size, 2 * step):
            # sets without the bit of this step, and the same sets with it
            low, high = sums[start : start + step], sums[start + step : start + 2 * step]
            for k in range(step):
                high[k] += low[k]
        step *= 2


@compiled
def place_costs(part: Part, costs: Vec, sums: Vec) -> float:
    """Make sums[item, set without it] the cost of ranking the item first in that set; return what no-choice costs.

    An offer with other items may have one of them first whatever the ranking is: it costs at most nothing.
    """
    base = 0.0
    sums[:] = 0.0
    for slot in range(part.inside.size):
        least = 0.0
        if part.none[slot] >= 0:
            least = costs[part.none[slot]] if part.whole[slot] else min(0.0, costs[part.none[slot]])
            base += least
        for seat in range(part.seat_ptr[slot], part.seat_ptr[slot + 1]):
            item = part.item[seat]
            if item >= 0:
                cost = costs[seat] if part.whole[slot] else min(0.0, costs[seat])
                sums[item, without(part.inside[slot], item)] += cost - least
    # from "this very offer" to "all offers inside the set"
    for item in range(part.n_items):
        add_over_subsets(sums[item])
    return base


@compiled
def solve_part(part: Part, costs: Vec, sums: Vec, to_go: Vec) -> float:
    """The dynamic program over all sets of the part's items: fill both tables, return the least cost.

    ``to_go`` counts from the cost of no-choice. It is worked off ``LANES`` sets at a time, which the processor does at
    once.
    """
    base = place_costs(part, costs, sums)
    top = 0.0 if part.none.size and part.none[0] >= 0 else np.inf
    full = 1 << part.n_items
    # start is a multiple of 8, and the first three items are the lowest bits: for any other item the eight places
    # and the eight sets that remain lie in a row, and the sets were done before
    lanes = min(LANES, full)
    best = np.empty(LANES)
    for start in range(0, full, lanes):
        best[:] = top
        for item in range(3, part.n_items):
            if start >> item & 1:
                place, after = without(start, item), start ^ (1 << item)
                costs_now, costs_after = sums[item, place : place + LANES], to_go[after : after + LANES]
                for k in range(LANES):
                    best[k] = min(best[k], costs_now[k] + costs_after[k])
        # within the eight, smaller sets first
        for k in range(lanes):
            items = start + k
            for item in range(min(3, part.n_items)):
                if k >> item & 1:
                    best[k] = min(best[k], sums[item, without(items, item)] + to_go[items ^ (1 << item)])
            to_go[items] = best[k] if items else 0.0
    return float(base + to_go[full - 1])


@compiled
def choose_part(part: Part, costs: Vec, sums: Vec, to_go: Vec, chosen: Codes) -> None:
    """Read the seats that a cheapest ranking chooses off the tables, one per slot, -1 for an item outside the part."""
    for slot in range(part.inside.size):
        seat = part.none[slot]
        # an item outside comes first, free of charge, where no-choice would cost something
        chosen[slot] = seat if seat < 0 or part.whole[slot] or costs[seat] <= 0.0 else -1
    items = (1 << part.n_items) - 1
    while items:
        first = -1
        for item in range(part.n_items):
            if items >> item & 1:
                after = to_go[items ^ (1 << item)]
                if first < 0 and sums[item, without(items, item)] + after == to_go[items]:
                    first = item
        # no item is the cheapest way to go on: no-choice comes next
        if first < 0:
            return
        for slot in range(part.inside.size):
            if part.inside[slot] >> first & 1 and not part.inside[slot] & ~items:
                for seat in range(part.seat_ptr[slot], part.seat_ptr[slot + 1]):
                    if part.item[seat] == first:
                        chosen[slot] = seat if part.whole[slot] or costs[seat] <= 0.0 else -1
        items ^= 1 << first


@compiled
def add_corner(corral: Corral, fresh: Codes, aim: Vec) -> bool:
    """Take in one more corner without weight; False if it depends on the others, or if there is no room for it."""
    count, slots, chosen = corral.known[0], corral.slots, corral.chosen
    if count == corral.weights.size:
        return False
    row = chosen[slots[count]]
    for slot in range(fresh.size):
        # an item outside the part is not one that another corner has chosen, too
        row[slot] = fresh[slot] if fresh[slot] >= 0 else SHARED + 1 + slots[count]
    row[fresh.size] = SHARED
    linear = linear_term(row, aim, corral.squares)
    if not append(count, slots, chosen, linear, corral.squares, corral.factor, corral.sides):
        return False
    corral.weights[count] = 0.0 if count else 1.0
    corral.known[0] = count + 1
    return True


@compiled
def balance_corners(corral: Corral, point: Vec) -> None:
    """Give the corners the weights of the point nearest to what they aim at; those that it does not need are gone."""
    count, slots, weights = corral.known[0], corral.slots, corral.weights
    corral.known[0] = settle(count, slots, weights, corral.factor, corral.sides)
    mixture(corral.known[0], slots, corral.chosen, weights, point)


@compiled
def project_part(
    part: Part, aim: Vec, corral: Corral, point: Vec, sums: Vec, to_go: Vec, calls: int, room: float
) -> None:
    """Move ``point`` to the point of the part's polytope nearest to ``aim``, by at most ``calls`` dynamic programs."""
    fresh = np.empty(part.inside.size, dtype=np.int64)
    _, slots, chosen, weights, factor, sides, squares = corral
    retarget(corral.known[0], aim, squares, slots, chosen, factor, sides)
    balance_corners(corral, point)
    for _ in range(calls):
        slope = point - aim
        gap = (slope * point).sum() - solve_part(part, slope, sums, to_go)
        if gap <= room:
            return
        choose_part(part, slope, sums, to_go, fresh)
        # dependent, so that only rounding is left, or no room: the next call starts from a clean factor
        if not add_corner(corral, fresh, aim):
            corral.known[0] = refactor(corral.known[0], aim, squares, slots, chosen, weights, factor, sides)
            return
        balance_corners(corral, point)
