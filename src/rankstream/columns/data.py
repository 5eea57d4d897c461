"""Shared parts of column generation: observed data, columns and how to find them, limits, and results."""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankstream import oracles
from rankstream._core import ROUNDING, Codes, Vec, Watch, unwatched
from rankstream.data import Assortments, ChoiceCounts, Target
from rankstream.data.observations import impossible_choices, restrict, seen_offers
from rankstream.distances import L2
from rankstream.learners import MirrorDescent
from rankstream.models.nearest import winning_coordinates
from rankstream.models.rankings import RankingModel
from rankstream.oracles import LatticeOracle, Oracle, Ties
from rankstream.oracles.bounds.cuts import least_cost_bound
from rankstream.oracles.protocol import TIE_RULES, TieRule, beginnings, meet
from rankstream.oracles.search.local import SearchOracle, hurried
from rankstream.oracles.tables.lattice_kernels import columns_on_lattice
from rankstream.solver.loop import Solver
from rankstream.solver.runs import Run

MakeOracle = Callable[[Assortments], Oracle]
# benchmarks/columns.py compares columns of first items, some pairs and all pairs
MIN_STATES_FOR_PAIRS = 2**23  # from here on, a query takes longer than reading and weighting columns of pairs
PAIRS_PER_ITEM = 8  # the cheapest columns of pairs: weighting all of them would cost more time than it saves
# rounds without progress after which a table or a search is done: estimates, by no benchmark
MAX_FRUITLESS_QUERIES, MAX_FRUITLESS_SEARCHES = 2, 10


class FoundColumns(NamedTuple):
    """Rankings, one per row, and a bound on the least cost of any; exact if one of the rankings has that cost."""

    rankings: Codes
    bound: float
    exact: bool


class CheapestColumns(NamedTuple):
    """Rankings, one per row, cheapest first; the cost of the first; and a lower bound that allows for rounding."""

    rankings: Codes
    value: float
    bound: float


class ColumnFinder:
    """Find many columns with one oracle call.

    A table gives the best ranking for each first item; an expensive one, the cheapest of those for each first pair. A
    search gives what it finds around the rankings in use. Any other oracle gives one ranking.
    """

    def __init__(self, oracle: Oracle, assortments: Assortments) -> None:
        self.oracle: Any = oracle
        self.assortments = assortments
        states, n_items = getattr(oracle, "n_states", 0), assortments.n_items
        length = 2 if states >= MIN_STATES_FOR_PAIRS and n_items > 1 else 1
        self._max_columns = PAIRS_PER_ITEM * n_items if length == 2 else n_items + 1
        self._beginnings = np.array(beginnings(assortments, length), dtype=np.int64).reshape(-1, length)
        self._turn, self._latest = 0, np.empty((0, n_items), dtype=np.int64)
        self.max_fruitless = MAX_FRUITLESS_SEARCHES if isinstance(oracle, SearchOracle) else MAX_FRUITLESS_QUERIES
        self._read = getattr(oracle, "cheapest_by_first" if length == 1 else "cheapest_by_first_pair", None)

    def __call__(self, costs: Vec, known: Codes | None = None) -> FoundColumns:
        """Find columns for these costs; ``known`` are the rankings in use."""
        if isinstance(self.oracle, SearchOracle) and known is not None and len(known):
            return self._search(self.oracle, costs, known)
        if type(self.oracle) is LatticeOracle:
            rankings = np.empty((len(self._beginnings) + 1, self.assortments.n_items), dtype=np.int64)
            least = columns_on_lattice(costs, *self.oracle.tables, self._beginnings, rankings)
            if np.isnan(least):
                self.oracle.cheapest(costs)  # raises an error with the reason
            return FoundColumns(self._cheapest_rows(costs, rankings), least, True)
        if self._read is None:
            with hurried(self.oracle) if known is not None else nullcontext():  # more rounds will follow
                answer = self.oracle.cheapest(costs)
            return FoundColumns(np.asarray(answer.ranking, dtype=np.int64)[np.newaxis], answer.bound, answer.exact)
        answers = self._read(costs)
        best = min(answers, key=lambda answer: float(answer.value))
        bound = min(float(answer.bound) for answer in answers)
        rankings = np.array([answer.ranking for answer in answers], dtype=np.int64)
        return FoundColumns(self._cheapest_rows(costs, rankings), bound, best.exact and bound == best.bound)

    def _search(self, oracle: SearchOracle, costs: Vec, known: Codes) -> FoundColumns:
        """Search around the rankings in use and those found last; the bound takes no time."""
        self._turn += 1
        self._latest = oracle.around(costs, np.concatenate([known, self._latest]), self._turn)
        value = float(self._values(costs, self._latest[:1])[0])
        bound = meet(least_cost_bound(self.assortments, costs, 0), value, costs)
        return FoundColumns(self._latest, bound, bound == value)

    def _cheapest_rows(self, costs: Vec, rankings: Codes) -> Codes:
        if len(rankings) <= self._max_columns:
            return rankings
        order = np.argsort(self._values(costs, rankings), kind="stable")
        return rankings[order[: self._max_columns]]

    def _values(self, costs: Vec, rankings: Codes) -> Vec:
        values: Vec = costs[winning_coordinates(self.assortments, rankings)].sum(axis=1)
        return values

    def cheapest(self, costs: Vec, below: float = np.inf) -> CheapestColumns:
        """Find the columns that cost less than ``below``, cheapest first."""
        columns = self(costs)
        values = self._values(costs, columns.rankings)
        order = np.argsort(values, kind="stable")
        cheap = order[values[order] < below]
        rounding = ROUNDING * costs.size * (1.0 + float(np.abs(costs).sum()))
        return CheapestColumns(columns.rankings[cheap], float(values[order[0]]), columns.bound - rounding)


