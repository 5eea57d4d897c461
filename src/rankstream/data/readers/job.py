"""One reading: at once by a GROUP BY where all records are good, row by row where some are not."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np

from rankstream.data.readers.ballots import ballot_of
from rankstream.data.readers.contents import own_contents
from rankstream.data.readers.formats import Layout
from rankstream.data.readers.grouping import Split, groups
from rankstream.data.readers.lines import Row
from rankstream.data.readers.long import names_items
from rankstream.data.readers.problems import BadRecordError, Problems
from rankstream.data.readers.records import Choices, text, weight_of
from rankstream.data.readers.tables import Source, connected

Key = Any
Tally = dict[Key, dict[Any, float]]
LITTLE = "100MB"
HEAD = 200_000
TEXT = {str}


@dataclass(frozen=True)
class Job:
    """One reading: grouped at once where all records are good, row by row where some are not."""

    source: Source
    layout: Layout
    split: Split
    choices: Choices
    known: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def outcome(self, raw: Sequence[Any]) -> Any:
        """What a record says: an offer and a choice, or a ballot."""
        if self.layout.format == "rankings":
            return ballot_of(raw[0], self.choices.items)
        return self.choices.outcome(raw)

    def quickly(self, memory: str | None) -> tuple[Tally, int] | None:
        """The tally by one GROUP BY; None where anything is not as it should be.

        Without a word about memory, DuckDB begins with little, which costs it next to no time, and goes to disk.
        The first rows of a long table mostly hold all items, so that one scan does.
        """
        heads = (HEAD, None) if self.layout.format == "long" else (None,)
        return next((found for head in heads if (found := self._tried(memory, head)) is not None), None)

    def _tried(self, memory: str | None, head: int | None) -> tuple[Tally, int] | None:
        import duckdb

        try:
            return self._grouped(memory or LITTLE, head)
        except (duckdb.OutOfMemoryException, duckdb.IOException):
            with suppress(duckdb.Error, BadRecordError):
                return self._grouped(None, head) if memory is None else None
        except (duckdb.Error, BadRecordError):
            pass
        return None

    def _grouped(self, memory: str | None, head: int | None) -> tuple[Tally, int] | None:
        tally: Tally = defaultdict(lambda: defaultdict(float))
        rows = 0
        with connected(memory) as connection:
            table = self.source.table(connection)
            if table is None:
                return None
            own = self.choices.contents is None
            for group in groups(connection, self.source, table, self.layout, self.split, head, own):
                if not group.good:
                    return None
                key = group.key[0] if self.split.parts is not None else self.split.label(group.key)
                tally[key][self.outcome(group.raw)] += group.weight
                rows += group.records
        return tally, rows

    def slowly(self, problems: Problems) -> tuple[Tally, int]:
        """The tally row by row, each bad record with its place."""
        if self.layout.by_id and self.choices.contents is None:
            self.choices.contents = own_contents(self.source, self.layout)
        places = {column: place for place, column in enumerate(self.source.columns)}
        at = Places(
            [places[column] for column in self.layout.raw],
            [places[column] for column in self.split.columns],
            None if self.layout.count is None else places[self.layout.count],
            self.layout.naming,
        )
        tally: Tally = defaultdict(lambda: defaultdict(float))
        found: list[tuple[Any, float]] = []
        rows = 0
        records = self.source.rows()
        for row in _observations(records, at) if self.layout.format == "long" else records:
            rows += 1
            try:
                if row.wrong is not None:
                    raise row.wrong
                outcome, key, weight = self._record(row.cells, at)
            except BadRecordError as bad:
                problems.add(row.place, bad, row.cells)
                continue
            if self.split.parts is None:
                tally[key][outcome] += weight
            else:
                found.append((outcome, weight))
        for part, chunk in enumerate(np.array_split(np.arange(len(found)), self.split.parts or 1)):
            for outcome, weight in (found[number] for number in chunk):
                tally[part][outcome] += weight
        return tally, rows

    def _record(self, cells: Sequence[Any], at: "Places") -> tuple[Any, Key, float]:
        if self.layout.format == "long":
            return self._observation(cells, at)
        raw = at.pick(cells)
        outcome = self._known(raw, raw) if TEXT.issuperset(map(type, raw)) else self.outcome(raw)
        return (outcome, (), 1.0) if at.alone else (outcome, *self._rest(cells, at))

    def _known(self, name: tuple[Any, ...], raw: Sequence[Any]) -> Any:
        found = self.known.get(name)
        if found is None:
            found = self.known[name] = self.outcome(raw)
        return found

    def _observation(self, rows: Sequence[Sequence[Any]], at: "Places") -> tuple[Any, Key, float]:
        entries = tuple([at.pick(cells)[1:] for cells in rows])
        is_text = all(type(cell) is str for entry in entries for cell in entry)
        outcome = self._known(entries, (entries, at.naming)) if is_text else self.outcome((entries, at.naming))
        if at.alone:
            return outcome, (), 1.0
        ends = {self._rest(cells, at) for cells in rows}
        if len(ends) > 1:
            columns = " and ".join(repr(self.source.columns[place]) for place in at.rest)
            raise BadRecordError("malformed", f"one observation has different values of {columns}: correct it.")
        return outcome, *ends.pop()

    def _rest(self, cells: Sequence[Any], at: "Places") -> tuple[Key, float]:
        """The group of a record, and its count."""
        key = self.split.label([cells[place] for place in at.key]) if at.key else ()
        if at.count is None or (cells[at.count] is None and self.source.count_if_missing):
            return key, 1.0
        return key, weight_of(cells[at.count])


@dataclass
class Places:
    """At which places of a row its parts are, and whether the choices of a long table name an item."""

    raw: list[int]
    key: list[int]
    count: int | None
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


def _observations(rows: Iterator[Row], at: Places) -> Iterator[Row]:
    """The rows of each observation together, in the order of their first rows; one bad row spoils its observation."""
    found: dict[Any, list[Row]] = {}
    name_at, item_at, chosen_at = at.raw
    for row in rows:
        name = row.cells[name_at] if len(row.cells) > name_at else None
        if isinstance(name, list | dict) or (row.wrong is None and text(name) == ""):
            yield row._replace(wrong=BadRecordError("empty", "the observation has no name: give it one."))
        elif row.wrong is not None and text(name) == "":
            yield row
        else:
            found.setdefault(name, []).append(row)
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
