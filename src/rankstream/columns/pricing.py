"""Pricing: many columns and a proven bound from one run of an oracle."""

from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.oracles import LatticeOracle, Oracle
from rankstream.oracles import tie_kernels as kernels
from rankstream.oracles.column_kernels import columns_on_lattice
from rankstream.oracles.ties import TIE_RULES

PAIRS_FROM = 2**22  # so many states take longer to run through than a column per pair takes to read and to weigh


class Priced(NamedTuple):
    """Rankings, one per row, and a bound on the least cost of any; exact if a ranking of that cost was found."""

    rankings: Codes
    bound: float
    exact: bool


class Pricing:
    """One run of an oracle's dynamic program, read many times: the best ranking for each first item.

    Where the program is expensive, for each first pair; an oracle that cannot be read again gives one ranking.
    """

    def __init__(self, oracle: Oracle, n_items: int) -> None:
        self.oracle: Any = oracle
        states = getattr(oracle, "n_states", 0)
        length = 2 if states >= PAIRS_FROM and n_items > 1 else 1
        self._beginnings = np.array(list(permutations(range(n_items), length)), dtype=np.int64)
        self._read = getattr(oracle, "cheapest_by_first" if length == 1 else "cheapest_by_first_pair", None)

    def __call__(self, costs: Vec) -> Priced:
        """Columns for these costs."""
        if type(self.oracle) is LatticeOracle:
            rankings = np.empty((len(self._beginnings) + 1, self._beginnings.max() + 1), dtype=np.int64)
            least = columns_on_lattice(costs, *self.oracle.tables, self._beginnings, rankings)
            return Priced(rankings, least, True)
        if self._read is None:
            answer = self.oracle.cheapest(costs)
            return Priced(np.asarray(answer.ranking, dtype=np.int64)[np.newaxis], answer.bound, answer.exact)
        answers = self._read(costs)
        best = min(answers, key=lambda answer: float(answer.value))
        return Priced(np.array([answer.ranking for answer in answers]), best.bound, best.exact)


def by_tie_rule(assortments: Assortments, oracle: Oracle, orders: Codes) -> Codes:
    """The rankings that the oracle's tie rule keeps of the same vertices; as they are where it has none."""
    rule, seed = TIE_RULES.get(getattr(oracle, "ties", "")), getattr(oracle, "seed", 0)
    if rule is None:
        return orders
    nothing = -1 if assortments.no_choice is None else assortments.no_choice
    free, kept = np.zeros(assortments.n_coordinates), np.ascontiguousarray(orders)
    for ranking in kept:
        kernels.keep_by_rule(free, assortments.indptr, assortments.members, nothing, rule, seed, True, ranking)
    return kept
