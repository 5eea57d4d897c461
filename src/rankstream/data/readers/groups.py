"""One GROUP BY over raw cells: millions of rows become the few records that differ, which Python then looks at."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from rankstream.data.readers.formats import Layout
from rankstream.data.readers.long import NO_TIME, Alternatives
from rankstream.data.readers.records import with_contents
from rankstream.data.readers.sources.database import FETCH_ROWS, Connection, described, double, identifier, unzoned
from rankstream.data.readers.sources.labels import text
from rankstream.data.readers.sources.tables import Source
from rankstream.data.readers.times import Clock, Span, bad_time, moment_sql, seconds_or_none, seconds_sql, spans_of

ROW = "rankstream_row"
MAX_SAMPLED_TIMES = 100  # cells that DuckDB could not read as times, tried one by one in Python; not tuned
PERIODS = {"hour": "%Y-%m-%d %H:00", "day": "%Y-%m-%d", "week": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}


@dataclass(frozen=True)
class Split:
    """By what the counts are kept apart: columns, then periods of time; or equal parts in the order of rows."""

    by: tuple[str, ...] = ()
    period: str | None = None
    time: str | None = None
    parts: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that decide."""
        return self.by if self.time is None else (*self.by, self.time)

    def label(self, cells: Sequence[Any]) -> str | tuple[str, ...]:
        """The group that cells of these columns belong to."""
        labels = tuple(map(text, cells[: len(self.by)]))
        if self.period is not None:
            labels = (*labels, period_label(cells[-1], self.period))
        return labels[0] if len(labels) == 1 else labels


def period_label(value: Any, period: str) -> str:
    """The hour, day, week (by its Monday), month or year of a time, in UTC where the time has a zone.

    >>> period_label("2024-05-16T23:30:00", "week")
    '2024-05-13'
    """
    try:
        moment = value if isinstance(value, date) else datetime.fromisoformat(text(value))
        if isinstance(moment, datetime) and moment.tzinfo is not None:
            moment = moment.astimezone(UTC)
        if period == "week":
            moment -= timedelta(days=moment.weekday())
        return moment.strftime(PERIODS[period])
    except (ValueError, OverflowError, NotImplementedError):
        raise bad_time(value) from None


@dataclass(frozen=True)
class Group:
    """Records with equal cells: how many, the sum of their counts, and whether all these counts are good.

    ``number`` is the slice of time they are in, -1 before all that counts; ``faded`` and ``squared`` are the sums of
    what time leaves of the counts, and of what it leaves twice over.
    """

    raw: tuple[Any, ...]
    key: tuple[Any, ...]
    number: int
    records: int
    weight: float
    faded: float
    squared: float
    good: bool


