"""One GROUP BY over raw cells: millions of rows become the few records that differ, which Python then looks at."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rankstream.readers.formats import Layout
from rankstream.readers.problems import BadRecordError
from rankstream.readers.records import text
from rankstream.readers.tables import BATCH, Source, identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

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
    connection: "DuckDBPyConnection", source: Source, table: str, layout: Layout, split: Split
) -> Iterator[Group]:
    """The distinct records of a table."""
    key = _keys(source, split)
    query = (_long if layout.format == "long" else _flat)(source, table, layout, key)
    if split.parts is not None:
        total = connection.execute(f"SELECT count(*) FROM ({query})").fetchall()[0][0]
        query = f"SELECT * REPLACE ({_part(total, split.parts)} AS k0) FROM ({query})"
    names = [f"r{place}" for place in range(1 if layout.format == "long" else len(layout.raw))]
    keys = [f"k{place}" for place in range(len(key))]
    plain = layout.count is None and layout.format != "long"
    sums = "count(*), count(*), 0" if plain else "count(*), sum(w), count_if(NOT good)"
    cells = ", ".join(names + keys)
    found = connection.execute(f"SELECT {cells}, {sums} FROM ({query}) GROUP BY {cells}")
    while batch := found.fetchmany(BATCH):
        for *values, records, weight, bad in batch:
            raw, key_cells = tuple(values[: len(names)]), tuple(values[len(names) :])
            yield Group(_decoded(source, layout, raw), key_cells, records, weight or 0.0, bad == 0)


def _decoded(source: Source, layout: Layout, raw: tuple[Any, ...]) -> tuple[Any, ...]:
    if layout.format != "long":
        return tuple(map(source.decode, raw))
    return ([(source.decode(entry["i"]), source.decode(entry["f"])) for entry in raw[0]],)


def _keys(source: Source, split: Split) -> list[str]:
    if split.parts is not None:
        return ["row_number() OVER () - 1"]
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


def _flat(source: Source, table: str, layout: Layout, key: list[str]) -> str:
    """A row for each record, of a format that has one row for each."""
    weight, good = _weight(source, layout)
    cells = [f"{identifier(column)} AS r{place}" for place, column in enumerate(layout.raw)]
    cells += [f"{column} AS k{place}" for place, column in enumerate(key)]
    return f"SELECT {', '.join(cells)}, {weight} AS w, {good} AS good FROM {table}"


def _long(source: Source, table: str, layout: Layout, key: list[str]) -> str:
    """A row for each observation, from one for each alternative; what belongs to the whole is the same in all."""
    weight, good = _weight(source, layout)
    observation, item, flag = map(identifier, layout.raw)
    named = f"coalesce(trim(CAST({source.scalar(layout.raw[0])} AS VARCHAR)), '') NOT IN ('', 'nan', 'NaN')"
    inner = [f"{column} AS k{place}" for place, column in enumerate(key)]
    parts = [f"min(k{place}) AS k{place}" for place in range(len(key))]
    same = [
        f"coalesce(min(k{place}) = max(k{place}), false) AND count(k{place}) = count(*)"
        for place in range(len(key))
        if "OVER" not in key[place]
    ]
    rows = f"SELECT {', '.join(['*', *inner])}, {weight} AS w0, {good} AND {named} AS good0 FROM {table}"
    entries = f"list_sort(list(struct_pack(i := {item}, f := {flag}))) AS r0"
    sound = " AND ".join(["bool_and(good0)", "min(w0) = max(w0)", *same])
    query = f"SELECT {', '.join([entries, *parts])}, min(w0) AS w, {sound} AS good FROM ({rows}) GROUP BY {observation}"
    if any("OVER" in column for column in key):
        query = f"SELECT * REPLACE (row_number() OVER (ORDER BY k0) - 1 AS k0) FROM ({query})"
    return query


def _part(total: int, parts: int) -> str:
    """The part that row k0 of so many falls into, the first parts being longer by one where it does not divide."""
    size, longer = divmod(total, parts)
    edge = longer * (size + 1)
    late = f"{longer} + (k0 - {edge}) // {max(size, 1)}"
    return f"CASE WHEN k0 < {edge} THEN k0 // {size + 1} ELSE {late} END"
