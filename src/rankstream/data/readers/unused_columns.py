"""Columns that a reading does not use: what they contain, and whether the choices depend on them."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from math import isnan
from typing import Any, NamedTuple

import numpy as np

from rankstream.data.item_changes import group_p_value, logit_price_p_value, price_p_value
from rankstream.data.readers.dialect import decimal_rule, rewrite
from rankstream.data.readers.job import Job
from rankstream.data.readers.roles import COUNT_LIKE, NAMES, PRICED, QUANTITY, item_with_price
from rankstream.data.readers.sources.database import connected, described, unzoned
from rankstream.data.readers.sources.labels import text_or_nothing
from rankstream.data.readers.sources.lines import RawRow
from rankstream.data.readers.times import NUMBER, Span, seconds_or_none

SIGNIFICANCE_LEVEL = 0.01  # for all tests of one reading together; by convention
MAX_SAMPLED_ROWS = 60_000  # takes about a second; benchmarks/reading.py times the whole
MAX_GROUPS, MAX_TESTED_GROUPS, MAX_TESTED_ITEMS, MAX_TESTED_OFFERS = 200, 10, 15, 2000  # not tuned
MIN_GROUP_RECORDS = 20  # a group or an item with fewer is not tested: chi-squared needs some of each. Not tuned
MIN_POINTS = 1.0  # per cent: a smaller difference between groups is not worth a warning. Not tuned
PRICE_NAME = re.compile(r"(?:.*[_.\s])?(?:prices?|cost|fare|preis|prix|precio|prezzo)(?:[_.\s].*)?", re.IGNORECASE)


@dataclass(frozen=True)
class UnusedColumn:
    """A column that the reading did not use, and what it seems to contain.

    Attributes
    ----------
    name : str
        The column; the columns of prices of a wide table are one entry, joined by commas.
    kind : "price", "time", "group", "identifier" or "other"
        What it seems to be.
    sentence : str
        What it contains, and how to use it.
    evidence : dict
        The numbers behind the sentence.
    p_value : float or None
        P-value of the test whether choices from the same offers depend on it, adjusted for the number of tests.
    warning : str
        A warning for answers of models that ignore the column; empty if choices do not depend on it.
    """

    name: str
    kind: str
    sentence: str
    evidence: dict[str, Any] = field(default_factory=dict)
    p_value: float | None = None
    warning: str = ""

    def to_content(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def unused_in(about: Mapping[str, Any]) -> tuple[UnusedColumn, ...]:
    """Return the unused columns in a model's ``about``, which may come from a file and contain anything."""
    noted = about.get("unused")
    with suppress(TypeError):
        return tuple(UnusedColumn(**entry) for entry in noted or ())
    return ()


class _Record(NamedTuple):
    """A valid record: the offer and the choice, its group, its count, and the cells of its row or rows."""

    offer: tuple[Any, ...]
    chosen: Any
    group: Any
    weight: float
    rows: Sequence[Sequence[Any]]

    @property
    def stratum(self) -> tuple[Any, ...]:
        """Records are compared within a stratum; the group is part of it because each group has its own model."""
        return self.group, self.offer


def find_unused(job: Job, span: Span | None = None) -> tuple[UnusedColumn, ...]:
    """Examine the columns that a reading does not use, and test whether choices depend on them."""
    names = [column for column in job.source.columns if column not in job.used]
    if not names:
        return ()
    is_comparable = job.layout.format != "rankings" and not job.layout.by_id
    look = _Look(job, _sample(job, names) if is_comparable else [], span)
    priced = [name for name in names if PRICED.fullmatch(name)] if job.layout.format == "wide" else []
    entries = [look.at_prices(priced)] if priced else []
    entries += [look.at_column(name) for name in names if name not in priced]
    n_tests = sum(entry.p_value is not None for entry in entries)
    return tuple(_with_warning(entry, n_tests, look.option(entry.kind, entry.name)) for entry in entries)


