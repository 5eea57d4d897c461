"""How a till writes numbers, dates, flags and lists: recognised from its cells, and rewritten as readers expect."""

import json
import re
from collections import defaultdict
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
LATE = r"\b(?:1[3-9]|2[0-9]|3[01])\b"  # a day, and no month
COMMA, DMY, MDY, POSITIVE = ",", "dmy", "mdy", "positive"
BETTER = ">"
MARKS = (BETTER, *SEPARATORS)  # what may join the names of a ranking
DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d+\s*(?:[;|,]|$))")
DECIMALS, DATES = [".", COMMA], ["iso", DMY, MDY]
WORDS = {
    COMMA: "decimal commas",
    DMY: "day, month, year",
    MDY: "month, day, year",
    POSITIVE: "any number above 0 as yes",
}


def rewrite(rule: str, cell: Any) -> Any:
    """Rewrite a cell of text; what does not look as the rule says stays as it is.

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
    if not (found := re.fullmatch(DATE, cell)):
        return cell
    first, second, year, hour, rest = found.groups()
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
    return COMMA if any("," in one and not re.fullmatch(r"\s*-?9{1,3},9{3}\s*", one) for one in plain) else None


def date_rule(shapes: Collection[str]) -> str | None:
    """Return the order of day and month in a column of shapes, such as "L.99.9999"; None where both are possible."""
    found = [match for shape in shapes if (match := re.match(r"\s*([9L]{1,2})([./-])([9L]{1,2})[./-]9999", shape))]
    late_first, late_second = (any("L" in match[group] for match in found) for group in (1, 3))
    if late_first == late_second:
        return DMY if found and not late_first and all(match[2] == "." for match in found) else None
    return DMY if late_first else MDY


def shape_of(words: str) -> str:
    """The shape of a text: 9 for each digit, L for a number from 13 to 31."""
    return re.sub("[0-9]", "9", re.sub(LATE, "L", words))


def shapes_of(source: Source, column: str) -> set[str]:
    """The shapes of a column's texts, and of mappings as JSON.

    They are those of the first rows; where one of these has a comma or looks like a date, those of all rows.
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
    """The columns that have nothing but prices or counts."""
    n_prices = len(layout.priced) if layout.format == "wide" else int(layout.has_prices and layout.format == "long")
    return [*layout.raw[len(layout.raw) - n_prices :], *([layout.count] if layout.count else [])]


