"""The best offers of a logit of any size, by repeated sorting, with a proof."""

import heapq
from dataclasses import dataclass

import numpy as np

from rankstream._core import Bytes, Mask, Vec, Watch
from rankstream.decide.problem.offers import OfferProblem
from rankstream.decide.problem.rules import FREE, IN, OUT
from rankstream.models.parametric.mnl import LogitModel


def suits(problem: OfferProblem) -> bool:
    """Whether sorting is exact: a logit without listing costs, space, pairs or changes."""
    return (
        isinstance(problem.model, LogitModel)
        and not problem.costs.any()
        and problem.capacity == np.inf
        and not problem.rows.limits.size
    )


@dataclass(frozen=True, eq=False)
class SortingSearch:
    """Find the best offers of a logit by sorting.

    An offer S earns (sum of margin v) / (sum of v) over S and the items always on offer, with attractions v. That
    exceeds z if the sum of (margin - z) v is positive. So the best S for a given z takes the largest of these terms, as
    long as they are positive and there are slots. Its value is the next z, until nothing is gained (Dinkelbach 1967).
    Then no offer has a positive sum, which proves that none earns more. With limits on the size, the order of the terms
    depends on z: this is the method of Rusmevichientong, Shen and Shmoys (2010), who list all orders.
    """

    attraction: Vec
    margins: Vec
    nothing: int
    least: int
    most: int

    def best(self, state: Bytes) -> tuple[float, Mask] | None:
        """Return the best offer with some items in and some out, and its value; None if no size is feasible."""
        inside, free = state == IN, np.flatnonzero(state == FREE)
        taken = int(inside.sum())
        low, high = max(0, self.least - taken), min(free.size, self.most - taken)
        if low > high:
            return None
        mask, value = inside.copy(), -np.inf
        mask[free[np.argsort(-self.margins[free], kind="stable")[:low]]] = True
        while (now := self.earned(mask)) > value:
            value, best = now, mask
            terms = (self.margins[free] - value) * self.attraction[free]
            order = np.argsort(-terms, kind="stable")
            size = min(max(low, int((terms > 0.0).sum())), high)
            mask = inside.copy()
            mask[free[order[:size]]] = True
        return value, best

    def earned(self, mask: Mask) -> float:
        """Return what an offer earns."""
        there = mask.copy()
        if self.nothing >= 0:
            there[self.nothing] = True
        whole = float(self.attraction[there].sum())
        return float(self.attraction[there] @ self.margins[there]) / whole if whole > 0.0 else 0.0

    def ranked(self, state: Bytes, top: int, watch: Watch) -> list[tuple[float, Mask]]:
        """Return the best ``top`` offers: every other offer differs from the best one in a first item (Lawler 1972)."""
        first = self.best(state)
        waiting = [] if first is None else [(-first[0], 0, state, first[1])]
        offers: list[tuple[float, Mask]] = []
        number = 0
        while waiting and len(offers) < top:
            worth, _, fixed, mask = heapq.heappop(waiting)
            offers.append((-worth, mask))
            if len(offers) == top or watch(f"{len(offers)} offers, the last worth {-worth:.6g}"):
                break
            for code in np.flatnonzero(fixed == FREE).tolist():
                flipped = fixed.copy()
                flipped[code] = OUT if mask[code] else IN
                fixed = fixed.copy()
                fixed[code] = IN if mask[code] else OUT
                rival = self.best(flipped)
                if rival is not None:
                    number += 1
                    heapq.heappush(waiting, (-rival[0], number, flipped, rival[1]))
        return offers


def sorting(problem: OfferProblem) -> SortingSearch:
    """Return the search for a problem that suits it."""
    return SortingSearch(problem.model.attraction, problem.margins, problem.nothing, problem.least, problem.most)


def best_by_size(problem: OfferProblem) -> dict[int, float]:
    """Return the best value of every feasible size, each by its own search."""
    best = {size: sorting(problem.of_size(size)).best(problem.state) for size in problem.possible_sizes}
    return {size: pair[0] for size, pair in best.items() if pair is not None}
