"""The nearest mixture in squared l2, offers weighted by their observations: Wolfe's method, with squared bounds."""

from dataclasses import dataclass

import numpy as np

from rankstream._core.types import Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.columns.column_search import ColumnSearch, Goal
from rankstream.columns.data import Observed
from rankstream.columns.pricing import Pricing
from rankstream.columns.solved import Minimum
from rankstream.data.counts import Target
from rankstream.distances import L2
from rankstream.models.nearest import NearestMixture


@dataclass(frozen=True, eq=False)
class SquaredMinimum(Minimum):
    """The nearest mixture, and the search behind it, from which a search with another aim can go on."""

    mixture: NearestMixture


class SquaredSearch:
    """What is nearest to any aim, over the same offers: the mean over observations of the squared l2 distance.

    The engine is that of the l2 distance, whose bounds are squared here.
    """

    def __init__(self, observed: Observed, pricing: Pricing) -> None:
        self.pricing = pricing
        self._shares = observed.offer_shares
        self._norm = L2(observed.assortments, weights=tuple(np.sqrt(self._shares).tolist()))

    def run(
        self,
        aim: Vec,
        tolerance: float,
        *,
        against: float = np.nan,
        first: NearestMixture | None = None,
        max_rounds: int = 500,
        watch: Watch = unwatched,
    ) -> SquaredMinimum:
        """The nearest mixture up to a tolerance, or up to knowing whether its square is below ``against``.

        ``first`` is a mixture with whose rankings it begins. The aim need not be frequencies.
        """
        nearest = NearestMixture(self.pricing.assortments, aim, self._shares) if first is None else first.aimed_at(aim)
        goal = Goal("squared-gap", tolerance, against)
        search = ColumnSearch(self._norm, Target(aim), self.pricing, goal, max_rounds, watch)
        search.run_nearest(nearest, self._norm)
        found = search.certificate(nearest)
        return SquaredMinimum(
            nearest.orders,
            nearest.weights,
            nearest.point,
            found.upper * found.upper,
            found.lower * found.lower,
            search.rounds,
            search.seconds,
            nearest,
        )
