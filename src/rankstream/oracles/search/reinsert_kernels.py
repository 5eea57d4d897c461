"""Compiled loops that take several items out of a ranking and put them back where they cost least together."""

from typing import NamedTuple

import numpy as np

from rankstream._core.compilation import compiled
from rankstream._core.types import Codes, Vec
from rankstream.oracles.search.local_kernels import Offers, below
from rankstream.oracles.tie_kernels import hashed

BLOCK_ITEMS = 3  # sets of items are gone through in blocks of 2**3, so that at least as many items are taken out
NO_LAYER, NO_OFFER = -1, -2


class Workspace(NamedTuple):
    """What a reinsertion writes to, made once for many.

    The items that are taken out are numbered 0, 1, ... by ``bit`` (-1: not taken out), and sets of them are bits. A
    layer is a place before which they may be put: ``head`` has the first offer of its list, of those whose best other
    item is there and that have two or more of the items, and ``following`` the next one; ``masks`` are those items and
    ``others`` the coordinate of the best other item (-1: none). What an item costs by itself is in ``alone``, layer by
    layer, what it costs after a set of the others in ``together``, as far as the layers go.
    """

    bit: Codes
    head: Codes
    following: Codes
    masks: Codes
    others: Codes
    slots: Codes
    order: Codes
    alone: Vec
    sums: Vec
    together: Vec
    value: Vec
    layers: Vec


@compiled
def make_space(n_items: int, n_offers: int, size: int) -> Workspace:
    """Workspace for taking out ``size`` items."""
    listed = np.empty((3, n_offers), dtype=np.int64)
    return Workspace(
        np.full(n_items, -1, dtype=np.int64),
        np.empty(n_items + 1, dtype=np.int64),
        listed[0],
        listed[1],
        listed[2],
        np.empty((size, 2), dtype=np.int64),
        np.empty(n_items, dtype=np.int64),
        np.empty((n_items + 1, size)),
        np.empty(size),
        np.empty((size, 1 << size)),
        np.empty(1 << size),
        np.empty((n_items + 1, 1 << size)),
    )


@compiled
def keep_order(pairs: Codes, position: Codes, removed: Codes, space: Workspace) -> None:
    """Forbid what the order does: slots before or after other items, and sets without what must come before an item."""
    n_items, n_sets = position.size, 1 << removed.size
    space.together[:, :] = 0.0
    space.slots[:, 0], space.slots[:, 1] = 0, n_items
    for pair in range(pairs.shape[0]):
        place, other = position[pairs[pair, 0]], position[pairs[pair, 1]]
        one, two = space.bit[pairs[pair, 0]], space.bit[pairs[pair, 1]]
        if one >= 0 and two >= 0:
            for placed in range(n_sets):
                if placed >> one & 1 == 0:
                    space.together[two, placed] = np.inf
        elif one >= 0:
            space.slots[one, 1] = min(space.slots[one, 1], other)
            # the last slot that is left must be a layer of its own: what comes after it is too late
            space.head[other] = NO_OFFER
        elif two >= 0:
            space.slots[two, 0] = max(space.slots[two, 0], place + 1)


@compiled
def list_offers(costs: Vec, offers: Offers, position: Codes, removed: Codes, space: Workspace) -> float:
    """List the offers with the items that are taken out, layer by layer; return what the items cost where they are.

    That is what they cost more than the best other items of their offers, which win where none of them comes before.
    """
    n_items, now = position.size, 0.0
    space.alone[:, :] = 0.0
    for number in range(removed.size):
        for where in range(offers.item_ptr[removed[number]], offers.item_ptr[removed[number] + 1]):
            own = offers.item_coordinates[where]
            offer = offers.owner[own]
            mask, other, top, winner, first = 0, -1, n_items, own, position[removed[number]]
            for k in range(offers.indptr[offer], offers.indptr[offer + 1]):
                place, bit = position[offers.members[k]], space.bit[offers.members[k]]
                if bit >= 0:
                    mask |= 1 << bit
                    if place < first:
                        winner, first = k, place
                elif place < top:
                    other, top = k, place
            # an offer with several of the items is met at each of them, and listed at the one of the lowest number
            if mask & ((1 << number) - 1) or (other < 0 and mask == 1 << number):
                continue
            if first < top:
                now += costs[winner] - (costs[other] if other >= 0 else 0.0)
            if space.head[top] == NO_LAYER:
                space.head[top] = NO_OFFER
            if mask == 1 << number:
                space.alone[top, number] += costs[own] - costs[other]
            else:
                space.masks[offer], space.others[offer] = mask, other
                space.following[offer], space.head[top] = space.head[top], offer
    return now