def _with_warning(entry: UnusedColumn, n_tests: int, option: str) -> UnusedColumn:
    """Adjust the p-value of an entry, and add a warning if it is significant."""
    if entry.p_value is None:
        return entry
    p_value = min(1.0, n_tests * entry.p_value)
    points = entry.evidence.get("points", MIN_POINTS)
    if p_value >= SIGNIFICANCE_LEVEL or abs(points) < MIN_POINTS:
        return replace(entry, p_value=p_value)
    sure = f"p = {p_value:.1g}" if p_value > 1e-16 else "p < 1e-16"
    sentence = entry.sentence
    if entry.kind == "price":
        warning = f"{_brief(entry.name)} is ignored, but choices depend on it ({sure}): fit again with {option}."
    else:
        warning = (
            f"{entry.name} is ignored, but choices differ between its values ({entry.evidence['item']!r} "
            f"{points:+.0f} points where it is {entry.evidence['value']!r}, {sure}): fit one model for each with "
            f"{option}."
        )
        sentence = f"{sentence.split(';')[0]} that differ: fit one model for each with {option}."
    return replace(entry, sentence=sentence, p_value=p_value, warning=warning)


def _brief(name: str) -> str:
    return f"Price in {name.count(',') + 1} columns" if "," in name else name


def _sample(job: Job, names: Sequence[str]) -> list[_Record]:
    """Return valid records: all of a short table, else a sample spread over it if DuckDB can read it."""
    import duckdb

    try:
        spread = _spread_rows(job, names)
        examples = job.examples(job.source.rows(None, MAX_SAMPLED_ROWS) if spread is None else spread)
        records = [_Record(*outcome, *rest) for outcome, *rest in examples]
        if job.split.period is None:
            return records  # a period is no group: the same model describes several
        return [record._replace(group=record.group[:-1] if job.split.by else None) for record in records]
    except (duckdb.Error, UnicodeError, ValueError):
        return []  # the unused columns may be damaged


def _spread_rows(job: Job, names: Sequence[str]) -> list[RawRow] | None:
    """Return every n-th row or observation; None if the table is short or DuckDB cannot read it."""
    source, needed = job.source, [*job.needed, *names]
    with connected() as connection:
        table = source.table(connection, needed)
        if table is None:
            return None
        total = connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]
        if total <= MAX_SAMPLED_ROWS:
            return None
        kinds = described(connection, table)
        cells = [unzoned(name, kinds[name]) if name in needed else "NULL" for name in source.columns]
        number = "row_number() OVER ()"
        if job.layout.format == "long":
            number = f"hash({source.name_of(job.layout.raw[0])})"
        part = f"SELECT *, {number} AS rankstream_number FROM {table}"
        picked = f"rankstream_number % {-(-total // MAX_SAMPLED_ROWS)} = 0"
        rows = connection.execute(f"SELECT {', '.join(cells)} FROM ({part}) WHERE {picked}").fetchall()
    return [RawRow(source.name, number, tuple(map(source.decode, row))) for number, row in enumerate(rows)]


