"""Records of a stream: their checks, whether they can wait, and their items at price levels."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple

from rankstream._core.types import Label
from rankstream.data import Assortments, PriceLevels, plain
from rankstream.data.counts import MAX_OBSERVATIONS
from rankstream.data.readers.problems import shown

MAX_DETECTED_COUNT = 100_000  # choices of one record, which a detector counts one by one; bounds its time
MAX_KNOWN_OFFERS = 10_000  # in the cache of offers at levels
Known = tuple[tuple[Label, ...], dict[Label, Label]]


class Record(NamedTuple):
    """One observation: the offer, the choice, how many times, and when (in seconds since 1970).

    If items have prices, the offer is a mapping from items to prices, None for items without one.
    """

    offered: Any  # a tuple of items, or a mapping from items to prices
    chosen: Label
    times: float = 1.0
    time: float | None = None


def check_record(record: Record, timed: bool, detect: bool) -> None:
    """Refuse a record that cannot be counted by time, or choice by choice."""
    if record.chosen not in record.offered:
        raise ValueError(f"its choice {record.chosen!r} is not in its offer {record.offered!r}")
    if timed and record.time is None:
        raise ValueError('it has no readable "time", which a half-life or window in time needs: write 2024-05-16T12:30')
    if detect and not (float(record.times).is_integer() and 0 <= record.times <= MAX_DETECTED_COUNT):
        raise ValueError(
            f"its count {record.times:g} is not a whole number up to {MAX_DETECTED_COUNT:,}: change "
            "detection goes choice by choice"
        )


def can_wait(record: Record, whole: bool) -> bool:
    """Whether count and time are surely valid, so that counting the record later cannot fail.

    >>> can_wait(Record(("tea", "pie"), "tea", 2.5), whole=False), can_wait(Record(("tea", "pie"), "tea", 2.5), True)
    (True, False)
    """
    times, moment = record.times, record.time
    if not _is_number(times) or not 0.0 <= times < MAX_OBSERVATIONS or (whole and times != int(times)):
        return False
    return moment is None or (_is_number(moment) and isfinite(moment))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class RecordLevels:
    """Maps the prices of records to levels. Without levels, records pass unchanged, and prices are refused.

    An item with levels has a price in every record. Items without levels, such as "nothing" or one that joins later,
    have none. Labels of levels, such as "tea @ 3.50", are used as they are.

    >>> RecordLevels({"tea": [3, 3.5]}).of(Record({"tea": 3.4, "nothing": None}, "tea"))
    Record(offered=('tea @ 3.50', 'nothing'), chosen='tea @ 3.50', times=1.0, time=None)
    """

    def __init__(self, levels: PriceLevels | Mapping[Any, Any] | None) -> None:
        self.levels = levels if levels is None or isinstance(levels, PriceLevels) else PriceLevels(levels)
        self._known: dict[Any, Known] = {}

    def of(self, record: Record) -> Record:
        """Return the record with its items at levels; raise a ValueError if that is not possible."""
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
        except TypeError:  # not items: later checks explain
            return tuple(offered), {}
        try:
            known = self._find_labels(levels, offered)
        except ValueError as error:
            words = str(error).rstrip(".")
            raise ValueError(words[0].lower() + words[1:]) from None
        if len(self._known) >= MAX_KNOWN_OFFERS:
            self._known.clear()
        self._known[key] = known
        return known

    def _find_labels(self, levels: PriceLevels, offered: Any) -> Known:
        pairs = [levels.of(item) if price is None else (item, price) for item, price in _pairs(offered)]
        labels = levels.offer(pairs)
        for label in labels:
            if levels.of(label)[1] is None and PriceLevels.from_labels([label]) is not None:
                raise ValueError(f"The item {label!r} looks like an item at a price that is not a level: use a level.")
        named = {plain(item): label for (item, _), label in zip(pairs, labels, strict=True)}
        return labels, named | {label: label for label in labels}

    def assortments(self, offers: Iterable[tuple[Label, ...]]) -> Assortments:
        """Return the assortments of a stream's first offers, with all levels in their order."""
        first = list(offers)
        if self.levels is None:
            return Assortments(first)
        items = dict.fromkeys((*self.levels.labels, *(item for offer in first for item in offer)))
        return Assortments(first, items, self.levels.order)

    def own(self, item: Label) -> Label:
        """Return the name of an item without its level."""
        return item if self.levels is None else self.levels.of(item)[0]


def without_levels(offered: Mapping[Any, Any]) -> ValueError:
    """Return the error about prices without price levels."""
    return ValueError(
        f"its offer {shown(dict(offered))} has prices, but no price levels were given: give those of "
        "every item with a price, or leave out prices"
    )


def _pairs(offered: Any) -> list[tuple[Any, Any]]:
    return list(offered.items()) if isinstance(offered, Mapping) else [(item, None) for item in offered]
