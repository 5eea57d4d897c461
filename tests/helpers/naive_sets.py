"""Slow twins of the kernels over sets of items: frozensets for their bits, dictionaries for their tables."""

from collections.abc import Iterable
from itertools import combinations, permutations

import numpy as np

from rankstream import Assortments
from rankstream._core.types import Vec

Items = frozenset[int]
Family = dict[Items, dict[int, float]]
"""Distinct offers, and what each of their items costs."""


def bits(items: Iterable[int]) -> int:
    return sum(1 << item for item in items)


def items_of(number: int) -> Items:
    return frozenset(item for item in range(64) if number >> item & 1)


def unions(sets: Iterable[Items]) -> list[Items]:
    """All unions of some of the sets, in ascending order as numbers."""
    found = {frozenset[int]()}
    for one in sets:
        found |= {one | other for other in found}
    return sorted(found, key=bits)


def transitions(sets: list[Items]) -> list[tuple[Items, int, list[int], Items]]:
    """For every union and each of its items: both, the numbers of the sets that ranking it decides, and the rest."""
    found = []
    for state in unions(sets):
        inside = [number for number, one in enumerate(sets) if one <= state]
        for item in sorted(state):
            decided = [number for number in inside if item in sets[number]]
            left = frozenset[int]().union(*(sets[number] for number in inside if number not in decided))
            found.append((state, item, decided, left))
    return found


def family(assortments: Assortments, costs: Vec) -> Family:
    """The offers without no-choice that can go either way, equal ones together, with their costs above no-choice."""
    none, found, place = assortments.no_choice_code, Family(), 0
    for offer in assortments.offers:
        own = dict(zip([assortments.code(item) for item in offer], costs[place:].tolist(), strict=False))
        place += len(offer)
        base = 0.0 if none is None else own.pop(none)
        if len(own) > (none is None):
            into = found.setdefault(frozenset(own), dict.fromkeys(own, 0.0))
            for item, cost in own.items():
                into[item] += cost - base
    return found


def placing_cost(assortments: Assortments, costs: Vec, items: Items, item: int) -> float:
    """What ranking an item before the others of a set costs in the offers inside the set, above no-choice there."""
    total, place = 0.0, 0
    for offer in assortments.offers:
        own = dict(zip([assortments.code(item) for item in offer], costs[place:].tolist(), strict=False))
        place += len(offer)
        base = 0.0 if assortments.no_choice_code is None else own.pop(assortments.no_choice_code)
        if item in own and items.issuperset(own):
            total += own[item] - base
    return total


def cost_to_go(offers: Family, ends: bool) -> dict[Items, float]:
    """The least cost of ranking the items of every union of offers, where no-choice may end a ranking or not."""
    sets = list(offers)
    found = {frozenset[int](): 0.0}
    for state, item, decided, left in transitions(sets):
        reach = sum(offers[sets[number]][item] for number in decided) + found[left]
        found[state] = min(found.get(state, 0.0 if ends else np.inf), reach)
    return found


def all_sets_to_go(assortments: Assortments, bit_of: list[int], costs: Vec) -> list[float]:
    """The least cost of ranking what is left, for every set of bits; costs are above those of no-choice."""
    owner, members = assortments.owner.tolist(), assortments.members.tolist()
    masks = [0] * assortments.n_offers
    for k, item in enumerate(members):
        masks[owner[k]] |= bit_of[item]
    table = [0.0]
    for number in range(1, 2 ** sum(1 for bit in set(bit_of) if bit)):
        placing = {item: table[number ^ bit] for item, bit in enumerate(bit_of) if bit & number}
        for k, item in enumerate(members):
            if item in placing and not masks[owner[k]] & ~number:
                placing[item] += costs[k]
        table.append(min([*placing.values(), np.inf if assortments.no_choice_code is None else 0.0]))
    return table


def ties(ways: dict[int, float], unranked: list[int], none: int, ended: bool) -> list[int]:
    """What may come next: items that are the cheapest way to go on, or in no way at all; no-choice last, for 0."""
    least = min([*ways.values(), np.inf if ended else 0.0])
    next_to_it = least + 1e-15 * abs(least)
    free = [item for item in unranked if item != none and ways.get(item, -np.inf) <= next_to_it]
    return free if ended or next_to_it < 0.0 else [*free, none]


def cheapest_beginning(assortments: Assortments, costs: Vec, beginning: tuple[int, ...]) -> float:
    """The least cost of a ranking that begins so."""
    rest = [item for item in range(assortments.n_items) if item not in beginning]
    return min(ranking_cost(assortments, costs, [*beginning, *order]) for order in permutations(rest))


def ranking_cost(assortments: Assortments, costs: Vec, order: list[int]) -> float:
    """The sum over offers of what the best ranked item costs there."""
    total, start = 0.0, 0
    for offer in assortments.offers:
        codes = [assortments.code(item) for item in offer]
        total += float(costs[start + codes.index(min(codes, key=order.index))])
        start += len(offer)
    return total


def reachable(takes: list[int], full: int) -> set[int]:
    """What may be left of the offers in ``full`` once some items, each taking its own, are ranked."""
    chosen = (some for size in range(len(takes) + 1) for some in combinations(takes, size))
    return {full & ~int(np.bitwise_or.reduce([0, *some])) for some in chosen}


def subset_sums(values: Vec) -> list[float]:
    """For every set, as a number, the sum over its subsets."""
    return [sum(float(values[k]) for k in range(number + 1) if not k & ~number) for number in range(values.size)]
