"""ColumnFinder: many columns and a proven bound from one run of an oracle (the pricing step of column generation)."""

from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from rankstream._core.types import ROUNDING, Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.models.nearest import winning_coordinates
from rankstream.oracles import LatticeOracle, Oracle
from rankstream.oracles.protocol import beginnings, meet
from rankstream.oracles.search.local import SearchOracle, hurried
from rankstream.oracles.tables.lattice_kernels import columns_on_lattice
from rankstream.oracles.ties import TIE_RULES, TieRule

# benchmarks/columns.py compares columns of first items, some pairs and all pairs
MIN_STATES_FOR_PAIRS = 2**23  # from here on a run takes longer than columns of pairs take to read and to weigh
PAIRS_PER_ITEM = 8  # the cheapest columns of pairs: all of them would take longer to weigh than they save
# rounds without progress after which there is nothing more to find, in a table or by a search
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
