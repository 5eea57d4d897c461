"""What the exact approaches share: the offers that were seen, a pool of columns, when to stop, and their answers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rankstream import oracles
from rankstream._core.types import Codes, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.columns.column_finder import ColumnFinder
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import impossible_choices, restrict, seen_offers
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Oracle, Ties
from rankstream.oracles.ties import TieRule

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

    @property
    def offer_shares(self) -> Vec:
        """Each offer's share of all observations."""
        return self.totals / float(self.totals.sum())

    @property
    def shares(self) -> Vec:
        """Each coordinate's share of all observations: the paper's q, summing to 1."""
        return self.offer_shares[self.assortments.owner] * self.frequencies

    @property
    def impossible(self) -> Codes:
        """The coordinates that were chosen although their offer has an item which must come before theirs."""
        return impossible_choices(self.assortments, self.frequencies)

    def finder(self, make: MakeOracle | None, ties: Ties, seed: int) -> ColumnFinder:
        """What finds columns over these offers."""
        return ColumnFinder(oracle_for(self.assortments, make, ties, seed), self.assortments)

    def model(self, orders: Codes, weights: Vec, ties: Ties = "random", seed: int = 0) -> RankingModel:
        """The columns that carry weight as a model, each completed by the tie rule where the data leave it open."""
        used = weights > 0.0
        mass: dict[tuple[int, ...], float] = {}
        kept = TieRule(self.assortments, ties, seed).kept(orders[used])
        for order, weight in zip(kept.tolist(), weights[used].tolist(), strict=True):
            mass[tuple(order)] = mass.get(tuple(order), 0.0) + weight
        values = np.array(list(mass.values()))
        return RankingModel.from_codes(self.whole.items, list(mass), values / values.sum(), self.whole.no_choice_code)


def observe(data: ChoiceCounts | ArrayLike, assortments: Assortments | None = None) -> Observed:
    """Counts, or frequencies together with their assortments, without the offers that nobody was shown."""
    if isinstance(data, ChoiceCounts):
        if assortments is not None and assortments != data.assortments:
            raise ValueError("The counts belong to other assortments than the ones given: leave those out.")
        shown = restrict(data, seen_offers(data))
        return Observed(data.assortments, shown.assortments, shown.frequencies(), shown.totals)
    if assortments is None:
        raise ValueError("Frequencies do not include the offers: give ChoiceCounts, or add assortments=.")
    return Observed(assortments, assortments, assortments.check_frequencies(data), np.ones(assortments.n_offers))


def on_top(assortments: Assortments) -> list[Codes]:
    """A ranking for every item that has it first, or as soon as the order allows; the others follow by their codes.

    Every coordinate that any ranking can choose is chosen by one of them.
    """
    everything = np.arange(assortments.n_items)
    rankings = [np.append(item, np.delete(everything, item)) for item in everything]
    return [assortments.precedence.lift(one.tolist()) for one in rankings] if assortments.order else rankings


class Columns:
    """Rankings so far and their vertices; a vertex is kept once."""

    def __init__(self, assortments: Assortments) -> None:
        self.assortments = assortments
        self._orders: list[Codes] = []
        self._known: set[bytes] = set()
        self._vertices: Vec = np.empty((64, assortments.n_coordinates))

    def __len__(self) -> int:
        return len(self._orders)

    @property
    def orders(self) -> Codes:
        """The rankings, one per row."""
        return np.array(self._orders, dtype=np.int64).reshape(-1, self.assortments.n_items)

    @property
    def vertices(self) -> Vec:
        """One row per column."""
        return self._vertices[: len(self._orders)]

    def add(self, rankings: Iterable[Codes]) -> Vec:
        """Keep the rankings whose vertices are new; returns those vertices."""
        before = len(self._orders)
        for ranking in rankings:
            vertex = self.assortments.vertex(ranking)
            key = vertex.tobytes()
            if key not in self._known:
                self._known.add(key)
                if len(self._orders) == len(self._vertices):
                    self._vertices = np.concatenate((self._vertices, np.empty_like(self._vertices)))
                self._vertices[len(self._orders)] = vertex
                self._orders.append(np.array(ranking, dtype=np.int64))
        return self._vertices[before : len(self._orders)]


def oracle_for(assortments: Assortments, make: MakeOracle | None, ties: Ties, seed: int) -> Oracle:
    """The oracle that finds columns: ``oracles.auto`` unless another one is asked for."""
    return oracles.auto(assortments, ties, seed) if make is None else make(assortments)


@dataclass(frozen=True)
class Limits:
    """When to stop: at a small gap, or out of patience."""

    tolerance: float = 1e-7
    max_rounds: int = 10_000
    budget: float = np.inf
    watch: Watch = unwatched


@dataclass(frozen=True, eq=False)
class Minimum:
    """The mixture of rankings with the least loss: that loss, the proven bound on it, and how it was reached."""

    orders: Codes
    weights: Vec
    point: Vec
    value: float
    bound: float
    iterations: int
    seconds: dict[str, float]


@dataclass(frozen=True, eq=False)
class ProvenFit:
    """A model, what it loses (``value``), and the proven ``bound`` that no distribution over rankings undercuts.

    ``proven`` says that the two are as near as was asked for; ``seconds`` how long the parts of the search took.
    """

    model: RankingModel
    value: float
    bound: float
    proven: bool
    iterations: int
    columns: int
    seconds: dict[str, float]

    @property
    def gap(self) -> float:
        """How far the value can be from the least."""
        return self.value - self.bound
