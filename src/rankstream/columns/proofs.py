"""Proofs beside a search: cuts that take tenths of a second, and a table that takes seconds, asked now and then."""

from collections import deque
from time import perf_counter

import numpy as np

from rankstream._core.threads import thread_count
from rankstream._core.types import ROUNDING, Vec
from rankstream._core.watch import Watch, seconds_left, unwatched
from rankstream.certificate.proof import Proof
from rankstream.columns.data import ColumnFinder, FoundColumns
from rankstream.data.counts import Target
from rankstream.distances import HighNorm
from rankstream.oracles.tables.dense import DenseOracle

STALL_ROUNDS, MIN_STALL_GAIN = 40, 0.02  # a search stalls when so many rounds gain less than this part of the gap
MAX_FRUITLESS_ROUNDS = 3  # that gain nothing, and the search is not asked again; all tuned as in certificate/proof.py
BEST_DUAL_SHARE = 0.5  # how far towards the best dual so far the next one lies that the table is asked about
SET_SECONDS = 8e-9  # about what a set of items takes one thread, before it was measured
MIN_TIME_FACTOR = 1.2  # times the seconds of a call that must be left
FIRST_TIME_SHARE, FIRST_ROUNDS = 0.05, 20  # of the time, and rounds, for cuts before the search
LAST_ROUNDS = 40  # of cuts after the search, where nobody counts the seconds
SEARCH_TIME_SHARE = 0.6  # of the time, for the search where there is no table: cuts have the rest


class TableSchedule:
    """A table of all sets of items, asked now and then in a fit whose rounds are searches.

    One answer takes as long as a hundred rounds of search. So it is asked only when the search has come to a halt, and
    only if there is time for it. What it proves at the dual of the last weights swings from answer to answer, as these
    rankings are not all that matter; half way between that dual and the best one so far, it rises steadily (in-out
    separation, Ben-Ameur and Neto). Its rankings, the best for each first pair of items, are those that the search has
    missed.
    """

    def __init__(self, table: DenseOracle, watch: Watch) -> None:
        self._finder = ColumnFinder(table, table.assortments)
        self._watch = watch
        self._values: deque[float] = deque(maxlen=STALL_ROUNDS)
        self.seconds = SET_SECONDS * table.n_states / thread_count()

    @property
    def has_time(self) -> bool:
        """Whether an answer would come in time."""
        return seconds_left(self._watch) > MIN_TIME_FACTOR * self.seconds

    def is_due(self, value: float, lower: float, fruitless: int = 0) -> bool:
        """Whether a fit at this distance, of which ``lower`` is proven, had better ask now than search on.

        ``fruitless`` is how many rounds in a row have gained nothing at all.
        """
        self._values.append(value)
        stalled = len(self._values) == STALL_ROUNDS and self._values[0] - value < MIN_STALL_GAIN * (value - lower)
        return (stalled or fruitless >= MAX_FRUITLESS_ROUNDS) and self.has_time

    def dual(self, latest: Vec, best: Vec | None) -> Vec:
        """The dual of length 1 to ask about: between the latest and the best so far."""
        if best is None:
            return latest
        mixed = (1.0 - BEST_DUAL_SHARE) * latest + BEST_DUAL_SHARE * best
        norm = float(np.linalg.norm(mixed))
        return latest if norm == 0.0 else mixed / norm

    def __call__(self, costs: Vec) -> FoundColumns:
        """The table's rankings, and what it proves."""
        began = perf_counter()
        answer = self._finder(costs)
        self.seconds = perf_counter() - began
        self._values.clear()
        return answer


class Prover:
    """What proves, beside a search that finds: cuts (``certificate.Proof``) and, where one has room, a table.

    Cuts come first, for a twentieth of the time: they prove about half in a second or two at any number of items. With
    a table, the search has the rest of the time, and asks it now and then; without one it has three fifths, and more
    cuts have what is left. Where nobody counts the seconds, cuts have a fixed number of rounds, so that the same data
    and seed give the same proof.
    """

    def __init__(self, distance: HighNorm, target: Target, table: DenseOracle | None, watch: Watch = unwatched) -> None:
        self._cuts = Proof(distance.assortments, target, distance.offer_weights)
        self._watch = watch
        self._scale: Vec = distance.offer_weights[distance.assortments.owner]
        schedule = None if table is None else TableSchedule(table, watch)
        self.table = schedule if schedule is not None and schedule.has_time else None

    @property
    def searching(self) -> float:
        """The part of the time after which the search ends, if it has not before."""
        return SEARCH_TIME_SHARE if self.table is None else 1.0

    def begin(self) -> None:
        """The first cuts."""
        self._cuts.advance(FIRST_TIME_SHARE * max(seconds_left(self._watch), 0.0), FIRST_ROUNDS)

    def finish(self, enough: float = np.inf, rounds: int = LAST_ROUNDS) -> None:
        """The last ones, where there is no table, until as much is proven as is enough.

        They take the time that is left, or so many rounds where nobody counts the seconds.
        """
        if self.table is None:
            left = max(seconds_left(self._watch), 0.0)
            self._cuts.advance(left, rounds if left == np.inf else None, enough)

    def learn(self, normal: Vec, least: float) -> None:
        """Take in what a table has proven, up to rounding."""
        self._cuts.add(normal, least - ROUNDING * normal.size * (1.0 + float(np.abs(normal).sum())))

    def proven(self) -> tuple[Vec | None, float]:
        """The dual of length 1 that all cuts together make, and the distance that it proves; None without any."""
        normal, lower = self._cuts.normal, self._cuts.bound()
        dual = np.divide(normal, self._scale, out=np.zeros(normal.size), where=self._scale > 0.0)
        norm = float(np.linalg.norm(dual))
        return (dual / norm, lower) if norm > 0.0 else (None, lower)
