"""Answers of any choice model: substitution, predictions as JSON, and customer types."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankstream._core.types import Label, Vec
from rankstream.data.assortments import Assortments, as_offer
from rankstream.models.fit_warnings import fit_warnings, noted
from rankstream.models.prices import everything, nearby_offers
from rankstream.models.protocol import Predicts

OUTSIDE_NAMES = frozenset(
    {"nothing", "none", "no", "no choice", "no_choice", "no-choice", "no purchase", "no_purchase", "no-purchase"}
    | {"outside", "outside option", "leave", "no buy", "nobody"}
)
"""Common names of the no-purchase option."""


@dataclass(frozen=True, eq=False)
class Substitution:
    """What the buyers of an item choose when it is gone.

    Attributes
    ----------
    items : tuple of items
        The whole offer.
    before : array
        ``before[i]`` is the share of item i in the whole offer.
    shares : array
        ``shares[i, k]`` is the share of item i's buyers who switch to item k. Rows sum to 1; they are zero for items
        without buyers and for items that were not requested.
    low, high : array or None
        The ends of intervals of the shares, from ``Bootstrap.substitution``.
    interval_name : str
        Name of these intervals, such as "95 % intervals" (``interval_words``).
    no_choice : item or None
        The no-purchase option, which is never out of stock.
    """

    items: tuple[Label, ...]
    before: Vec
    shares: Vec
    low: Vec | None = None
    high: Vec | None = None
    interval_name: str = "intervals"
    no_choice: Label | None = None

    def gains(self, item: Label) -> dict[Label, float]:
        """Return what buyers of an item choose when it is gone, largest share first."""
        row = self.shares[self.items.index(item)]
        order = [int(place) for place in np.argsort(-row, kind="stable") if self.items[place] != item]
        return {self.items[place]: float(row[place]) for place in order}

    def to_json(self, gone: Iterable[Label] | None = None, shares: Mapping[Label, Any] | None = None) -> list[Any]:
        """Return each item's share and, for the items in ``gone``, who gains when it is gone, as JSON values.

        ``shares`` has the items' shares with the ends of their intervals, if these are known.
        """
        requested, ends = set(self.items if gone is None else gone), shares or {}
        rows: list[dict[str, Any]] = []
        for place, item in enumerate(self.items):
            row: dict[str, Any] = {"item": str(item), "share": float(self.before[place]), "gains": None}
            if item in requested:
                row["gains"] = {str(other): part for other, part in self.gains(item).items()}
            if ends:
                row |= {"low": ends[item].low, "high": ends[item].high, "gains_intervals": None}
            if item in requested and self.low is not None and self.high is not None:
                pairs = zip(self.items, self.low[place].tolist(), self.high[place].tolist(), strict=True)
                known = {str(other): [low, high] for other, low, high in pairs if other != item and low == low}
                row["gains_intervals"] = known or None  # with many items, only the most chosen have errors
            rows.append(row)
        return rows

    def among(self, items: Iterable[Label]) -> "Substitution":
        """Return the rows and columns of some items, in the same order."""
        wanted = set(items)
        places = [place for place, item in enumerate(self.items) if item in wanted]
        both = np.ix_(places, places)
        low, high = (None if part is None else part[both] for part in (self.low, self.high))
        labels = tuple(self.items[place] for place in places)
        return replace(self, items=labels, before=self.before[places], shares=self.shares[both], low=low, high=high)


def missing_no_choice(model: Any, offer: Iterable[Label]) -> Label | None:
    """Return the no-purchase option if an offer lacks it: customers can always leave, so ``predict`` adds it.

    An item counts as the no-purchase option if it was declared when the data were read, or has such a name ("nothing").
    An item that was merely in every offer, such as a best seller, does not.

    >>> from rankstream import RankingModel
    >>> model = RankingModel(["tea", "no"], [("tea", "no"), ("no", "tea")], [0.75, 0.25], no_choice_code=1)
    >>> missing_no_choice(model, ["tea"]), missing_no_choice(model, ["tea", "no"])
    ('no', None)
    >>> missing_no_choice(model.relabel(["tea", "pie"]), ["tea"])
    """
    item: Label | None = getattr(model, "no_choice", None)
    if item is None or item in offer:
        return None
    named = noted(getattr(model, "about", {}), "reading").get("no_choice")
    return item if str(item) == named or str(item).strip().lower() in OUTSIDE_NAMES else None


def prediction_to_json(model: Any, offer: Iterable[Label], shares: Mapping[Label, Any]) -> dict[str, Any]:
    """Return a prediction as JSON values: offer, shares, items added, how near the data are, and warnings.

    The offer may map items to prices; ``shares`` are the model's prediction, with or without intervals.
    """
    offer = offer if isinstance(offer, Mapping) else tuple(offer)
    near = model.nearness(offer)
    content: dict[str, Any] = {
        "offer": [str(item) for item in offer],
        "shares": {str(item): float(getattr(share, "share", share)) for item, share in shares.items()},
        "added": [str(item) for item in shares if item not in offer],
        "nearness": None if near is None else near.to_json(),
        "warnings": fit_warnings(model.about),
    }
    if isinstance(offer, Mapping) and model.price_levels is not None:
        between = nearby_offers(model.price_levels, model.items, offer).between
        content["prices"] = {str(item): price for item, price in offer.items()}
        content["between_levels"] = [str(item) for item in between]
    if all(hasattr(share, "low") for share in shares.values()):
        content["intervals"] = {str(item): [share.low, share.high] for item, share in shares.items()}
    return content


def substitution(
    model: Predicts, offer: Iterable[Label] | None = None, gone: Iterable[Label] | None = None
) -> Substitution:
    """Return what each item's buyers choose when it is removed from an offer (default: all items).

    With price levels, the default is every item at its usual price. The buyers who switch to another item are the rise
    of that item's share. With ``gone`` only the rows of these items are computed, which matters with thousands of them.

    >>> from rankstream import RankingModel
    >>> model = RankingModel(["tea", "pie", "no"], [("tea", "pie", "no"), ("tea", "no", "pie")], [0.75, 0.25])
    >>> substitution(model).gains("tea")
    {'pie': 0.75, 'no': 0.25}
    """
    whole = as_offer("The offer", everything(model) if offer is None else offer)
    if len(whole) < 2:
        raise ValueError("An offer of one item leaves nothing to switch to: name at least two items.")
    size = len(whole)
    requested = set(whole if gone is None else gone)
    rows = [place for place, item in enumerate(whole) if item in requested]
    without = [whole[:place] + whole[place + 1 :] for place in rows]
    predicted = model.probabilities(Assortments([whole, *without], model.items))
    before, after = predicted[:size], predicted[size:].reshape(len(rows), size - 1)
    shares = np.zeros((size, size))
    for place, left in zip(rows, after, strict=True):
        others = np.delete(np.arange(size), place)
        if before[place] > 1e-12:
            shares[place, others] = (left - before[others]) / before[place]
    return Substitution(whole, before, shares, no_choice=getattr(model, "no_choice", None))


def most_chosen(model: Predicts, most: int) -> tuple[Label, ...]:
    """Return the ``most`` items with the largest shares when all are on offer, in the model's order.

    >>> from rankstream import RankingModel
    >>> most_chosen(RankingModel(["tea", "pie", "no"], [("no", "tea", "pie"), ("tea", "pie", "no")], [0.6, 0.4]), 2)
    ('tea', 'no')
    """
    items = everything(model)
    if len(items) <= most:
        return items
    shares = model.probabilities(Assortments([items], model.items))
    return tuple(items[place] for place in np.sort(np.argsort(-shares, kind="stable")[:most]).tolist())


@dataclass(frozen=True)
class Segment:
    """A customer type: the items it would buy, best first, and its share of all customers."""

    ranking: tuple[Label, ...]
    share: float


def favourites(moves: Substitution, no_choice: Label | None, places: int = 2) -> dict[tuple[Label, ...], float]:
    """Return the shares of customer types by their first two choices, largest first.

    They are exact, since a second choice is a substitute. A type ends before ``no_choice``, the no-purchase option, if
    there is one. With ``places=1``, types are first choices.

    >>> from rankstream import RankingModel
    >>> model = RankingModel(["tea", "pie", "no"], [("tea", "pie", "no"), ("tea", "no", "pie")], [0.75, 0.25])
    >>> favourites(model.substitution(), "no"), favourites(model.substitution(), "no", places=1)
    ({('tea', 'pie'): 0.75, ('tea',): 0.25}, {('tea',): 1.0})
    """
    merged: dict[tuple[Label, ...], float] = {}
    for first, second in zip(*np.nonzero(moves.shares > 1e-12), strict=True):
        pair = (moves.items[first], moves.items[second])
        wanted = (pair if no_choice is None or no_choice not in pair else pair[: pair.index(no_choice)])[:places]
        merged[wanted] = merged.get(wanted, 0.0) + float(moves.before[first] * moves.shares[first, second])
    return dict(sorted(merged.items(), key=lambda pair: -pair[1]))
