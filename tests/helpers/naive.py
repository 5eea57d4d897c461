"""Slow, obvious twins of every kernel, and optima by enumeration: what the fast code is compared with."""

from functools import cache
from itertools import permutations

import numpy as np
from scipy.optimize import linprog, nnls

from rankstream import Assortments
from rankstream._core.types import Codes, Vec, Words
from rankstream.models.entropy.ranking_laws import RankingLaw


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


def keep_by_rule(assortments: Assortments, ranking: list[int], ties: str, seed: int) -> list[int]:
    """The ranking that a tie rule keeps of all those with the same vertex: item by item, from what may come next."""
    chosen = [k for k, one in enumerate(vertex(assortments, ranking)) if one]
    winners = [int(assortments.members[k]) for k in chosen]
    offers = [{assortments.code(item) for item in offer} for offer in assortments.offers]
    state = seed
    for k in chosen if ties == "random" else []:
        state = mix(state, k)
    state = mix(state, assortments.n_items)
    kept: list[int] = []
    while len(kept) < assortments.n_items:
        held_back = {
            item
            for offer, winner in zip(offers, winners, strict=True)
            for item in offer - {winner}
            if winner not in kept
        }
        free = [item for item in range(assortments.n_items) if item not in held_back and item not in kept]
        free.sort(key=lambda item: (item == assortments.no_choice_code, item))
        kept.append(free[{"first": 0, "last": -1, "random": state % len(free)}[ties]])
        state = mix(state, kept[-1])
    return kept


def nearest_l2(assortments: Assortments, frequencies: Vec) -> Vec:
    """A point of X that is as good as nearest to the frequencies, by least squares over all rankings."""
    corners = np.unique(all_vertices(assortments), axis=0)  # scipy 1.14 fails where two are the same
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


def softmax_by_offer(assortments: Assortments, scores: Vec) -> Vec:
    out = []
    for start, stop in zip(assortments.indptr[:-1], assortments.indptr[1:], strict=True):
        powers = np.exp(scores[start:stop])
        out += (powers / powers.sum()).tolist()
    return np.array(out)


def codes_of(assortments: Assortments) -> list[list[int]]:
    return [[assortments.code(item) for item in offer] for offer in assortments.offers]


def mixture_step(assortments: Assortments, tallies: Vec, mixture: Vec, attraction: Vec) -> tuple[Vec, Vec, float]:
    """Customers by item and class, what divides them, and the log-likelihood; attractions are items by classes."""
    top, bottom, value, place = np.zeros_like(attraction), np.zeros_like(attraction), 0.0, 0
    for offer in codes_of(assortments):
        shares = attraction[offer] / attraction[offer].sum(axis=0)
        for item, share in zip(offer, shares, strict=True):
            if tallies[place]:
                posterior = mixture * share / (mixture @ share)
                value += tallies[place] * np.log(mixture @ share)
                top[item] += tallies[place] * posterior
                bottom[offer] += tallies[place] * posterior / attraction[offer].sum(axis=0)
            place += 1
    return top, bottom, float(value)


def mixture_shares(assortments: Assortments, mixture: Vec, attraction: Vec) -> Vec:
    """The choice probabilities of a mixture of logits, classes by items."""
    return np.concatenate(
        [
            sum(share * row[offer] / row[offer].sum() for share, row in zip(mixture, attraction, strict=True))
            for offer in codes_of(assortments)
        ]
    )


def absorption(offer: list[int], transitions: Vec) -> Vec:
    """The probability of ending in each offered item (columns, zero for others) from each item (rows)."""
    n_items = len(transitions)
    outside = [item for item in range(n_items) if item not in offer]
    ends = np.zeros((n_items, n_items))
    ends[offer, offer] = 1.0
    inner = np.eye(len(outside)) - transitions[np.ix_(outside, outside)]
    ends[np.ix_(outside, offer)] = np.linalg.solve(inner, transitions[np.ix_(outside, offer)])
    return ends


