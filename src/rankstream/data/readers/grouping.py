"""One GROUP BY over raw cells: millions of rows become the few records that differ, which Python then looks at."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rankstream.data.readers.contents import with_contents
from rankstream.data.readers.formats import Layout
from rankstream.data.readers.long import Alternatives
from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.records import text
from rankstream.data.readers.tables import BATCH, Source, identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ROW = "rankstream_row"
PERIODS = {"hour": "%Y-%m-%d %H:00", "day": "%Y-%m-%d", "week": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}


@dataclass(frozen=True)
class Split:
    """By what the counts are kept apart: columns of groups, periods of time, or equal parts in the order of rows."""

    by: tuple[str, ...] = ()
    period: str | None = None
    time: str | None = None
    parts: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tell."""
        return self.by if self.time is None else (self.time,)

    def label(self, cells: Sequence[Any]) -> str | tuple[str, ...]:
        """The group that cells of these columns belong to."""
        if self.period is not None:
            return period_label(cells[0], self.period)
        labels = tuple(map(text, cells))
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
    except (ValueError, OverflowError):
        raise BadRecordError(
            "time", f"the time {value!r} is not of the form '2024-05-16 23:30:00': correct it."
        ) from None


@dataclass(frozen=True)
class Group:
    """Records with equal cells: how many, the sum of their counts, and whether all these counts are good."""

    raw: tuple[Any, ...]
    key: tuple[Any, ...]
    records: int
    weight: float
    good: bool


def groups(
    connection: "DuckDBPyConnection",
    source: Source,
    table: str,
    layout: Layout,
    split: Split,
    head: int | None = None,
    own: bool = True,
) -> Iterator[Group]:
    """The distinct records of a table; of a long one, with the items and flags of its first rows, or of all.

    Where offers are numbered, they hold what the table itself lists under the number, unless that is not its ``own``.
    """
    if split.parts is not None:  # before any join, which may change the order of rows
        table = f"(SELECT *, row_number() OVER () - 1 AS {ROW} FROM {table})"
    if layout.by_id and own:
        table, layout = with_contents(connection, source, table, layout)
    key, (weight, good) = _keys(source, split), _weight(source, layout)
    is_long = layout.format == "long"
    pairs = Alternatives(connection, source, table, layout, head) if is_long else None
    query = (
        pairs.query(key, weight, good, split.parts is not None) if pairs else _flat(table, layout, key, weight, good)
    )
    if split.parts is not None:
        total = connection.execute(f"SELECT count(*) FROM ({query})").fetchall()[0][0]
        query = f"SELECT * REPLACE ({_part(total, split.parts)} AS k0) FROM ({query})"
    names = pairs.names if pairs else [f"r{place}" for place in range(len(layout.raw))]
    cells = ", ".join(names + [f"k{place}" for place in range(len(key))])
    sums = "count(*), count(*), 0" if layout.count is None and not pairs else "count(*), sum(w), count_if(NOT good)"
    found = connection.execute(f"SELECT {cells}, {sums} FROM ({query}) GROUP BY {cells}")
    while batch := found.fetchmany(BATCH):
        for *values, records, total_weight, bad in batch:
            raw, key_cells = values[: len(names)], tuple(values[len(names) :])
            decoded = (pairs.entries(raw), pairs.naming) if pairs else tuple(_decoded(source, cell) for cell in raw)
            yield Group(decoded, key_cells, records, total_weight or 0.0, bad == 0)


def _decoded(source: Source, cell: Any) -> Any:
    return [source.decode(inner) for inner in cell] if isinstance(cell, list) else source.decode(cell)


def _keys(source: Source, split: Split) -> list[str]:
    if split.parts is not None:
        return [ROW]
    if split.period is not None and split.time is not None:
        moment = f"try_cast({source.scalar(split.time)} AS TIMESTAMPTZ)"  # connections are in UTC
        return [f"date_trunc('{split.period}', CAST({moment} AS TIMESTAMP))"]
    return [source.scalar(column) for column in split.by]


def _weight(source: Source, layout: Layout) -> tuple[str, str]:
    """The SQL of a record's count, and of whether it is one."""
    if layout.count is None:
        return "1", "true"
    count = f"try_cast({source.scalar(layout.count)} AS DOUBLE)"
    if source.count_if_missing:
        count = f"CASE WHEN {source.scalar(layout.count)} IS NULL THEN 1 ELSE {count} END"
    return count, f"coalesce({count} >= 0 AND {count} < 'inf'::DOUBLE, false)"


def _flat(table: str, layout: Layout, key: list[str], weight: str, good: str) -> str:
    """A row for each record, of a format that has one row for each."""
    cells = [f"{identifier(column)} AS r{place}" for place, column in enumerate(layout.raw)]
    cells += [f"{column} AS k{place}" for place, column in enumerate(key)]
    return f"SELECT {', '.join(cells)}, {weight} AS w, {good} AS good FROM {table}"


def _part(total: int, parts: int) -> str:
    """The part that row k0 of so many falls into, the first parts being longer by one where it does not divide."""
    size, longer = divmod(total, parts)
    edge = longer * (size + 1)
    late = f"{longer} + (k0 - {edge}) // {max(size, 1)}"
    return f"CASE WHEN k0 < {edge} THEN k0 // {size + 1} ELSE {late} END"
