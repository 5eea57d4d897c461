"""How near to the data any ranking model can be: what is proven of that, and what it proves of later data."""

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from rankstream._core.types import ROUNDING, Vec
from rankstream._core.watch import Watch, seconds_left, unwatched
from rankstream.columns.corrective import ColumnSearch, Goal, is_slow, run_search, search_and_prove, seen_weights
from rankstream.columns.data import ColumnFinder
from rankstream.columns.proofs import Prover
from rankstream.data.assortments import Assortments
from rankstream.data.counts import Target
from rankstream.distances import Distance, HighNorm
from rankstream.oracles import Oracle
from rankstream.oracles.selection import proving_table

TABLE_ROUNDS = 200  # of a quick oracle; an estimate, as is the next: no benchmark chose them
TABLE_ROUNDS_PER_CUT_ROUND = 5  # rounds of it that take as long as one of cuts, about


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """<``normal``, x> >= ``least`` for every ranking model x: so none is nearer to data than these are beyond it."""

    normal: Vec
    least: float

    def lower(self, distance: HighNorm, target: Target) -> float:
        """What that proves of the distance of any model from these data, which need not be those it was made for.

        >>> from rankstream import Assortments
        >>> from rankstream.distances import L2
        >>> offers = Assortments([("tea", "pie"), ("pie", "tea")])
        >>> space = HalfSpace(np.array([-1.0, 0.0, -1.0, 0.0]), -1.0)  # tea here and pie there exclude each other
        >>> round(space.lower(L2(offers), Target(np.array([0.9, 0.1, 0.6, 0.4]))), 3)
        0.354
        """
        weights = seen_weights(distance, target)[distance.assortments.owner]
        if (self.normal[weights <= 0.0] != 0.0).any():
            return 0.0
        dual = np.divide(self.normal, weights, out=np.zeros(weights.size), where=weights > 0.0)
        norm = float(np.linalg.norm(dual))
        if norm == 0.0:
            return 0.0
        here = np.where(weights > 0.0, target.frequencies, 0.0)
        size = abs(self.least) + float(np.abs(self.normal) @ np.abs(here))
        depth = self.least - float(self.normal @ here) - ROUNDING * here.size * size
        return max(0.0, depth / (norm * (1.0 + ROUNDING * here.size)))

    def over(self, offers: Assortments) -> "HalfSpace":
        """The same for offers that begin with those it was made for."""
        more = offers.n_coordinates - self.normal.size
        return HalfSpace(np.append(self.normal, np.zeros(more)), self.least) if more else self


def is_plain_l2(distance: Distance) -> TypeGuard[HighNorm]:
    """Whether it is the l2 norm, with weights or without, neither smoothed nor squared.

    >>> from rankstream import Assortments, distances
    >>> offers = Assortments([("tea", "pie")])
    >>> [is_plain_l2(distances.make(name, offers)) for name in ("l2", "l1", "squared-l2")]
    [True, False, False]
    """
    return isinstance(distance, HighNorm) and distance.q == 2.0 and not distance.smoothing


def prove_lower_bound(
    distance: HighNorm,
    target: Target,
    oracle: Oracle,
    gap: float,
    watch: Watch = unwatched,
    rounds: int = TABLE_ROUNDS,
) -> HalfSpace | None:
    """What can be proven of how near any model can be, until it is within ``gap`` of the best that was found.

    A quick table is asked in so many rounds. Where there is none, cuts prove for as long as there is time, and where
    the oracle is a search, a table that is slow may help; but where nobody counts the seconds, cuts alone, so that no
    certificate takes minutes or gigabytes unasked. None where nothing is proven.

    ``oracle`` is that of a fit to these offers; only a quick table is asked. ``rounds`` are the most of a quick table,
    and a fifth as many of cuts where nobody counts the seconds.
    """
    goal, counted = Goal("gap", gap), seconds_left(watch) < np.inf
    if hasattr(oracle, "cheapest_by_first") and not is_slow(oracle):
        search = ColumnSearch(distance, target, ColumnFinder(oracle, distance.assortments), goal, rounds, watch)
        run_search(search, seen_weights(distance, target))
        dual, lower = search.best_dual, search.lower
    elif counted and is_slow(oracle) and proving_table(distance.assortments) is not None:
        search, _ = search_and_prove(distance, target, oracle, goal, watch=watch)
        dual, lower = search.best_dual, search.lower
    else:
        prover = Prover(distance, target, None, watch)
        prover.finish(rounds=rounds // TABLE_ROUNDS_PER_CUT_ROUND)
        dual, lower = prover.proven()
    if dual is None or lower <= 0.0:
        return None
    normal = distance.costs(dual)
    here = np.where(normal != 0.0, target.frequencies, 0.0)
    offset = float(normal @ here)
    return HalfSpace(normal, lower + offset - ROUNDING * here.size * (lower + float(np.abs(normal) @ np.abs(here))))
