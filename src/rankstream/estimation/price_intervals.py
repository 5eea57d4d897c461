"""Intervals of what a model of items at price levels can be asked."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, NamedTuple

from rankstream._core.types import Label, Vec
from rankstream.data.assortments import Assortments
from rankstream.models.prices import (
    Elasticities,
    NearbyOffers,
    demand_offers,
    elasticities,
    leaving_offer,
    nearby_offers,
    require_levels,
)
from rankstream.models.protocol import ChoiceModel


class Share(NamedTuple):
    """A predicted share, and the ends of its interval."""

    share: float
    low: float
    high: float


class PriceIntervals(ABC):
    """What ``Bootstrap`` says of prices."""

    model: ChoiceModel

    @abstractmethod
    def bounds(self, assortments: Assortments, interval: float = 0.95) -> tuple[Vec, Vec, Vec]:
        """Return the share and its interval for every coordinate of any offers."""

    @abstractmethod
    def bounds_of(
        self, measure: Callable[[ChoiceModel], Vec], interval: float = 0.95, low: float = 0.0, high: float = 1.0
    ) -> tuple[Vec, Vec, Vec]:
        """Any numbers that can be asked of a model, and the ends of their intervals."""

    def predict_at(self, offer: Mapping[Any, Any], interval: float = 0.95) -> dict[Label, Share]:
        """Return the shares of an offer of items at prices, by item, with intervals."""
        around = nearby_offers(require_levels(self.model), self.model.items, offer)
        return dict(zip(around.items, self._shares(around, interval), strict=True))

    def demand(self, item: Label, others: Mapping[Any, Any], interval: float = 0.95) -> dict[float, Share]:
        """Return the share of an item at each of its price levels beside others, with the ends of its interval."""
        offers = demand_offers(self.model, item, others)
        return {price: self._shares(around, interval)[0] for price, around in offers.items()}

    def willingness(self, item: Label, price: Any, no_choice: Label | None = None, interval: float = 0.95) -> Share:
        """Return the share of customers for whom an item at a price beats leaving, with the ends of its interval."""
        leave = getattr(self.model, "no_choice", None) if no_choice is None else no_choice
        return self.predict_at(leaving_offer(self.model, item, price, leave), interval)[item]

    def elasticities(self, offer: Mapping[Any, Any], interval: float = 0.95) -> Elasticities:
        """Arc elasticities of an offer, own and cross, with the ends of their intervals."""
        return elasticities(self.model, offer, lambda measure, part: self.bounds_of(measure, part, -inf, inf), interval)

    def _shares(self, around: NearbyOffers, interval: float) -> list[Share]:
        """Between levels the ends lie between those at levels, too: as wide as if all their errors went together."""
        ends = self.bounds(Assortments(around.offers), interval)
        found = (around.weights @ part.reshape(len(around.offers), -1) for part in ends)
        return [Share(*row) for row in zip(*(column.tolist() for column in found), strict=True)]
