"""What models of items at price levels can be asked: shares at any prices, demand curves, elasticities, willingness."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, product
from math import nan, prod
from typing import Any

import numpy as np

from rankstream._core.types import Label, Vec
from rankstream.data.assortments import Assortments, plain
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import PRICE_ROUNDING, PriceLevels
from rankstream.models.protocol import Predicts

MAX_ITEMS_BETWEEN_LEVELS = 10
"""Items that may be between two levels at once: the offers around them are 2 to this power."""
Offer = Mapping[Any, Any]
Ends = tuple[float, float]
Measured = Callable[[Callable[[Predicts], Vec], float], tuple[Vec, Vec, Vec]]


@dataclass(frozen=True)
class Elasticities:
    """Arc elasticities: by how many per cent shares change for each per cent that one price changes.

    Attributes
    ----------
    steps : dict
        For every item with at least two levels, the two prices that are compared.
    values : dict
        ``values["tea"]["cake"]`` is the elasticity of cake's share with regard to tea's price; NaN where cake has no
        share at either.
    intervals : dict or None
        The ends of the intervals, where ``Bootstrap.elasticities`` made it.
    """

    steps: dict[Label, Ends]
    values: dict[Label, dict[Label, float]]
    intervals: dict[Label, dict[Label, Ends]] | None = None

    @property
    def own(self) -> dict[Label, float]:
        """Each item's elasticity with regard to its own price: at most 0 where the model keeps the order of prices."""
        return {item: row[item] for item, row in self.values.items()}

    def cross(self, item: Label) -> dict[Label, float]:
        """The elasticities of all other items with regard to one item's price."""
        return {other: value for other, value in self.values[item].items() if other != item}


_levels_in = lru_cache(maxsize=64)(PriceLevels.from_labels)


def levels_of(model: Any) -> PriceLevels | None:
    """The price levels of a model: those noted when it was fitted, or those that its items' labels name."""
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
    """The price levels of a model that must have some."""
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
    """The items of a model by their own names, each once, whatever their prices."""
    levels = require_levels(model)
    return tuple(dict.fromkeys(levels.of(label)[0] for label in model.items))


def most_frequent_prices(counts: ChoiceCounts, levels: PriceLevels) -> list[list[Any]]:
    """Pairs of an item and the level at which it was offered to most customers; of equals, the dearest.

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
    """Every item of a model with prices, at its most frequent price in the data.

    Where the model does not remember that, it is the middle level; of an even number the dearer one, as the cheaper one
    of two is often a promotion.
    """
    levels = require_levels(model).levels
    noted = getattr(model, "about", {}).get("usual_prices")
    pairs = noted if isinstance(noted, list) else []
    whole = (pair for pair in pairs if isinstance(pair, list) and len(pair) == 2)
    usual: dict[Label, float] = {
        item: price for item, price in whole if isinstance(item, str) and isinstance(price, float | int)
    }
    found: dict[Label, Any] = dict.fromkeys(own_items(model))
    for item in found.keys() & levels.keys():
        prices = levels[item]
        found[item] = usual[item] if usual.get(item) in prices else prices[len(prices) // 2]
    return found


def everything(model: Any) -> tuple[Label, ...]:
    """All items that can be on offer at once: of a model with prices, each at its usual price.

    >>> from rankstream import RankingModel
    >>> everything(RankingModel(["tea @ 3.00", "tea @ 4.00", "no"], [("tea @ 3.00", "tea @ 4.00", "no")], [1.0]))
    ('tea @ 4.00', 'no')
    """
    levels = levels_of(model)
    return tuple(model.items) if levels is None else levels.offer(usual_prices(model))


def curves_of(
    model: Any, ask: Callable[[Label, Offer], Mapping[float, Any]], asked: Iterable[Label], whole: Offer
) -> dict[Label, dict[float, Any]]:
    """The demand for each of some items by its own price, beside the others of an offer.

    ``ask`` is ``model.demand``, or that of a ``Bootstrap``.
    """
    levels = require_levels(model).levels
    several = [item for item in asked if len(levels.get(item, ())) > 1]
    beside = {item: {other: price for other, price in whole.items() if other != item} for item in several}
    around = [near for item, others in beside.items() for near in demand_offers(model, item, others).values()]
    if around:  # all at once: a model of maximum entropy remembers its answers, and makes one program for them
        model.probabilities(Assortments(dict.fromkeys(offer for near in around for offer in near.offers), model.items))
    return {item: dict(ask(item, others)) for item, others in beside.items()}


@dataclass(frozen=True)
class NearbyOffers:
    """The offers at levels around an offer at any prices, and how much each weighs.

    Between two levels shares are taken to be linear in the price, and multilinear where several items are between
    theirs. ``between`` are these items.
    """

    items: tuple[Label, ...]
    offers: tuple[tuple[Label, ...], ...]
    weights: Vec
    between: tuple[Label, ...]

    def shares(self, model: Predicts) -> Vec:
        """The share of each of the items."""
        found = model.probabilities(Assortments(self.offers, model.items))
        return np.asarray(self.weights @ found.reshape(len(self.offers), len(self.items)), dtype=np.float64)


def nearby_offers(levels: PriceLevels, items: Iterable[Label], offer: Offer) -> NearbyOffers:
    """The offers around one at any prices within the levels; ``items`` are all labels that the model knows.

    >>> levels = PriceLevels({"tea": [3, 4]})
    >>> around = nearby_offers(levels, ["tea @ 3.00", "tea @ 4.00", "no"], {"tea": 3.25, "no": None})
    >>> around.offers, around.weights.tolist()
    ((('tea @ 3.00', 'no'), ('tea @ 4.00', 'no')), [0.75, 0.25])
    """
    if not offer:
        raise ValueError("The offer is empty: list at least one item.")
    levels.offer(offer)  # or a sentence about what is wrong with it
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
    picked = list(product(*sides))
    return NearbyOffers(
        tuple(plain(item) for item in offer),
        tuple(tuple(label for label, _ in one) for one in picked),
        np.array([prod(weight for _, weight in one) for one in picked]),
        between,
    )


def _sides(levels: PriceLevels, item: Label, price: Any) -> list[tuple[Label, float]]:
    """The labels of an item at the levels on both sides of a price, with their weights; one where it is a level."""
    if item not in levels.levels:
        return [(item, 1.0)]
    ends = levels.levels[item]
    value = min(max(float(price), ends[0]), ends[-1])  # of quantiles, a bin may reach beyond its level
    room = PRICE_ROUNDING * max(ends[-1], 1.0)
    nearest = next((level for level in ends if abs(level - value) <= room), None)
    if nearest is not None:
        return [(levels.label(item, nearest), 1.0)]
    low, high = next((low, high) for low, high in pairwise(ends) if low < value < high)
    part = (value - low) / (high - low)
    return [(levels.label(item, low), 1.0 - part), (levels.label(item, high), part)]


def predict_at(model: Predicts, offer: Offer) -> dict[Label, float]:
    """The shares of an offer of items at prices, under the items' own names."""
    if levels_of(model) is None and all(price is None for price in offer.values()):
        around = NearbyOffers(tuple(offer), (tuple(offer),), np.ones(1), ())
    else:
        around = nearby_offers(require_levels(model), model.items, offer)
    return dict(zip(around.items, around.shares(model).tolist(), strict=True))


