"""Proofs beside a search: when to ask a table that takes seconds, at which dual, and what its answer proves."""

from collections import deque
from time import perf_counter

import numpy as np

from rankstream._core.threads import thread_count
from rankstream._core.types import Vec
from rankstream._core.watch import Watch, seconds_left
from rankstream.columns.pricing import Priced, Pricing
from rankstream.oracles import Oracle
from rankstream.oracles.choosing import proving_table
from rankstream.oracles.dense import DenseOracle
from rankstream.oracles.search import SearchOracle

STALLED, PART = 40, 0.02  # rounds of search that, when they gain less than this part of what is open, are enough
FRUITLESS = 3  # rounds that gain nothing, after which a search is not asked again
INNER = 0.5  # how far towards the best dual so far the next one lies that the table is asked about
SET_SECONDS = 8e-9  # about what a set of items takes one thread, before it was measured
ROOM = 1.2  # times the seconds of a call that must be left


class TableProver:
    """A table of all sets of items, asked now and then in a fit whose rounds are searches.

    One answer takes as long as a hundred rounds of search. So it is asked only when the search has come to a halt, and
    only if there is time for it. What it proves at the dual of the last weights swings from answer to answer, as these
    rankings are not all that matter; half way between that dual and the best one so far, it rises steadily (in-out
    separation, Ben-Ameur and Neto). Its rankings, the best for each first pair of items, are those that the search has
    missed.
    """

    def __init__(self, table: DenseOracle, watch: Watch) -> None:
        self._pricing = Pricing(table, table.assortments)
        self._watch = watch
        self._values: deque[float] = deque(maxlen=STALLED)
        self.seconds = SET_SECONDS * table.n_states / thread_count()

    def is_due(self, value: float, lower: float, fruitless: int = 0) -> bool:
        """Whether a fit at this distance, of which ``lower`` is proven, had better ask now than search on.

        ``fruitless`` is how many rounds in a row have gained nothing at all.
        """
        self._values.append(value)
        stalled = len(self._values) == STALLED and self._values[0] - value < PART * (value - lower)
        return (stalled or fruitless >= FRUITLESS) and seconds_left(self._watch) > ROOM * self.seconds

    def dual(self, latest: Vec, best: Vec | None) -> Vec:
        """The dual of length 1 to ask about: between the latest and the best so far."""
        if best is None:
            return latest
        mixed = (1.0 - INNER) * latest + INNER * best
        norm = float(np.linalg.norm(mixed))
        return latest if norm == 0.0 else mixed / norm

    def __call__(self, costs: Vec) -> Priced:
        """The table's rankings, and what it proves."""
        began = perf_counter()
        priced = self._pricing(costs)
        self.seconds = perf_counter() - began
        self._values.clear()
        return priced


def table_prover(oracle: Oracle, watch: Watch) -> TableProver | None:
    """A prover for a fit whose oracle is a search, where a table fits into memory and time; else None."""
    if not isinstance(oracle, SearchOracle):
        return None
    table = proving_table(oracle.assortments, oracle.ties, oracle.seed)
    if table is None:
        return None
    prover = TableProver(table, watch)
    return prover if seconds_left(watch) > ROOM * prover.seconds else None
