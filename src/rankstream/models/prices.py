"""Models of items at price levels: shares at any prices, demand curves, elasticities, willingness to pay."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, product
from math import nan, prod
from typing import Any

import numpy as np

from rankstream._core.types import Label, Vec
from rankstream.data import Assortments, ChoiceCounts, plain
from rankstream.data.prices import PRICE_ROUNDING, PriceLevels
from rankstream.models.protocol import Predicts

MAX_ITEMS_BETWEEN_LEVELS = 10
"""Items that may be between two levels at once: each doubles the number of offers around them."""
Offer = Mapping[Any, Any]
Ends = tuple[float, float]
Measured = Callable[[Callable[[Predicts], Vec], float], tuple[Vec, Vec, Vec]]


@dataclass(frozen=True)
class Elasticities:
    """Arc elasticities: the change of shares, in per cent, for each per cent that one price changes.

    Attributes
    ----------
    steps : dict
        For every item with at least two levels, the two prices that are compared.
    values : dict
        ``values["tea"]["cake"]`` is the elasticity of cake's share with respect to tea's price; NaN if cake has no
        share at either price.
    intervals : dict or None
        The ends of the intervals, from ``Bootstrap.elasticities``.
    """

    steps: dict[Label, Ends]
    values: dict[Label, dict[Label, float]]
    intervals: dict[Label, dict[Label, Ends]] | None = None

    @property
    def own(self) -> dict[Label, float]:
        """Each item's elasticity with respect to its own price: at most 0 if the model respects the order of prices."""
        return {item: row[item] for item, row in self.values.items()}

    def cross(self, item: Label) -> dict[Label, float]:
        """Return the elasticities of all other items with respect to one item's price."""
        return {other: value for other, value in self.values[item].items() if other != item}


_levels_in = lru_cache(maxsize=64)(PriceLevels.from_labels)


def levels_of(model: Any) -> PriceLevels | None:
    """Return the price levels of a model: those noted by the fit, or those in its items' labels."""
    named = _levels_in(tuple(model.items))
    noted = getattr(model, "about", {}).get("prices")
    if named is None or noted is None:
        return named
    try:
        levels = PriceLevels.from_content(noted)
    except (TypeError, ValueError):
        return named
    return levels if set(levels.labels) == set(named.labels) else named


def require_levels(model: Any) -> PriceLevels:
    """Return the price levels of a model; raise a ValueError if it has none."""
    levels = levels_of(model)
    if levels is None:
        raise ValueError(
            "The model has no prices: give offers as lists of items, or fit it to choices read with prices."
        )
    return levels


def _require_levels_of(model: Any, item: Label) -> PriceLevels:
    levels = require_levels(model)
    if item not in levels.levels:
        known = ", ".join(map(repr, levels.items))
        raise ValueError(f"The item {item!r} has no price levels in this model: items with price levels are {known}.")
    return levels


def own_items(model: Any) -> tuple[Label, ...]:
    """Return the items of a model by their own names, each once, without prices."""
    levels = require_levels(model)
    return tuple(dict.fromkeys(levels.of(label)[0] for label in model.items))


def most_frequent_prices(counts: ChoiceCounts, levels: PriceLevels) -> list[list[Any]]:
    """Return pairs of an item and the level at which most customers saw it; the dearest of equals.

    A model remembers them as ``usual_prices`` (``model.note``).

    >>> offers = Assortments([("tea @ 3.00", "no"), ("tea @ 4.00", "no")])
    >>> most_frequent_prices(ChoiceCounts(offers, [5, 5, 50, 40]), PriceLevels({"tea": [3, 4]}))
    [['tea', 4.0]]
    """
    offers = counts.assortments
    shown = np.bincount(offers.members, counts.totals[offers.owner], offers.n_items)
    times = dict(zip(offers.items, shown.tolist(), strict=True))
    return [
        [item, max((times.get(levels.label(item, price), 0.0), price) for price in prices)[1]]
        for item, prices in levels.levels.items()
    ]