def open_dialect(
    source: Source, layout: Layout, separator: str | None, decimal: str | None, dates: str | None
) -> tuple[Source, str, tuple[str, ...], str | None, tuple[str, ...]]:
    """The source with its cells rewritten, and how it is written: as the options say, or else as recognised.

    That is the separator of its offers or rankings, the marks that a ranking must not have, COMMA where prices within
    offers such as ``tea@3,50;cake@4`` have decimal commas, and sentences on what is read in another way than usual.
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
    notes = tuple(f"{column} is read with {WORDS[rule]}." for column, rule in known.items())
    data = cast("Source", Rewritten(source, rules, long)) if rules else source
    return data, mark, others, in_offers, notes


def _prices_in(offer: str, separator: str) -> list[str]:
    """The prices in the text of an offer, or in its shape; of JSON, those that are texts."""
    if offer.lstrip().startswith("{"):
        return re.findall(r':\s*"([^"]*)"', offer)
    return [part.rpartition("@")[2] for part in offer.split(separator) if "@" in part]


def column_rules(
    source: Source, numbers: Iterable[str], times: Iterable[str], decimal: str | None, dates: str | None
) -> dict[str, str]:
    """The rules for columns of numbers and of times, of those that need one."""
    rules = {column: decimal or decimal_rule(shapes_of(source, column)) for column in numbers}
    rules |= {column: dates or date_rule(shapes_of(source, column)) for column in times}
    return {column: rule for column, rule in rules.items() if rule in WORDS}


class LineDialect:
    """How a stream writes numbers and dates: recognised from what came so far, as its columns have no end.

    The first cell that can be read in one way only decides for all that come later; ``decimal`` and ``dates`` are as
    in ``read``, and say what is known.

    >>> dialect = LineDialect()
    >>> dialect.number("3,50"), dialect.number("1.299"), dialect.time("02.03.2026 08:03")
    ('3.50', '1299', '2026-03-02 08:03')
    """

    def __init__(self, decimal: str | None = None, dates: str | None = None) -> None:
        check_dialect(decimal, dates)
        self.decimal, self.dates = decimal, dates

    def number(self, cell: Any) -> Any:
        """A price or a count as readers expect it."""
        if self.decimal is None and isinstance(cell, str):
            shape = shape_of(cell)
            has_point = re.fullmatch(r"\s*-?[9L]*\.[9L]+\s*", shape) and not re.fullmatch(r".*\.9{3}\s*", shape)
            self.decimal = decimal_rule({shape}) or ("." if has_point else None)
        return rewrite(COMMA, cell) if self.decimal == COMMA else cell

    def time(self, cell: Any) -> Any:
        """A time as readers expect it."""
        if self.dates is None and isinstance(cell, str):
            self.dates = date_rule({shape_of(cell)})
        return rewrite(self.dates, cell) if self.dates in (DMY, MDY) else cell

    @property
    def notes(self) -> list[str]:
        """What differs from decimal points and ISO dates, in sentences."""
        kinds = {"Numbers are": self.decimal, "Dates are": self.dates}
        return [f"{what} read with {WORDS[rule]}." for what, rule in kinds.items() if rule in WORDS]


def check_dialect(decimal: str | None, dates: str | None) -> None:
    """Refuse what is neither a decimal mark nor an order of dates."""
    for option, value, choices in (("decimal", decimal, DECIMALS), ("dates", dates, DATES)):
        if value not in (None, *choices):
            raise ValueError(f"{option} is {value!r}: choose one of {', '.join(map(repr, choices))}.")


def unfit_columns(source: Source, layout: Layout) -> list[str]:
    """Columns that were taken for items or observations by their names, and are something else by their values.

    An item of a wide table has flags. The items of a long table are neither all different nor one for each observation.
    """
    rows = [[text_or_nothing(cell) for cell in row.cells] for row in source.rows(None, HEAD_ROWS) if row.wrong is None]
    names = layout.raw[1 : len(layout.raw) - len(layout.priced)] if layout.format == "wide" else layout.raw[:2]
    cells = [[row[source.columns.index(name)] for row in rows] for name in names]
    if len(rows) < MIN_ROWS:
        return []
    if layout.format == "wide":
        values = [set(column) - {""} for column in cells]
        unfit = [name for name, found in zip(names, values, strict=True) if 2 * sum(map(is_flag, found)) < len(found)]
        return unfit if len(names) - len(unfit) > 1 or layout.priced else []
    observations, items = cells
    if len(set(items)) == len(rows) or len(set(zip(*cells, strict=True))) == len(set(observations)) < len(rows):
        return [names[1]]
    return [names[0]] if len(set(observations)) == len(rows) else []


class Rewritten:
    """A source with columns rewritten by rules, and without the rows of a long table whose item was not available.

    An item that was chosen was available, whatever the stock says after the sale.
    """

    def __init__(self, source: Source, rules: dict[str, str], long: tuple[str, str, str] | None = None) -> None:
        self.source, self.rules, self.long = source, rules, long  # long: available, chosen and item

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["source"], name)

    def table(self, connection: Connection, needed: Sequence[str]) -> str | None:
        """The table with its cells rewritten; None where only Python can."""
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
        yes, no = (", ".join(f"'{word}'" for word, value in FLAGS.items() if value is found) for found in (True, False))
        item = identifier(self.long[2])  # none where the flag is not one, so that the record is read slowly
        known = f"CASE WHEN {available} IN ({yes}, {no}) THEN {item} END AS {item}"
        there = f"{available} NOT IN ({no}) OR {chosen} IN ({yes}) OR {chosen} = {name}"
        return f"(SELECT * REPLACE ({known}) FROM {table} WHERE {there})"

    def rows(self, needed: Sequence[str] | None = None, most: int | None = None) -> Iterator[RawRow]:
        """The rows with their cells rewritten."""
        columns = self.source.columns
        rules = [(columns.index(column), rule) for column, rule in self.rules.items()]
        places = [columns.index(column) for column in self.long or ()]
        asked = None if needed is None else [*needed, *(columns[place] for place in places)]
        for row in self.source.rows(asked, most):
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
    """The separator of a table's offers or rankings, and what a ranking must not have, since it may join names, too."""
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
    found = _of_rankings([ranking for (ranking, *_) in records])
    if found is None:
        return usual, SEPARATORS
    return found, MARKS[: MARKS.index(found)]


def _of_offers(records: Iterable[tuple[str, str]], priced: bool = False) -> str:
    """The separator by which most choices are in their offers; items may have prices, as in tea@3.50 or tea@3,50.

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
    """The separator of rankings: ">", or else what occurs; a comma only where it is sure not to be part of a name.

    >>> _of_rankings(["tea > pie", "cake"]), _of_rankings(["tea;pie", "pie"]), _of_rankings(["Smith, Ann", "Ray, Bob"])
    ('>', ';', None)
    """
    for mark in MARKS:
        joined = [ranking for ranking in rankings if mark in ranking]
        if joined and (mark != "," or _change_places(joined)):
            return mark
    return None


def _change_places(joined: Iterable[str]) -> bool:
    """Whether a name stands at different places in different rankings, as "Smith" of "Smith, Ann" never does."""
    places: dict[str, set[int]] = defaultdict(set)
    for ranking in joined:
        for place, name in enumerate(ranking.split(",")):
            places[name.strip()].add(place)
    return any(len(found) > 1 for found in places.values())
