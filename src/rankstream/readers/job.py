"""One reading: at once by a GROUP BY where all records are good, row by row where some are not."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankstream.readers.ballots import ballot_of
from rankstream.readers.formats import Layout
from rankstream.readers.grouping import Split, groups
from rankstream.readers.lines import Row
from rankstream.readers.problems import BadRecordError, Problems
from rankstream.readers.records import Choices, text, weight_of
from rankstream.readers.tables import Source, connected

Key = Any
Tally = dict[Key, dict[Any, float]]


@dataclass(frozen=True)
class Job:
    """One reading: grouped at once where all records are good, row by row where some are not."""

    source: Source
    layout: Layout
    split: Split
    choices: Choices

    def outcome(self, raw: Sequence[Any]) -> Any:
        """What a record says: an offer and a choice, or a ballot."""
        if self.layout.format == "rankings":
            return ballot_of(raw[0], self.choices.items)
        return self.choices.outcome(raw)

    def quickly(self, memory: str | None) -> tuple[Tally, int] | None:
        """The tally by one GROUP BY; None where anything is not as it should be."""
        import duckdb

        tally: Tally = defaultdict(lambda: defaultdict(float))
        rows = 0
        with connected(memory) as connection:
            try:
                table = self.source.table(connection)
                if table is None:
                    return None
                for group in groups(connection, self.source, table, self.layout, self.split):
                    if not group.good:
                        return None
                    key = group.key[0] if self.split.parts is not None else self.split.label(group.key)
                    tally[key][self.outcome(group.raw)] += group.weight
                    rows += group.records
            except (duckdb.Error, BadRecordError):
                return None
        return tally, rows

    def slowly(self, problems: Problems) -> tuple[Tally, int]:
        """The tally row by row, each bad record with its place."""
        places = {column: place for place, column in enumerate(self.source.columns)}
        raw_of = [places[column] for column in self.layout.raw]
        key_of = [places[column] for column in self.split.columns]
        count_of = None if self.layout.count is None else places[self.layout.count]
        tally: Tally = defaultdict(lambda: defaultdict(float))
        found: list[tuple[Any, float]] = []
        rows = 0
        records = self.source.rows()
        for row in _observations(records, raw_of) if self.layout.format == "long" else records:
            rows += 1
            try:
                if row.wrong is not None:
                    raise row.wrong
                outcome, key, weight = self._record(row.cells, raw_of, key_of, count_of)
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

    def _record(
        self, cells: Sequence[Any], raw_of: list[int], key_of: list[int], count_of: int | None
    ) -> tuple[Any, Key, float]:
        if self.layout.format == "long":
            outcome = self.outcome([[(row[raw_of[1]], row[raw_of[2]]) for row in cells]])
            for place in (*key_of, *([] if count_of is None else [count_of])):
                if any(row[place] != cells[0][place] for row in cells):
                    column = self.source.columns[place]
                    raise BadRecordError(
                        "malformed", f"one observation has different values of {column!r}: correct it."
                    )
            cells = cells[0]
        else:
            outcome = self.outcome([cells[place] for place in raw_of])
        count = 1 if count_of is None else cells[count_of]
        missing = count is None and self.source.count_if_missing
        return outcome, self.split.label([cells[place] for place in key_of]), 1.0 if missing else weight_of(count)


def _observations(rows: Iterator[Row], raw_of: list[int]) -> Iterator[Row]:
    """The rows of each observation together, in the order of their first rows; one bad row spoils its observation."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        name = row.cells[raw_of[0]] if len(row.cells) > raw_of[0] else None
        if row.wrong is not None and text(name) == "":
            yield row
        elif text(name) == "":
            yield Row(row.place, row.cells, BadRecordError("empty", "the observation has no name: give it one."))
        else:
            found.setdefault(name, []).append(row)
    for alternatives in found.values():
        wrong = next((row for row in alternatives if row.wrong is not None), None)
        place = (wrong or alternatives[0]).place
        yield Row(place, tuple(row.cells for row in alternatives), wrong.wrong if wrong else None)
