"""Dialects of numbers, dates, flags and lists: recognised from the cells, and rewritten to the standard form."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, cast

from rankstream.data.readers.formats import Layout
from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.records import FLAGS, SEPARATORS, is_flag
from rankstream.data.readers.roles import QUANTITY
from rankstream.data.readers.sources.database import Connection, connected, identifier, stripped
from rankstream.data.readers.sources.labels import list_in, text_or_nothing
from rankstream.data.readers.sources.lines import RawRow
from rankstream.data.readers.sources.tables import CsvFiles, Source

HEAD_ROWS, MIN_ROWS = 1000, 4  # rows that the dialect is guessed from, and that a guess needs; not tuned
DATE = r"\s*([0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4})(?:[ T,]+([0-9]{1,2})(:[0-9]{2}(?::[0-9]{2})?))?\s*"
AMOUNT = r"[0-9]+(?:[.,][0-9]+)?"
LATE = r"\b(?:1[3-9]|2[0-9]|3[01])\b"  # a number that can be a day but not a month
COMMA, DMY, MDY, POSITIVE = ",", "dmy", "mdy", "positive"
BETTER = ">"
MARKS = (BETTER, ";", "|")  # separators of a ranking; a comma may be part of names
DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d+\s*(?:[;|,]|$))")
DECIMALS, DATES = [".", COMMA], ["iso", DMY, MDY]
WORDS = {
    COMMA: "numbers with decimal commas",
    DMY: "day, month, year",
    MDY: "month, day, year",
    POSITIVE: "yes for any number above 0",
}


def rewrite(rule: str, cell: Any) -> Any:
    """Rewrite a cell of text by a rule; text that does not match the rule is unchanged.

    >>> rewrite(COMMA, "1.299,50"), rewrite(DMY, "2.3.2026 8:03"), rewrite(MDY, "03/02/2026"), rewrite(POSITIVE, "2")
    ('1299.50', '2026-03-02 08:03', '2026-03-02', '1')
    """
    if rule == POSITIVE and not isinstance(cell, str) and not is_flag(cell):
        cell = str(cell)
    if not isinstance(cell, str):
        return cell
    if rule == COMMA:
        return cell.replace(".", "").replace(",", ".")
    if rule == POSITIVE:
        return str(int(float(cell.replace(",", ".")) > 0)) if re.fullmatch(AMOUNT, cell) else cell
    match = re.fullmatch(DATE, cell)
    if match is None:
        return cell
    first, second, year, hour, rest = match.groups()
    day, month = (first, second) if rule == DMY else (second, first)
    return f"{year}-{month:0>2}-{day:0>2}" + (f" {hour:0>2}{rest}" if hour else "")


def _rewrite_sql(rule: str, cell: str) -> str:
    if rule == COMMA:
        return f"replace(replace({cell}, '.', ''), ',', '.')"
    if rule == POSITIVE:
        number = f"CAST(replace({cell}, ',', '.') AS DOUBLE)"
        is_more = f"CASE WHEN {number} > 0 THEN '1' ELSE '0' END"
        return f"CASE WHEN regexp_full_match({cell}, '{AMOUNT}') THEN {is_more} ELSE {cell} END"
    first, second, year, hour, rest = (f"regexp_extract({cell}, '{DATE}', {group})" for group in range(1, 6))
    day, month = (first, second) if rule == DMY else (second, first)
    time = f"CASE WHEN {hour} = '' THEN '' ELSE ' ' || lpad({hour}, 2, '0') || {rest} END"
    date = f"{year} || '-' || lpad({month}, 2, '0') || '-' || lpad({day}, 2, '0') || {time}"
    return f"CASE WHEN regexp_full_match({cell}, '{DATE}') THEN {date} ELSE {cell} END"


def decimal_rule(shapes: Collection[str]) -> str | None:
    """Return COMMA where a column of shapes, such as "9,99", has decimal commas; "1,299" alone may be thousands."""
    plain = [re.sub("L", "99", shape) for shape in shapes]
    if not all(re.fullmatch(r"\s*-?(?:9+|9{1,3}(?:\.9{3})+)(?:,9+)?\s*", shape) for shape in plain):
        return None
    clear = (shape for shape in plain if "," in shape and not re.fullmatch(r"\s*-?9{1,3},9{3}\s*", shape))
    return COMMA if any(clear) else None


def date_rule(shapes: Collection[str]) -> str | None:
    """Return the order of day and month in a column of shapes, such as "L.99.9999"; None where both are possible."""
    matches = [re.match(r"\s*([9L]{1,2})([./-])([9L]{1,2})[./-]9999", shape) for shape in shapes]
    dates = [match for match in matches if match]
    late_first, late_second = (any("L" in match[group] for match in dates) for group in (1, 3))
    if late_first != late_second:
        return DMY if late_first else MDY
    with_dots = dates and all(match[2] == "." for match in dates)
    return DMY if with_dots and not late_first else None


def shape_of(words: str) -> str:
    """Return the shape of a text: 9 for each digit, L for a number from 13 to 31."""
    return re.sub("[0-9]", "9", re.sub(LATE, "L", words))


def shapes_of(source: Source, column: str) -> set[str]:
    """Return the shapes of a column's texts, and of mappings as JSON.

    The first rows are enough unless one of their shapes has a comma or looks like a date.
    """
    place = source.columns.index(column)

    def shapes(most: int | None) -> set[str]:
        cells = (row.cells[place] for row in source.rows([column], most) if row.wrong is None)
        texts = (json.dumps(cell, default=str) if isinstance(cell, dict) else cell for cell in cells)
        return {shape_of(words) for words in texts if isinstance(words, str)} - {""}

    head = shapes(HEAD_ROWS)
    if not any("," in shape or re.match(r"\s*[9L]{1,2}[./-]", shape) for shape in head):
        return head
    with connected() as connection:
        table = source.table(connection, [column]) if isinstance(source, CsvFiles) else None
        if table is None:
            return shapes(None)
        shape = f"regexp_replace(regexp_replace({identifier(column)}, '{LATE}', 'L', 'g'), '[0-9]', '9', 'g')"
        return {row[0] for row in connection.execute(f"SELECT DISTINCT {shape} FROM {table}").fetchall() if row[0]}


def number_columns(layout: Layout) -> list[str]:
    """Return the columns that contain only prices or counts."""
    n_prices = len(layout.priced) if layout.format == "wide" else int(layout.has_prices and layout.format == "long")
    prices = list(layout.raw[len(layout.raw) - n_prices :])
    return [*prices, layout.count] if layout.count else prices


def open_dialect(
    source: Source, layout: Layout, separator: str | None, decimal: str | None, dates: str | None
) -> tuple[Source, str, tuple[str, ...], str | None, tuple[str, ...]]:
    """Return the source with its cells rewritten, and its dialect: as the options say, or else as recognised.

    The dialect is the separator of offers or rankings, the marks that a ranking must not contain, COMMA where prices
    within offers such as ``tea@3,50;cake@4`` have decimal commas, and notes about columns with an unusual form.
    """
    mark, others = (separator, ()) if separator else separator_of(source, layout)
    time, in_offers, long = layout.roles.get("time"), None, None
    rules = column_rules(source, number_columns(layout), [time] if time else [], decimal, dates)
    if layout.format == "long":
        _, item, chosen, *_ = layout.raw
        rules |= {chosen: POSITIVE} if chosen.strip().lower() == QUANTITY else {}
        if available := layout.roles.get("available"):
            rules[available], long = POSITIVE, (available, chosen, item)
    elif layout.has_prices and layout.format != "wide" and not layout.by_id and layout.always is None:
        shapes = set() if decimal else shapes_of(source, layout.raw[0])
        rule = decimal or decimal_rule({price for shape in shapes for price in _prices_in(shape, mark)})
        in_offers = rule if rule == COMMA else None
    known = rules | ({} if in_offers is None else {layout.raw[0]: in_offers})
    notes = tuple(f"{column} is read as {WORDS[rule]}." for column, rule in known.items())
    data = cast("Source", Rewritten(source, rules, long)) if rules else source
    return data, mark, others, in_offers, notes


def _prices_in(offer: str, separator: str) -> list[str]:
    """Return the prices in the text of an offer, or in its shape; of JSON, only prices that are strings."""
    if offer.lstrip().startswith("{"):
        return re.findall(r':\s*"([^"]*)"', offer)
    return [part.rpartition("@")[2] for part in offer.split(separator) if "@" in part]


def column_rules(
    source: Source, numbers: Iterable[str], times: Iterable[str], decimal: str | None, dates: str | None
) -> dict[str, str]:
    """Return the rule of each column of numbers or times that needs one."""
    rules = {column: decimal or decimal_rule(shapes_of(source, column)) for column in numbers}
    rules |= {column: dates or date_rule(shapes_of(source, column)) for column in times}
    return {column: rule for column, rule in rules.items() if rule in WORDS}


class LineDialect:
    """The dialect of numbers and dates in a stream, recognised cell by cell because a stream has no end.

    The first unambiguous cell decides for all later ones, unless ``decimal`` or ``dates`` are given, as in ``read``.

    >>> dialect = LineDialect()
    >>> dialect.number("3,50"), dialect.number("1.299"), dialect.time("02.03.2026 08:03")
    ('3.50', '1299', '2026-03-02 08:03')
    """

    def __init__(self, decimal: str | None = None, dates: str | None = None) -> None:
        check_dialect(decimal, dates)
        self.decimal, self.dates = decimal, dates

    def number(self, cell: Any) -> Any:
        """Rewrite a price or a count to the standard form."""
        if self.decimal is None and isinstance(cell, str):
            shape = shape_of(cell)
            has_point = re.fullmatch(r"\s*-?[9L]*\.[9L]+\s*", shape) and not re.fullmatch(r".*\.9{3}\s*", shape)
            self.decimal = decimal_rule({shape}) or ("." if has_point else None)
        return rewrite(COMMA, cell) if self.decimal == COMMA else cell

    def time(self, cell: Any) -> Any:
        """Rewrite a time to the standard form."""
        if self.dates is None and isinstance(cell, str):
            self.dates = date_rule({shape_of(cell)})
        return rewrite(self.dates, cell) if self.dates in (DMY, MDY) else cell

    @property
    def notes(self) -> list[str]:
        """Sentences about what differs from decimal points and ISO dates."""
        kinds = {"Values are": self.decimal, "Dates are": self.dates}
        return [f"{what} read as {WORDS[rule]}." for what, rule in kinds.items() if rule in WORDS]


def check_dialect(decimal: str | None, dates: str | None) -> None:
    """Raise a ValueError unless both options are valid or None."""
    for option, value, choices in (("decimal", decimal, DECIMALS), ("dates", dates, DATES)):
        if value not in (None, *choices):
            raise ValueError(f"{option} is {value!r}: choose one of {', '.join(map(repr, choices))}.")


def unfit_columns(source: Source, layout: Layout) -> list[str]:
    """Return columns whose names suggest items or observations, but whose values do not.

    An item of a wide table has flags. The items of a long table are neither all different nor one for each observation.
    """
    rows = [[text_or_nothing(cell) for cell in row.cells] for row in source.rows(None, HEAD_ROWS) if row.wrong is None]
    names = layout.raw[1 : len(layout.raw) - len(layout.priced)] if layout.format == "wide" else layout.raw[:2]
    cells = [[row[source.columns.index(name)] for row in rows] for name in names]
    if len(rows) < MIN_ROWS:
        return []
    if layout.format == "wide":
        distinct = {name: set(column) - {""} for name, column in zip(names, cells, strict=True)}
        unfit = [name for name, values in distinct.items() if 2 * sum(map(is_flag, values)) < len(values)]
        return unfit if len(names) - len(unfit) > 1 or layout.priced else []
    observations, items = cells
    if len(set(items)) == len(rows) or len(set(zip(*cells, strict=True))) == len(set(observations)) < len(rows):
        return [names[1]]
    return [names[0]] if len(set(observations)) == len(rows) else []


class Rewritten:
    """A source with columns rewritten by rules, and without the rows of unavailable items in a long table.

    An item that was chosen counts as available, even if the stock is 0 after the sale.
    """

    def __init__(self, source: Source, rules: dict[str, str], long: tuple[str, str, str] | None = None) -> None:
        self.source, self.rules, self.long = source, rules, long  # long: available, chosen and item

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["source"], name)

    def table(self, connection: Connection, needed: Sequence[str]) -> str | None:
        """Return the SQL of the table with its cells rewritten; None where only Python can read it."""
        rules = {column: rule for column, rule in self.rules.items() if column in (*needed, *(self.long or ()))}
        table = self.source.table(connection, [*needed, *rules])
        if table is None or not (rules or self.long):
            return table
        if not isinstance(self.source, CsvFiles):
            return None
        cells = [f"{_rewrite_sql(rule, identifier(column))} AS {identifier(column)}" for column, rule in rules.items()]
        table = f"(SELECT * REPLACE ({', '.join(cells)}) FROM {table})" if cells else table
        if self.long is None:
            return table
        available, chosen, name = (f"coalesce(lower({stripped(identifier(column))}), '')" for column in self.long)
        yes, no = (", ".join(f"'{word}'" for word, flag in FLAGS.items() if flag is value) for value in (True, False))
        item = identifier(self.long[2])  # NULL where the flag is invalid, so that the record is read row by row
        known = f"CASE WHEN {available} IN ({yes}, {no}) THEN {item} END AS {item}"
        there = f"{available} NOT IN ({no}) OR {chosen} IN ({yes}) OR {chosen} = {name}"
        return f"(SELECT * REPLACE ({known}) FROM {table} WHERE {there})"

    def rows(self, needed: Sequence[str] | None = None, most: int | None = None) -> Iterator[RawRow]:
        """Yield the rows with their cells rewritten."""
        columns = self.source.columns
        rules = [(columns.index(column), rule) for column, rule in self.rules.items()]
        places = [columns.index(column) for column in self.long or ()]
        wanted = None if needed is None else [*needed, *(columns[place] for place in places)]
        for row in self.source.rows(wanted, most):
            if row.wrong is None:
                cells = list(row.cells)
                for place, rule in rules:
                    cells[place] = rewrite(rule, cells[place])
                row = row._replace(cells=cells)
                if places:
                    available, chosen, item = (text_or_nothing(cells[place]).lower() for place in places)
                    if available not in FLAGS:
                        wrong = (
                            f"the availability {available!r} of the item {item!r} is not 0 or 1: correct the record."
                        )
                        row = row._replace(wrong=BadRecordError("flag", wrong))
                    elif not (FLAGS[available] or FLAGS.get(chosen) or chosen == item):
                        continue
            yield row


def separator_of(source: Source, layout: Layout) -> tuple[str, tuple[str, ...]]:
    """Return the separator of a table's offers or rankings, and the marks that a ranking must not contain."""
    usual = BETTER if layout.format == "rankings" else SEPARATORS[0]
    if layout.format not in ("rankings", "transactions", "counts") or layout.by_id or layout.always is not None:
        return usual, ()
    places = [source.columns.index(column) for column in layout.raw]
    rows = [row.cells for row in source.rows(layout.raw, HEAD_ROWS) if row.wrong is None]
    joined = [
        cells for cells in rows if isinstance(cells[places[0]], str) and list_in(cells[places[0]].strip()) is None
    ]
    records = [[text_or_nothing(cells[place]) for place in places] for cells in joined]
    if layout.format != "rankings":
        return _of_offers([(offered, chosen) for offered, chosen in records], layout.has_prices), ()
    mark = _of_rankings([ranking for (ranking, *_) in records])
    if mark is None:
        return usual, SEPARATORS
    return mark, MARKS[: MARKS.index(mark)]


