"""Lower bounds during a search: cuts that take tenths of a second, and occasional table queries that take seconds."""

from collections import deque
from time import perf_counter

import numpy as np

from rankstream._core import ROUNDING, Vec, Watch, seconds_left, unwatched
from rankstream._core.threads import thread_count
from rankstream.certificate.proof import Proof
from rankstream.columns.data import ColumnFinder, FoundColumns
from rankstream.data.counts import Target
from rankstream.distances import HighNorm
from rankstream.oracles.tables.dense import DenseOracle

STALL_ROUNDS, MIN_STALL_GAIN = 40, 0.02  # a search stalls when so many rounds gain less than this part of the gap
MAX_FRUITLESS_ROUNDS = 3  # rounds without gain after which the table is queried; all tuned as in certificate/proof.py
BEST_DUAL_SHARE = 0.5  # weight of the best dual so far in the dual for the table
SET_SECONDS = 8e-9  # rough time of one thread per set of items, until it is measured
MIN_TIME_FACTOR = 1.2  # times the seconds of a query that must be left
FIRST_TIME_SHARE, FIRST_ROUNDS = 0.05, 20  # of the time, and rounds, for cuts before the search
LAST_ROUNDS = 40  # of cuts after the search, without a time limit
SEARCH_TIME_SHARE = 0.6  # of the time, for the search without a table; cuts have the rest


class TableSchedule:
    """A table of all sets of items, queried now and then in a fit whose rounds are searches.

    A query takes as long as a hundred rounds of search. So it is made only when the search stalls and there is time.
    Its bound oscillates at the duals of the last weights. Half way between that dual and the best one so far, it
    rises steadily (in-out separation, Ben-Ameur and Neto). Its rankings, the best for each first pair of items, are
    those that the search has missed.
    """

    def __init__(self, table: DenseOracle, watch: Watch) -> None:
        self._finder = ColumnFinder(table, table.assortments)
        self._watch = watch
        self._values: deque[float] = deque(maxlen=STALL_ROUNDS)
        self.seconds = SET_SECONDS * table.n_states / thread_count()

    @property
    def has_time(self) -> bool:
        """Whether there is time for a query."""
        return seconds_left(self._watch) > MIN_TIME_FACTOR * self.seconds

    def is_due(self, value: float, lower: float, fruitless: int = 0) -> bool:
        """Whether to query the table now, at this distance and lower bound.

        ``fruitless`` is the number of rounds in a row without any gain.
        """
        self._values.append(value)
        stalled = len(self._values) == STALL_ROUNDS and self._values[0] - value < MIN_STALL_GAIN * (value - lower)
        return (stalled or fruitless >= MAX_FRUITLESS_ROUNDS) and self.has_time

    def dual(self, latest: Vec, best: Vec | None) -> Vec:
        """Return the dual of length 1 for the next query: between the latest and the best so far."""
        if best is None:
            return latest
        mixed = (1.0 - BEST_DUAL_SHARE) * latest + BEST_DUAL_SHARE * best
        norm = float(np.linalg.norm(mixed))
        return latest if norm == 0.0 else mixed / norm

    def __call__(self, costs: Vec) -> FoundColumns:
        """Query the table: its rankings and its bound."""
        began = perf_counter()
        answer = self._finder(costs)
        self.seconds = perf_counter() - began
        self._values.clear()
        return answer


class Prover:
    """Lower bounds for a fit by searches: cuts (``certificate.Proof``) and, if there is memory, a table.

    Cuts come first, for a twentieth of the time: they prove about half of the distance in a second or two, for any
    number of items. With a table, the search has the rest of the time and queries it now and then. Without one it has
    three fifths, and more cuts have the rest. Without a time limit, cuts have a fixed number of rounds, so that the
    same data and seed give the same proof.
    """

    def __init__(self, distance: HighNorm, target: Target, table: DenseOracle | None, watch: Watch = unwatched) -> None:
        self._cuts = Proof(distance.assortments, target, distance.offer_weights)
        self._watch = watch
        self._scale: Vec = distance.offer_weights[distance.assortments.owner]
        schedule = None if table is None else TableSchedule(table, watch)
        self.table = schedule if schedule is not None and schedule.has_time else None

    @property
    def searching(self) -> float:
        """The share of the time after which the search ends."""
        return SEARCH_TIME_SHARE if self.table is None else 1.0

    def begin(self) -> None:
        """Make the first cuts."""
        self._cuts.advance(FIRST_TIME_SHARE * max(seconds_left(self._watch), 0.0), FIRST_ROUNDS)

    def finish(self, enough: float = np.inf, rounds: int = LAST_ROUNDS) -> None:
        """Make the last cuts, if there is no table, until the bound reaches ``enough``.

        They take the remaining time, or ``rounds`` rounds without a time limit.
        """
        if self.table is None:
            left = max(seconds_left(self._watch), 0.0)
            self._cuts.advance(left, rounds if left == np.inf else None, enough)

    def learn(self, normal: Vec, least: float) -> None:
        """Add a table's bound as a cut, with a margin for rounding."""
        self._cuts.add(normal, least - ROUNDING * normal.size * (1.0 + float(np.abs(normal).sum())))

    def proven(self) -> tuple[Vec | None, float]:
        """Return the dual of length 1 of all cuts together, None without any, and the bound that it proves."""
        normal, lower = self._cuts.normal, self._cuts.bound()
        dual = np.divide(normal, self._scale, out=np.zeros(normal.size), where=self._scale > 0.0)
        norm = float(np.linalg.norm(dual))
        return (dual / norm, lower) if norm > 0.0 else (None, lower)
