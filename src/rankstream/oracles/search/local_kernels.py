"""Compiled loops of the iterated local search: costs of rankings, moves of one item, descents and new starts."""

from typing import NamedTuple

import numpy as np

from rankstream._core.compilation import compiled
from rankstream._core.types import Codes, Vec
from rankstream.data.order import NO_PAIRS
from rankstream.oracles.tie_kernels import FIRST, LAST, hashed

MAX_STALE_ROUNDS = 25  # rounds without progress before a new start


class Offers(NamedTuple):
    """The coordinates offer by offer, for every item the list of its own ones, and the pairs of the order, if any."""

    indptr: Codes
    members: Codes
    owner: Codes
    item_ptr: Codes
    item_coordinates: Codes
    pairs: Codes = NO_PAIRS


@compiled
def below(state: np.uint64, number: int) -> int:
    """A number from 0 to ``number`` - 1, read off a hash."""
    # 53 bits of the hash are left: the numbers are uniform up to number / 2**53
    return int(np.int64((state >> np.uint64(11)) % np.uint64(number)))


@compiled
def cost_of(costs: Vec, offers: Offers, position: Codes) -> float:
    """What a ranking costs, given the position of every item."""
    total = 0.0
    for offer in range(offers.indptr.size - 1):
        best = offers.indptr[offer]
        for k in range(best + 1, offers.indptr[offer + 1]):
            if position[offers.members[k]] < position[offers.members[best]]:
                best = k
        total += costs[best]
    return total


@compiled
def move(order: Codes, position: Codes, item: int, slot: int) -> None:
    """Take the item out and put it in again before what is now at position ``slot`` (n for the end)."""
    place = position[item]
    # once the item is out, what came after it stands one place further up
    if slot > place:
        slot -= 1
    step = 1 if slot > place else -1
    while place != slot:
        order[place] = order[place + step]
        position[order[place]] = place
        place += step
    order[slot] = item
    position[item] = slot


@compiled
def weigh_slots(costs: Vec, offers: Offers, position: Codes, item: int, change: Vec) -> None:
    """Make change[p] what the offers whose best other item is at position p gain when the item comes before it."""
    change[:] = 0.0
    for where in range(offers.item_ptr[item], offers.item_ptr[item + 1]):
        own = offers.item_coordinates[where]
        offer = offers.owner[own]
        # an offer without another item is won wherever the item stands: it changes nothing
        best, top = -1, position.size
        for k in range(offers.indptr[offer], offers.indptr[offer + 1]):
            if k != own and position[offers.members[k]] < top:
                best, top = k, position[offers.members[k]]
        if best >= 0:
            change[top] += costs[own] - costs[best]


@compiled
def free_slots(pairs: Codes, position: Codes, item: int) -> tuple[int, int]:
    """The first and the last slot of an item that the order leaves it, where the other items are."""
    first, last = 0, position.size
    for pair in range(pairs.shape[0]):
        if pairs[pair, 1] == item:
            first = max(first, position[pairs[pair, 0]] + 1)
        if pairs[pair, 0] == item:
            last = min(last, position[pairs[pair, 1]])
    return first, last


@compiled
def insert_best(
    costs: Vec,
    offers: Offers,
    order: Codes,
    position: Codes,
    item: int,
    ties: int,
    state: np.uint64,
    slack: float,
    change: Vec,
) -> float:
    """Move the item to its best position of all, in time O(sum of |A_j| over its offers + n); return what is saved.

    Positions within ``slack`` of the best count as equally good, and the tie rule picks one of them. Only
    those between the items that must come before and after it count.
    """
    n_items = order.size
    weigh_slots(costs, offers, position, item, change)
    top, bottom = free_slots(offers.pairs, position, item)
    # run is what the item costs right before a place, less what it costs at the end, where run and best start
    run, best, now = 0.0, 0.0 if bottom == n_items else np.inf, 0.0
    for place in range(n_items - 1, -1, -1):
        run += change[place]
        if top <= place <= bottom:
            best = min(best, run)
        # no other item is at its own place, so that change is 0 there and run is what it costs now
        if place == position[item]:
            now = run
    run, slot, n_tied = 0.0, -1, 0
    for place in range(n_items, -1, -1):
        if place < n_items:
            run += change[place]
        if top <= place <= bottom and run <= best + slack:
            n_tied += 1
            # from the end to the front: the first rule takes the last place met, the last rule the first one
            if ties == FIRST or slot < 0:
                slot = place
            elif ties != LAST:
                state = hashed(state, np.uint64(place))
                # the n-th of equals replaces those before with probability 1 / n: each of them is kept alike
                if below(state, n_tied) == 0:
                    slot = place
    move(order, position, item, slot)
    return now - best


@compiled
def descend(
    costs: Vec, offers: Offers, order: Codes, position: Codes, ties: int, state: np.uint64, slack: float, change: Vec
) -> None:
    """Insert items at their best positions, in an order drawn anew for each pass, until nothing is saved.

    An item is looked at again only when one that it is offered with has moved to advantage.
    """
    n_items = order.size
    queue = np.arange(n_items)
    due = np.ones(n_items, dtype=np.bool_)
    saved = True
    while saved:
        saved = False
        for k in range(n_items):
            # Fisher and Yates, as far as the pass has come
            state = hashed(state, np.uint64(k))
            other = k + below(state, n_items - k)
            item = queue[other]
            queue[k], queue[other] = item, queue[k]
            if due[item]:
                due[item] = False
                # more than rounding, so that this comes to an end
                if insert_best(costs, offers, order, position, item, ties, state, slack, change) > slack:
                    saved = True
                    for where in range(offers.item_ptr[item], offers.item_ptr[item + 1]):
                        offer = offers.owner[offers.item_coordinates[where]]
                        for m in range(offers.indptr[offer], offers.indptr[offer + 1]):
                            due[offers.members[m]] = True
                    # its own place is the best one until another moves
                    due[item] = False


