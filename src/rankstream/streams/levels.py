"""Records with prices: every item of an offer at the level that its price belongs to, and the order of all levels."""

from collections.abc import Iterable, Mapping
from typing import Any

from rankstream._core.types import Label
from rankstream.data.assortments import Assortments, plain
from rankstream.data.prices import PriceLevels
from rankstream.data.readers.problems import shown
from rankstream.streams.choices import Record

KEPT = 10_000
"""Ways to write an offer that are remembered."""
Known = tuple[tuple[Label, ...], dict[Label, Label]]


class RecordLevels:
    """Puts records with prices on levels; without levels it lets records pass, and refuses those with prices.

    An item with levels has a price in every record, and items without levels have none: such as "nothing", or one that
    joins later. Labels of levels, such as "tea @ 3.50", are taken as they are.

    >>> RecordLevels({"tea": [3, 3.5]}).of(Record({"tea": 3.4, "nothing": None}, "tea"))
    Record(offered=('tea @ 3.50', 'nothing'), chosen='tea @ 3.50', times=1.0, time=None)
    """

    def __init__(self, levels: PriceLevels | Mapping[Any, Any] | None) -> None:
        self.levels = levels if levels is None or isinstance(levels, PriceLevels) else PriceLevels(levels)
        self._known: dict[Any, Known] = {}

    def of(self, record: Record) -> Record:
        """The record with its items at levels; or a ValueError."""
        offered = record.offered
        if self.levels is None:
            if isinstance(offered, Mapping):
                raise without_levels(offered)
            return record
        labels, named = self._labels(self.levels, offered)
        try:
            chosen = named.get(plain(record.chosen), record.chosen)
        except TypeError:
            chosen = record.chosen
        return Record(labels, chosen, record.times, record.time)

    def _labels(self, levels: PriceLevels, offered: Any) -> Known:
        key: Any = None
        try:
            key = tuple(offered.items()) if isinstance(offered, Mapping) else tuple(offered)
            known = self._known.get(key)
            if known is not None and not (isinstance(offered, Mapping) and bool in map(type, offered.values())):
                return known  # True equals 1, but is not a price
        except TypeError:  # what cannot be an item is said below
            return tuple(offered), {}
        try:
            found = self._found(levels, offered)
        except ValueError as error:
            words = str(error).rstrip(".")
            raise ValueError(words[0].lower() + words[1:]) from None
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[key] = found
        return found

    def _found(self, levels: PriceLevels, offered: Any) -> Known:
        pairs = [levels.of(item) if price is None else (item, price) for item, price in _pairs(offered)]
        labels = levels.offer(pairs)
        for label in labels:
            if levels.of(label)[1] is None and PriceLevels.from_labels([label]) is not None:
                raise ValueError(f"The item {label!r} reads like one at a price that is not a level: name a level.")
        named = {plain(item): label for (item, _), label in zip(pairs, labels, strict=True)}
        return labels, named | {label: label for label in labels}

    def assortments(self, offers: Iterable[tuple[Label, ...]]) -> Assortments:
        """The first offers of a stream; all levels are there from the start, in their order."""
        first = list(offers)
        if self.levels is None:
            return Assortments(first)
        items = dict.fromkeys((*self.levels.labels, *(item for offer in first for item in offer)))
        return Assortments(first, items, self.levels.order)

    def own(self, item: Label) -> Label:
        """The own name of an item that may be at a level."""
        return item if self.levels is None else self.levels.of(item)[0]


def without_levels(offered: Mapping[Any, Any]) -> ValueError:
    """What is wrong with prices where no levels are known."""
    return ValueError(
        f"its offer {shown(dict(offered))} has prices, and no price levels were given: give those of every item with a "
        "price, or leave prices out"
    )


def _pairs(offered: Any) -> list[tuple[Any, Any]]:
    """The items of an offer with their prices, None for those without."""
    return list(offered.items()) if isinstance(offered, Mapping) else [(item, None) for item in offered]