def _of_offers(records: Iterable[tuple[str, str]], priced: bool = False) -> str:
    """Return the separator by which most offers contain their choice; items may have prices, as in tea@3,50.

    >>> _of_offers([("tea|pie", "tea"), ("Jam, Strawberry|tea", "Jam, Strawberry"), ("tea", "tea")])
    '|'
    """
    known = [record for record in records if record[1] != ""]
    explained = {mark: sum(_holds(offered, mark, chosen, priced) for offered, chosen in known) for mark in SEPARATORS}
    return max(SEPARATORS, key=lambda mark: explained[mark])


def _holds(offered: str, mark: str, chosen: str, priced: bool) -> bool:
    parts = [part.strip() for part in offered.split(mark)]
    if priced and mark == "," and chosen not in parts:
        offered = DECIMAL_COMMA.sub(".", offered)
        parts = offered.split(mark)
    if priced:
        parts += [part.rpartition("@")[0].strip() for part in parts]
    return mark in offered and chosen in parts


def _of_rankings(rankings: Sequence[str]) -> str | None:
    """Return the separator of rankings: ">", or else the first that occurs; never a comma.

    >>> _of_rankings(["tea > pie", "cake"]), _of_rankings(["tea;pie", "pie"]), _of_rankings(["Smith, Ann", "Ray, Bob"])
    ('>', ';', None)
    """
    return next((mark for mark in MARKS if any(mark in ranking for ranking in rankings)), None)