@compiled
def wobble(costs: Vec, offers: Offers, universal: int, scale: float, state: np.uint64, out: Vec) -> np.uint64:
    """Costs with noise, and more for the no-choice item: without that, ending a ranking at once is a trap.

    One at a time, hardly any item is worth ranking above no-choice; many together are.
    """
    state = hashed(state, np.uint64(1))
    # one draw for all offers: an item is ranked above no-choice in all of them at once, or in none
    extra = 2.0 * scale * below(state, 1024) / 1024.0
    for k in range(costs.size):
        state = hashed(state, np.uint64(k))
        out[k] = costs[k] + 1.6 * scale * (below(state, 1024) / 512.0 - 1.0)
        if offers.members[k] == universal:
            out[k] += extra
    return state


@compiled
def shuffle(order: Codes, position: Codes, state: np.uint64) -> np.uint64:
    """A random ranking."""
    for place in range(order.size):
        state = hashed(state, np.uint64(place))
        other = place + below(state, order.size - place)
        order[place], order[other] = order[other], order[place]
    for place in range(order.size):
        position[order[place]] = place
    return state


@compiled
def put_in_order(pairs: Codes, order: Codes, position: Codes) -> None:
    """Exchange two items that the order has the other way round, until there are none.

    Every exchange brings the ranking nearer to one that respects the order, so that it comes to an end.
    """
    wrong = True
    while wrong:
        wrong = False
        for pair in range(pairs.shape[0]):
            one, other = pairs[pair]
            if position[one] > position[other]:
                position[one], position[other] = position[other], position[one]
                order[position[one]], order[position[other]] = one, other
                wrong = True


@compiled
def search(
    costs: Vec,
    offers: Offers,
    universal: int,
    best: Codes,
    current: Codes,
    held: float,
    stale: int,
    ties: int,
    seed: np.uint64,
    rounds: int,
    noise: float,
    enough: float,
) -> tuple[float, int]:
    """Iterated local search: descend on noisy costs, then on the true ones, and keep what is no worse.

    After ``MAX_STALE_ROUNDS`` rounds without progress it starts again from a random ranking. ``current``, which costs
    ``held`` (infinite: descend from it first), and ``best``, the best ranking seen, are improved in place. It ends
    before its rounds once one costs less than ``enough``. Returns ``held`` and the number of rounds without progress,
    ``stale``, for the next call. ``noise`` is how noisy, 1 being right for a search from nowhere.
    """
    n_items = best.size
    position, order = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    change, noisy = np.empty(n_items + 1), np.empty(costs.size)
    scale = np.abs(costs).sum() / costs.size
    # what rounding can make of a sum over all coordinates
    slack = 1e-13 * scale * costs.size
    for place in range(n_items):
        position[best[place]] = place
    least = cost_of(costs, offers, position)
    state = hashed(seed, np.uint64(n_items))
    for turn in range(rounds):
        for place in range(n_items):
            order[place] = current[place]
            position[order[place]] = place
        if stale >= MAX_STALE_ROUNDS:
            state = shuffle(order, position, state)
            put_in_order(offers.pairs, order, position)
            stale, held = 0, np.inf
        state = hashed(state, np.uint64(turn))
        # a ranking from outside is first brought to rest on the true costs
        if held < np.inf or turn > 0:
            state = wobble(costs, offers, universal, noise * scale, state, noisy)
            descend(noisy, offers, order, position, ties, state, slack, change)
        descend(costs, offers, order, position, ties, state, slack, change)
        value = cost_of(costs, offers, position)
        # as good as the one kept is not progress, but replaces it: so the search drifts along a plateau
        stale = 0 if value < held - slack else stale + 1
        if value <= held + slack:
            held = value
            current[:] = order
        if value < least:
            least = value
            best[:] = order
        if least < enough:
            break
    return held, stale


@compiled
def pool_costs(costs: Vec, offers: Offers, places: Codes) -> Vec:
    """What each ranking of a pool costs, given the positions of the items in each."""
    out = np.empty(places.shape[0])
    for row in range(out.size):
        out[row] = cost_of(costs, offers, places[row])
    return out


@compiled
def improve(costs: Vec, offers: Offers, order: Codes, ties: int, seed: np.uint64, first: int, work: int) -> None:
    """Insert items at their best positions, from ``first`` on in the order of their codes, until the work is done.

    The work is how many coordinates and places are looked at. It ends before where a pass over all items saves nothing.
    """
    n_items, item, done, idle = order.size, first, 0, 0
    position, change = np.empty(n_items, dtype=np.int64), np.empty(n_items + 1)
    for place in range(n_items):
        position[order[place]] = place
    # what rounding can make of a sum over all coordinates
    slack = 1e-13 * np.abs(costs).sum()
    while done < work and idle < n_items:
        for where in range(offers.item_ptr[item], offers.item_ptr[item + 1]):
            offer = offers.owner[offers.item_coordinates[where]]
            done += offers.indptr[offer + 1] - offers.indptr[offer]
        # an insertion looks at every place, too
        done += n_items
        saved = insert_best(costs, offers, order, position, item, ties, hashed(seed, np.uint64(done)), slack, change)
        idle = 0 if saved > slack else idle + 1
        item = item + 1 if item + 1 < n_items else 0
