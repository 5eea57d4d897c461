"""Slow, obvious twins of maximum entropy under an order: every ranking, lifted, with its probability."""

from itertools import permutations

import numpy as np

import naive
from rankstream import Assortments
from rankstream._core.types import Vec
from rankstream.models.entropy.ranking_laws import RankingLaw
from rankstream.models.lifts import Chains


def lifted(ranking: tuple[int, ...], chains: Chains) -> tuple[int, ...]:
    """The ranking with those that must come before an item put in front of it."""
    out: list[int] = []
    for item in ranking:
        chain = next((one for one in chains if item in one), (item,))
        out += [other for other in chain[: chain.index(item) + 1] if other not in out]
    return tuple(out)


def law(prior: RankingLaw) -> dict[tuple[int, ...], float]:
    """The probability of every admissible ranking: that of all rankings that are lifted to it."""
    found: dict[tuple[int, ...], float] = {}
    for ranking in permutations(range(len(prior.items))):
        into = lifted(ranking, prior.order)
        found[into] = found.get(into, 0.0) + naive.prior_probability(prior, list(ranking))
    return found


def tilted(assortments: Assortments, prior: RankingLaw, duals: Vec) -> tuple[float, Vec]:
    """log E exp(-<duals, a>) and the tilted choice probabilities, admissible ranking by admissible ranking."""
    every = law(prior)
    vertices = np.array([naive.vertex(assortments, list(ranking)) for ranking in every])
    logs = np.log(list(every.values())) - vertices @ duals
    weights = np.exp(logs - logs.max())
    return float(logs.max() + np.log(weights.sum())), weights @ vertices / weights.sum()


def falling_shares(mixture: Vec, attraction: Vec, offer: list[int], chains: Chains) -> Vec:
    """A mixture of logits in which an item is worth what it and those after it in its chain attract; classes by items.

    Of a chain only the first item on offer can be chosen.
    """
    shares = np.zeros(len(offer))
    for weight, row in zip(mixture, attraction, strict=True):
        worth = np.zeros(len(offer))
        for place, item in enumerate(offer):
            chain = next((one for one in chains if item in one), (item,))
            if not any(other in offer for other in chain[: chain.index(item)]):
                worth[place] = sum(row[other] for other in chain[chain.index(item) :])
        shares += weight * worth / worth.sum()
    return shares


def split(
    tallies: Vec, closed: list[list[tuple[int, int]]], mixture: Vec, attraction: Vec
) -> tuple[float, list[float]]:
    """Tallies dealt out to the members of closed offers (item, tally it stands for), and their log-likelihood."""
    out, value = [], 0.0
    for offer in closed:
        sums = [sum(attraction[item, k] for item, _ in offer) for k in range(mixture.size)]
        likely = [sum(mixture * attraction[item] / sums) for item, _ in offer]
        for (_, of), share in zip(offer, likely, strict=True):
            total = sum(other for (_, also), other in zip(offer, likely, strict=True) if also == of)
            out.append(tallies[of] * share / total)
        for of in {of for _, of in offer}:
            total = sum(other for (_, also), other in zip(offer, likely, strict=True) if also == of)
            value += tallies[of] * np.log(total)
    return float(value), out


def dual_cost(vertices: Vec, logs: Vec, frequencies: Vec, weights: Vec, duals: Vec) -> tuple[float, Vec]:
    """What a maximum-entropy fit minimises, and its slope, over listed rankings with log-probabilities."""
    exponents = logs - vertices @ duals
    tilt = np.exp(exponents - exponents.max())
    value = exponents.max() + np.log(tilt.sum())
    chosen = tilt @ vertices / tilt.sum()
    cost = value + frequencies @ duals + 0.5 * duals**2 @ (1.0 / weights)
    return float(cost), frequencies - chosen + duals / weights
