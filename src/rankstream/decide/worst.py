"""The worst that an offer can be worth over all ranking models that fit the data, and the model that does it."""

from dataclasses import dataclass, field

import numpy as np

from rankstream._core.types import Codes, Label, Vec
from rankstream.certificate import confidence_radii
from rankstream.columns.data import Columns, Observed, observe, oracle_for
from rankstream.columns.master import FEASIBLE, Ball, Master, ball
from rankstream.columns.pricing import Pricing
from rankstream.columns.revenue import Region
from rankstream.columns.search import RangeSearch
from rankstream.columns.solved import Limits
from rankstream.columns.warm_start import warm_start
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.models.rankings import RankingModel

WARM = 1000


@dataclass
class WorstCases:
    """Worst cases of one offer after the other, over the same data: rankings found for one help with the next.

    ``tolerance`` is the radius of the region; 1 for confidence regions, whose offers have radii of their own.
    """

    counts: ChoiceCounts
    region: Region
    tolerance: float
    level: float
    accuracy: float
    seed: int = 0
    rankings: dict[bytes, Codes] = field(default_factory=dict)
    feasible: bool = True

    def __post_init__(self) -> None:
        self.observed: Observed = observe(self.counts)
        self.shape = self._shape()
        for order in warm_start(self.observed, WARM, self.seed):
            self.rankings[order.tobytes()] = order

    def _shape(self) -> Ball:
        if self.region != "confidence":
            return ball(self.observed.assortments, self.region)
        self.counts.require_whole("A confidence region")
        offers, seen = self.counts.assortments, self.counts.totals > 0.0
        owners = np.repeat(np.arange(int(seen.sum())), np.diff(offers.indptr)[seen])
        return Ball(np.ones(owners.size), owners, confidence_radii(self.counts, self.level)[seen])

    def __call__(self, menu: tuple[Label, ...], gains: Vec) -> tuple[float, RankingModel]:
        """A proven lower bound on what the menu earns, sharp up to the accuracy; a model in the region that earns it.

        Where no model is in the region, those count that come nearest to it.
        """
        observed = self.observed
        whole = Assortments([*observed.assortments.offers, menu], observed.whole.items)
        pricing, free = Pricing(oracle_for(whole, None, "random", self.seed), whole), np.zeros(len(menu))
        search = RangeSearch(observed, Master(observed, self.shape), pricing, Columns(whole), free)
        search.add(pricing.cheapest(-np.append(observed.frequencies, free)).rankings)
        search.add(list(self.rankings.values()))
        radius = 1.0 if self.region == "confidence" else self.tolerance
        nearest = search.run(Limits(FEASIBLE))
        self.feasible &= nearest.value <= radius + 10.0 * FEASIBLE
        used = max(radius, nearest.value) + (FEASIBLE if nearest.value >= radius - FEASIBLE else 0.0)
        scale = float(np.abs(gains).max(initial=0.0)) or 1.0
        search.aim(gains / scale, used)
        found = search.run(Limits(self.accuracy))
        orders = search.columns.orders[: found.weights.size]
        for order in search.columns.orders:
            self.rankings.setdefault(order.tobytes(), order)
        kept = found.weights > 0.0
        chosen = np.array([order for order, used_here in zip(orders, kept, strict=True) if used_here])
        weights = found.weights[kept]
        return scale * found.bound, RankingModel.from_codes(
            observed.whole.items, chosen, weights / weights.sum(), observed.whole.no_choice
        )