def by_tie_rule(assortments: Assortments, oracle: Oracle, orders: Codes) -> Codes:
    """Replace rankings by those that the oracle's tie rule prefers among the same vertices, if it has one."""
    ties: Any = getattr(oracle, "ties", "")
    return TieRule(assortments, ties, getattr(oracle, "seed", 0)).kept(orders) if ties in TIE_RULES else orders


@dataclass(frozen=True, eq=False)
class Observed:
    """The offers with at least one choice, their frequencies, and how often each was shown.

    ``totals`` are all 1 if only frequencies are known; ``whole`` are the assortments of the data, with all offers. With
    ``rows``, a sparse matrix, each frequency is that of a sum over coordinates, one row for each.
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
        """The chosen coordinates whose offer has an item that the order ranks above theirs."""
        return impossible_choices(self.assortments, self.frequencies)

    def finder(self, make: MakeOracle | None, ties: Ties, seed: int) -> ColumnFinder:
        """Return a column finder for these offers."""
        oracle = oracles.auto(self.assortments, ties, seed) if make is None else make(self.assortments)
        return ColumnFinder(oracle, self.assortments)

    def warm_start(self, rounds: int, seed: int) -> Codes:
        """Return the rankings, one per row, that mirror descent finds for the l2 distance in ``rounds`` rounds."""
        offers = self.assortments
        solver = Solver(offers, L2(offers), MirrorDescent(horizon=rounds), oracles.auto(offers, seed=seed))
        run = Run(solver, tolerance=0.0)
        run.advance_many(Target(self.frequencies), rounds)
        return np.array(solver.model(run.state).orders, dtype=np.int64)

    def model(self, orders: Codes, weights: Vec, ties: Ties = "random", seed: int = 0) -> RankingModel:
        """Return the columns with weight as a model; the tie rule completes what the data leave open."""
        used = weights > 0.0
        mass: dict[tuple[int, ...], float] = {}
        completed = TieRule(self.assortments, ties, seed).kept(orders[used])
        for order, weight in zip(completed.tolist(), weights[used].tolist(), strict=True):
            mass[tuple(order)] = mass.get(tuple(order), 0.0) + weight
        values = np.array(list(mass.values()))
        return RankingModel.from_codes(self.whole.items, list(mass), values / values.sum(), self.whole.no_choice_code)


def observe(data: ChoiceCounts | ArrayLike, assortments: Assortments | None = None) -> Observed:
    """Take counts, or frequencies with their assortments, and leave out offers that were never shown."""
    if isinstance(data, ChoiceCounts):
        if assortments is not None and assortments != data.assortments:
            raise ValueError("The counts belong to other assortments: leave out assortments=.")
        shown = restrict(data, seen_offers(data))
        return Observed(data.assortments, shown.assortments, shown.frequencies(), shown.totals)
    if assortments is None:
        raise ValueError("Frequencies do not include the offers: give ChoiceCounts, or add assortments=.")
    return Observed(assortments, assortments, assortments.check_frequencies(data), np.ones(assortments.n_offers))


def on_top(assortments: Assortments) -> list[Codes]:
    """Return a ranking for every item that puts it first, or as high as the order allows; the others follow by code.

    Together they choose every coordinate that any ranking can choose.
    """
    codes = np.arange(assortments.n_items)
    rankings = [np.append(item, np.delete(codes, item)) for item in codes]
    if not assortments.order:
        return rankings
    return [assortments.precedence.lift(ranking.tolist()) for ranking in rankings]


class Columns:
    """The rankings so far and their distinct vertices."""

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
        """Add the rankings whose vertices are new; return those vertices."""
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
    """When to stop: at a small gap, after some rounds or seconds, or when ``watch`` says so."""

    tolerance: float = 1e-7
    max_rounds: int = 10_000
    budget: float = np.inf
    watch: Watch = unwatched