def usual_prices(model: Any) -> dict[Label, Any]:
    """Return every item of a model with prices, at its most frequent price in the data.

    If the model does not store that, it is the middle level; of an even number the dearer one, since the cheaper is
    often a promotion.
    """
    levels = require_levels(model).levels
    noted = getattr(model, "about", {}).get("usual_prices")
    pairs = noted if isinstance(noted, list) else []
    whole = (pair for pair in pairs if isinstance(pair, list) and len(pair) == 2)
    usual: dict[Label, float] = {
        item: price for item, price in whole if isinstance(item, str) and isinstance(price, float | int)
    }
    offer: dict[Label, Any] = dict.fromkeys(own_items(model))
    for item in offer.keys() & levels.keys():
        prices = levels[item]
        offer[item] = usual[item] if usual.get(item) in prices else prices[len(prices) // 2]
    return offer


def everything(model: Any) -> tuple[Label, ...]:
    """Return all items that can be on offer at once; with prices, each at its usual price.

    >>> from rankstream import RankingModel
    >>> everything(RankingModel(["tea @ 3.00", "tea @ 4.00", "no"], [("tea @ 3.00", "tea @ 4.00", "no")], [1.0]))
    ('tea @ 4.00', 'no')
    """
    levels = levels_of(model)
    return tuple(model.items) if levels is None else levels.offer(usual_prices(model))


def curves_of(
    model: Any, demand: Callable[[Label, Offer], Mapping[float, Any]], items: Iterable[Label], whole: Offer
) -> dict[Label, dict[float, Any]]:
    """Return the demand curves of some items by their own prices, beside the others of an offer.

    ``demand`` is ``model.demand``, or that of a ``Bootstrap``.
    """
    levels = require_levels(model).levels
    several = [item for item in items if len(levels.get(item, ())) > 1]
    beside = {item: {other: price for other, price in whole.items() if other != item} for item in several}
    around = [near for item, others in beside.items() for near in demand_offers(model, item, others).values()]
    if around:  # a maximum-entropy model builds one program for all offers, and caches its answers
        model.probabilities(Assortments(dict.fromkeys(offer for near in around for offer in near.offers), model.items))
    return {item: dict(demand(item, others)) for item, others in beside.items()}


@dataclass(frozen=True)
class NearbyOffers:
    """The offers at levels around an offer at any prices, with their weights.

    Shares are interpolated linearly between two levels, and multilinearly if several items (``between``) are.
    """

    items: tuple[Label, ...]
    offers: tuple[tuple[Label, ...], ...]
    weights: Vec
    between: tuple[Label, ...]

    def shares(self, model: Predicts) -> Vec:
        """Return the share of each of the items."""
        shares = model.probabilities(Assortments(self.offers, model.items))
        return np.asarray(self.weights @ shares.reshape(len(self.offers), len(self.items)), dtype=np.float64)


def nearby_offers(levels: PriceLevels, items: Iterable[Label], offer: Offer) -> NearbyOffers:
    """Return the offers around one at any prices within the levels; ``items`` are all labels of the model.

    >>> levels = PriceLevels({"tea": [3, 4]})
    >>> around = nearby_offers(levels, ["tea @ 3.00", "tea @ 4.00", "no"], {"tea": 3.25, "no": None})
    >>> around.offers, around.weights.tolist()
    ((('tea @ 3.00', 'no'), ('tea @ 4.00', 'no')), [0.75, 0.25])
    """
    if not offer:
        raise ValueError("The offer is empty: list at least one item.")
    levels.offer(offer)  # raises a ValueError if something is wrong
    known = set(items)
    sides = [_sides(levels, plain(item), price) for item, price in offer.items()]
    unknown = next((side[0][0] for side in sides if side[0][0] not in known), None)
    if unknown is not None:
        names = ", ".join(dict.fromkeys(repr(levels.of(label)[0]) for label in items))
        raise ValueError(f"The model has no item {unknown!r}: its items are {names}.")
    between = tuple(plain(item) for item, side in zip(offer, sides, strict=True) if len(side) > 1)
    if len(between) > MAX_ITEMS_BETWEEN_LEVELS:
        raise ValueError(
            f"{len(between)} items are between two of their levels, more than {MAX_ITEMS_BETWEEN_LEVELS}: give prices "
            "that are levels."
        )
    corners = list(product(*sides))
    return NearbyOffers(
        tuple(plain(item) for item in offer),
        tuple(tuple(label for label, _ in corner) for corner in corners),
        np.array([prod(weight for _, weight in corner) for corner in corners]),
        between,
    )


def _sides(levels: PriceLevels, item: Label, price: Any) -> list[tuple[Label, float]]:
    """Return the labels of an item at the levels on both sides of a price, with weights; one label for a level."""
    if item not in levels.levels:
        return [(item, 1.0)]
    ends = levels.levels[item]
    value = min(max(float(price), ends[0]), ends[-1])  # a quantile bin may reach beyond its level
    slack = PRICE_ROUNDING * max(ends[-1], 1.0)
    nearest = next((level for level in ends if abs(level - value) <= slack), None)
    if nearest is not None:
        return [(levels.label(item, nearest), 1.0)]
    low, high = next((low, high) for low, high in pairwise(ends) if low < value < high)
    part = (value - low) / (high - low)
    return [(levels.label(item, low), 1.0 - part), (levels.label(item, high), part)]


def predict_at(model: Predicts, offer: Offer) -> dict[Label, float]:
    """Return the shares of an offer of items at prices, under the items' own names."""
    if levels_of(model) is None and all(price is None for price in offer.values()):
        around = NearbyOffers(tuple(offer), (tuple(offer),), np.ones(1), ())
    else:
        around = nearby_offers(require_levels(model), model.items, offer)
    return dict(zip(around.items, around.shares(model).tolist(), strict=True))


def demand_offers(model: Any, item: Label, others: Offer) -> dict[float, NearbyOffers]:
    """Return an offer for each level of an item, beside others at their prices."""
    levels = _require_levels_of(model, item)
    argument: object = others  # the caller may pass anything
    if not isinstance(argument, Mapping) or not argument:
        raise ValueError(f"The other items are {others!r}: give their prices, as in {{'cake': 4.0, 'nothing': None}}.")
    if item in others:
        raise ValueError(f"The other items contain {item!r} itself: leave it out, as it is at each of its levels.")
    return {price: nearby_offers(levels, model.items, {item: price, **others}) for price in levels.levels[item]}


def leaving_offer(model: Any, item: Label, price: Any, no_choice: Label | None) -> dict[Label, Any]:
    """Return an offer of an item at a price and the no-purchase option."""
    leave = model.no_choice if no_choice is None else no_choice
    if leave is None:
        raise ValueError("The model has no no-purchase option: set no_choice, such as 'nothing'.")
    if item == leave:
        raise ValueError(f"The item {item!r} is the no-purchase option: choose an item that is sold.")
    _require_levels_of(model, item)
    return {item: price, leave: None}


def elasticity_steps(levels: PriceLevels, offer: Offer) -> dict[Label, Ends]:
    """Return the two prices to compare for each item: its level (or the one below its price) and the next dearer one.

    At the highest level it is that one and the next cheaper one; items with a single level have none.

    >>> elasticity_steps(PriceLevels({"tea": [3, 4, 5], "pie": [2]}), {"tea": 5, "pie": 2})
    {'tea': (4.0, 5.0)}
    """
    steps: dict[Label, Ends] = {}
    for item, price in offer.items():
        ends = levels.levels.get(plain(item), ())
        if len(ends) > 1:
            highest = float(price) + PRICE_ROUNDING * max(ends[-1], 1.0)
            below = [place for place, level in enumerate(ends) if level <= highest]
            place = min(max(below, default=0), len(ends) - 2)
            steps[plain(item)] = ends[place], ends[place + 1]
    return steps


def arc(prices: Ends, shares: Ends) -> float:
    """Return the arc elasticity between two points of a curve; NaN if both shares are 0.

    >>> arc((3.0, 5.0), (0.75, 0.25))
    -2.0
    """
    if sum(shares) <= 0.0:
        return nan
    change = 2.0 * (shares[1] - shares[0]) / sum(shares)
    return change / (2.0 * (prices[1] - prices[0]) / sum(prices)) + 0.0


def elasticities(
    model: Predicts, offer: Offer, measured: Measured | None = None, interval: float = 0.95
) -> Elasticities:
    """Return the arc elasticities of all shares of an offer with respect to each price; ``measured`` adds intervals."""
    levels = require_levels(model)
    around = nearby_offers(levels, model.items, offer)
    steps = elasticity_steps(levels, offer)
    if not steps:
        raise ValueError("No item of the offer has two price levels, which an elasticity needs.")
    at = {plain(item): price for item, price in offer.items()}
    sides = {
        item: tuple(nearby_offers(levels, model.items, at | {item: price}) for price in prices)
        for item, prices in steps.items()
    }

    def measure(refit: Predicts) -> Vec:
        rows = []
        for item, (first, second) in sides.items():
            pairs = zip(first.shares(refit).tolist(), second.shares(refit).tolist(), strict=True)
            rows.append([arc(steps[item], pair) for pair in pairs])
        return np.array(rows)

    result = Elasticities(steps, _table(steps, around.items, measure(model)))
    if measured is None:
        return result
    _, low, high = measured(measure, interval)
    lows, highs = (_table(steps, around.items, part) for part in (low, high))
    both = {item: {other: (lows[item][other], highs[item][other]) for other in lows[item]} for item in lows}
    return replace(result, intervals=both)


def _table(steps: Iterable[Label], items: tuple[Label, ...], rows: Vec) -> dict[Label, dict[Label, float]]:
    return {item: dict(zip(items, row, strict=True)) for item, row in zip(steps, rows.tolist(), strict=True)}