def demand_offers(model: Any, item: Label, others: Offer) -> dict[float, NearbyOffers]:
    """An offer for each level of an item, beside others at their prices."""
    levels = _require_levels_of(model, item)
    given: object = others  # whatever the caller gave
    if not isinstance(given, Mapping) or not given:
        raise ValueError(f"The other items are {others!r}: give their prices, as in {{'cake': 4.0, 'nothing': None}}.")
    if item in others:
        raise ValueError(f"The other items contain {item!r} itself: leave it out, as it is at each of its levels.")
    return {price: nearby_offers(levels, model.items, {item: price, **others}) for price in levels.levels[item]}


def demand_curve(model: Predicts, item: Label, others: Offer) -> dict[float, float]:
    """The share of an item at each of its levels."""
    return {price: float(around.shares(model)[0]) for price, around in demand_offers(model, item, others).items()}


def leaving_offer(model: Any, item: Label, price: Any, no_choice: Label | None) -> dict[Label, Any]:
    """An offer of an item at a price and of leaving."""
    leave = model.no_choice if no_choice is None else no_choice
    if leave is None:
        raise ValueError("The model has no no-purchase option: set no_choice, such as 'nothing'.")
    if item == leave:
        raise ValueError(f"The item {item!r} is the no-purchase option: choose an item that is sold.")
    _require_levels_of(model, item)
    return {item: price, leave: None}


def elasticity_steps(levels: PriceLevels, offer: Offer) -> dict[Label, Ends]:
    """The two prices compared for each item: its level (or the one below its price) and the next dearer one.

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
    """The arc elasticity between two points of a curve; NaN where both shares are 0.

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
    """Arc elasticities of all shares of an offer with regard to each price; ``measured`` adds intervals."""
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

    def measure(one: Predicts) -> Vec:
        rows = []
        for item, (first, second) in sides.items():
            pairs = zip(first.shares(one).tolist(), second.shares(one).tolist(), strict=True)
            rows.append([arc(steps[item], pair) for pair in pairs])
        return np.array(rows)

    found = Elasticities(steps, _table(steps, around.items, measure(model)))
    if measured is None:
        return found
    _, low, high = measured(measure, interval)
    lows, highs = (_table(steps, around.items, part) for part in (low, high))
    both = {item: {other: (lows[item][other], highs[item][other]) for other in lows[item]} for item in lows}
    return replace(found, intervals=both)


def _table(steps: Iterable[Label], items: tuple[Label, ...], rows: Vec) -> dict[Label, dict[Label, float]]:
    return {item: dict(zip(items, row, strict=True)) for item, row in zip(steps, rows.tolist(), strict=True)}
