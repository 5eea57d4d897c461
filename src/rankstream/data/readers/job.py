"""Read one source: with a GROUP BY if all records are valid, else row by row."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import nan
from operator import itemgetter
from typing import Any

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.data.readers.formats import Layout
from rankstream.data.readers.groups import Records, Split, names_items
from rankstream.data.readers.prices import PricedChoices, in_both_ways
from rankstream.data.readers.problems import BadRecordError, Problems
from rankstream.data.readers.records import Choices, own_contents, weight_of
from rankstream.data.readers.results import (
    COUNTED,
    FADED,
    SQUARED,
    Key,
    ReadResult,
    Tally,
    ballot_of,
    check_groups,
    new_tally,
)
from rankstream.data.readers.sources.database import own_database
from rankstream.data.readers.sources.labels import text_or_nothing
from rankstream.data.readers.sources.lines import RawRow
from rankstream.data.readers.sources.tables import Source
from rankstream.data.readers.times import Clock, seconds_of, seconds_or_none, slice_numbers, spans_of

FIRST_MEMORY_LIMIT = "100MB"
HEAD_ROWS = 200_000  # of a long table, which mostly name all of its items; benchmarks/reading.py times the whole
TEXT = {str}


class ColumnPlaces:
    """The positions of a record's parts in a row, and whether the choices of a long table name an item."""

    def __init__(self, job: "Job") -> None:
        at = {column: place for place, column in enumerate(job.source.columns)}
        self.raw, self.key = ([at[column] for column in columns] for columns in (job.layout.raw, job.split.columns))
        self.count = None if job.layout.count is None else at[job.layout.count]
        self.time = None if job.clock is None else at[job.clock.column]
        self.naming = job.layout.naming
        self.rest = self.key + ([] if self.count is None else [self.count])  # the same for all rows of an observation
        self.pick: Callable[[Sequence[Any]], tuple[Any, ...]] = (
            itemgetter(*self.raw) if len(self.raw) > 1 else lambda cells: (cells[self.raw[0]],)
        )


class RecordBuffer:
    """All valid records in order, as numbers, because slices and ages are only known at the end."""

    def __init__(self) -> None:
        self.outcomes, self.groups = dict[Any, int](), dict[Key, int]()
        self._outcome, self._group, self._weight, self._time = array("q"), array("q"), array("d"), array("d")

    def add(self, outcome: Any, group: Key, weight: float, time: float) -> None:
        """Add a record."""
        self._outcome.append(self.outcomes.setdefault(outcome, len(self.outcomes)))
        self._group.append(self.groups.setdefault(group, len(self.groups)))
        self._weight.append(weight)
        self._time.append(time)

    def result(self, rows: int, clock: Clock) -> ReadResult:
        """Return the tallies of all records."""
        weights, times = np.array(self._weight, np.float64), np.array(self._time, np.float64)
        group, names = np.array(self._group, np.int64), list(self.groups)
        if np.isnan(times).any() or not len(times):
            return ReadResult(self._tally({COUNTED: weights}, group, names, np.zeros(len(weights), np.int64)), rows)
        span = float(times.min()), float(times.max())
        spans = None if clock.slices is None else spans_of(times, weights, clock.slices)
        number = np.zeros(len(weights), np.int64) if spans is None else slice_numbers(times, spans)
        tally = self._tally({COUNTED: weights}, group, names, number)
        if clock.half_life is not None:
            left = np.exp2((times - span[1]) / clock.half_life)
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
            for combined, weight in zip(codes.tolist(), total.tolist(), strict=True):
                cell, outcome = divmod(combined, len(outcomes))
                group_number, slice_number = divmod(cell, slices)
                tally[kind, names[group_number], slice_number][outcomes[outcome]] += weight
        return tally


def observations(rows: Iterator[RawRow], at: ColumnPlaces) -> Iterator[RawRow]:
    """Yield the rows of each observation together, in the order of first rows; a bad row makes its observation bad."""
    by_name: dict[str, list[RawRow]] = {}
    name_at, item_at, chosen_at, *_ = at.raw
    for row in rows:
        name = text_or_nothing(row.cells[name_at]) if len(row.cells) > name_at else ""
        if name != "":
            by_name.setdefault(name, []).append(row)
        elif row.wrong is None:
            yield row._replace(wrong=BadRecordError("empty", "the observation has no id: add one."))
        else:
            yield row
    if at.naming is None:
        good = [row.cells for alternatives in by_name.values() for row in alternatives if row.wrong is None]
        at.naming = names_items(*({text_or_nothing(cells[place]) for cells in good} for place in (item_at, chosen_at)))
    for alternatives in by_name.values():
        first = next((row for row in alternatives if row.wrong is not None), alternatives[0])
        yield first._replace(cells=tuple(row.cells for row in alternatives))


