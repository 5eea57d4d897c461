"""Records one by one: the rows of an observation together, and what is remembered of them until all are seen."""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.data.readers.long import names_items
from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.sources.labels import text_or_nothing
from rankstream.data.readers.sources.lines import RawRow
from rankstream.data.readers.times import Clock, Span, slice_numbers, spans_of

Key = Any
COUNTED, FADED, SQUARED = "counted", "faded", "squared"
Tally = dict[tuple[str, Key, int], dict[Any, float]]  # by kind of sum, group and slice of time: outcomes and sums
MAX_GROUPS = 1_000_000


@dataclass(frozen=True)
class ReadResult:
    """The result of a reading: the tally, how many records there were, and the times of all and of each slice."""

    tally: Tally
    rows: int
    span: Span | None = None
    spans: list[Span] | None = None


def new_tally() -> Tally:
    """A tally to be added to."""
    return defaultdict(lambda: defaultdict(float))


def check_groups(number: int) -> None:
    """That the groups are not too many to be kept apart."""
    if number > MAX_GROUPS:
        raise ValueError(f"There are more than {MAX_GROUPS:,} groups: choose columns with fewer values.")


@dataclass
class ColumnPlaces:
    """At which places of a row its parts are, and whether the choices of a long table name an item."""

    raw: list[int]
    key: list[int]
    count: int | None
    time: int | None
    naming: bool | None

    def __post_init__(self) -> None:
        self.alone = not self.key and self.count is None
        self.pick: Callable[[Sequence[Any]], tuple[Any, ...]] = (
            itemgetter(*self.raw) if len(self.raw) > 1 else lambda cells: (cells[self.raw[0]],)
        )

    @property
    def rest(self) -> list[int]:
        """What belongs to an observation as a whole."""
        return self.key + ([] if self.count is None else [self.count])


@dataclass
class RecordBuffer:
    """All good records in their order, as numbers, for what is known only in the end: parts, slices and ages."""

    outcomes: dict[Any, int] = field(default_factory=dict)
    groups: dict[Key, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._outcome, self._group, self._weight, self._time = array("q"), array("q"), array("d"), array("d")

    def add(self, outcome: Any, group: Key, weight: float, time: float) -> None:
        """Remember a record."""
        self._outcome.append(self.outcomes.setdefault(outcome, len(self.outcomes)))
        self._group.append(self.groups.setdefault(group, len(self.groups)))
        self._weight.append(weight)
        self._time.append(time)

    def found(self, rows: int, parts: int | None, clock: Clock | None) -> ReadResult:
        """What all records together say."""
        weights, times = np.array(self._weight, np.float64), np.array(self._time, np.float64)
        group, names = np.array(self._group, np.int64), list(self.groups)
        if parts is not None:
            group, names = part_numbers(len(weights), parts), list(range(min(parts, max(1, len(weights)))))
        if clock is None or np.isnan(times).any() or not len(times):
            return ReadResult(self._tally({COUNTED: weights}, group, names, np.zeros(len(weights), np.int64)), rows)
        span = float(times.min()), float(times.max())
        spans = None if clock.slices is None else spans_of(times, weights, clock.slices)
        number = np.zeros(len(weights), np.int64) if spans is None else slice_numbers(times, spans)
        tally = self._tally({COUNTED: weights}, group, names, number)
        if clock.half_life is not None:
            left = clock.weights(times, span[1])
            sums = {FADED: weights * left, SQUARED: weights * left * left}
            tally |= self._tally(sums, group, names, np.zeros(len(weights), np.int64))
        return ReadResult(tally, rows, span, spans)

    def _tally(self, sums: dict[str, Vec], group: Codes, names: list[Key], number: Codes) -> Tally:
        outcomes, slices = list(self.outcomes), int(number.max(initial=0)) + 1
        code = (group * slices + number) * max(1, len(outcomes)) + np.array(self._outcome, np.int64)
        codes, place = np.unique(code, return_inverse=True)
        tally = new_tally()
        for kind, weights in sums.items():
            total = np.bincount(place, weights=weights, minlength=len(codes))
            for one, weight in zip(codes.tolist(), total.tolist(), strict=True):
                (at, slice_number), outcome = divmod(one // len(outcomes), slices), outcomes[one % len(outcomes)]
                tally[kind, names[at], slice_number][outcome] += weight
        return tally


def part_numbers(rows: int, parts: int) -> Codes:
    """The part of each row, the first parts being longer by one where it does not divide.

    >>> part_numbers(5, 3).tolist()
    [0, 0, 1, 1, 2]
    """
    size, longer = divmod(rows, parts)
    at, edge = np.arange(rows), longer * (size + 1)
    return np.where(at < edge, at // (size + 1), longer + (at - edge) // max(size, 1))


def observations(rows: Iterator[RawRow], at: ColumnPlaces) -> Iterator[RawRow]:
    """The rows of each observation together, in the order of their first rows; one bad row spoils its observation."""
    found: dict[str, list[RawRow]] = {}
    name_at, item_at, chosen_at, *_ = at.raw
    for row in rows:
        name = text_or_nothing(row.cells[name_at]) if len(row.cells) > name_at else ""
        if name != "":
            found.setdefault(name, []).append(row)
        elif row.wrong is None:
            yield row._replace(wrong=BadRecordError("empty", "the observation has no id: add one."))
        else:
            yield row
    if at.naming is None:
        good = [row.cells for alternatives in found.values() for row in alternatives if row.wrong is None]
        at.naming = names_items(*(_distinct(cells[place] for cells in good) for place in (item_at, chosen_at)))
    for alternatives in found.values():
        first = next((row for row in alternatives if row.wrong is not None), alternatives[0])
        yield first._replace(cells=tuple(row.cells for row in alternatives))


def _distinct(cells: Iterable[Any]) -> list[Any]:
    """The cells that are text, each once, and all others."""
    texts, others = set[str](), list[Any]()
    for cell in cells:
        if type(cell) is str:
            texts.add(cell)
        else:
            others.append(cell)
    return [*texts, *others]
