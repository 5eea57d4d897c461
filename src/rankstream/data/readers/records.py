"""Parse the cells of one record into an offer and a choice, or report what is wrong with them.

If records only have the ids of offers, the items of each offer come from a separate table or from the records.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from rankstream.data.readers.formats import Layout
from rankstream.data.readers.problems import BadRecordError, shown
from rankstream.data.readers.roles import roles_of
from rankstream.data.readers.sources.database import Connection, identifier, stripped
from rankstream.data.readers.sources.labels import labels_of, order, text, text_or_nothing
from rankstream.data.readers.sources.lines import RawRow
from rankstream.data.readers.sources.tables import Source

Outcome = tuple[tuple[str, ...], str]
Contents = dict[str, tuple[str, ...]]
SEPARATORS = (";", "|", ",")
FLAGS = {"1": True, "1.0": True, "true": True, "yes": True}
FLAGS |= {"0": False, "0.0": False, "false": False, "no": False, "": False}


def weight_of(value: Any) -> float:
    """Return a count as a finite number of at least 0, or raise a BadRecordError."""
    try:
        count = float(text(value))
    except ValueError:
        count = inf
    if not 0.0 <= count < inf:
        raise BadRecordError("count", f"the count {value!r} is not a number >= 0: correct the record.")
    return count


@dataclass
class Choices:
    """Parser of records; ``no_choice`` is part of every offer, and an empty choice means it.

    ``contents`` are the items of each offer by its id, if the records only have ids.
    """

    layout: Layout
    separator: str = ";"
    items: frozenset[str] | None = None
    no_choice: str | None = None
    contents: Mapping[str, tuple[str, ...]] | None = None
    _known: dict[Any, tuple[str, ...]] = field(default_factory=dict)

    def outcome(self, raw: Sequence[Any]) -> Outcome:
        """Return the offer, its items in order, and the chosen item; or raise a BadRecordError."""
        if self.layout.format == "wide":
            offer, chosen = self._wide(raw)
        elif self.layout.format == "long":
            offer, chosen = self._long(raw)
        else:
            offered = raw[0] if self.layout.always is None else self.layout.always
            offer, chosen = self._offer(offered), text(raw[-1])
        if chosen == "" and self.no_choice is not None:
            chosen = self.no_choice
        if chosen == "":
            raise BadRecordError(
                "empty", "the choice is empty. If that means 'bought nothing', add no_choice='nothing'."
            )
        if chosen not in offer:
            if self.items is not None and chosen not in self.items:
                raise self._unknown(chosen)
            whole = self.separator.join(offer)
            remedy = "correct the record"
            if chosen.isdecimal() and self.layout.codes and not any(map(str.isdecimal, self.layout.codes)):
                remedy += ", or map its code: columns='items=train_av:1;car_av:2'"
            elif separator := _other_separator(offer, chosen):
                remedy += f", or set separator={separator!r} if that separates the items"
            elif self.layout.format == "counts" and len(offer) == 1 and self.contents is None:
                remedy += ", or map the column if it has the ids of offers: columns='offer_id=offer'"
            raise BadRecordError("not offered", f"the choice {chosen!r} is not in its offer {whole!r}: {remedy}.")
        return offer, chosen

    def _offer(self, value: Any) -> tuple[str, ...]:
        if self.contents is not None:
            labels = self._held(text(value), self.contents)
            if labels not in self._known:
                self._known[labels] = self._checked(labels)
            return self._known[labels]
        if isinstance(value, dict):
            raise BadRecordError("malformed", f"the offer {shown(value)} has prices: give prices='offered'.")
        if not isinstance(value, str):
            return self._checked(labels_of(value, self.separator))
        if value not in self._known:
            self._known[value] = self._checked(labels_of(value, self.separator))
        return self._known[value]

    def _held(self, number: str, contents: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        if number == "":
            raise BadRecordError("empty", "the offer has no id: add one.")
        if number not in contents:
            raise BadRecordError("unknown offer", f"the items of the offer {number!r} are unknown: list them.")
        if not contents[number]:
            raise BadRecordError(
                "empty", f"a row of the offer {number!r} is bad, so an item may be missing: correct it."
            )
        return contents[number]

    def _checked(self, labels: Iterable[str]) -> tuple[str, ...]:
        offer = set(labels) | ({self.no_choice} if self.no_choice is not None else set())
        for label in offer:
            if self.items is not None and label not in self.items and label != self.no_choice:
                raise self._unknown(label)
        return tuple(sorted(offer, key=lambda label: (label == self.no_choice, order(label))))

    def _unknown(self, label: str) -> BadRecordError:
        return BadRecordError(
            "unknown item", f"the item {label!r} is not among the {len(self.items or ())} items: add it."
        )

    def _wide(self, raw: Sequence[Any]) -> Outcome:
        names, chosen = self.layout.items, text(raw[0])
        offer = [name for name, cell in zip(names, raw[1:], strict=True) if flag(cell, "availability", name)]
        if not offer:
            raise BadRecordError("empty", "the offer is empty: no item has a 1.")
        return self._checked(offer), self.layout.codes.get(chosen, chosen)

    def _long(self, raw: Sequence[Any]) -> Outcome:
        entries, naming = raw
        offer = labels_of([item for item, _ in entries], self.separator)
        if naming:
            return self._checked(offer), _only_name([text(cell) for _, cell in entries])
        chosen = [name for name, (_, cell) in zip(offer, entries, strict=True) if flag(cell, "chosen flag", name)]
        if len(chosen) > 1:
            raise BadRecordError(
                "flag", f"{len(chosen)} items are marked as chosen, such as {chosen[1]!r}: mark one of them."
            )
        if not chosen and self.no_choice is None:
            raise BadRecordError(
                "flag", "no item is marked as chosen. If that means 'bought nothing', add no_choice='nothing'."
            )
        return self._checked(offer), chosen[0] if chosen else ""


def _other_separator(offer: Iterable[str], chosen: str) -> str | None:
    for label in offer:
        for mark in SEPARATORS:
            if mark in label and chosen in map(str.strip, label.split(mark)):
                return mark
    return None


def _only_name(names: Sequence[str]) -> str:
    for name in names:
        if name != names[0]:
            raise BadRecordError(
                "flag",
                f"one observation has the choices {names[0]!r} and {name!r}: give the same one on all of its rows.",
            )
    return names[0]


def is_flag(cell: Any) -> bool:
    """Return whether a cell is a flag: yes, no or empty."""
    try:
        return text(cell).lower() in FLAGS
    except BadRecordError:
        return False


def flag(cell: Any, what: str, item: str) -> bool:
    """Return the value of a flag; anything but a yes or no is a BadRecordError."""
    value = FLAGS.get(text(cell).lower())
    if value is None:
        remedy = "correct the record"
        if what == "availability":
            remedy += ", or map the columns of items, or what was offered to all: columns='offered=a;b'"
        raise BadRecordError("flag", f"the {what} {cell!r} of the item {item!r} is not 0 or 1: {remedy}.")
    return value


def with_contents(connection: Connection, source: Source, table: str, layout: Layout) -> tuple[str, Layout]:
    """Replace the ids of offers in a table by lists of items, NULL where there is no id."""
    words = stripped(f"CAST({source.name_of(layout.raw[0])} AS VARCHAR)")
    number = f"CASE WHEN {words} NOT IN ('', 'nan', 'NaN') THEN {words} END"
    connection.execute(
        f"CREATE TEMP TABLE held AS SELECT {number} AS held_number, "
        f"list_sort(list(DISTINCT {identifier(layout.raw[1])})) AS held_items FROM {table} GROUP BY held_number"
    ).fetchall()
    joined = f"(SELECT * FROM {table} LEFT JOIN held ON {number} = held_number)"
    return joined, replace(layout, raw=("held_items", layout.raw[1]))


def own_contents(source: Source, layout: Layout) -> Contents:
    """Return the items that a table of counts lists for the id of each offer, including those with a count of 0.

    An offer with a bad row is empty, because one of its items may be missing.
    """
    contents: dict[str, set[str]] = defaultdict(set)
    incomplete: set[str] = set()
    for row in _selected(source, layout.raw):
        number, item = (text_or_nothing(cell) for cell in row.cells)
        if row.wrong is not None or item == "":
            incomplete.add(number)
        else:
            contents[number].add(item)
    return _shared(contents) | dict.fromkeys(incomplete, ())


def listed_contents(source: Source, number: str, separator: str) -> Contents:
    """Return the items of each offer from a separate table, with a row for each offer and item or for each offer."""
    given = {"offer_id": number} if number in source.columns else {}
    roles = roles_of(source.name, source.columns, given)
    if "offer_id" not in roles and "item" in roles and "offered" in roles:
        roles["offer_id"] = roles.pop("offered")
    many = roles.get("item", roles.get("offered"))
    if "offer_id" not in roles or many is None:
        raise ValueError(f"{source.name} does not list the offers' items: rename columns to {number!r} and 'item'.")
    contents: dict[str, set[str]] = defaultdict(set)
    for row in _selected(source, (roles["offer_id"], many)):
        try:
            if row.wrong is not None:
                raise row.wrong
            label, cell = text(row.cells[0]), row.cells[1]
            if label == "":
                raise BadRecordError("empty", "the offer has no id: add one.")
            contents[label].update(labels_of([cell] if "item" in roles else cell, separator))
        except BadRecordError as bad:
            raise ValueError(f"{row.place}: {bad}") from None
    return _shared(contents)


def _selected(source: Source, columns: Sequence[str]) -> Iterator[RawRow]:
    places = [source.columns.index(column) for column in columns]
    for row in source.rows(columns):
        yield row._replace(cells=tuple(row.cells[place] if place < len(row.cells) else None for place in places))


def _shared(contents: Mapping[str, set[str]]) -> Contents:
    """Use the same tuple for equal offers, because there may be millions of ids."""
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    offers = {number: tuple(sorted(items)) for number, items in contents.items()}
    return {number: known.setdefault(offer, offer) for number, offer in offers.items()}