@compiled
def add_offers(costs: Vec, offers: Offers, space: Workspace, place: int) -> None:
    """Add the listed offers of a layer: from there on, the first of their items that is put in wins them."""
    full, offer = space.value.size - 1, space.head[place]
    while offer >= 0:
        rest, other = full & ~space.masks[offer], space.others[offer]
        for k in range(offers.indptr[offer], offers.indptr[offer + 1]):
            bit = space.bit[offers.members[k]]
            if bit >= 0:
                more = costs[k] - (costs[other] if other >= 0 else 0.0)
                # all subsets of the rest, from itself down to the empty one
                placed = rest
                while placed > 0:
                    space.together[bit, placed] += more
                    placed = (placed - 1) & rest
                space.together[bit, 0] += more
        offer = space.following[offer]


@compiled
def lesser(one: float, other: float) -> float:
    """The lesser of two numbers: a single instruction, unlike ``min``, which looks for NaN."""
    return one if one < other else other


@compiled
def run_layer(sums: Vec, together: Vec, value: Vec) -> None:
    """Make value[U] what the items outside of U cost from this layer on, given what they cost from the next one on.

    Eight sets at a time, which differ in the items 0, 1 and 2: adding another item leads to eight more that follow each
    other, and these sums have no branch.
    """
    t0, t1, t2, s0, s1, s2 = together[0], together[1], together[2], sums[0], sums[1], sums[2]
    for u in range(value.size - 8, -1, -8):
        a, b, c, d = value[u], value[u + 1], value[u + 2], value[u + 3]
        e, f, g, h = value[u + 4], value[u + 5], value[u + 6], value[u + 7]
        for bit in range(BLOCK_ITEMS, sums.size):
            if u >> bit & 1 == 0:
                w, s, t = u | 1 << bit, sums[bit], together[bit]
                a = lesser(a, t[u] + s + value[w])
                b = lesser(b, t[u + 1] + s + value[w + 1])
                c = lesser(c, t[u + 2] + s + value[w + 2])
                d = lesser(d, t[u + 3] + s + value[w + 3])
                e = lesser(e, t[u + 4] + s + value[w + 4])
                f = lesser(f, t[u + 5] + s + value[w + 5])
                g = lesser(g, t[u + 6] + s + value[w + 6])
                h = lesser(h, t[u + 7] + s + value[w + 7])
        # within the eight, from all three items (h) to none of them (a)
        g = lesser(g, t0[u + 6] + s0 + h)
        f = lesser(f, t1[u + 5] + s1 + h)
        d = lesser(d, t2[u + 3] + s2 + h)
        e = lesser(e, lesser(t0[u + 4] + s0 + f, t1[u + 4] + s1 + g))
        c = lesser(c, lesser(t0[u + 2] + s0 + d, t2[u + 2] + s2 + g))
        b = lesser(b, lesser(t1[u + 1] + s1 + d, t2[u + 1] + s2 + f))
        a = lesser(a, lesser(t0[u] + s0 + b, lesser(t1[u] + s1 + c, t2[u] + s2 + e)))
        value[u], value[u + 1], value[u + 2], value[u + 3] = a, b, c, d
        value[u + 4], value[u + 5], value[u + 6], value[u + 7] = e, f, g, h


@compiled
def best_item(costs: Vec, offers: Offers, space: Workspace, place: int, placed: int) -> int:
    """The item to be put in next at a layer, after the set ``placed``; what each costs there is summed up anew."""
    # its program has gone on since: together has the offers of earlier layers, too
    sums = space.sums
    for bit in range(sums.size):
        free = placed >> bit & 1 == 0 and space.slots[bit, 0] <= place <= space.slots[bit, 1]
        sums[bit] = space.alone[place, bit] if free and space.together[bit, placed] < np.inf else np.inf
    for layer in range(place, space.head.size):
        offer = space.head[layer]
        while offer >= 0:
            if space.masks[offer] & placed == 0:
                other = space.others[offer]
                for k in range(offers.indptr[offer], offers.indptr[offer + 1]):
                    bit = space.bit[offers.members[k]]
                    if bit >= 0:
                        sums[bit] += costs[k] - (costs[other] if other >= 0 else 0.0)
            offer = space.following[offer]
    best, least = -1, np.inf
    for bit in range(sums.size):
        if sums[bit] < np.inf and sums[bit] + space.layers[place, placed | 1 << bit] < least:
            best, least = bit, sums[bit] + space.layers[place, placed | 1 << bit]
    return best


