"""Read a table with one GROUP BY over raw cells: Python then parses each distinct record once.

The long format has a row for each alternative: its GROUP BY packs each observation into a few integers.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import Any

import numpy as np

from rankstream.data.readers.formats import Layout
from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.records import is_flag, with_contents
from rankstream.data.readers.sources.database import (
    FETCH_ROWS,
    Connection,
    described,
    double,
    identifier,
    stripped,
    unzoned,
)
from rankstream.data.readers.sources.labels import text, text_or_nothing
from rankstream.data.readers.sources.tables import Source
from rankstream.data.readers.times import Clock, Span, bad_time, moment_sql, seconds_or_none, seconds_sql, spans_of

BITS_PER_WORD = 60  # that are free to shift in a signed word of 64
MAX_ALTERNATIVES = 6000  # items with flags: 100 words for each observation; with more, rows are read one by one
NO_TIME = "CAST(NULL AS DOUBLE)"
NAMED = (  # an observation has a name without blanks around it
    f"coalesce({stripped('CAST(o AS VARCHAR)')} = CAST(o AS VARCHAR) "
    "AND CAST(o AS VARCHAR) NOT IN ('', 'nan', 'NaN'), false)"
)
MAX_SAMPLED_TIMES = 100  # cells that DuckDB could not read as times, tried one by one in Python; not tuned
PERSON_GROUPS = 50
"""Groups that persons are dealt to: few to store, enough for intervals (see ``benchmarks/persons.py``)."""
PERIODS = {"hour": "%Y-%m-%d %H:00", "day": "%Y-%m-%d", "week": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}


def names_items(items: Iterable[Any], cells: Iterable[Any]) -> bool:
    """Return whether the column of choices names an item on each row, instead of flagging it with 0 or 1.

    It does if at least half of its values other than flags are items.

    >>> names_items(["tea", "pie"], ["tea", "pie"]), names_items(["1", "2"], ["0", "1"])
    (True, False)
    """
    other = {text_or_nothing(cell) for cell in cells if not is_flag(cell)}
    return len(other) > 0 and 2 * len(other & {text_or_nothing(item) for item in items}) >= len(other)


class Alternatives:
    """The distinct pairs of an item and its flag, numbered, so that an observation is a set of bits.

    There are few such pairs, so that millions of rows are grouped without a list of rows. If each row names the
    choice, only the items are numbered, and the name belongs to the whole observation. With ``head``, only that many
    rows are searched for pairs; an observation with any other pair counts as invalid.
    """

    def __init__(
        self, connection: Connection, source: Source, table: str, layout: Layout, head: int | None = None
    ) -> None:
        self.source, self.table = source, table
        self.observation, self.item, self.flag, *price = layout.raw
        self.counted = layout.count is not None
        self.price = identifier(price[0]) if price else "NULL"
        item, flag = identifier(self.item), identifier(self.flag)
        columns = f"{item} AS i, {flag} AS f, {self.price} AS c"
        rows = f"(SELECT {columns} FROM {table}{'' if head is None else f' LIMIT {head}'})"
        connection.execute(f"CREATE TEMP TABLE found AS SELECT DISTINCT i, f, c FROM {rows}").fetchall()
        items, cells = (
            [source.decode(cell) for (cell,) in connection.execute(f"SELECT DISTINCT {column} FROM found").fetchall()]
            for column in "if"
        )
        self.naming = names_items(items, cells) if layout.naming is None else layout.naming
        distinct = "DISTINCT i, NULL AS f, c" if self.naming else "i, f, c"
        number = f"CAST(row_number() OVER (ORDER BY {stripped('CAST(i AS VARCHAR)')}) - 1 AS INTEGER)"
        connection.execute(
            f"CREATE TEMP TABLE pairs AS SELECT i, f, c, {number} AS code, code // {BITS_PER_WORD} AS word, "
            f"1::BIGINT << (code % {BITS_PER_WORD}) AS bit FROM (SELECT {distinct} FROM found)"
        ).fetchall()
        pairs = connection.execute(f"SELECT i, f{', c' if price else ''} FROM pairs ORDER BY code").fetchall()
        if len(pairs) > MAX_ALTERNATIVES:
            raise BadRecordError("flag", f"There are {len(pairs)} different items and flags: look at them row by row.")
        decoded = [[source.decode(cell) for cell in cells] for cells in pairs]  # equal offers in equal words and order
        self.pairs = [tuple([cell.strip() if type(cell) is str else cell for cell in cells]) for cells in decoded]
        self.words = -(-len(pairs) // BITS_PER_WORD)

    @property
    def names(self) -> list[str]:
        """The columns of the query that identify an observation's offer and choice."""
        return [f"r{word}" for word in range(self.words)] + (["chosen"] if self.naming else [])

    def query(self, key: list[str], time: str | None, weight: str, good: str) -> str:
        """Return a query with a row for each observation, whose keys, count and time must be the same in all rows."""
        keys = [f"k{place}" for place in range(len(key))]
        cells = [f"{column} AS {name}" for name, column in zip(keys, key, strict=True)]
        cells += [f"{self.source.name_of(self.observation)} AS o", f"{identifier(self.item)} AS i"]
        cells += [f"{identifier(self.flag)} AS f", f"{self.price} AS c"]
        rows = f"SELECT {', '.join(cells)}, {time or NO_TIME} AS t, {weight} AS w, {good} AS good FROM {self.table}"
        same = "" if self.naming else " AND a.f IS NOT DISTINCT FROM p.f"
        same += "" if self.price == "NULL" else " AND a.c IS NOT DISTINCT FROM p.c"
        numbered = f"({rows}) AS a LEFT JOIN pairs AS p ON a.i IS NOT DISTINCT FROM p.i{same}"
        bit = "p.bit" if self.words == 1 else "CASE WHEN p.word = {} THEN p.bit ELSE 0 END"
        words = [f"bit_or({bit.format(word)})" for word in range(self.words)]
        parts = [f"{bits} AS r{word}" for word, bits in enumerate(words)]
        parts += [f"min({name}) AS {name}" for name in keys] + (["min(a.f) AS chosen"] if self.naming else [])
        moment = "CASE WHEN min(t) = max(t) AND count(t) = count(*) THEN min(t) END" if time else NO_TIME
        parts += [f"{moment} AS t"]
        parts += ["min(w) AS w" if self.counted else "1 AS w"]
        sound = [NAMED, f"{' + '.join(f'bit_count({bits})' for bits in words)} = count(*)"]
        sound += ["bool_and(good)", "min(w) = max(w)"] if self.counted else []
        sound += ["(count(a.f) = 0 OR min(a.f) = max(a.f) AND count(a.f) = count(*))"] if self.naming else []
        sound += [f"coalesce(min({name}) = max({name}), false) AND count({name}) = count(*)" for name in keys]
        return f"SELECT {', '.join(parts)}, {' AND '.join(sound)} AS good FROM {numbered} GROUP BY o"

    def entries(self, cells: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the items of an observation, each with its flag or the named choice, and its price if there is one."""
        numbers = [
            BITS_PER_WORD * place + bit
            for place, word in enumerate(cells[: self.words])
            for bit in range(BITS_PER_WORD)
            if word >> bit & 1
        ]
        pairs = [self.pairs[number] for number in numbers]
        if not self.naming:
            return pairs
        chosen = self.source.decode(cells[-1])
        return [(item, chosen, *price) for item, _, *price in pairs]


@dataclass(frozen=True)
class Split:
    """How counts are grouped: by columns, periods of time, and last by groups of persons."""

    by: tuple[str, ...] = ()
    period: str | None = None
    time: str | None = None
    person: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to group by."""
        return (*self.by, *(column for column in (self.time, self.person) if column is not None))

    def label(self, cells: Sequence[Any]) -> str | tuple[str, ...]:
        """Return the group of a record, given its cells in these columns."""
        labels = tuple(map(text, cells[: len(self.by)]))
        if self.period is not None:
            labels = (*labels, period_label(cells[len(self.by)], self.period))
        if self.person is not None:
            labels = (*labels, person_group(cells[-1]))
        return labels[0] if len(labels) == 1 else labels


def person_group(value: Any) -> str:
    """Return the group that a person is dealt to: random, but the same in every file.

    >>> person_group("anna"), person_group(" anna ")
    ('7', '7')
    """
    name = text(value)
    if name == "":
        raise BadRecordError("empty", "the person has no id: add one.")
    return str(int(sha256(name.encode()).hexdigest()[:8], 16) % PERSON_GROUPS)


def period_label(value: Any, period: str) -> str:
    """Return the hour, day, week (its Monday), month or year of a time, in UTC where the time has a zone.

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
    """Records with equal cells: how many, the sum of their counts, and whether all of these counts are valid.

    ``number`` is their slice of time, or -1 if they are too old to count. ``faded`` and ``squared`` are the sums of the
    counts, weighted by age and by the square of that weight.
    """

    raw: tuple[Any, ...]
    key: tuple[Any, ...]
    number: int
    records: int
    weight: float
    faded: float
    squared: float
    good: bool


def period_of(period: str | None) -> str | None:
    """Return the name of a length of periods, or raise a ValueError."""
    if period is not None and period not in PERIODS:
        raise ValueError(f"Unknown period {period!r}: the periods are {', '.join(PERIODS)}.")
    return period


def slice_spans(connection: Connection, records: str, slices: int) -> list[Span]:
    """Return the first and last time of each slice of records with a time ``t`` and a weight ``w``."""
    sums = connection.execute(f"SELECT t, CAST(sum(w) AS DOUBLE) AS w FROM {records} GROUP BY t").fetchnumpy()
    return spans_of(np.asarray(sums["t"]), np.asarray(sums["w"]), slices)


def slice_sql(spans: Sequence[Span], too_old: str = "false") -> str:
    """Return the SQL of the slice that a time ``t`` is in; -1 where it is too old to count."""
    cases = [f"WHEN t < {double(first)} THEN {number}" for number, (first, _) in enumerate(spans[1:])]
    return f"CASE WHEN {too_old} THEN -1 {' '.join(cases)} ELSE {max(0, len(spans) - 1)} END"


def faded_sql(half_life: float, latest: float) -> str:
    """Return the SQL of sums of weights ``w`` that halve with the age of ``t``, and of their squares."""
    left = f"pow(2.0, (t - {double(latest)}) / {double(half_life)})"
    return f"sum(w * {left}), sum(w * {left} * {left})"


class Records:
    """The records of a table as a query with one row each: raw cells, keys, time, count, and whether it is valid.

    For a long table, ``head`` limits the rows that are searched for items and flags. Where offers have ids, their items
    come from the table itself if ``own`` is True.
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
        if layout.by_id and own:
            table, self.layout = with_contents(connection, source, table, layout)
        key, (weight, good) = self._keys(), self._weight()
        time = None if clock is None else seconds_sql(source.scalar(clock.column), self.kinds[clock.column])
        is_long = layout.format == "long"
        self.pairs = Alternatives(connection, source, table, self.layout, head) if is_long else None
        if self.pairs:
            query = self.pairs.query(key, time, weight, good)
            if clock is not None:  # the span, the slices and the groups each need the result
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
        """Return how many records have no time that DuckDB can read, and the first and last time (None without any)."""
        kept = f"FILTER ({self.kept})" if self.kept else ""
        query = f"SELECT count(*) - count(t), min(t) {kept}, max(t) {kept} FROM ({self.query})"
        untimed, first, last = self.connection.execute(query).fetchall()[0]
        return untimed, None if first is None else (first, last)

    def unreadable(self) -> bool | None:
        """Return True if some rows have times that Python cannot read either, None if that is unknown."""
        if self.clock is None:
            return None
        query = f"SELECT DISTINCT {identifier(self.clock.column)} FROM {self._table} WHERE {self._time} IS NULL"
        cells = self.connection.execute(f"{query} LIMIT {MAX_SAMPLED_TIMES}").fetchall()
        if not cells:
            return True
        return any(seconds_or_none(self.source.decode(cell)) is None for (cell,) in cells) or None

    def spans(self, slices: int) -> list[Span]:
        """Return the first and last time of each slice."""
        return slice_spans(self.connection, f"({self.query}) {self.kept}", slices)

    def groups(self, spans: Sequence[Span], latest: float) -> Iterator[Group]:
        """Yield the distinct records, separately for each slice of time if there are any."""
        half_life = None if self.clock is None else self.clock.half_life
        cells = ", ".join([*self.names, *self.keys, "slice"])
        number = slice_sql(spans, f"NOT ({self.kept.removeprefix('WHERE ')})" if self.kept else "false")
        plain = self.layout.count is None and not self.pairs
        sums = "count(*), count(*), 0" if plain else "count(*), sum(w), count_if(NOT good)"
        sums += ", 0, 0" if half_life is None else f", {faded_sql(half_life, latest)}"
        result = self.connection.execute(
            f"SELECT {cells}, {sums} FROM (SELECT *, {number} AS slice FROM ({self.query})) GROUP BY {cells}"
        )
        while batch := result.fetchmany(FETCH_ROWS):
            for *values, place, records, weight, bad, faded, squared in batch:
                raw = self._decoded(values[: len(self.names)])
                key = tuple(map(self.source.decode, values[len(self.names) :]))
                yield Group(raw, key, place, records, weight or 0.0, faded or 0.0, squared or 0.0, good=bad == 0)

    def _decoded(self, cells: list[Any]) -> tuple[Any, ...]:
        if self.pairs:
            return self.pairs.entries(cells), self.pairs.naming
        decode = self.source.decode
        return tuple([decode(inner) for inner in cell] if isinstance(cell, list) else decode(cell) for cell in cells)

    def _keys(self) -> list[str]:
        split = self.split
        named = [unzoned(column, self.kinds[column]) for column in split.by]
        if split.period is not None and split.time is not None:
            moment = moment_sql(self.source.scalar(split.time), self.kinds[split.time])
            named.append(f"date_trunc('{split.period}', {moment})")
        return named if split.person is None else [*named, unzoned(split.person, self.kinds[split.person])]

    def _weight(self) -> tuple[str, str]:
        """Return the SQL of a record's count, and of whether the count is valid."""
        if self.layout.count is None:
            return "1", "true"
        cell = self.source.scalar(self.layout.count)
        count = "CAST(NULL AS DOUBLE)" if self.kinds[self.layout.count] == "BOOLEAN" else f"try_cast({cell} AS DOUBLE)"
        if self.source.count_if_missing:
            count = f"CASE WHEN {cell} IS NULL THEN 1 ELSE {count} END"
        return count, f"coalesce({count} >= 0 AND {count} < 'inf'::DOUBLE, false)"

    def _flat(self, table: str, key: list[str], time: str | None, weight: str, good: str) -> str:
        raw = [unzoned(column, self.kinds.get(column)) for column in self.layout.raw]
        cells = [f"{cell} AS r{place}" for place, cell in enumerate(raw)]
        cells += [f"{column} AS k{place}" for place, column in enumerate(key)]
        return f"SELECT {', '.join(cells)}, {time or NO_TIME} AS t, {weight} AS w, {good} AS good FROM {table}"
