"""How near an offer is to the offers in the data: those that are far, a model can only extrapolate to."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rankstream._core.terminal import plural
from rankstream._core.types import Label
from rankstream.data.prices import PriceLevels

MAX_NEAR_ITEMS = 2
"""An offer that differs in more items than this (one swap) from every offer in the data is an extrapolation."""


@dataclass(frozen=True)
class Nearness:
    """How close an offer is to the offers in the data.

    Attributes
    ----------
    shown : float
        How often the offer was shown.
    nearest : tuple of items
        The nearest offer in the data.
    differs : int
        Number of items that are added, dropped or repriced between the two.
    size : int
        Number of items in the offer.
    fewest, most : int
        Smallest and largest number of items of offers in the data.
    """

    shown: float
    nearest: tuple[Label, ...]
    differs: int
    size: int
    fewest: int
    most: int

    @property
    def is_extrapolation(self) -> bool:
        """Whether the offer is far from every offer in the data, or smaller or larger than all of them."""
        return not self.shown and (self.differs > MAX_NEAR_ITEMS or not self.fewest <= self.size <= self.most)

    @property
    def words(self) -> str:
        """The result in words.

        Examples
        --------
        >>> print(Nearness(312, ("tea",), 0, 1, 1, 3).words, Nearness(0, ("tea", "pie"), 3, 6, 8, 12).words)
        This offer was shown 312 times.
        Never shown: the nearest offer in the data differs in 3 items. This offer has 6 items; offers in the data have
        8 to 12.
        """
        if self.shown:
            return f"This offer was shown {plural(self.shown, 'time')}."
        text = f"Never shown: the nearest offer in the data differs in {plural(self.differs, 'item')}."
        if not self.fewest <= self.size <= self.most:
            have = f"{self.fewest}" if self.fewest == self.most else f"{self.fewest} to {self.most}"
            text += f" This offer has {plural(self.size, 'item')}; offers in the data have {have}."
        return text

    @property
    def sentence(self) -> str:
        """The same, with a warning if the offer is an extrapolation."""
        warning = " Warning: this is an extrapolation. Try it in a test, or move towards it in small steps."
        return self.words + warning * self.is_extrapolation

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        named = {"nearest": [str(item) for item in self.nearest], "is_extrapolation": self.is_extrapolation}
        return asdict(self) | named


def compare_offer(
    offer: Iterable[Label] | Mapping[Any, Any],
    known: Iterable[tuple[Iterable[Label], float]],
    no_choice: Label | None,
    levels: PriceLevels | None,
) -> Nearness:
    """Compare an offer with offers in the data, given how often each was shown.

    An item at another price is one difference. The offer may map items to prices, also between two levels.

    >>> known = [(("tea", "pie", "no"), 30), (("tea", "no"), 50)]
    >>> compare_offer(("tea", "pie"), known, "no", None).shown, compare_offer(("cake",), known, "no", None).differs
    (30.0, 2)
    """

    def pairs(labels: Iterable[Label] | Mapping[Any, Any]) -> set[tuple[Any, float | None]]:
        """Return the items of an offer with their prices, without the no-purchase option."""
        if isinstance(labels, Mapping):
            return {pair for pair in labels.items() if pair[0] != no_choice}
        return {(item, None) if levels is None else levels.of(item) for item in labels if item != no_choice}

    wanted, found = pairs(offer), list[tuple[int, float, tuple[Label, ...]]]()
    shown, sizes = 0.0, list[int]()
    for labels, total in known:
        if total:
            inside = pairs(labels)
            differs = len({item for item, _ in wanted ^ inside})
            found.append((differs, -total, tuple(item for item in labels if item != no_choice)))
            shown += 0.0 if differs else total
            sizes.append(len(inside))
    differs, _, nearest = min(found, key=lambda one: one[:2], default=(len(wanted), 0.0, ()))
    return Nearness(shown, nearest, differs, len(wanted), min(sizes, default=0), max(sizes, default=0))


def seen_offers(model: Any) -> list[tuple[list[Label], float]]:
    """Return the offers that a model was fitted to and how often each was shown; none if it has not stored them."""
    noted = model.about.get("seen")
    try:
        rows = zip(noted["offers"], noted["tallies"], strict=True)
        return [([model.items[code] for code in sorted(codes)], float(sum(tallies))) for codes, tallies in rows]
    except (TypeError, KeyError, IndexError, ValueError):  # a file may contain anything
        return []