def chain_shares(assortments: Assortments, arrival: Vec, transitions: Vec) -> Vec:
    return np.concatenate(
        [(arrival @ absorption(offer, transitions))[offer] for offer in codes_of(assortments)],
    )


def chain_step(assortments: Assortments, tallies: Vec, arrival: Vec, transitions: Vec) -> tuple[Vec, Vec, float]:
    """Expected first arrivals and moves of the customers counted, choice by choice, and the log-likelihood."""
    n_items = len(arrival)
    first, moves, value, place = np.zeros(n_items), np.zeros((n_items, n_items)), 0.0, 0
    for offer in codes_of(assortments):
        outside = [item for item in range(n_items) if item not in offer]
        ends = absorption(offer, transitions)
        passing = np.linalg.inv(np.eye(len(outside)) - transitions[np.ix_(outside, outside)])
        visits = arrival[outside] @ passing
        for chosen in offer:
            probability = float(arrival @ ends[:, chosen])
            if tallies[place]:
                first += tallies[place] * arrival * ends[:, chosen] / probability
                moves[outside] += (
                    tallies[place] * visits[:, None] * transitions[outside] * ends[:, chosen] / probability
                )
                value += tallies[place] * np.log(probability)
            place += 1
    return first, moves, float(value)


def plackett_luce_probability(attraction: Vec, ranking: list[int]) -> float:
    """Draw from the top, in proportion to attraction."""
    probability = 1.0
    for place, item in enumerate(ranking):
        probability *= attraction[item] / attraction[ranking[place:]].sum()
    return float(probability)


def first_visit_probability(arrival: Vec, moves: Vec, ranking: list[int]) -> float:
    """The order in which a chain first visits the items: at each step, where it leaves those visited before."""
    probability = float(arrival[ranking[0]])
    for place in range(1, len(ranking)):
        visited = ranking[:place]
        between = np.eye(place) - moves[np.ix_(visited, visited)]
        probability *= float(np.linalg.solve(between, moves[visited, ranking[place]])[-1])
    return probability


def prior_probability(prior: RankingLaw, ranking: list[int]) -> float:
    """The probability of one ranking."""
    classes = zip(prior.class_weights, prior.attraction, strict=True)
    chains = zip(prior.chain_weights, prior.arrivals, prior.moves, strict=True)
    return float(
        sum(weight * plackett_luce_probability(row, ranking) for weight, row in classes)
        + sum(weight * first_visit_probability(start, moves, ranking) for weight, start, moves in chains)
    )


def tilted(assortments: Assortments, prior: RankingLaw, duals: Vec) -> tuple[float, Vec]:
    """log E exp(-<duals, a>) and the tilted choice probabilities, ranking by ranking."""
    rankings = all_rankings(assortments)
    vertices = all_vertices(assortments)
    logs = np.log([prior_probability(prior, ranking) for ranking in rankings]) - vertices @ duals
    weights = np.exp(logs - logs.max())
    return float(logs.max() + np.log(weights.sum())), weights @ vertices / weights.sum()


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


def settle(products: Vec, linear: Vec, start: Vec | None = None) -> dict[int, float]:
    """Wolfe's minor cycles, from all weight on the first vertex if not told: which vertices are left, and weights."""
    held, weights = list(range(len(linear))), np.eye(len(linear))[0] if start is None else start
    while True:
        wanted = nearest_in_span(products[np.ix_(held, held)], linear[held])
        steps = [weight / (weight - aim) if aim <= 0.0 else np.inf for weight, aim in zip(weights, wanted, strict=True)]
        step = min(steps)
        if step > 1.0:
            return dict(zip(held, wanted.tolist(), strict=True))
        weights = weights + step * (wanted - weights)
        kept = [k for k in range(len(held)) if steps[k] > step]
        held, weights = [held[k] for k in kept], weights[kept]
