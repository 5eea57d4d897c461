"""Slow twins of the kernels that bound by parts: all corners of a polytope, and least squares over them."""

from itertools import permutations

import numpy as np
from scipy.optimize import nnls

from rankstream import Assortments
from rankstream._core.types import Vec
from rankstream.oracles.bounds.part_kernels import Events


def nearest(corners: Vec, aim: Vec) -> Vec:
    """The mixture of the rows nearest to a point."""
    heavy = 1e4
    system = np.vstack([corners.T, heavy * np.ones(len(corners))])
    weights, _ = nnls(system, np.append(aim, heavy), maxiter=100 * len(corners))
    point: Vec = (weights / weights.sum()) @ corners
    return point


def happens(item: int, inside: int, order: tuple[int, ...]) -> bool:
    """Whether an item (-1: no-choice) is ranked before all others of a set, given as bits; no-choice ends a ranking."""
    others = [other for other in range(inside.bit_length()) if inside >> other & 1 and other != item]
    if -1 in order and item != -1:
        others.append(-1)
    return item in order and all(order.index(item) < order.index(other) for other in others)


def corners_of_events(events: Events) -> list[list[int]]:
    """Which events each ranking of a part's items and no-choice makes happen."""
    kinds = [*range(events.n_items), -1] if (events.item == -1).any() else [*range(events.n_items)]
    pairs = list(zip(events.item.tolist(), events.inside.tolist(), strict=True))
    return [[int(happens(item, inside, order)) for item, inside in pairs] for order in permutations(kinds)]


def nearest_below(corners: Vec, aim: Vec, squares: Vec) -> Vec:
    """The point nearest to ``aim`` of those that a mixture of the corners reaches or exceeds, in a weighted norm."""
    heavy, count = 1e4, len(corners)
    roots = np.sqrt(squares)
    system = np.vstack([np.hstack([corners.T * roots[:, np.newaxis], -np.diag(roots)]), np.zeros(count + aim.size)])
    system[-1, :count] = heavy
    found, _ = nnls(system, np.append(roots * aim, heavy), maxiter=1000 * system.shape[1])
    point: Vec = found[:count] @ corners / found[:count].sum() - found[count:]
    return point


def events_of(offers: Assortments, chosen: list[int], point: Vec, faint: float) -> list[tuple[int, int, int]]:
    """Item, set and coordinate of every event of a part, offer by offer."""
    none, found = offers.no_choice_code, []
    for number in range(offers.n_offers):
        codes = offers.members[offers.indptr[number] : offers.indptr[number + 1]].tolist()
        inside = sum(1 << chosen.index(code) for code in codes if code in chosen)
        if inside.bit_count() < (2 if none is None else 1):
            continue
        for k, code in enumerate(codes, start=int(offers.indptr[number])):
            if (code in chosen or code == none) and point[k] > faint:
                found.append((chosen.index(code) if code in chosen else -1, inside, k))
    return found


def strongest(events: list[tuple[int, int, int]], point: Vec) -> set[tuple[int, int, float]]:
    """The item, set and share of the events that no other implies."""
    kinds = {(item, inside, float(point[k])) for item, inside, k in events}
    return {
        (item, inside, share)
        for item, inside, share in kinds
        if not any(
            one == item and inside & ~other == 0 and more >= share and (other, more) != (inside, share)
            for one, other, more in kinds
        )
    }


def codes_of(offers: Assortments) -> list[list[int]]:
    return [part.tolist() for part in np.split(offers.members, offers.indptr[1:-1].tolist())]


def hildreth(rows: Vec, right: Vec, prices: Vec, point: Vec) -> tuple[Vec, Vec]:
    """One pass over half-spaces: each price becomes the best while the others stay."""
    prices, point = prices.copy(), point.copy()
    for k, row in enumerate(rows):
        new = max(0.0, prices[k] + (row @ point - right[k]) / (row @ row))
        point -= (new - prices[k]) * row
        prices[k] = new
    return prices, point