class Records:
    """The records of a table as a query with a row for each: raw cells, keys, time, count, and whether it is good.

    Of a long table the items and flags of its first rows are known, or of all. Where offers are numbered, they hold
    what the table itself lists under the number, unless that is not its ``own``.
    """

    def __init__(
        self,
        connection: Connection,
        source: Source,
        table: str,
        layout: Layout,
        split: Split,
        clock: Clock | None = None,
        head: int | None = None,
        own: bool = True,
    ) -> None:
        self.connection, self.source, self.layout, self.split, self.clock = connection, source, layout, split, clock
        self.kinds = described(connection, table)
        if split.parts is not None:  # before any join, which may change the order of rows
            table = f"(SELECT *, row_number() OVER () - 1 AS {ROW} FROM {table})"
        if layout.by_id and own:
            table, self.layout = with_contents(connection, source, table, layout)
        key, (weight, good) = self._keys(), self._weight()
        time = None if clock is None else seconds_sql(source.scalar(clock.column), self.kinds[clock.column])
        is_long = layout.format == "long"
        self.pairs = Alternatives(connection, source, table, self.layout, head) if is_long else None
        if self.pairs:
            query = self.pairs.query(key, time, weight, good, split.parts is not None)
            if clock is not None:  # asked three times: for the span, the slices and the groups
                connection.execute(f"CREATE TEMP TABLE observations AS {query}").fetchall()
                query = "SELECT * FROM observations"
            self.names = self.pairs.names
        else:
            query = self._flat(table, key, time, weight, good)
            self.names = [f"r{place}" for place in range(len(self.layout.raw))]
        self.keys = [f"k{place}" for place in range(len(key))]
        self.query, self.kept, self._table, self._time = query, "", table, time
        if clock is not None and clock.since is not None:
            self.kept = f"WHERE t >= {double(clock.since)}"

    def times(self) -> tuple[int, Span | None]:
        """How many records have no time that can be read here, and the first and last time; None without any."""
        kept = f"FILTER ({self.kept})" if self.kept else ""
        found = f"SELECT count(*) - count(t), min(t) {kept}, max(t) {kept} FROM ({self.query})"
        untimed, first, last = self.connection.execute(found).fetchall()[0]
        return untimed, None if first is None else (first, last)

    def unreadable(self) -> bool | None:
        """Whether some rows have times that Python cannot read either; None where it might."""
        if self.clock is None:
            return None
        cells = f"SELECT DISTINCT {identifier(self.clock.column)} FROM {self._table} WHERE {self._time} IS NULL"
        found = self.connection.execute(f"{cells} LIMIT {MAX_SAMPLED_TIMES}").fetchall()
        return any(seconds_or_none(self.source.decode(cell)) is None for (cell,) in found) or (None if found else True)

    def spans(self, slices: int) -> list[Span]:
        """The first and last time of each of the slices."""
        sums = f"SELECT t, CAST(sum(w) AS DOUBLE) AS w FROM ({self.query}) {self.kept} GROUP BY t"
        found = self.connection.execute(sums).fetchnumpy()
        return spans_of(np.asarray(found["t"]), np.asarray(found["w"]), slices)

    def groups(self, spans: Sequence[Span], latest: float) -> Iterator[Group]:
        """The distinct records, kept apart by slices of time if there are any."""
        query, half_life = self.query, None if self.clock is None else self.clock.half_life
        if self.split.parts is not None:
            part = f"ntile({self.split.parts}) OVER (ORDER BY k0) - 1"
            query = f"SELECT * REPLACE ({part} AS k0) FROM ({query}) {self.kept}"
        cells = ", ".join([*self.names, *self.keys, "slice"])
        later = [f"WHEN t < {double(first)} THEN {number}" for number, (first, _) in enumerate(spans[1:])]
        later = [f"WHEN NOT ({self.kept.removeprefix('WHERE ')}) THEN -1"] * bool(self.kept) + later
        number = f"CASE {' '.join(later)} ELSE {max(0, len(spans) - 1)} END" if later else "0"
        plain = self.layout.count is None and not self.pairs
        sums = "count(*), count(*), 0" if plain else "count(*), sum(w), count_if(NOT good)"
        left = "1.0" if half_life is None else f"pow(2.0, (t - {double(latest)}) / {double(half_life)})"
        sums += f", sum(w * {left}), sum(w * {left} * {left})" if half_life is not None else ", 0, 0"
        found = self.connection.execute(
            f"SELECT {cells}, {sums} FROM (SELECT *, {number} AS slice FROM ({query})) GROUP BY {cells}"
        )
        while batch := found.fetchmany(FETCH_ROWS):
            for *values, place, records, weight, bad, faded, squared in batch:
                raw, key = self._decoded(values[: len(self.names)]), tuple(values[len(self.names) :])
                named = len(self.split.by)
                key = (*map(self.source.decode, key[:named]), *key[named:])
                yield Group(raw, key, place, records, weight or 0.0, faded or 0.0, squared or 0.0, good=bad == 0)

    def _decoded(self, cells: list[Any]) -> tuple[Any, ...]:
        if self.pairs:
            return self.pairs.entries(cells), self.pairs.naming
        decode = self.source.decode
        return tuple([decode(inner) for inner in cell] if isinstance(cell, list) else decode(cell) for cell in cells)

    def _keys(self) -> list[str]:
        split = self.split
        if split.parts is not None:
            return [ROW]
        named = [unzoned(column, self.kinds[column]) for column in split.by]
        if split.period is None or split.time is None:
            return named
        moment = moment_sql(self.source.scalar(split.time), self.kinds[split.time])
        return [*named, f"date_trunc('{split.period}', {moment})"]

    def _weight(self) -> tuple[str, str]:
        """The SQL of a record's count, and of whether it is one."""
        if self.layout.count is None:
            return "1", "true"
        cell = self.source.scalar(self.layout.count)
        count = "CAST(NULL AS DOUBLE)" if self.kinds[self.layout.count] == "BOOLEAN" else f"try_cast({cell} AS DOUBLE)"
        if self.source.count_if_missing:
            count = f"CASE WHEN {cell} IS NULL THEN 1 ELSE {count} END"
        return count, f"coalesce({count} >= 0 AND {count} < 'inf'::DOUBLE, false)"

    def _flat(self, table: str, key: list[str], time: str | None, weight: str, good: str) -> str:
        """A row for each record, of a format that has one row for each."""
        raw = [unzoned(column, self.kinds.get(column)) for column in self.layout.raw]
        cells = [f"{cell} AS r{place}" for place, cell in enumerate(raw)]
        cells += [f"{column} AS k{place}" for place, column in enumerate(key)]
        return f"SELECT {', '.join(cells)}, {time or NO_TIME} AS t, {weight} AS w, {good} AS good FROM {table}"
