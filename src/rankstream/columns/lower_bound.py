"""Proven lower bounds on the distance of any ranking model from the data, which also hold for later data."""

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from rankstream._core import ROUNDING, Vec, Watch, seconds_left, unwatched
from rankstream.columns.corrective import ColumnSearch, Goal, is_slow, run_search, search_and_prove, seen_weights
from rankstream.columns.data import ColumnFinder
from rankstream.columns.proofs import Prover
from rankstream.data import Assortments, Target
from rankstream.distances import Distance, HighNorm
from rankstream.oracles import Oracle
from rankstream.oracles.selection import proving_table

TABLE_ROUNDS = 200  # of a fast oracle; an estimate, as is the next: no benchmark chose them
TABLE_ROUNDS_PER_CUT_ROUND = 5  # rounds of a fast oracle that take about as long as one round of cuts


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """A half-space ``<normal, x> >= least`` that contains every ranking model x, and so bounds distances from data."""

    normal: Vec
    least: float

    def lower(self, distance: HighNorm, target: Target) -> float:
        """Return a lower bound on the distance of any model from these data, which may be other data than its own.

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
        """Return the same half-space for more offers, which begin with its own."""
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
    distance: HighNorm, target: Target, oracle: Oracle, gap: float, watch: Watch = unwatched, rounds: int = TABLE_ROUNDS
) -> HalfSpace | None:
    """Prove a lower bound on the distance of any model, to within ``gap`` of the best model found on the way.

    ``oracle`` is that of a fit to these offers. A fast table is queried for up to ``rounds`` rounds. Otherwise the
    bound comes from cuts and, with a time limit, from a slow table as well. Without a time limit it is cuts alone, a
    fifth as many rounds, so that no certificate takes minutes or gigabytes by surprise. Returns None if nothing is
    proven.
    """
    goal, timed = Goal("gap", gap), seconds_left(watch) < np.inf
    if hasattr(oracle, "cheapest_by_first") and not is_slow(oracle):
        search = ColumnSearch(distance, target, ColumnFinder(oracle, distance.assortments), goal, rounds, watch)
        run_search(search, seen_weights(distance, target))
        dual, lower = search.best_dual, search.lower
    elif timed and is_slow(oracle) and proving_table(distance.assortments) is not None:
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
