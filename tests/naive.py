"""Slow, obvious twins of every kernel, and optima by enumeration: what the fast code is compared with."""

from functools import cache
from itertools import permutations

import numpy as np
from scipy.optimize import linprog, nnls

from rankstream import Assortments
from rankstream._types import Codes, Vec, Words


def vertex(assortments: Assortments, ranking: list[int]) -> Vec:
    out = []
    for offer in assortments.offers:
        codes = [assortments.code(item) for item in offer]
        best = min(codes, key=ranking.index)
        out += [1.0 if code == best else 0.0 for code in codes]
    return np.array(out)


def all_rankings(assortments: Assortments) -> list[list[int]]:
    return [list(order) for order in permutations(range(assortments.n_items))]


def all_vertices(assortments: Assortments) -> Vec:
    return np.array([vertex(assortments, ranking) for ranking in all_rankings(assortments)])


def cheapest_value(assortments: Assortments, costs: Vec) -> float:
    return float(min(all_vertices(assortments) @ costs))


def cheapest_value_by_sets(assortments: Assortments, costs: Vec) -> float:
    """The recursion W[R] = min over i in R of cost(i, R) + W[R minus i], on frozensets."""
    offers = [frozenset(assortments.code(item) for item in offer) for offer in assortments.offers]

    @cache
    def cost_to_go(rest: frozenset[int]) -> float:
        if not rest:
            return 0.0
        options = []
        for item in rest:
            placing = 0.0
            for number, offer in enumerate(offers):
                if item in offer and offer <= rest:
                    place = assortments.coordinate(assortments.offers[number], assortments.items[item])
                    placing += costs[place]
            options.append(placing + cost_to_go(rest - {item}))
        return min(options)

    return cost_to_go(frozenset(range(assortments.n_items)))


def mix(state: int, word: int) -> int:
    z = state ^ word ^ 0x9E3779B97F4A7C15
    for _ in range(2):
        low = (z % 2**32) * 0x9E3779B1
        high = (z // 2**32) * 0x85EBCA77
        z = low ^ (high * 2**31 % 2**64) ^ (high // 2**33)
        z ^= z // 2**29
    return z


def nearest_l2(assortments: Assortments, frequencies: Vec) -> Vec:
    """A point of X that is as good as nearest to the frequencies, by least squares over all rankings."""
    corners = all_vertices(assortments)
    heavy = 1e4
    system = np.vstack([corners.T, heavy * np.ones(len(corners))])
    weights, _ = nnls(system, np.append(frequencies, heavy), maxiter=100 * len(corners))
    point: Vec = (weights / weights.sum()) @ corners
    return point


def probabilities(assortments: Assortments, rankings: list[tuple[object, ...]], weights: Vec) -> Vec:
    total = np.zeros(assortments.n_coordinates)
    for ranking, weight in zip(rankings, weights, strict=True):
        start = 0
        for offer in assortments.offers:
            best = min(offer, key=ranking.index)
            total[start + offer.index(best)] += weight
            start += len(offer)
    return total


def project_onto_simplices(assortments: Assortments, point: Vec) -> Vec:
    """Bisection for the level on every offer."""
    out = []
    for start, stop in zip(assortments.indptr[:-1], assortments.indptr[1:], strict=True):
        part = point[start:stop]
        low, high = part.min() - 1.0, part.max()
        for _ in range(100):
            level = 0.5 * (low + high)
            low, high = (level, high) if np.maximum(part - level, 0.0).sum() > 1.0 else (low, level)
        out += np.maximum(part - low, 0.0).tolist()
    return np.array(out)


def softmax_by_offer(assortments: Assortments, scores: Vec) -> Vec:
    out = []
    for start, stop in zip(assortments.indptr[:-1], assortments.indptr[1:], strict=True):
        powers = np.exp(scores[start:stop])
        out += (powers / powers.sum()).tolist()
    return np.array(out)


def least_distance(norm: str, corners: Vec, target: Vec) -> float:
    """The least distance of any mixture of the corners from the target: least squares for l2, else a linear program."""
    count, size = corners.shape
    if norm == "l2":
        heavy = 1e4
        system = np.vstack([corners.T, heavy * np.ones(count)])
        weights, _ = nnls(system, np.append(target, heavy), maxiter=100 * count)
        return float(np.linalg.norm((weights / weights.sum()) @ corners - target))
    errors = np.eye(size) if norm == "l1" else np.ones((size, 1))
    within = np.block([[corners.T, -errors], [-corners.T, -errors]])
    prices = np.append(np.zeros(count), np.ones(errors.shape[1]))
    whole = np.append(np.ones(count), np.zeros(errors.shape[1]))[np.newaxis]
    found = linprog(prices, within, np.append(target, -target), whole, [1.0])
    return float(found.fun)


def winners(assortments: Assortments, rankings: list[list[int]]) -> Codes:
    return np.array([np.flatnonzero(vertex(assortments, list(ranking))) for ranking in rankings])


def inner_products(chosen: Codes | Words, squares: Vec) -> Vec:
    return np.array([[float(squares[one == other].sum()) for other in chosen] for one in chosen])


def nearest_in_span(products: Vec, linear: Vec) -> Vec:
    """Weights with sum 1 that minimise w' products w / 2 - linear' w, from the conditions of optimality."""
    count = len(linear)
    system = np.block([[products, np.ones((count, 1))], [np.ones((1, count)), np.zeros((1, 1))]])
    weights: Vec = np.linalg.solve(system, np.append(linear, 1.0))[:count]
    return weights


def settle(products: Vec, linear: Vec) -> dict[int, float]:
    """Wolfe's minor cycles from all weight on the first vertex: which vertices are left, and their weights."""
    held, weights = list(range(len(linear))), np.eye(len(linear))[0]
    while True:
        wanted = nearest_in_span(products[np.ix_(held, held)], linear[held])
        steps = [weight / (weight - aim) if aim <= 0.0 else np.inf for weight, aim in zip(weights, wanted, strict=True)]
        step = min(steps)
        if step > 1.0:
            return dict(zip(held, wanted.tolist(), strict=True))
        weights = weights + step * (wanted - weights)
        kept = [k for k in range(len(held)) if steps[k] > step]
        held, weights = [held[k] for k in kept], weights[kept]
