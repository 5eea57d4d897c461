"""Compiled loops over parts: a few items, the events that offers make of them, and the dynamic program over their sets.

Within a part, an *event* is an item (-1: no-choice) that is ranked before a set of the part's items, as bits (its own
bit among them). Whoever chooses an item from an offer ranks it before all that the offer has of the part: the share is
at most the probability of that event. A ranking makes some events happen; the dynamic program finds the one whose
events have the largest sum of gains, all >= 0. What happens at most so often is a cut that holds every model.
"""

from typing import NamedTuple

import numpy as np

from rankstream._core.compilation import compiled, released
from rankstream._core.types import Codes, Vec
from rankstream.oracles.bounds.corral_kernels import SHARED_SLOT, Corral, append, linear_term, settle


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


SETS_AT_ONCE = 8  # sets of items that differ in the first three only are worked on together


class Events(NamedTuple):
    """The events of a part of ``n_items``: the item of each, the items that it is ranked before, and its coordinate."""

    n_items: int
    item: Codes
    inside: Codes
    where: Codes


class Tables(NamedTuple):
    """``first[item, set without it]`` is what ranking the item first in the set gains, ``none[set]`` for no-choice.

    ``to_go[set]`` is the most that the items of the set can gain where all others are ranked before them.
    """

    first: Vec
    none: Vec
    to_go: Vec


@compiled
def grow_part(
    chosen: Codes, count: int, indptr: Codes, members: Codes, item_ptr: Codes, item_offers: Codes, mass: Vec, likes: Vec
) -> int:
    """Fill ``chosen``, whose first ``count`` items are given, with those that share most of the offers' mass with them.

    ``likes`` is a factor per item, 0 for one that must not be taken; returns how many there are.
    """
    score = np.zeros(likes.size)
    taken = np.zeros(likes.size)
    for k in range(count):
        taken[chosen[k]] = 1.0
    done = 0
    while True:
        while done < count:
            for at in range(item_ptr[chosen[done]], item_ptr[chosen[done] + 1]):
                offer = item_offers[at]
                for k in range(indptr[offer], indptr[offer + 1]):
                    score[members[k]] += mass[offer]
            done += 1
        if count == chosen.size:
            return count
        best, pick = 0.0, -1
        for item in range(likes.size):
            value = score[item] * likes[item]
            if taken[item] == 0.0 and value > best:
                best, pick = value, item
        if pick < 0:
            return count
        chosen[count] = pick
        taken[pick] = 1.0
        count += 1


@compiled
def collect_events(
    local: Codes, indptr: Codes, members: Codes, point: Vec, faint: float, alone: int, out: Codes
) -> int:
    """Write (item, inside, coordinate) of every event with a share above ``faint`` into ``out``; return how many.

    ``local`` is an item's number in the part, -1 for no-choice, -2 outside. An item that is ranked before nothing but
    itself says something only if no-choice is in all offers: ``alone`` is 1 then.
    """
    count = 0
    for offer in range(indptr.size - 1):
        inside, n_inside = 0, 0
        for k in range(indptr[offer], indptr[offer + 1]):
            if local[members[k]] >= 0:
                inside |= 1 << local[members[k]]
                n_inside += 1
        if n_inside + alone < 2:
            continue
        for k in range(indptr[offer], indptr[offer + 1]):
            if local[members[k]] > -2 and point[k] > faint:
                out[count, 0], out[count, 1], out[count, 2] = local[members[k]], inside, k
                count += 1
    return count


@compiled
def keep_strongest(events: Codes, order: Codes, kept: Codes) -> int:
    """Put the numbers of the events that no other implies into ``kept``; return how many.

    If an item is ranked before some items at least so often, it is ranked before fewer of them as often: the wider
    event says nothing new. ``order`` has the shares falling, and of equal ones the larger sets first.
    """
    count = 0
    for number in order:
        implied = False
        for k in range(count):
            other = kept[k]
            # the same item, and nothing inside that the other has not
            if events[other, 0] == events[number, 0] and events[number, 1] & ~events[other, 1] == 0:
                implied = True
                break
        if not implied:
            kept[count] = number
            count += 1
    return count


