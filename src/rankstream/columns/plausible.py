"""All distributions over rankings that fit the data, and the least that an offer can bring over them."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.arguments import number_between
from rankstream._core.types import Codes, Label, Vec
from rankstream.certificate import confidence_radii
from rankstream.columns.column_finder import ColumnFinder
from rankstream.columns.data import Columns, Limits, MakeOracle, Observed, observe, oracle_for
from rankstream.columns.master import FEASIBILITY_TOLERANCE, Ball, Master, ball
from rankstream.columns.mle import warm_start
from rankstream.columns.search import Optimum, RangeSearch
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Ties

Region = Literal["l1", "linf", "confidence"]
WARM_ROUNDS = 1000


@dataclass(frozen=True, eq=False)
class End:
    """One end of what an offer can bring: the proven bound, how far it may be from sharp, and a model that fits.

    What the model brings is within ``gap`` of the bound.
    """

    bound: float
    gap: float
    model: RankingModel


@dataclass
class PlausibleModels:
    """All distributions over rankings within ``radius`` of the data, as a ``Ball`` measures it.

    It gives the ends of what an offer can bring over them; rankings that one offer needed help with the next.
    """

    observed: Observed
    ball: Ball
    radius: float
    oracle: MakeOracle | None = None
    ties: Ties = "random"
    seed: int = 0
    rankings: dict[bytes, Codes] = field(default_factory=dict)

    def nearest(self, labels: tuple[Label, ...], limits: Limits) -> tuple[RangeSearch, Optimum]:
        """A search for the ends of an offer, and how near to the data a distribution can come."""
        known = self.observed.whole
        whole = Assortments([*self.observed.assortments.offers, labels], known.items, known.order)
        finder = ColumnFinder(oracle_for(whole, self.oracle, self.ties, self.seed), whole)
        nothing = np.zeros(len(labels))
        search = RangeSearch(self.observed, Master(self.observed, self.ball), finder, Columns(whole), nothing)
        search.add(finder.cheapest(-np.append(self.observed.frequencies, nothing)).rankings)
        search.add(self.rankings.values() if self.rankings else warm_start(self.observed, WARM_ROUNDS, self.seed))
        return search, search.run(Limits(FEASIBILITY_TOLERANCE, budget=limits.budget))

    def fits(self, nearest: Optimum) -> bool:
        """Whether any distribution is within the radius."""
        return nearest.value <= self.radius + 10.0 * FEASIBILITY_TOLERANCE

    def used(self, nearest: Optimum) -> float:
        """The radius, or where no distribution is within it, the least one at which some are."""
        tight = nearest.value >= self.radius - FEASIBILITY_TOLERANCE
        return max(self.radius, nearest.value) + (FEASIBILITY_TOLERANCE if tight else 0.0)

    def end(self, search: RangeSearch, nearest: Optimum, gains: Vec, limits: Limits) -> End:
        """The least that the offer can bring at these gains; the accuracy is relative to the largest."""
        scale = scale_of(gains)
        search.aim(gains / scale, self.used(nearest))
        found = search.run(limits)
        orders = search.columns.orders
        self.rankings.update((order.tobytes(), order) for order in orders)
        kept = np.flatnonzero(found.weights > 0.0)
        weights, whole = found.weights[kept], self.observed.whole
        model = RankingModel.from_codes(whole.items, orders[kept], weights / weights.sum(), whole.no_choice_code)
        return End(scale * found.bound, scale * found.gap, model)

    def worst(self, labels: tuple[Label, ...], gains: Vec, limits: Limits) -> tuple[End, bool]:
        """The least that an offer can bring, and whether any distribution is within the radius."""
        search, nearest = self.nearest(labels, limits)
        return self.end(search, nearest, gains, limits), self.fits(nearest)


def plausible_models(
    data: ChoiceCounts | ArrayLike,
    region: Region,
    tolerance: float,
    confidence: float,
    *,
    assortments: Assortments | None = None,
    oracle: MakeOracle | None = None,
    ties: Ties = "random",
    seed: int = 0,
) -> PlausibleModels:
    """The distributions in a region around data, as ``revenue_range`` has it."""
    observed = observe(data, assortments)
    if region == "confidence":
        return PlausibleModels(observed, _confidence(data, confidence), 1.0, oracle, ties, seed)
    radius = number_between("tolerance", tolerance, 0.0)
    return PlausibleModels(observed, ball(observed.assortments, region), radius, oracle, ties, seed)


def scale_of(gains: Vec) -> float:
    """The largest gain, without its sign; 1 where there is none."""
    return float(np.abs(gains).max(initial=0.0)) or 1.0


def _confidence(data: ChoiceCounts | ArrayLike, confidence: float) -> Ball:
    """One group per offer that was seen, with its confidence radius as the budget."""
    if not isinstance(data, ChoiceCounts):
        raise ValueError("Frequencies have no confidence region: give ChoiceCounts, or a tolerance.")
    data.require_whole("A confidence region")
    offers, seen = data.assortments, data.totals > 0.0
    owners = np.repeat(np.arange(int(seen.sum())), np.diff(offers.indptr)[seen])
    return Ball(np.ones(owners.size), owners, confidence_radii(data, confidence)[seen])
