"""What is in each offer, where records only number their offers: from a table of its own, or from the records."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rankstream.data.readers.formats import Layout
from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.roles import roles_of
from rankstream.data.readers.sources.database import Connection, identifier, stripped
from rankstream.data.readers.sources.labels import labels_of, text, text_or_nothing
from rankstream.data.readers.sources.lines import RawRow
from rankstream.data.readers.sources.tables import Source

Contents = dict[str, tuple[str, ...]]


def with_contents(connection: Connection, source: Source, table: str, layout: Layout) -> tuple[str, Layout]:
    """The table with lists of items in place of the numbers of offers, none where there is no number."""
    words = stripped(f"CAST({source.name_of(layout.raw[0])} AS VARCHAR)")
    number = f"CASE WHEN {words} NOT IN ('', 'nan', 'NaN') THEN {words} END"
    connection.execute(
        f"CREATE TEMP TABLE held AS SELECT {number} AS held_number, "
        f"list_sort(list(DISTINCT {identifier(layout.raw[1])})) AS held_items FROM {table} GROUP BY held_number"
    ).fetchall()
    joined = f"(SELECT * FROM {table} LEFT JOIN held ON {number} = held_number)"
    return joined, replace(layout, raw=("held_items", layout.raw[1]))


def own_contents(source: Source, layout: Layout) -> Contents:
    """The items that a table of counts lists under each number of an offer, those with a count of 0 as well.

    An offer with a bad row has nothing in it, since without one of its items it would be another offer.
    """
    held: dict[str, set[str]] = defaultdict(set)
    spoiled: set[str] = set()
    for row in _walked(source, layout.raw):
        number, item = (text_or_nothing(cell) for cell in row.cells)
        if row.wrong is not None or item == "":
            spoiled.add(number)
        else:
            held[number].add(item)
    return _shared(held) | dict.fromkeys(spoiled, ())


def listed_contents(source: Source, number: str, separator: str) -> Contents:
    """The items of each offer from a table of its own: a row for each offer and item, or for each offer all items."""
    given = {"offer_id": number} if number in source.columns else {}
    roles = roles_of(source.name, source.columns, given)
    if "offer_id" not in roles and "item" in roles and "offered" in roles:
        roles["offer_id"] = roles.pop("offered")
    many = roles.get("item", roles.get("offered"))
    if "offer_id" not in roles or many is None:
        raise ValueError(f"{source.name} does not list the offers' items: rename columns to {number!r} and 'item'.")
    held: dict[str, set[str]] = defaultdict(set)
    for row in _walked(source, (roles["offer_id"], many)):
        try:
            if row.wrong is not None:
                raise row.wrong
            label, cell = text(row.cells[0]), row.cells[1]
            if label == "":
                raise BadRecordError("empty", "the offer has no id: add one.")
            held[label].update(labels_of([cell] if "item" in roles else cell, separator))
        except BadRecordError as bad:
            raise ValueError(f"{row.place}: {bad}") from None
    return _shared(held)


def _walked(source: Source, columns: Sequence[str]) -> Iterator[RawRow]:
    places = [source.columns.index(column) for column in columns]
    for row in source.rows(columns):
        yield row._replace(cells=tuple(row.cells[place] if place < len(row.cells) else None for place in places))


def _shared(held: Mapping[str, set[str]]) -> Contents:
    """Equal offers as one tuple, since there may be millions."""
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    return {
        number: known.setdefault(offer, offer) for number, items in held.items() for offer in [tuple(sorted(items))]
    }
