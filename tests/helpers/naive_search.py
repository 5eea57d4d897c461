"""A slow twin of the local search: rankings as lists, every position tried by what the whole ranking costs there."""

import numpy as np

from naive import mix
from naive_sets import ranking_cost
from rankstream import Assortments
from rankstream._core.types import Vec
from rankstream.oracles import Ties

PATIENCE = 25


def below(state: int, number: int) -> int:
    return state // 2**11 % number


def insert(order: list[int], item: int, slot: int) -> list[int]:
    """The item before what is now at position ``slot``."""
    marked: list[int | None] = [None if other == item else other for other in order]
    marked.insert(slot, item)
    return [other for other in marked if other is not None]


def slot_costs(offers: Assortments, costs: Vec, order: list[int], item: int) -> list[float]:
    """What the ranking costs with the item in every slot, the end included."""
    return [ranking_cost(offers, costs, insert(order, item, slot)) for slot in range(len(order) + 1)]


def insert_best(
    offers: Assortments, costs: Vec, order: list[int], item: int, ties: Ties, state: int, room: float
) -> tuple[list[int], float]:
    """The ranking with the item in the best slot, of equally good ones that of the tie rule; and what that saves."""
    tried = slot_costs(offers, costs, order, item)
    good = [slot for slot in range(len(order), -1, -1) if tried[slot] <= min(tried) + room]
    slot = good[-1] if ties == "first" else good[0]
    for number, other in enumerate(good[1:], start=2) if ties == "random" else ():
        state = mix(state, other)
        if below(state, number) == 0:
            slot = other
    return insert(order, item, slot), tried[order.index(item)] - min(tried)


def descend(offers: Assortments, costs: Vec, order: list[int], ties: Ties, state: int, room: float) -> list[int]:
    """Insert the items that are due in a random order, until a pass saves nothing."""
    queue, due, saved = list(range(len(order))), set(order), True
    sets = [{offers.code(item) for item in offer} for offer in offers.offers]
    while saved:
        saved = False
        for k in range(len(queue)):
            state = mix(state, k)
            other = k + below(state, len(queue) - k)
            queue[k], queue[other] = queue[other], queue[k]
            item = queue[k]
            if item in due:
                order, gain = insert_best(offers, costs, order, item, ties, state, room)
                if gain > room:
                    saved = True
                    due = due.union(*(one for one in sets if item in one))
                due = due - {item}
    return order


def wobble(offers: Assortments, costs: Vec, scale: float, state: int) -> tuple[Vec, int]:
    """Costs with noise, more of it for no-choice, and the next state."""
    state = mix(state, 1)
    extra, out = 2.0 * scale * below(state, 1024) / 1024.0, costs.copy()
    for k, item in enumerate(offers.members.tolist()):
        state = mix(state, k)
        out[k] += 1.6 * scale * (below(state, 1024) / 512.0 - 1.0)
        out[k] += extra if item == offers.no_choice_code else 0.0
    return out, state


def shuffle(order: list[int], state: int) -> tuple[list[int], int]:
    """Draw the items one by one from those that are left, the first of which takes the place of the one drawn."""
    left, drawn = list(order), []
    for place in range(len(order)):
        state = mix(state, place)
        which = below(state, len(left))
        left[0], left[which] = left[which], left[0]
        drawn.append(left.pop(0))
    return drawn, state


def search(
    offers: Assortments,
    costs: Vec,
    best: list[int],
    current: list[int],
    held: float,
    stale: int,
    ties: Ties,
    seed: int,
    rounds: int,
    noise: float,
    enough: float,
) -> tuple[list[int], list[int], float, int]:
    """Iterated local search: best and current ranking, what the latter costs, and rounds without progress."""
    scale = float(np.abs(costs).sum()) / costs.size
    room = 1e-13 * scale * costs.size
    state = mix(seed, len(best))
    for turn in range(rounds):
        order = list(current)
        if stale >= PATIENCE:
            order, state = shuffle(order, state)
            stale, held = 0, np.inf
        state = mix(state, turn)
        if held < np.inf or turn > 0:
            noisy, state = wobble(offers, costs, noise * scale, state)
            order = descend(offers, noisy, order, ties, state, room)
        order = descend(offers, costs, order, ties, state, room)
        value = ranking_cost(offers, costs, order)
        stale = 0 if value < held - room else stale + 1
        if value <= held + room:
            held, current = value, order
        if value < ranking_cost(offers, costs, best):
            best = order
        if ranking_cost(offers, costs, best) < enough:
            break
    return best, current, held, stale
