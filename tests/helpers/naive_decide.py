"""Slow twins for decisions: every offer is tried, and asked from the model one by one."""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np

from rankstream._core.types import Label

Constraints = dict[str, Any]


def worth(model: Any, offer: tuple[Label, ...], margins: dict[Label, float], costs: dict[Label, float]) -> float:
    """Expected margin less listing costs; the no-choice item is added and earns nothing."""
    menu = offer if model.no_choice is None else (*offer, model.no_choice)
    shares = model.predict(menu) if menu else {}
    earned = sum(share * margins.get(item, 0.0) for item, share in shares.items() if item != model.no_choice)
    return float(earned - sum(costs.get(item, 0.0) for item in offer))


def keeps(model: Any, offer: tuple[Label, ...], said: Constraints) -> bool:
    """Whether an offer keeps all that was said, word by word."""
    held = set(offer)
    return (
        len(held ^ set(said.get("present", held))) <= said.get("changes", 0)
        and len(held) <= said.get("at_most", 10**9)
        and len(held) >= said.get("at_least", 0)
        and (bool(held) or model.no_choice is not None)
        and set(said.get("must", ())) <= held
        and not set(said.get("never", ())) & held
        and all(b in held for a, b in said.get("requires", ()) if a in held)
        and not any(a in held and b in held for a, b in said.get("excludes", ()))
        and ("capacity" not in said or sum(said["space"].get(i, 0.0) for i in offer) <= said["capacity"] + 1e-9)
    )


def feasible_offers(model: Any, said: Constraints) -> Iterator[tuple[Label, ...]]:
    """All of them."""
    own = [item for item in model.items if item != model.no_choice]
    for size in range(len(own) + 1):
        for offer in combinations(own, size):
            if keeps(model, offer, said):
                yield offer


def ranked_offers(model: Any, margins: dict[Label, float], said: Constraints) -> list[tuple[float, tuple[Label, ...]]]:
    """Values and offers, best first."""
    costs = said.get("listing_costs", {})
    found = [(worth(model, offer, margins, costs), offer) for offer in feasible_offers(model, said)]
    return sorted(found, key=lambda pair: -pair[0])


def list_earns(lists: Any, held: Any) -> float:
    """What an offer earns from wish lists, list by list."""
    start, item, weight, end, margin = lists
    total = 0.0
    for row in range(len(weight)):
        there = [margin[i] for i in item[start[row] : start[row + 1]] if held[i] > 0]
        total += weight[row] * (there[0] if there else end[row])
    return float(total)


def offers_of_bits(n: int) -> Iterator[Any]:
    """All offers of n items as arrays of 0 and 1."""
    for bits in product((0, 1), repeat=n):
        yield np.array(bits, dtype=np.int8)


def decomposed_bound(lists: Any, price: Any, cost: Any, slots: int, item_in: int = -1, item_out: int = -1) -> float:
    """Every list's best offer of its own at its prices, and the best paid offer: all tried; an item may be fixed."""
    start, item, weight, end, margin = lists
    n = len(margin)
    allowed = [held for held in offers_of_bits(n) if item_in < 0 or held[item_in]]
    allowed = [held for held in allowed if item_out < 0 or not held[item_out]]
    total, bound = np.zeros(n), 0.0
    for row in range(len(weight)):
        here = slice(start[row], start[row + 1])
        own = np.zeros(n)
        own[item[here]] = price[here]
        total += own
        this = slice(row, row + 1)
        single = (np.array([0, start[row + 1] - start[row]]), item[here], weight[this], end[this], margin)
        bound += max(list_earns(single, held) - float(own @ held) for held in allowed)
    return bound + max(float((total - cost) @ held) for held in allowed if held.sum() <= slots)
