"""Markets whose truth is known, for measuring how well offers never seen are predicted: simulated, and real ballots.

Simulated ones have 10 items and "nothing", 40 offers of up to 5 items to learn from, 100 others of the same sizes to be
tested on, and 40 of 6 to 10 items.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

import rankstream as rs
from rankstream import Assortments, ChoiceCounts, RankingModel, simulate
from rankstream._core.types import Vec
from rankstream.models import ChoiceModel
from rankstream.models.entropy.ranking_laws import markov_chain
from rankstream.models.parametric.latent_class import mixed_shares

ITEMS, OFFERS, LARGER = 10, 40, 40
CUSTOMERS, DIRECTIONS = 2_000, 4  # of the normal-taste truth
EXACT = 100_000.0  # exact shares stand for this number of choices from every offer
NOBODY = "nobody further"
Shares = Callable[[Assortments], Vec]


@dataclass(frozen=True)
class Truth:
    """Offers to learn from, others of the same sizes, larger ones, and the true shares of any offers."""

    offers: Assortments
    test: Assortments
    larger: Assortments
    shares: Shares

    def counts(self, choices: int, seed: int) -> ChoiceCounts:
        """Sampled choices from the offers to learn from; 0 stands for exact shares."""
        shares = self.shares(self.offers)
        if not choices:
            return ChoiceCounts(self.offers, shares * EXACT)
        return ChoiceCounts(
            self.offers, np.random.default_rng([seed, choices]).multinomial(choices, shares / shares.sum())
        )

    def error(self, model: ChoiceModel, offers: Assortments) -> float:
        """Root mean square error of the predicted shares."""
        return float(np.sqrt(np.mean((model.probabilities(offers) - self.shares(offers)) ** 2)))


def simulated(
    shares_of: Callable[[simulate.Market], Shares],
    segments: int = 5,
    spread: float = 5.0,
    n_items: int = ITEMS,
    n_offers: int = OFFERS,
) -> "Make":
    """A maker of markets with the paper's offers and another truth."""

    def make(seed: int) -> Truth:
        market = simulate.market(seed, n_items, segments, spread, n_offers=n_offers, unseen=True)
        random, items = np.random.default_rng([seed, 6]), market.assortments.items
        if n_items == ITEMS:
            everything = [[*menu, items[-1]] for size in range(6, ITEMS + 1) for menu in combinations(items[:-1], size)]
            large = [everything[number] for number in random.choice(len(everything), LARGER, replace=False).tolist()]
        else:
            sizes = random.integers(n_items // 2 + 1, n_items + 1, LARGER).tolist()
            large = [[*(items[k] for k in random.permutation(n_items)[:size].tolist()), items[-1]] for size in sizes]
        return Truth(market.assortments, market.test, Assortments(large, items), shares_of(market))

    return make


def of_logits(market: simulate.Market) -> Shares:
    """The paper's truth: a mixture of logits."""
    return market.truth.probabilities


def of_rankings(market: simulate.Market) -> Shares:
    """Ten kinds of customers, each with one ranking."""
    random, items = np.random.default_rng(market.seed), market.assortments.items
    orders = np.array([random.permutation(len(items)) for _ in range(10)])
    return RankingModel.from_codes(items, orders, random.dirichlet(np.ones(10))).probabilities


def of_tastes(market: simulate.Market) -> Shares:
    """A mixed logit with normal tastes in four directions: 2,000 customers drawn from it."""
    random, items = np.random.default_rng([market.seed, 1]), market.assortments.items
    level, directions = random.normal(size=len(items)), random.normal(size=(len(items), DIRECTIONS))
    attraction = np.exp(level + random.normal(size=(CUSTOMERS, DIRECTIONS)) @ directions.T)
    code = {item: number for number, item in enumerate(items)}

    def shares(offers: Assortments) -> Vec:
        members = np.array([code[offers.items[item]] for item in offers.members.tolist()])
        return mixed_shares(np.full(CUSTOMERS, 1.0 / CUSTOMERS), attraction, offers.indptr, members)

    return shares


def of_chain(market: simulate.Market) -> Shares:
    """A Markov chain: who does not find an item turns to another that is like it."""
    random, items = np.random.default_rng([market.seed, 2]), market.assortments.items
    moves = random.dirichlet(np.full(len(items), 0.5), size=len(items))
    np.fill_diagonal(moves, 0.0)
    moves /= moves.sum(axis=1, keepdims=True)
    arrival = random.dirichlet(np.ones(len(items)))
    return markov_chain(items, arrival, moves).probabilities


def with_never_buyers(
    shares_of: Callable[[simulate.Market], Shares], never: float
) -> Callable[[simulate.Market], Shares]:
    """A part of the customers takes nothing, whatever is there."""

    def of(market: simulate.Market) -> Shares:
        others = shares_of(market)

        def shares(offers: Assortments) -> Vec:
            nothing = np.array([item == market.assortments.items[-1] for item in offers.items])[offers.members]
            mixed: Vec = (1.0 - never) * others(offers) + never * nothing
            return mixed

        return shares

    return of


def of_types(market: simulate.Market) -> Shares:
    """A hundred kinds of customers, each with one random ranking."""
    random, items = np.random.default_rng([market.seed, 7]), market.assortments.items
    orders = np.array([random.permutation(len(items)) for _ in range(100)])
    return RankingModel.from_codes(items, orders, random.dirichlet(np.ones(100))).probabilities


def of_nests(market: simulate.Market) -> Shares:
    """A nested logit: three nests, and nothing on its own."""
    random, items = np.random.default_rng([market.seed, 9]), market.assortments.items
    utility, n_items = random.normal(size=len(items)), len(items)
    nest, within = np.append(np.arange(n_items - 1) % 3, 3), np.array([0.3, 0.5, 0.4, 1.0])
    code = {item: number for number, item in enumerate(items)}

    def shares(offers: Assortments) -> Vec:
        members = np.array([code[offers.items[item]] for item in offers.members.tolist()])
        places = offers.owner * len(within) + nest[members]
        worth = np.exp(utility[members] / within[nest[members]])
        inclusive = np.bincount(places, worth)[places]
        pulls = inclusive ** within[nest[members]] * worth / inclusive
        total: Vec = pulls / np.bincount(offers.owner, pulls)[offers.owner]
        return total

    return shares


def ballots(path: str) -> "Make":
    """Real rankings (PrefLib): choices from random sets of 1 to 5 candidates, plus "nobody further".

    40 sets to learn from and 100 to test on; with few candidates, two thirds of all there are and the others.
    """
    candidates = [str(name) for name in rs.read(path).counts.assortments.items if name != NOBODY]
    seen = min(5, len(candidates))
    n_menus = min(OFFERS + 100, sum(comb(len(candidates), size) for size in range(1, seen + 1)))
    n_train = min(OFFERS, 2 * n_menus // 3)
    large = [list(m) for size in range(seen + 1, len(candidates) + 1) for m in combinations(candidates, size)]

    def make(seed: int) -> Truth:
        random = np.random.default_rng(seed)
        menus: dict[frozenset[str], list[str]] = {}
        while len(menus) < n_menus:
            size = int(random.integers(1, seen + 1))
            menu = [candidates[k] for k in sorted(random.choice(len(candidates), size, replace=False).tolist())]
            menus.setdefault(frozenset(menu), menu)
        every = [*menus.values(), *large]
        counts = rs.read(path, offers=every).counts
        parts = np.split(counts.frequencies(), counts.assortments.indptr[1:-1])
        shares = dict(zip(counts.assortments.offers, parts, strict=True))
        by_menu = {frozenset(map(str, offer)) - {NOBODY}: offer for offer in shares}
        whole = [by_menu[frozenset(menu)] for menu in every]
        groups = (whole[:n_train], whole[n_train:n_menus], whole[n_menus:])
        offers, test, larger = (Assortments(group, counts.assortments.items) for group in groups)
        return Truth(offers, test, larger, lambda asked: np.concatenate([shares[offer] for offer in asked.offers]))

    return make


Make = Callable[[int], Truth]
LARGE: dict[str, Make] = {
    f"{name}, {n_items} x {n_offers}": simulated(shares_of, n_items=n_items, n_offers=n_offers)
    for n_items, n_offers in ((20, 300), (30, 200), (50, 500))
    for name, shares_of in (("five logits", of_logits), ("ten rankings", of_rankings))
}
"""Markets whose exact program is too large."""
FEW_OFFERS: dict[str, Make] = {
    f"{name}, {n_offers} offers": simulated(shares_of, n_offers=n_offers)
    for n_offers in (6, 8, 10)
    for name, shares_of in (("five logits", of_logits), ("ten rankings", of_rankings), ("Markov chain", of_chain))
}
"""Markets with few offers to learn from."""
TRUTHS: dict[str, Make] = {
    "one logit": simulated(of_logits, 1, 5.0),
    "five logits": simulated(of_logits, 5, 5.0),
    "ten logits": simulated(of_logits, 10, 100.0),
    "ten rankings": simulated(of_rankings),
    "normal taste": simulated(of_tastes),
    "Markov chain": simulated(of_chain),
}
OTHERS: dict[str, Make] = {
    "one logit, half never buy": simulated(with_never_buyers(of_logits, 0.5), 1, 5.0),
    "100 rankings, 30 % never buy": simulated(with_never_buyers(of_types, 0.3)),
    "nested logit": simulated(of_nests),
    "nested logit, 150 offers": simulated(of_nests, n_offers=150),
    "nested logit, 600 offers": simulated(of_nests, n_offers=600),
}
"""Kinds of customers for which the other truths have no model."""
