"""Compiled loops of the branch and bound over wish lists: a bound by prices, what it says of each item, smaller lists.

Every list gets a copy of the offer of its own, and a price per item for being in its copy; what a list would do at its
prices is known in one pass, what the offer should be at the summed prices is a sort. For any prices the sum of both is
at least what any offer earns (Lagrangian decomposition); good prices make the copies agree. A list's best answer has a
first item; those before it are out, those after it are in where their price is negative.
"""

from typing import NamedTuple

import numpy as np

from rankstream._core.compilation import compiled
from rankstream._core.types import Bytes, Codes, Vec
from rankstream.decide.engines.list_kernels import WishLists

MOMENTUM, MAX_STEPS_WITHOUT_GAIN, PACE_FACTOR = 0.8, 6, 0.6
"""How much of a step is the one before; after how many steps without gain the pace falls, and to which part."""


class OfferLimits(NamedTuple):
    """What each item costs in an offer and fills of it, how many there may be, and how much capacity there is."""

    cost: Vec
    space: Vec
    slots: int
    capacity: float


@compiled
def offer_at(total: Vec, limits: OfferLimits, offer: Vec) -> tuple[float, float, float]:
    """The most that an offer is paid at these prices less listing costs, and the least net price that got in.

    The smaller of two relaxations: a number of slots, or a capacity that may cut the last item. Third: the net price of
    the first item that did not get in (0 if it would not pay), which is what replaces one that is taken out.
    """
    cost, space, slots, capacity = limits
    n = total.size
    net = total - cost
    order = np.argsort(-net)
    offer[:] = 0.0
    sum_slots, last, following = 0.0, 0.0, 0.0
    for k in range(n):
        i = order[k]
        if net[i] <= 0.0:
            break
        if k >= slots:
            following = net[i]
            break
        offer[i] = 1.0
        sum_slots += net[i]
        last = net[i] if k == slots - 1 else 0.0
    if capacity == np.inf:
        return sum_slots, last, following
    by_density = np.argsort(-net / np.maximum(space, 1e-12))
    left, sum_room = capacity, 0.0
    part = np.zeros(n)
    for k in range(n):
        i = by_density[k]
        if net[i] <= 0.0 or left <= 0.0:
            break
        share = 1.0 if space[i] <= left else left / space[i]
        part[i] = share
        sum_room += share * net[i]
        left -= share * space[i]
    if sum_room < sum_slots:
        offer[:] = part
        # what taking an item out or in changes is then not known: nothing is claimed
        return sum_room, 0.0, np.inf
    return sum_slots, last, following


@compiled
def descend(
    lists: WishLists, limits: OfferLimits, target: float, steps: int, pace: float, price: Vec, best_price: Vec,
    best_offer: Vec,
) -> float:  # fmt: skip
    """Lower the bound by subgradient steps of Polyak's length, from ``price``; the best prices into ``best_price``.

    A step goes on in part where the one before went, which keeps prices from swinging to and fro, and moves the prices
    of a list in proportion to its weight: what they are about is. Ends early once the bound is down to ``target`` or
    all copies agree. Returns the bound.

    Two passes over the lists make a step, not four: the first moves the prices by the step that the second of the
    round before has measured, and notes only where each list's answer begins; the second reads from that what is in
    each copy.
    """
    start, item, weight, end, margin = lists
    n, size = margin.size, item.size
    total, offer = np.zeros(n), np.zeros(n)
    first = np.zeros(weight.size, dtype=np.int64)
    way = np.zeros(size)
    best, stuck, length = np.inf, 0, 0.0
    best_price[:] = price
    for _ in range(steps):
        bound = 0.0
        total[:] = 0.0
        for r in range(weight.size):
            low, high, share = start[r], start[r + 1], weight[r]
            top, begin, tail, far = share * end[r], high, 0.0, length * share
            for p in range(high - 1, low - 1, -1):
                i = item[p]
                here = price[p] + far * way[p]
                price[p] = here
                worth = share * margin[i] - here + tail
                if worth > top:
                    top, begin = worth, p
                tail -= min(here, 0.0)
                total[i] += here
            first[r] = begin
            bound += top
        bound += offer_at(total, limits, offer)[0]
        if bound < best:
            little = best < np.inf and bound > best - 1e-4 * (best - target)
            stuck = stuck + 1 if little else 0
            best = bound
            best_price[:] = price
            best_offer[:] = offer
        else:
            stuck += 1
        if best <= target:
            break
        if stuck >= MAX_STEPS_WITHOUT_GAIN:
            pace *= PACE_FACTOR
            stuck, length = 0, 0.0
            price[:] = best_price
            way[:] = 0.0
            continue
        norm = 0.0
        for r in range(weight.size):
            begin, part = first[r], 0.0
            # before the answer's first item nothing is in the copy, after it what has a negative price: three loops
            # without a branch take two thirds of the time of one with branches
            for p in range(start[r], begin):
                go = MOMENTUM * way[p] - offer[item[p]]
                way[p] = go
                part += go * go
            if begin < start[r + 1]:
                go = MOMENTUM * way[begin] + 1.0 - offer[item[begin]]
                way[begin] = go
                part += go * go
            for p in range(begin + 1, start[r + 1]):
                inside = 1.0 if price[p] < 0.0 else 0.0
                go = MOMENTUM * way[p] + inside - offer[item[p]]
                way[p] = go
                part += go * go
            norm += weight[r] * part
        if norm == 0.0:
            break
        length = pace * (bound - target) / norm
    return best


