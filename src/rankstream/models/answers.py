"""Questions that any choice model can answer: who gains when an item goes, and the few customer types that matter."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankstream._core.types import Label, Vec
from rankstream.data.assortments import Assortments, as_offer
from rankstream.models.fit_warnings import fit_warnings
from rankstream.models.prices import everything, nearby_offers
from rankstream.models.protocol import Predicts

OUTSIDE_NAMES = frozenset(
    {"nothing", "none", "no", "no choice", "no_choice", "no-choice", "no purchase", "no_purchase", "no-purchase"}
    | {"outside", "outside option", "leave", "no buy", "nobody"}
)
"""How data name the outside option."""


@dataclass(frozen=True, eq=False)
class Substitution:
    """What an item's buyers take when it is gone.

    Attributes
    ----------
    items : tuple of items
        The whole offer.
    before : array
        ``before[i]`` is the share of item i while everything is there.
    shares : array
        ``shares[i, k]`` is the part of item i's buyers that takes item k. Rows sum to 1, but for items that nobody buys
        from the whole offer and those that were not asked for, whose rows are zero.
    low, high : array or None
        The ends of intervals of the shares, where ``Bootstrap.substitution`` made it.
    interval_name : str
        What to call these intervals, such as "95 % intervals" (``interval_words``).
    """

    items: tuple[Label, ...]
    before: Vec
    shares: Vec
    low: Vec | None = None
    high: Vec | None = None
    interval_name: str = "intervals"

    def gains(self, item: Label) -> dict[Label, float]:
        """Return what buyers of an item take when it is gone, largest share first."""
        row = self.shares[self.items.index(item)]
        order = [int(place) for place in np.argsort(-row, kind="stable") if self.items[place] != item]
        return {self.items[place]: float(row[place]) for place in order}

    def to_json(self, gone: Iterable[Label] | None = None, shares: Mapping[Label, Any] | None = None) -> list[Any]:
        """Return each item's share of everything and who gains when it is gone, of those asked for; as JSON has it.

        ``shares`` are the shares of everything with the ends of their intervals, where these are known.
        """
        asked, ends = set(self.items if gone is None else gone), shares or {}
        rows: list[dict[str, Any]] = []
        for place, item in enumerate(self.items):
            row: dict[str, Any] = {"item": str(item), "share": float(self.before[place]), "gains": None}
            if item in asked:
                row["gains"] = {str(other): part for other, part in self.gains(item).items()}
            if ends:
                row |= {"low": ends[item].low, "high": ends[item].high, "gains_intervals": None}
            if item in asked and self.low is not None and self.high is not None:
                pairs = zip(self.items, self.low[place].tolist(), self.high[place].tolist(), strict=True)
                known = {str(other): [low, high] for other, low, high in pairs if other != item and low == low}
                row["gains_intervals"] = known or None  # of many items, errors are stored for the most chosen alone
            rows.append(row)
        return rows

    def among(self, kept: Iterable[Label]) -> "Substitution":
        """Return the rows and columns of some items alone, in the same order."""
        wanted = set(kept)
        places = [place for place, item in enumerate(self.items) if item in wanted]
        both = np.ix_(places, places)
        low, high = (None if part is None else part[both] for part in (self.low, self.high))
        items = tuple(self.items[place] for place in places)
        return replace(self, items=items, before=self.before[places], shares=self.shares[both], low=low, high=high)


def missing_no_choice(model: Any, offer: Iterable[Label]) -> Label | None:
    """Return the outside option where an offer lacks it: customers can always take nothing, so ``predict`` adds it.

    An item counts as the outside option if it was named so when the data were read, or reads like one ("nothing"). One
    that merely was in every offer, such as a best seller, does not: its absence is a question worth asking.

    >>> from rankstream import RankingModel
    >>> model = RankingModel(["tea", "no"], [("tea", "no"), ("no", "tea")], [0.75, 0.25], no_choice_code=1)
    >>> missing_no_choice(model, ["tea"]), missing_no_choice(model, ["tea", "no"])
    ('no', None)
    >>> missing_no_choice(model.relabel(["tea", "pie"]), ["tea"])
    """
    item: Label | None = getattr(model, "no_choice", None)
    if item is None or item in offer:
        return None
    noted = getattr(model, "about", {}).get("reading")
    named = noted.get("no_choice") if isinstance(noted, dict) else None
    return item if str(item) == named or str(item).strip().lower() in OUTSIDE_NAMES else None


def prediction_to_json(model: Any, offer: Iterable[Label], shares: Mapping[Label, Any]) -> dict[str, Any]:
    """Return a prediction as JSON has it: the offer, the shares, what was added to the offer, and warnings.

    The offer may be a mapping to prices; ``shares`` are the model's answer, with the ends of intervals or without.
    """
    asked = offer if isinstance(offer, Mapping) else tuple(offer)
    content: dict[str, Any] = {
        "offer": [str(item) for item in asked],
        "shares": {str(item): float(getattr(share, "share", share)) for item, share in shares.items()},
        "added": [str(item) for item in shares if item not in asked],
        "warnings": fit_warnings(model.about),
    }
    if isinstance(asked, Mapping) and model.price_levels is not None:
        between = nearby_offers(model.price_levels, model.items, asked).between
        content["prices"] = {str(item): price for item, price in asked.items()}
        content["between_levels"] = [str(item) for item in between]
    if all(hasattr(share, "low") for share in shares.values()):
        content["intervals"] = {str(item): [share.low, share.high] for item, share in shares.items()}
    return content


def substitution(
    model: Predicts, offer: Iterable[Label] | None = None, gone: Iterable[Label] | None = None
) -> Substitution:
    """What happens to each item's buyers when it is taken out of an offer; of everything, if none is given.

    Of a model with price levels, everything is every item at its usual price: no offer has an item at two.

    For a model of rankings the buyers of an item who take another one instead are the rise of that one's share. With
    ``gone`` only the rows of these items are computed: with thousands of items, all of them take long.

    >>> from rankstream import RankingModel
    >>> model = RankingModel(["tea", "pie", "no"], [("tea", "pie", "no"), ("tea", "no", "pie")], [0.75, 0.25])
    >>> substitution(model).gains("tea")
    {'pie': 0.75, 'no': 0.25}
    """
    whole = as_offer("The offer", everything(model) if offer is None else offer)
    if len(whole) < 2:
        raise ValueError("An offer of one item leaves nothing to take instead: name at least two items.")
    size = len(whole)
    asked = set(whole if gone is None else gone)
    rows = [place for place, item in enumerate(whole) if item in asked]
    without = [whole[:place] + whole[place + 1 :] for place in rows]
    found = model.probabilities(Assortments([whole, *without], model.items))
    before, after = found[:size], found[size:].reshape(len(rows), size - 1)
    shares = np.zeros((size, size))
    for place, left in zip(rows, after, strict=True):
        others = np.delete(np.arange(size), place)
        if before[place] > 1e-12:
            shares[place, others] = (left - before[others]) / before[place]
    return Substitution(whole, before, shares)


def most_chosen(model: Predicts, most: int) -> tuple[Label, ...]:
    """The items that a model chooses most from everything, in the model's order; all of them, if there are fewer.

    Of a model with price levels, everything is every item at its usual price.

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
    """Customers of one type: what they would take, best first, before they would rather take nothing; their share."""

    ranking: tuple[Label, ...]
    share: float


def favourites(moves: Substitution, no_choice: Label | None, places: int = 2) -> dict[tuple[Label, ...], float]:
    """Shares of customer types by their first two choices, largest first: exactly, as a second choice is a substitute.

    Who takes nothing first or second has a shorter ranking; ``no_choice`` is None where no item stands for that. With
    one of the ``places``, types are those of first choices.

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
