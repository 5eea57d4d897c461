"""Which columns have the prices: one of a long table, one for each item of a wide one, or the offers themselves."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankstream.data.readers.problems import shown
from rankstream.data.readers.roles import listed_names
from rankstream.data.readers.sources.labels import text_or_nothing

Prices = str | Sequence[str] | Mapping[str, str]
IN_OFFERS = "offered"
PRICED = re.compile(r"prices?[_.\s](?P<after>.+)|(?P<before>.+)[_.\s]prices?", re.IGNORECASE)


@dataclass(frozen=True)
class PriceColumns:
    """Columns of prices as the user names them; ``by_item`` are those whose items he names as well."""

    columns: tuple[str, ...] = ()
    by_item: Mapping[str, str] = field(default_factory=dict)

    @property
    def asked(self) -> bool:
        """Whether there are prices to read."""
        return bool(self.columns)

    def beside(self, offered: str | None) -> set[str]:
        """The columns that are nothing but prices."""
        return set(self.columns) - {IN_OFFERS, offered}

    def in_offers(self, name: str, offered: str | None) -> None:
        """Check that the prices are in the offers, as they must be where an offer is one cell."""
        if self.by_item or len(self.columns) > 1 or self.columns[0] not in (IN_OFFERS, offered):
            raise ValueError(
                f"{name} has each offer in one cell: write the prices there, as in 'tea@3.50;cake@4', and give "
                f"prices={IN_OFFERS!r} instead of {listed_names(self.columns)}."
            )

    def alone(self, name: str) -> str:
        """The one column of prices of a long table."""
        if self.by_item or len(self.columns) > 1 or self.columns[0] == IN_OFFERS:
            raise ValueError(
                f"{name} has a row for each item: name its one column of prices, such as prices='price', instead of "
                f"{listed_names(self.columns)}."
            )
        return self.columns[0]

    def of_items(self, name: str, codes: Mapping[str, str], closed: bool) -> dict[str, str]:
        """The column of each item with a price in a wide table; ``codes`` are its items by all that they are called.

        An item may have a price and no column of 0 and 1, unless those that have one are all there are (``closed``).
        """
        named = self.by_item or {item_with_price(name, column): column for column in self.columns}
        if len(named) < len(self.columns):
            raise ValueError(
                f"{name} has two price columns for one item among {listed_names(self.columns)}: use one of them."
            )
        found: dict[str, str] = {}
        for item, column in named.items():
            if item not in codes and closed and not self.by_item:
                raise ValueError(
                    f"{name} has no item {item!r} for the prices in {column!r}: map the column to an item, as in "
                    f"{{'tea': {column!r}}}."
                )
            found[codes.get(item, item)] = column
        return found


def price_columns(name: str, columns: Sequence[str], given: Prices | None) -> PriceColumns:
    """The columns of prices that a user names, checked.

    Text is one column, some joined by commas, or pairs such as "tea=p1,cake=p2"; JSON where a name has a comma.

    >>> price_columns("data", ["p1", "p2", "chosen"], "tea=p1,cake=p2").by_item
    {'tea': 'p1', 'cake': 'p2'}
    """
    if given is None:
        return PriceColumns()
    wanted = _parsed(given, columns) if isinstance(given, str) else given
    by_item = {text_or_nothing(item): column for item, column in wanted.items()} if isinstance(wanted, Mapping) else {}
    listed = list(by_item.values()) if isinstance(wanted, Mapping) else list(wanted)
    if not listed or "" in by_item or not all(isinstance(column, str) for column in listed):
        raise ValueError(f"The price columns are {shown(given)}: give one name, or {{'tea': 'price_tea'}}.")
    for column in listed:
        if column not in columns and column != IN_OFFERS:
            raise ValueError(f"{name} has no price column {shown(column)} (it has {listed_names(columns)}): use one.")
    if len(set(listed)) < len(listed):
        raise ValueError(f"The price columns {listed_names(listed)} include one twice: list each once.")
    return PriceColumns(tuple(listed), by_item)


def _parsed(words: str, columns: Sequence[str]) -> Any:
    if words in columns or words == IN_OFFERS:
        return [words]
    if words.lstrip().startswith(("{", "[")):
        try:
            found = json.loads(words)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict | list):
            raise ValueError(f"""The price columns {shown(words)} are not JSON: write {{"tea": "price_tea"}}.""")
        return found
    parts = [part.strip() for part in words.split(",")]
    if not all("=" in part for part in parts):
        return parts
    pairs = [part.partition("=") for part in parts]
    if len({item.strip() for item, *_ in pairs}) < len(pairs):
        raise ValueError(f"The price columns {shown(words)} include an item twice: list each once.")
    return {item.strip(): column.strip() for item, _, column in pairs}


def item_with_price(name: str, column: str) -> str:
    """The item that the name of a column is about.

    >>> item_with_price("data", "price_tea"), item_with_price("data", "tea price")
    ('tea', 'tea')
    """
    marked = PRICED.fullmatch(column)
    if marked is None:
        raise ValueError(
            f"{name} has prices in {column!r}, which matches no item: call it 'price_tea', or give "
            f"{{'tea': {column!r}}}."
        )
    return (marked["after"] or marked["before"]).strip()