@compiled
def read_order(costs: Vec, offers: Offers, order: Codes, removed: Codes, space: Workspace) -> None:
    """Put the items in where the layers say; of equally good places, the last."""
    n_items, full, placed, at = order.size, space.value.size - 1, 0, 0
    for place in range(n_items + 1):
        if space.head[place] != NO_LAYER:
            later = place + 1
            while later <= n_items and space.head[later] == NO_LAYER:
                later += 1
            # as long as waiting for the next layer costs more
            while placed < full and (later > n_items or space.layers[place, placed] < space.layers[later, placed]):
                bit = best_item(costs, offers, space, place, placed)
                space.order[at] = removed[bit]
                placed, at = placed | 1 << bit, at + 1
        if place < n_items and space.bit[order[place]] < 0:
            space.order[at] = order[place]
            at += 1


@compiled
def reinsert(costs: Vec, offers: Offers, order: Codes, position: Codes, removed: Codes, space: Workspace) -> float:
    """Take these items out, at least three, and put all of them back where they cost least; return what is saved.

    A dynamic program over the set of items that are back and the place among the others, from the end to the front:
    time O(2**size * size) for each place where an offer has its best other item, and for the offers with several of the
    items. The others keep their order, and the order of items, if there is one, is respected.
    """
    n_items, size = order.size, removed.size
    for number in range(size):
        space.bit[removed[number]] = number
    space.head[:] = NO_LAYER
    space.head[n_items] = NO_OFFER
    keep_order(offers.pairs, position, removed, space)
    now = list_offers(costs, offers, position, removed, space)
    # after the end, all items must be back
    space.value[:] = np.inf
    space.value[space.value.size - 1] = 0.0
    later = n_items
    for place in range(n_items, -1, -1):
        if space.head[place] != NO_LAYER:
            add_offers(costs, offers, space, place)
            for bit in range(size):
                if place < n_items:
                    space.alone[place, bit] += space.alone[later, bit]
                free = space.slots[bit, 0] <= place <= space.slots[bit, 1]
                space.sums[bit] = space.alone[place, bit] if free else np.inf
            run_layer(space.sums, space.together, space.value)
            space.layers[place] = space.value
            later = place
    read_order(costs, offers, order, removed, space)
    for number in range(size):
        space.bit[removed[number]] = -1
    for place in range(n_items):
        order[place] = space.order[place]
        position[order[place]] = place
    return float(now - space.value[0])


@compiled
def pick_neighbours(order: Codes, state: np.uint64, removed: Codes) -> np.uint64:
    """Draw items that stand near each other: from twice as many places in a row, the end being followed by the top."""
    n_items, size = order.size, removed.size
    state = hashed(state, np.uint64(n_items))
    start, width = below(state, n_items), min(2 * size, n_items)
    left = size
    # each place in turn, with the probability that it takes to draw as many as are wanted from those that are left
    for k in range(width):
        state = hashed(state, np.uint64(k))
        if below(state, width - k) < left:
            left -= 1
            removed[left] = order[(start + k) % n_items]
    return state


@compiled
def reinsert_neighbours(costs: Vec, offers: Offers, ranking: Codes, size: int, seed: np.uint64, moves: int) -> float:
    """Take ``size`` neighbours out and put them back where they cost least, ``moves`` times; return what is saved."""
    n_items, saved = ranking.size, 0.0
    size = min(size, n_items)
    if size < BLOCK_ITEMS:
        return saved
    position, removed = np.empty(n_items, dtype=np.int64), np.empty(size, dtype=np.int64)
    space = make_space(n_items, offers.indptr.size - 1, size)
    for place in range(n_items):
        position[ranking[place]] = place
    state = hashed(seed, np.uint64(size))
    for _ in range(moves):
        state = pick_neighbours(ranking, state, removed)
        saved += reinsert(costs, offers, ranking, position, removed, space)
    return saved