@compiled
def most_gain(events: Events, gains: Vec, tables: Tables) -> float:
    """The largest sum of gains that one ranking makes happen; fills the tables, ``SETS_AT_ONCE`` sets at a time."""
    first, none, to_go = tables
    first[:] = 0.0
    none[:] = 0.0
    for k in range(gains.size):
        item = events.item[k]
        if item >= 0:
            first[item, without(events.inside[k], item)] += gains[k]
        else:
            none[events.inside[k]] += gains[k]
    # from "this very set" to "all sets inside the set"
    for item in range(events.n_items):
        add_over_subsets(first[item])
    add_over_subsets(none)
    full = 1 << events.n_items
    # start is a multiple of 8, and the first three items are the lowest bits: for any other item the eight places
    # and the eight sets that remain lie in a row, and the sets were done before
    lanes = min(SETS_AT_ONCE, full)
    best = np.empty(SETS_AT_ONCE)
    for start in range(0, full, lanes):
        for k in range(lanes):
            best[k] = none[start + k]
        for item in range(3, events.n_items):
            if start >> item & 1:
                place, after = without(start, item), start ^ (1 << item)
                now, later = first[item, place : place + SETS_AT_ONCE], to_go[after : after + SETS_AT_ONCE]
                for k in range(SETS_AT_ONCE):
                    best[k] = max(best[k], now[k] + later[k])
        # within the eight, smaller sets first
        for k in range(lanes):
            items = start + k
            for item in range(min(3, events.n_items)):
                if k >> item & 1:
                    best[k] = max(best[k], first[item, without(items, item)] + to_go[items ^ (1 << item)])
            to_go[items] = best[k]
    return float(to_go[full - 1])


@compiled
def read_events(events: Events, gains: Vec, tables: Tables, top: int, happens: Codes) -> None:
    """Read off the tables which events with a gain the best ranking with this item on top makes happen: 1, else 0."""
    first, _, to_go = tables
    happens[:] = 0
    items, pick = (1 << events.n_items) - 1, top
    while True:
        for k in range(gains.size):
            if events.item[k] == pick and not events.inside[k] & ~items and gains[k] > 0.0:
                happens[k] = 1
        if pick < 0:
            return
        items ^= 1 << pick
        pick = -1
        for item in range(events.n_items):
            # exact: most_gain added the same two numbers; where no item is the best way to go on, no-choice is (-1)
            if items >> item & 1 and first[item, without(items, item)] + to_go[items ^ (1 << item)] == to_go[items]:
                pick = item
                break


@compiled
def add_corners(events: Events, gains: Vec, tables: Tables, aim: Vec, above: float, corral: Corral) -> bool:
    """Take in the best ranking for every item on top that gains more than ``above``; False if none is new."""
    first, none, to_go = tables
    full, fresh = (1 << events.n_items) - 1, False
    happens = np.empty(gains.size, dtype=np.int64)
    for top in range(-1, events.n_items):
        gain = none[full] if top < 0 else first[top, without(full, top)] + to_go[full ^ (1 << top)]
        if gain > above:
            read_events(events, gains, tables, top, happens)
            fresh |= add_corner(corral, happens, aim)
    return fresh


@compiled
def add_corner(corral: Corral, happens: Codes, aim: Vec) -> bool:
    """Take in one more corner without weight; False if it depends on the others, or if there is no room for it."""
    if corral.known[0] == corral.weights.size:
        return False
    slot = corral.slots[corral.known[0]]
    row = corral.chosen[slot]
    for k in range(happens.size):
        # an event that does not happen is not one that another corner has chosen, too
        row[k] = k if happens[k] else SHARED_SLOT + 1 + slot
    row[happens.size] = SHARED_SLOT
    return append(corral, linear_term(row, aim, corral.squares))


@released
def separate(
    events: Events,
    aim: Vec,
    corral: Corral,
    point: Vec,
    tables: Tables,
    gains: Vec,
    calls: int,
    share: float,
    shallow: float,
) -> float:
    """Move ``point`` towards the point nearest to ``aim`` of those that rankings can reach or exceed.

    It takes at most ``calls`` dynamic programs, and ends where the deepest cut that it has met cuts off all but this
    ``share`` of the distance, or where no cut can be deeper than ``shallow``. ``gains`` become the deepest cut; its
    depth is returned, 0 if none was met.
    """
    slope = corral.squares[: aim.size] * aim
    most = most_gain(events, slope, tables)
    add_corners(events, slope, tables, aim, 0.5 * most, corral)
    deepest = 0.0
    for _ in range(calls):
        settle(corral, point)
        apart, length, inner = 0.0, 0.0, 0.0
        for k in range(aim.size):
            # where the mixture does more than it must there is nothing to gain
            slope[k] = max(0.0, corral.squares[k] * (aim[k] - point[k]))
            apart += slope[k] * (aim[k] - point[k])
            inner += slope[k] * point[k]
            length += slope[k] * slope[k] / corral.squares[k]
        # the distance bounds the depth of all cuts
        if apart <= shallow**2:
            break
        most = most_gain(events, slope, tables)
        depth = (apart + inner - most) / np.sqrt(length)
        if depth > deepest:
            deepest = depth
            gains[:] = slope
        if depth >= (1.0 - share) * np.sqrt(apart):
            break
        # one dynamic program has many rankings that go on from here; none is new: only rounding is left, or no room
        if not add_corners(events, slope, tables, aim, 0.5 * (inner + most), corral):
            break
    return deepest
