"""Slow, obvious twins of what keeps an order: all rankings that do, and the table over progress, state by state."""

from functools import cache
from itertools import pairwise, permutations

import hypothesis.strategies as st
import numpy as np

import naive
import strategies
from rankstream import Assortments
from rankstream._core.types import Vec


def all_pairs(assortments: Assortments) -> set[tuple[int, int]]:
    """Which items must come before which, directly or not."""
    pairs = {(assortments.code(one), assortments.code(other)) for one, other in assortments.order}
    for _ in assortments.items:
        pairs |= {(one, other) for one, middle in pairs for also, other in pairs if middle == also}
    return pairs


def all_rankings(assortments: Assortments) -> list[list[int]]:
    """Every permutation in which no pair of the order stands the wrong way round."""
    pairs = [(assortments.code(one), assortments.code(other)) for one, other in assortments.order]
    every = permutations(range(assortments.n_items))
    return [list(order) for order in every if all(order.index(a) < order.index(b) for a, b in pairs)]


def all_vertices(assortments: Assortments) -> Vec:
    """What each of them chooses."""
    return np.array([naive.vertex(assortments, ranking) for ranking in all_rankings(assortments)])


def keep_by_rule(assortments: Assortments, ranking: list[int], ties: str, seed: int) -> list[int]:
    """As ``naive.keep_by_rule``, where an item also waits for those that must come before it."""
    chosen = [k for k, one in enumerate(naive.vertex(assortments, ranking)) if one]
    winners = [int(assortments.members[k]) for k in chosen]
    offers = [{assortments.code(item) for item in offer} for offer in assortments.offers]
    waits = [(winner, offer - {winner}) for winner, offer in zip(winners, offers, strict=True)]
    waits += [(assortments.code(one), {assortments.code(other)}) for one, other in assortments.order]
    state = seed
    for k in chosen if ties == "random" else []:
        state = naive.mix(state, k)
    state = naive.mix(state, assortments.n_items)
    kept: list[int] = []
    while len(kept) < assortments.n_items:
        held_back = {item for winner, items in waits if winner not in kept for item in items}
        free = [item for item in range(assortments.n_items) if item not in held_back and item not in kept]
        free.sort(key=lambda item: (item == assortments.no_choice_code, item))
        kept.append(free[{"first": 0, "last": -1, "random": state % len(free)}[ties]])
        state = naive.mix(state, kept[-1])
    return kept


def cost_to_go(assortments: Assortments, costs: Vec, chains: list[list[int]], left: tuple[int, ...]) -> float:
    """The least cost of what is undecided where ``left`` items of each chain are left, less what no-choice costs."""
    offers = [{assortments.code(item) for item in offer} for offer in assortments.offers]
    ends, before = assortments.no_choice_code, all_pairs(assortments)

    @cache
    def least(state: tuple[int, ...]) -> float:
        if not any(state):
            return 0.0
        options = [] if ends is None else [0.0]
        gone = {item for chain, rest in zip(chains, state, strict=True) for item in chain[: len(chain) - rest]}
        for number, (chain, rest) in enumerate(zip(chains, state, strict=True)):
            if rest:
                item = chain[len(chain) - rest]
                placing = 0.0
                for offer, codes in enumerate(offers):
                    # an offer with one item that can win, and no way to take nothing, can go only one way
                    able = [code for code in codes if not any((other, code) in before for other in codes)]
                    if item in able and not codes & gone and len(able) > 1:
                        place = list(assortments.offers[offer]).index(assortments.items[item])
                        placing += costs[assortments.indptr[offer] + place]
                        if ends is not None:
                            at = list(assortments.offers[offer]).index(assortments.items[ends])
                            placing -= costs[assortments.indptr[offer] + at]
                options.append(placing + least((*state[:number], rest - 1, *state[number + 1 :])))
        return min(options)

    return least(left)


@st.composite
def ordered(draw: st.DrawFn, chains: bool | None = None, most_items: int = 6) -> Assortments:
    """Random assortments with an order: chains, or any; offers may have several items of a chain."""
    offers = draw(strategies.assortments(most_items))
    free = [item for item in offers.items if item != offers.no_choice_code]
    order = draw(st.permutations(free))
    made_of_chains = draw(st.booleans()) if chains is None else chains
    pairs = list(pairwise(order))
    if not made_of_chains:
        pairs = [(one, other) for place, one in enumerate(order) for other in order[place + 1 :]]
    kept = [pair for pair in pairs if draw(st.booleans())]
    return Assortments(offers.offers, offers.items, kept)


@st.composite
def problems(draw: st.DrawFn, chains: bool | None = None) -> tuple[Assortments, Vec]:
    """Assortments with an order, and costs."""
    offers = draw(ordered(chains))
    return offers, draw(strategies.costs(offers.n_coordinates))


def room(costs: Vec) -> float:
    """What sums may differ by."""
    return 1e-9 * (1.0 + float(np.abs(costs).sum()))