@dataclass
class Job:
    """One reading of a source: with a GROUP BY if all records are valid, else row by row.

    ``others`` are marks that a ranking must not contain (see ``ballot_of``); ``notes`` are sentences about columns with
    an unusual form.
    """

    source: Source
    layout: Layout
    split: Split
    choices: Choices
    clock: Clock | None = None
    others: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    known: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    @property
    def needed(self) -> list[str]:
        """The columns to read."""
        more = (self.layout.count, None if self.clock is None else self.clock.column)
        named = (*self.layout.raw, *self.split.columns, *(column for column in more if column is not None))
        return list(dict.fromkeys(named))

    @property
    def used(self) -> set[str]:
        """The columns that the counts depend on; a column of times used only for slices is not among them."""
        timed = self.clock.column if self.clock is not None and self.clock.strict else None
        available = self.layout.roles.get("available") if self.layout.format == "long" else None
        used = {*self.layout.raw, *self.split.columns, *getattr(self.source, "partitions", ())}
        return used | {column for column in (self.layout.count, timed, available) if column is not None}

    def examples(self, rows: Iterable[RawRow]) -> Iterator[tuple[Any, Key, float, Sequence[Sequence[Any]]]]:
        """Yield the outcome, the group, the count and the cells of each valid record in some rows."""
        at, is_long = ColumnPlaces(self), self.layout.format == "long"
        for row in observations(iter(rows), at) if is_long else rows:
            if row.wrong is None:
                with suppress(BadRecordError):
                    yield *self._record(row.cells, at), row.cells if is_long else [row.cells]

    def outcome(self, raw: Sequence[Any]) -> Any:
        """Parse a record: return its offer and choice, or its ballot."""
        if self.layout.format == "rankings":
            return ballot_of(raw[0], self.choices.items, self.choices.separator, self.others)
        return self.choices.outcome(raw)

    def run(self, memory: str | None, problems: Problems) -> ReadResult:
        """Read the source with a GROUP BY, or else row by row.

        Which items have prices is only known after all records. Records that lack such a price are then bad.
        """
        result = self.quickly(memory)
        if isinstance(self.choices, PricedChoices) and self.choices.levels is None:
            seen = result or self.slowly(Problems("skip"))
            self.choices.required = in_both_ways(seen.tally)
            self.known.clear()
            result = None if self.choices.required else result
        return result or self.slowly(problems)

    def quickly(self, memory: str | None) -> ReadResult | None:
        """Read the source with one GROUP BY; return None if any record is not valid.

        The first rows of a long table usually have all items, so that one scan is enough.
        """
        result = self._try_grouped(memory, HEAD_ROWS) if self.layout.format == "long" else None
        return self._try_grouped(memory, None) if result is None else result

    def _try_grouped(self, memory: str | None, head: int | None) -> ReadResult | None:
        """Without a memory limit, try a small one first: DuckDB then uses the disk, at almost no cost in time."""
        import duckdb

        try:
            return self._grouped(memory or FIRST_MEMORY_LIMIT, head)
        except (duckdb.OutOfMemoryException, duckdb.IOException):
            with suppress(duckdb.Error, BadRecordError, UnicodeError):
                return self._grouped(None, head) if memory is None else None
        except (duckdb.Error, BadRecordError, UnicodeError):
            pass
        return None

    def _grouped(self, memory: str | None, head: int | None) -> ReadResult | None:
        with own_database(memory) as connection:
            table = self.source.table(connection, self.needed)
            if table is None:
                return None
            own = self.choices.contents is None
            records = Records(connection, self.source, table, self.layout, self.split, self.clock, head, own)
            span, spans = None, None
            if self.clock is not None:
                untimed, span = records.times()
                if untimed and (self.clock.strict or not records.unreadable()):
                    return None
                span = None if untimed else span
                spans = records.spans(self.clock.slices) if self.clock.slices and span is not None else None
            return self._tallied(records, span, spans)

    def _tallied(
        self, records: Records, span: tuple[float, float] | None, spans: list[tuple[float, float]] | None
    ) -> ReadResult | None:
        tally, rows = new_tally(), 0
        fades = self.clock is not None and self.clock.half_life is not None
        for group in records.groups(spans or [], 0.0 if span is None else span[1]):
            if not group.good:
                return None
            if group.number < 0:
                continue
            raw = (tuple(group.raw[0]), group.raw[1]) if self.layout.format == "long" else None
            outcome = self.outcome(group.raw) if raw is None else self._known(raw, raw)  # equal ones in other slices
            key = self.split.label(group.key)
            tally[COUNTED, key, group.number][outcome] += group.weight
            if fades:
                tally[FADED, key, 0][outcome] += group.faded
                tally[SQUARED, key, 0][outcome] += group.squared
            rows += group.records
            check_groups(len(tally))
        return ReadResult(tally, rows, span, spans)

    def slowly(self, problems: Problems) -> ReadResult:
        """Read the source row by row, and report each bad record with its place."""
        if self.layout.by_id and self.choices.contents is None:
            self.choices.contents = own_contents(self.source, self.layout)
        at = ColumnPlaces(self)
        tally, buffer = new_tally(), RecordBuffer()
        since = None if self.clock is None else self.clock.since
        rows, records = 0, self.source.rows(self.needed)
        for row in observations(records, at) if self.layout.format == "long" else records:
            try:
                if row.wrong is not None:
                    raise row.wrong
                time = nan if at.time is None else self._time(row.cells, at.time)
                if since is not None and time < since:
                    continue
                outcome, key, weight = self._record(row.cells, at)
            except BadRecordError as bad:
                problems.add(row.place, bad, row.cells, row.lines)
                rows += row.lines
                continue
            rows += 1
            if self.clock is not None:
                buffer.add(outcome, key, weight, time)
            else:
                tally[COUNTED, key, 0][outcome] += weight
            check_groups(len(buffer.groups) + len(tally))
        return ReadResult(tally, rows) if self.clock is None else buffer.result(rows, self.clock)

    def _time(self, cells: Sequence[Any], place: int) -> float:
        """Return the time of a record; NaN if it has none and does not need one."""
        strict = self.clock is not None and self.clock.strict
        rows = cells if self.layout.format == "long" else [cells]
        times = {(seconds_of if strict else seconds_or_none)(row[place]) for row in rows}
        if len(times) > 1 and strict:
            column = self.source.columns[place]
            raise BadRecordError("malformed", f"one observation has different values of {column!r}: correct it.")
        only = times.pop() if len(times) == 1 else None
        return nan if only is None else only

    def _record(self, cells: Sequence[Any], at: ColumnPlaces) -> tuple[Any, Key, float]:
        if self.layout.format == "long":
            return self._observation(cells, at)
        raw = at.pick(cells)
        outcome = self._known(raw, raw) if TEXT.issuperset(map(type, raw)) else self.outcome(raw)
        return (outcome, *self._rest(cells, at)) if at.rest else (outcome, (), 1.0)

    def _known(self, name: tuple[Any, ...], raw: Sequence[Any]) -> Any:
        outcome = self.known.get(name)
        if outcome is None:
            outcome = self.known[name] = self.outcome(raw)
        return outcome

    def _observation(self, rows: Sequence[Sequence[Any]], at: ColumnPlaces) -> tuple[Any, Key, float]:
        entries = tuple([at.pick(cells)[1:] for cells in rows])
        is_text = all(type(cell) is str for entry in entries for cell in entry)
        if is_text:  # so that labels that differ only in blanks share an entry of the cache
            entries = tuple([tuple(map(str.strip, entry)) for entry in entries])
        outcome = self._known(entries, (entries, at.naming)) if is_text else self.outcome((entries, at.naming))
        if not at.rest:
            return outcome, (), 1.0
        ends = {self._rest(cells, at) for cells in rows}
        if len(ends) > 1:
            columns = " and ".join(repr(self.source.columns[place]) for place in at.rest)
            raise BadRecordError("malformed", f"one observation has different values of {columns}: correct it.")
        return outcome, *ends.pop()

    def _rest(self, cells: Sequence[Any], at: ColumnPlaces) -> tuple[Key, float]:
        key = self.split.label([cells[place] for place in at.key]) if at.key else ()
        if at.count is None or (cells[at.count] is None and self.source.count_if_missing):
            return key, 1.0
        return key, weight_of(cells[at.count])