class _Look:
    def __init__(self, job: Job, records: list[_Record], span: Span | None) -> None:
        self.job, self.records, self.span = job, records, span
        self.is_long = job.layout.format == "long"
        self.places = {column: place for place, column in enumerate(job.source.columns)}

    def option(self, kind: str, column: str) -> str:
        """Return the argument of ``read`` that uses a column."""
        if kind == "price":
            return f"prices={column!r}"
        return f"by={[*self.job.split.by, column]!r}" if self.job.split.by else f"by={column!r}"

    def at_column(self, name: str) -> UnusedColumn:
        """Describe one column."""
        place = self.places[name]
        cells = [[text_or_nothing(row[place]) for row in record.rows] for record in self.records]
        values = Counter(value for texts in cells for value in texts if value != "")
        if len(values) < 2:
            reason = "all of its values are the same" if self.records else "not checked"
            return UnusedColumn(name, "other", f"The column {name!r} is not used: {reason}.", {"values": len(values)})
        times = [seconds_or_none(value) for value in values]
        word = name.strip().lower()
        named_time = word in NAMES["time"] or self.job.layout.roles.get("time") == name
        if None not in times and (named_time or not any(re.fullmatch(NUMBER, value) for value in values)):
            return self._time(name, [time for time in times if time is not None])
        numbers = _numbers(values)
        is_whole = all(len(set(texts)) == 1 for texts in cells)
        if numbers and self._is_price(name, numbers, cells, is_whole):
            return self.at_prices([name])
        all_differ = len(values) == (len(cells) if is_whole else sum(map(len, cells)))
        reach = max(numbers.values()) - min(numbers.values()) if numbers else 0.0
        if is_whole and (word in NAMES["observation"] or (all_differ and reach == len(values) - 1)):
            return UnusedColumn(name, "identifier", f"The column {name!r} is not used: it numbers the records.")
        if is_whole and "count" not in self.job.layout.roles and (word == QUANTITY or COUNT_LIKE.fullmatch(word)):
            hint = f"The column {name!r} is not used. If it says how often, use columns='count={name}'."
            return UnusedColumn(name, "other", hint, {"values": len(values)})
        if all_differ:
            return UnusedColumn(name, "identifier", f"The column {name!r} is not used: all of its values differ.")
        if is_whole and len(values) <= min(MAX_GROUPS, len(cells) / MIN_GROUP_RECORDS):
            return self._group(name, [texts[0] for texts in cells])
        return UnusedColumn(name, "other", f"The column {name!r} is not used.", {"values": len(values)})

    def _time(self, name: str, times: list[float]) -> UnusedColumn:
        first, last = self.span or (min(times), max(times))
        advice = "let older choices count less with half_life='30d', or look for changes with drift_report"
        what = f"The model ignores when a choice was made ({name!r}, {_date(first)} to {_date(last)})"
        return UnusedColumn(name, "time", f"{what}; {advice}.", {"first": first, "last": last})

    def _is_price(self, name: str, numbers: dict[str, float], cells: list[list[str]], is_whole: bool) -> bool:
        """Return whether numbers have the name of prices, or look like prices and differ within a record."""
        if min(numbers.values()) < 0.0:
            return False
        if PRICE_NAME.fullmatch(name.strip()):
            return True
        in_cents = all(round(number, 2) == number for number in numbers.values())
        fractions = any(not number.is_integer() for number in numbers.values())
        return not is_whole and in_cents and fractions and 20 * len(numbers) <= sum(map(len, cells))

    def at_prices(self, columns: Sequence[str]) -> UnusedColumn:
        """Describe a column of prices, or all of them for a wide table with one for each item."""
        places, codes = [self.places[column] for column in columns], self.job.layout.codes
        rows: list[dict[Any, str]] = []
        for record in self.records:
            if self.is_long:
                items = [text_or_nothing(row[self.places[self.job.layout.raw[1]]]) for row in record.rows]
                rows.append(dict(zip(items, (text_or_nothing(row[places[0]]) for row in record.rows), strict=True)))
            elif PRICED.fullmatch(columns[0]):
                names = [item_with_price(self.job.source.name, column) for column in columns]
                cells = [text_or_nothing(record.rows[0][place]) for place in places]
                rows.append({codes.get(item, item): cell for item, cell in zip(names, cells, strict=True)})
            else:
                rows.append({_item(record.chosen): text_or_nothing(record.rows[0][places[0]])})
        return self._price(",".join(columns), rows)

    def _price(self, name: str, rows: list[dict[Any, str]]) -> UnusedColumn:
        numbers = _numbers({cell for row in rows for cell in row.values() if cell})
        prices: dict[Any, set[float]] = defaultdict(set)
        for row in rows:
            for item, cell in row.items():
                if cell in numbers:
                    prices[item].add(numbers[cell])
        number = sum(len(levels) > 1 for levels in prices.values())
        evidence = {"varying": number, "items": len(prices)}
        if number == 0:
            return UnusedColumn(name, "price", f"{_brief(name)} is not used: no item's price varies.", evidence)
        varies = f"{_brief(name)} varies for {number} of {len(prices)} items"
        if self.job.layout.format not in ("long", "wide"):
            remedy = "write prices into the offers, as in tea@3.50;cake@4, and add prices='offered'"
            return UnusedColumn(name, "price", f"{varies} chosen: {remedy}.", evidence)
        sentence = f"{varies}: use it with {self.option('price', name)}."
        return UnusedColumn(name, "price", sentence, evidence, self._price_p_value(rows, numbers, prices))

    def _price_p_value(
        self, rows: list[dict[Any, str]], numbers: dict[str, float], prices: dict[Any, set[float]]
    ) -> float | None:
        """Test whether choices depend on prices, within offers and through a logit; Bonferroni over both tests."""
        middle = {item: sum(levels) / len(levels) or 1.0 for item, levels in prices.items()}
        relative = {
            (item, cell): numbers[cell] / middle[item] for row in rows for item, cell in row.items() if cell in numbers
        }
        strata: dict[Any, Counter[Any]] = defaultdict(Counter)
        for record, row in zip(self.records, rows, strict=True):
            at = tuple([relative.get((item, row.get(item, "")), np.nan) for item in map(_item, record.offer)])
            strata[record.stratum][record.offer.index(record.chosen), at] += record.weight  # type: ignore[assignment]
        arrays = {stratum: _arrays(cells) for stratum, cells in strata.items()}
        p_values = [p for p in (price_p_value(arrays.values()), logit_price_p_value(arrays)) if not isnan(p)]
        return min(1.0, len(p_values) * min(p_values)) if p_values else None

    def _group(self, name: str, groups: list[str]) -> UnusedColumn:
        sizes = Counter(groups)
        large = [value for value, size in sizes.most_common(MAX_TESTED_GROUPS) if size >= MIN_GROUP_RECORDS]
        tables: dict[Any, Any] = defaultdict(lambda: np.zeros((len(large) + 1, len(self.tested) + 1)))
        rows = {value: place for place, value in enumerate(large)}
        for record, value in zip(self.records, groups, strict=True):
            column = self.tested.get(record.chosen, len(self.tested))
            tables[record.stratum][rows.get(value, len(large)), column] += record.weight
        used = sorted(tables.values(), key=lambda table: -table.sum())[:MAX_TESTED_OFFERS]
        p_value, points = group_p_value(used)
        n_values = f"{name} has {len(sizes)} values"
        evidence: dict[str, Any] = {"values": len(sizes)}
        if isnan(p_value):
            sentence = f"{n_values}, which share no offer: fit one model for each with {self.option('group', name)}."
            return UnusedColumn(name, "group", sentence, evidence)
        known = np.abs(points[: len(large), : len(self.tested)])
        row, column = divmod(int(known.argmax()), known.shape[1])
        item = _item(list(self.tested)[column])
        evidence |= {"value": large[row], "item": str(item), "points": float(points[row, column])}
        sentence = f"{n_values}; choices do not differ significantly between them."
        return UnusedColumn(name, "group", sentence, evidence, p_value)

    @cached_property
    def tested(self) -> dict[Any, int]:
        """The most chosen items, numbered."""
        chosen: Counter[Any] = Counter()
        for record in self.records:
            chosen[record.chosen] += record.weight  # type: ignore[assignment]
        often = [item for item, weight in chosen.most_common(MAX_TESTED_ITEMS) if weight >= MIN_GROUP_RECORDS]
        return {item: place for place, item in enumerate(often)}


