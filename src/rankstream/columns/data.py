"""What the exact approaches share: the offers that were seen, columns and what finds them, limits, and answers."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankstream import oracles
from rankstream._core.types import ROUNDING, Codes, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import impossible_choices, restrict, seen_offers
from rankstream.models.nearest import winning_coordinates
from rankstream.models.rankings import RankingModel
from rankstream.oracles import LatticeOracle, Oracle, Ties
from rankstream.oracles.protocol import TIE_RULES, TieRule, beginnings, meet
from rankstream.oracles.search.local import SearchOracle, hurried
from rankstream.oracles.tables.lattice_kernels import columns_on_lattice

MakeOracle = Callable[[Assortments], Oracle]
# benchmarks/columns.py compares columns of first items, some pairs and all pairs
MIN_STATES_FOR_PAIRS = 2**23  # from here on a run takes longer than columns of pairs take to read and to weigh
PAIRS_PER_ITEM = 8  # the cheapest columns of pairs: all of them would take longer to weigh than they save
# rounds without progress after which nothing more is found, in a table or by a search: estimates, by no benchmark
TABLE_PATIENCE, SEARCH_PATIENCE = 2, 10


class FoundColumns(NamedTuple):
    """Rankings, one per row, and a bound on the least cost of any; exact if one of the rankings has that cost."""

    rankings: Codes
    bound: float
    exact: bool


class CheapestColumns(NamedTuple):
    """Rankings, one per row, cheapest first; what the first costs; and a bound that no ranking undercuts.

    Of the bound, what rounding may have added has been taken off.
    """

    rankings: Codes
    value: float
    bound: float


class ColumnFinder:
    """One run of an oracle's dynamic program, read many times: the best ranking for each first item.

    Where the program is expensive, for each first pair, of which the cheapest are kept. A search gives what it finds
    around rankings in use, if there are any; another oracle that cannot be read again gives one ranking.
    """

    def __init__(self, oracle: Oracle, assortments: Assortments) -> None:
        self.oracle: Any = oracle
        self.assortments = assortments
        states, n_items = getattr(oracle, "n_states", 0), assortments.n_items
        length = 2 if states >= MIN_STATES_FOR_PAIRS and n_items > 1 else 1
        self._most = PAIRS_PER_ITEM * n_items if length == 2 else n_items + 1
        self._beginnings = np.array(beginnings(assortments, length), dtype=np.int64).reshape(-1, length)
        self._turn, self._latest = 0, np.empty((0, n_items), dtype=np.int64)
        self.patience = SEARCH_PATIENCE if isinstance(oracle, SearchOracle) else TABLE_PATIENCE
        self._read = getattr(oracle, "cheapest_by_first" if length == 1 else "cheapest_by_first_pair", None)

    def __call__(self, costs: Vec, known: Codes | None = None) -> FoundColumns:
        """Columns for these costs; ``known`` are rankings in use."""
        if isinstance(self.oracle, SearchOracle) and known is not None and len(known):
            return self._search(self.oracle, costs, known)
        if type(self.oracle) is LatticeOracle:
            rankings = np.empty((len(self._beginnings) + 1, self.assortments.n_items), dtype=np.int64)
            least = columns_on_lattice(costs, *self.oracle.tables, self._beginnings, rankings)
            if np.isnan(least):
                self.oracle.cheapest(costs)  # which says what is wrong with them
            return FoundColumns(self._kept(costs, rankings), least, True)
        if self._read is None:
            with hurried(self.oracle) if known is not None else nullcontext():  # there will be more rounds
                answer = self.oracle.cheapest(costs)
            return FoundColumns(np.asarray(answer.ranking, dtype=np.int64)[np.newaxis], answer.bound, answer.exact)
        answers = self._read(costs)
        best = min(answers, key=lambda answer: float(answer.value))
        bound = min(float(answer.bound) for answer in answers)
        rankings = np.array([answer.ranking for answer in answers], dtype=np.int64)
        return FoundColumns(self._kept(costs, rankings), bound, best.exact and bound == best.bound)

    def _search(self, oracle: SearchOracle, costs: Vec, known: Codes) -> FoundColumns:
        """Columns of a search around rankings in use and what it found last, with a bound that takes no time."""
        self._turn += 1
        self._latest = oracle.around(costs, np.concatenate([known, self._latest]), self._turn)
        value = float(self._values(costs, self._latest[:1])[0])
        bound = meet(oracle.splitting.lower(costs, 0), value, costs)
        return FoundColumns(self._latest, bound, bound == value)

    def _kept(self, costs: Vec, rankings: Codes) -> Codes:
        """The cheapest of too many rankings; as they are if there are not."""
        if len(rankings) <= self._most:
            return rankings
        order = np.argsort(self._values(costs, rankings), kind="stable")
        return rankings[order[: self._most]]

    def _values(self, costs: Vec, rankings: Codes) -> Vec:
        values: Vec = costs[winning_coordinates(self.assortments, rankings)].sum(axis=1)
        return values

    def cheapest(self, costs: Vec, below: float = np.inf) -> CheapestColumns:
        """The columns that cost less than ``below``, cheapest first."""
        found = self(costs)
        values = self._values(costs, found.rankings)
        order = np.argsort(values, kind="stable")
        kept = order[values[order] < below]
        rounding = ROUNDING * costs.size * (1.0 + float(np.abs(costs).sum()))
        return CheapestColumns(found.rankings[kept], float(values[order[0]]), found.bound - rounding)


def by_tie_rule(assortments: Assortments, oracle: Oracle, orders: Codes) -> Codes:
    """The rankings that the oracle's own tie rule keeps of the same vertices; as they are where it has none."""
    ties: Any = getattr(oracle, "ties", "")
    return TieRule(assortments, ties, getattr(oracle, "seed", 0)).kept(orders) if ties in TIE_RULES else orders


@dataclass(frozen=True, eq=False)
class Observed:
    """The offers with at least one choice, over all items, their frequencies, and how often each was shown.

    ``totals`` are all 1 where only frequencies are known; ``whole`` are the assortments that the data came with. With
    ``rows``, a sparse matrix, each frequency is about a sum over coordinates, one row for each, not about one of them.
    """

    whole: Assortments
    assortments: Assortments
    frequencies: Vec
    totals: Vec
    rows: Any = None

    def read(self, vertices: Vec) -> Vec:
        """What vertices, one per row, or a point have where the frequencies are known."""
        seen: Vec = vertices[..., : self.assortments.n_coordinates]
        return seen if self.rows is None else (self.rows @ seen.T).T

    def spread(self, dual: Vec) -> Vec:
        """A dual of the frequencies as one of the coordinates."""
        return dual if self.rows is None else self.rows.T @ dual

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
        oracle = oracles.auto(self.assortments, ties, seed) if make is None else make(self.assortments)
        return ColumnFinder(oracle, self.assortments)

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


@dataclass(frozen=True)
class Limits:
    """When to stop: at a small gap, or out of patience."""

    tolerance: float = 1e-7
    max_rounds: int = 10_000
    budget: float = np.inf
    watch: Watch = unwatched


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