@compiled
def penalties(lists: WishLists, limits: OfferLimits, price: Vec, into: Vec, out: Vec) -> float:
    """The bound at these prices, and for each item the bound if it must be in the offer, and if it must not.

    Must item q not be there, a list keeps its best answers after q and loses q's negative price in those before; must
    it be there, nothing after q can be first, and those before pay a positive price of q.
    """
    start, item, weight, end, margin = lists
    n, bound = margin.size, 0.0
    total, offer = np.zeros(n), np.zeros(n)
    into[:], out[:] = 0.0, 0.0
    # first what changes for every list: after[k] is its best answer among those whose first item stands at k or later
    after = np.zeros(n + 1)
    for r in range(weight.size):
        low, high = start[r], start[r + 1]
        after[high - low] = weight[r] * end[r]
        tail = 0.0
        for p in range(high - 1, low - 1, -1):
            worth = weight[r] * margin[item[p]] - price[p] + tail
            after[p - low] = max(after[p - low + 1], worth)
            if price[p] < 0.0:
                tail -= price[p]
            total[item[p]] += price[p]
        # going forward, before is the best answer that begins earlier, and tail what the items behind p pay
        best, before = after[0], -np.inf
        bound += best
        for p in range(low, high):
            i, here = item[p], price[p]
            worth = weight[r] * margin[i] - here + tail
            if here < 0.0:
                tail += here
                worth += here
            out[i] += max(before + min(here, 0.0), after[p - low + 1]) - best
            into[i] += max(before - max(here, 0.0), worth) - best
            before = max(before, worth)
    # then what changes for the one offer: an item that is forced out is replaced by the next in line, one that is
    # forced in replaces the last
    paid, last, following = offer_at(total, limits, offer)
    bound += paid
    for i in range(n):
        net = total[i] - limits.cost[i]
        into[i] += bound
        out[i] += bound
        if following < np.inf:
            if offer[i] > 0.0:
                out[i] += following - net
            else:
                into[i] += net - last
    return bound


@compiled
def shrink(
    lists: WishLists, price: Vec, state: Bytes, place: Codes, new: WishLists, new_price: Vec
) -> tuple[int, float]:
    """The lists once some items are decided: those out vanish, those in end a list. Returns how many lists are left.

    ``place[i]`` is the new number of an item that stays undecided. Lists that nothing can change any more are summed up
    in the second number.
    """
    start, item, weight, end, margin = lists
    rows, at, done = 0, 0, 0.0
    for r in range(weight.size):
        # an item that is in ends the list with its own margin; whatever comes after it is never reached
        gain, begin = end[r], at
        for p in range(start[r], start[r + 1]):
            i = item[p]
            if state[i] == 0:
                new.item[at] = place[i]
                new_price[at] = price[p]
                at += 1
            elif state[i] > 0:
                gain = margin[i]
                break
        if at == begin:
            done += weight[r] * gain
            continue
        new.start[rows], new.weight[rows], new.end[rows] = begin, weight[r], gain
        rows += 1
    new.start[rows] = at
    return rows, done
