"""Parse the lines of a stream: records from JSON or from rows of CSV."""

import csv
import io
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from rankstream._core.types import Label
from rankstream.data.decay import as_seconds
from rankstream.data.readers.dialect import LineDialect, number_columns
from rankstream.data.readers.formats import Layout, recognise
from rankstream.data.readers.prices import PricedChoices, plain_cell
from rankstream.data.readers.problems import BadRecordError, shown
from rankstream.data.readers.records import SEPARATORS, Choices, weight_of
from rankstream.data.readers.roles import IN_OFFERS, listed_names, parsed, price_columns, roles_of
from rankstream.data.readers.sources.files import JSON_ENDINGS
from rankstream.data.readers.sources.labels import text
from rankstream.data.readers.sources.lines import MAX_LINE_BYTES, UTF8, Twice, header_in, loads, row_problem
from rankstream.data.readers.times import seconds_or_none
from rankstream.streams.record import Record, without_levels

CSV_ENDINGS = (".csv", ".tsv")
READABLE = ("transactions", "counts", "wide")
KEYS = ("offered", "chosen", "count", "time")
MAX_COUNT = 1e15  # of a record: sums of a few still count every choice (``counts.MAX_OBSERVATIONS``)


class LineReader:
    """Reads the lines of a source as JSON or CSV, by the ending of its name or by its first line.

    ``columns`` maps roles to keys or columns, ``no_choice`` is the no-purchase option (an empty choice means it),
    ``separator`` separates the items of an offer in one text, and ``prices`` names the price columns of a wide table,
    or is "offered" if offers contain prices. Columns and keys are recognised as by ``read``; so are ``decimal`` and
    ``dates``, from the records so far (``LineDialect``).

    >>> reader = LineReader("choices.csv", columns="chosen=bought")
    >>> reader.begin(b"offered,bought,date", "choices.csv"), reader.record(b"tea;pie,pie,02.03.2026")
    (True, Record(offered=('pie', 'tea'), chosen='pie', times=1.0, time=1772409600.0))
    """

    def __init__(
        self,
        source: str,
        columns: str | None = None,
        no_choice: str | None = None,
        separator: str | None = None,
        prices: str | None = None,
        decimal: str | None = None,
        dates: str | None = None,
    ) -> None:
        self.prices, self.dialect = prices, LineDialect(decimal, dates)
        self.columns, self.separator = columns, SEPARATORS[0] if separator is None else separator
        self.no_choice = None if no_choice is None else text(no_choice)
        if not self.separator:
            raise ValueError(f"The separator is {separator!r}: it must be text, such as ';'.")
        if self.no_choice == "":
            raise ValueError(f"no_choice is {no_choice!r}: use plain text.")
        self.is_csv: bool | None = None
        if source.lower().endswith((*CSV_ENDINGS, *JSON_ENDINGS)):
            self.is_csv = source.lower().endswith(CSV_ENDINGS)
        self._keys: dict[str, Any] | None = None
        self._header: list[str] | None = None
        self._choices: Choices | None = None

    def begin(self, first: bytes, name: str) -> bool:
        """Inspect the first record of a file. Returns whether it is a header."""
        if self.is_csv is None:
            self.is_csv = not first.decode("utf-8-sig", "replace").lstrip().startswith("{")
        if not self.is_csv:
            self._keys = _keys(self.columns)
            if self.prices is not None:
                offered = self._keys.get("offered", IN_OFFERS)
                price_columns(name, [str(offered)], self.prices).in_offers(name, offered)
                self._choices = in_priced_offers(self.separator, self.no_choice, self.dialect.number)
            return False
        file = io.StringIO(first.decode("utf-8-sig", "surrogateescape"), newline="")
        header, self._delimiter, _ = header_in(Path(name), file)
        if self._header not in (None, header):
            raise ValueError(
                f"{name} starts with {listed_names(header)}, unlike the file before it: start every file with "
                "the same column names."
            )
        self._header, self._layout = header, _layout(name, header, self.columns, self.prices)
        self._numbers = number_columns(self._layout)
        self._choices = Choices(self._layout, self.separator, no_choice=self.no_choice)
        if self._layout.has_prices:
            number = self.dialect.number
            self._choices = PricedChoices(self._layout, self.separator, no_choice=self.no_choice, number=number)
        return True

    def is_whole(self, words: bytes) -> bool:
        """Whether lines are a whole record, without an open quote."""
        return not self.is_csv or words.count(b'"') % 2 == 0

    def is_complete(self, words: bytes) -> bool:
        """Whether a last line without a line break is complete: JSON shows its end, CSV does not."""
        if self.is_csv or not words.strip():
            return False
        try:
            loads(words.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            return False
        return True

    def record(self, words: bytes) -> Record | None:
        """Parse a record; None for an empty line. Raises a ValueError if it is wrong."""
        if not words.strip():
            return None
        if len(words) > MAX_LINE_BYTES:
            raise ValueError(f"it is longer than {MAX_LINE_BYTES:,} bytes: end each record with a line break")
        if not self.is_csv:
            content, given = _object(words), self._keys or {}
            known = roles_of("The record", list(content), {}) if isinstance(content, dict) else {}
            keys = {role: given.get(role, known.get(role, role)) for role in KEYS}
            if isinstance(content, dict) and keys["time"] in content:
                content[keys["time"]] = self.dialect.time(content[keys["time"]])
            return record_from(content, keys, self.no_choice, self.separator, self._choices)
        try:
            return self._row(words)
        except csv.Error as error:
            raise ValueError(f"it is not CSV ({error}): correct the quotes") from None
        except BadRecordError as error:
            raise ValueError(str(error).rstrip(".")) from None

    def _row(self, words: bytes) -> Record | None:
        line = words.decode(UTF8, "surrogateescape")
        cells = next(csv.reader(io.StringIO(line, newline=""), delimiter=self._delimiter, **DIALECT), [])
        header = self._header or []
        if len(cells) == len(header) + 1 and cells[-1] == "":
            cells.pop()
        wrong = row_problem(cells, len(header), UTF8)
        if wrong is not None:
            raise wrong
        by_name = dict(zip(header, cells, strict=True))
        for column in self._numbers:
            by_name[column] = self.dialect.number(by_name[column])
        assert self._choices is not None
        offer, chosen = _outcome(self._choices, [by_name[column] for column in self._layout.raw])
        times = 1.0 if self._layout.count is None else weight_of(by_name[self._layout.count])
        if times >= MAX_COUNT:
            raise ValueError(f"its count {times:g} is not a number below {MAX_COUNT:g}")
        time = self._layout.roles.get("time")
        return Record(offer, chosen, times, None if time is None else seconds_or_none(self.dialect.time(by_name[time])))


DIALECT: dict[str, Any] = {"strict": True, "skipinitialspace": True}


def _layout(name: str, header: list[str], columns: str | None, prices: str | None) -> Layout:
    layout = recognise(name, header, None, columns, prices=prices)
    if layout.format not in READABLE or layout.by_id:
        kind = "numbered offers" if layout.by_id else f"the format {layout.format!r}"
        raise ValueError(
            f"{name} is a table of {kind}, where a row is not a choice: write the columns offered and chosen, "
            "or one of 0 and 1 for each item."
        )
    return layout


def _keys(columns: str | None) -> dict[str, Any]:
    """Return the user's mapping from roles to JSON keys."""
    given = {} if columns is None else parsed(columns)
    for role in given:
        if role not in KEYS:
            raise ValueError(f"The columns {shown(columns)} map {role!r}: JSON Lines only have {', '.join(KEYS)}.")
    return given


def in_priced_offers(
    separator: str = SEPARATORS[0], no_choice: str | None = None, number: Callable[[Any], Any] = plain_cell
) -> PricedChoices:
    """Return a reader of offers that contain prices, as mappings or as text such as "tea@3.50"."""
    layout = Layout("transactions", (IN_OFFERS, "chosen"), has_prices=True)
    return PricedChoices(layout, separator, no_choice=no_choice, number=number)


def _outcome(choices: Choices, raw: list[Any]) -> tuple[Any, Any]:
    """Return an offer and the choice from it; with prices, the offer maps items to prices."""
    if not isinstance(choices, PricedChoices):
        return choices.outcome(raw)
    offer, chosen = choices.outcome(raw)
    pairs = [entry if isinstance(entry, tuple) else (entry, None) for entry in offer]
    return dict(pairs), chosen[0] if isinstance(chosen, tuple) else chosen


def record_of(
    words: bytes, keys: dict[str, Any] | None = None, no_choice: str | None = None, separator: str = SEPARATORS[0]
) -> Record | None:
    """Parse a line such as {"offered": ["tea", "pie"], "chosen": "tea", "count": 2}; None for an empty one.

    ``keys`` are other names for the four keys, or a list of items offered to everybody. ``no_choice`` is added to every
    offer, and null or an empty choice means it. ``separator`` separates the items of an offer in one text.

    >>> record_of(b'{"menu": ["tea", "pie"], "chosen": null}', {"offered": "menu"}, "nothing")
    Record(offered=('tea', 'pie', 'nothing'), chosen='nothing', times=1.0, time=None)
    """
    return record_from(_object(words), keys, no_choice, separator) if words.strip() else None


def _object(words: bytes) -> Any:
    try:
        return loads(words.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON ({error}): write one object per line") from None


def record_from(
    content: Any,
    keys: dict[str, Any] | None = None,
    no_choice: str | None = None,
    separator: str = SEPARATORS[0],
    priced: Choices | None = None,
) -> Record:
    """Return the record of a parsed JSON object (see ``record_of``); ``priced`` reads offers with prices.

    >>> record_from({"offered": ["tea", "pie"], "chosen": "pie", "time": "2024-05-16"})
    Record(offered=('tea', 'pie'), chosen='pie', times=1.0, time=1715817600.0)
    """
    names = {**{role: role for role in KEYS}, **(keys or {})}
    if isinstance(content, Twice):
        raise ValueError("it has a key twice: remove one")
    always = names["offered"] if isinstance(names["offered"], list) else None
    needed = [] if always is not None else [names["offered"]]
    needed += [] if no_choice is not None else [names["chosen"]]
    if not isinstance(content, dict) or any(key not in content for key in needed):
        missing = " and ".join(f'"{key}"' for key in needed) or "object"
        raise ValueError(f'it has no {missing}: write {{"offered": [...], "chosen": ...}}')
    offered, count = content[names["offered"]] if always is None else always, content.get(names["count"], 1)
    chosen = content.get(names["chosen"])
    if priced is not None:
        try:
            own, chosen = _outcome(priced, [offered, chosen])
        except BadRecordError as error:
            raise ValueError(str(error).rstrip(".")) from None
        return Record(own, chosen, amount_of(count), moment_of(content.get(names["time"])))
    items, nothing = _items(offered, no_choice, separator)
    chosen = chosen.strip() if isinstance(chosen, str) else chosen
    if nothing is not None and chosen in (None, "", no_choice):
        chosen = nothing
    if not _is_item(chosen) or chosen not in items:
        raise ValueError(f"its choice {shown(chosen)} is not in its offer {shown(offered)}")
    return Record(tuple(items), chosen, amount_of(count), moment_of(content.get(names["time"])))


def amount_of(count: object) -> float:
    """Check a count of choices."""
    if isinstance(count, bool) or not isinstance(count, int | float) or not 0 <= count < MAX_COUNT:
        raise ValueError(f"its count {shown(count)} is not a number >= 0")
    return float(count)


def _items(offered: Any, no_choice: str | None, separator: str) -> tuple[list[Label], Label]:
    """Return the stripped items of an offer, and the no-purchase option, which is appended if it is missing.

    Empty items, and items that look the same, are errors.
    """
    raw = offered.split(separator) if isinstance(offered, str) else offered
    if isinstance(offered, dict):
        raise without_levels(offered)
    if not isinstance(raw, list) or not raw or not all(_is_item(item) for item in raw):
        raise ValueError(f"its offer {shown(offered)} is not a list of texts or numbers")
    items: list[Any] = [item.strip() if isinstance(item, str) else item for item in raw]
    try:
        texts = [text(item) for item in items]
    except BadRecordError as error:
        raise ValueError(str(error).rstrip(".")) from None
    if "" in texts:
        raise ValueError(f"its offer {shown(offered)} has an empty item")
    if len(set(texts)) < len(texts):
        raise ValueError(f"its offer {shown(offered)} lists an item twice")
    if no_choice is None:
        return items, None
    return (items, items[texts.index(no_choice)]) if no_choice in texts else ([*items, no_choice], no_choice)


def moment_of(value: object) -> float | None:
    """Return seconds since 1970, from a number or a date; None if it cannot be read, which may not matter."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(as_seconds(datetime.fromisoformat(value) if isinstance(value, str) else value))
    except (ValueError, OverflowError):
        return None


def _is_item(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
