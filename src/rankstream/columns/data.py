"""What the baselines share: data without the offers that nobody has seen, a pool of columns, and pricing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankstream import oracles
from rankstream._core.rounding import ROUNDING
from rankstream._core.types import Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Oracle, Ties
from rankstream.oracles import tie_kernels as kernels
from rankstream.oracles.ties import TIE_RULES, check_ties

MakeOracle = Callable[[Assortments], Oracle]


@dataclass(frozen=True, eq=False)
class Observed:
    """The offers with at least one choice, over all items, their frequencies, and how often each was shown.

    ``totals`` are all 1 where only frequencies are known; ``whole`` are the assortments that the data came with.
    """

    whole: Assortments
    assortments: Assortments
    frequencies: Vec
    totals: Vec
    counted: bool

    @property
    def shares(self) -> Vec:
        """Each coordinate's share of all observations: the paper's q, summing to 1."""
        weights: Vec = (self.totals / self.totals.sum())[self.assortments.owner]
        return weights * self.frequencies

    def model(self, orders: Iterable[Codes], weights: Vec, ties: Ties = "random", seed: int = 0) -> RankingModel:
        """The columns that carry weight as a model, each completed by the tie rule where the data leave it open."""
        check_ties(ties, seed)
        offers = self.assortments
        universal = -1 if offers.no_choice is None else offers.no_choice
        costs = np.zeros(offers.n_coordinates)
        mass: dict[tuple[int, ...], float] = {}
        for order, weight in zip(orders, weights.tolist(), strict=True):
            if weight > 0.0:
                ranking = np.array(order, dtype=np.int64)
                kernels.keep_by_rule(
                    costs, offers.indptr, offers.members, universal, TIE_RULES[ties], seed, True, ranking
                )
                key = tuple(ranking.tolist())
                mass[key] = mass.get(key, 0.0) + weight
        values = np.array(list(mass.values()))
        return RankingModel.from_codes(self.whole.items, list(mass), values / values.sum(), self.whole.no_choice)


def observe(data: ChoiceCounts | ArrayLike, assortments: Assortments | None = None) -> Observed:
    """Counts, or frequencies together with their assortments, as the baselines need them."""
    if isinstance(data, ChoiceCounts):
        if assortments is not None and assortments != data.assortments:
            raise ValueError("The counts belong to other assortments than the ones given: leave those out.")
        if not data.observations:
            raise ValueError("The counts hold no observations yet: observe some choices first.")
        offers, totals = data.assortments, data.totals
        seen = totals > 0
        if seen.all():
            return Observed(offers, offers, data.frequencies(), totals, True)
        kept = [offer for offer, shown in zip(offers.offers, seen.tolist(), strict=True) if shown]
        frequencies = data.frequencies()[seen[offers.owner]]
        return Observed(offers, Assortments(kept, offers.items), frequencies, totals[seen], True)
    if assortments is None:
        raise ValueError("Frequencies alone do not say what was offered: give ChoiceCounts, or assortments= as well.")
    return Observed(assortments, assortments, assortments.check_frequencies(data), np.ones(assortments.n_offers), False)


class Columns:
    """Rankings found so far and their vertices; a vertex is kept once."""

    def __init__(self, assortments: Assortments) -> None:
        self.assortments = assortments
        self.orders: list[Codes] = []
        self._known: set[bytes] = set()
        self._vertices: Vec = np.empty((64, assortments.n_coordinates))

    def __len__(self) -> int:
        return len(self.orders)

    @property
    def vertices(self) -> Vec:
        """One row per column."""
        return self._vertices[: len(self.orders)]

    def add(self, rankings: Iterable[Codes]) -> Vec:
        """Keep the rankings whose vertices are new; returns those vertices."""
        before = len(self.orders)
        for ranking in rankings:
            vertex = self.assortments.vertex(ranking)
            key = vertex.tobytes()
            if key not in self._known:
                self._known.add(key)
                if len(self.orders) == len(self._vertices):
                    self._vertices = np.concatenate((self._vertices, np.empty_like(self._vertices)))
                self._vertices[len(self.orders)] = vertex
                self.orders.append(np.array(ranking, dtype=np.int64))
        return self._vertices[before : len(self.orders)]


class Priced(NamedTuple):
    """Rankings, cheapest first, the cost of the cheapest, and a bound that no ranking undercuts."""

    rankings: list[Codes]
    value: float
    bound: float


def price(oracle: Oracle, costs: Vec, below: float = np.inf) -> Priced:
    """The rankings cheaper than ``below``, one per first item where the oracle can tell."""
    by_first = getattr(oracle, "cheapest_by_first", None)
    answers = [oracle.cheapest(costs)] if by_first is None else by_first(costs)
    answers.sort(key=lambda answer: answer.value)
    rounding = ROUNDING * costs.size * (1.0 + float(np.abs(costs).sum()))
    bound = min(answer.bound for answer in answers) - rounding
    return Priced([answer.ranking for answer in answers if answer.value < below], answers[0].value, bound)


def oracle_for(assortments: Assortments, make: MakeOracle | None, ties: Ties, seed: int) -> Oracle:
    """The oracle to price with: ``oracles.auto`` unless another one is asked for."""
    return oracles.auto(assortments, ties, seed) if make is None else make(assortments)