def _item(entry: Any) -> Any:
    return entry[0] if isinstance(entry, tuple) else entry


def _arrays(cells: Counter[Any]) -> tuple[Any, Any, Any]:
    """Return the weights, choices and prices of the records of an offer; missing prices are the mean of the others."""
    weights, (chosen, relative) = np.array(list(cells.values())), (np.array(part) for part in zip(*cells, strict=True))
    known = ~np.isnan(relative)
    mean = np.where(known, relative, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return weights, chosen, np.where(known, relative, mean)


def _numbers(values: Iterable[str]) -> dict[str, float]:
    """Return the values as numbers, with decimal points or commas; empty if over 5 % are not numbers."""
    known, numbers = list(values), dict[str, float]()
    rule = decimal_rule({re.sub("[0-9]", "9", value) for value in known})
    for value in known:
        with suppress(ValueError):
            number = float(rewrite(rule, value) if rule else value)
            if abs(number) < 1e15:
                numbers[value] = number
    return numbers if len(numbers) >= 0.95 * len(known) else {}


def _date(seconds: float) -> str:
    """Return a time as a date such as 16 May 2024; a number that cannot be a date as it is."""
    if not 1e8 <= seconds < 1e11:
        return f"{seconds:g}"
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment.day} {moment:%B %Y}"
