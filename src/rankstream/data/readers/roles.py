"""Assign columns to roles, by usual names or as the user says; and find the columns of prices."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankstream.data.readers.problems import shown
from rankstream.data.readers.sources.labels import text_or_nothing
from rankstream.data.readers.sources.lines import MOST_COLUMNS

NAMES: dict[str, tuple[str, ...]] = {
    "offered": ("offered", "offer", "assortment"),
    "offer_id": ("offer_id", "offered_id", "assortment_id", "menu_id"),
    "chosen": ("chosen", "choice", "depvar", "bought", "purchased"),
    "chosen_item": ("chosen_item", "chosen_alternative", "chosen_alt", "choice_item", "choice_name"),
    "observation": (
        *("observation", "observation_id", "obs_id", "obs", "chid", "choice_id", "choices_id", "choiceid"),
        *("choice_situation", "custom_id", "receipt_id", "receipt", "transaction_id", "transaction", "order_id"),
        *("case_id", "caseid", "idcase", "case", "id", "individual"),
    ),
    "item": (
        *("item", "item_id", "items_id", "alternative", "alternative_id", "alt_id", "alt", "mode_id", "mode"),
        *("product", "product_id", "article", "article_id", "sku"),
    ),
    "ranking": ("ranking", "ballot", "rankings", "preferences"),
    "count": ("count", "counts"),
    "time": ("time", "timestamp", "date"),
    "available": ("available", "in_stock"),
    "person": (),  # only if named: groups of persons take memory
}
QUANTITY = "quantity"
WHO = r"(?:ballot|vote|voter|choice|ranking|record|row|person|people|total)s?"
COUNT_LIKE = re.compile(  # counts only if there is no column of choices
    rf"(?:{WHO}[_. ])?(?:counts?|freq|frequency|multiplicity|weights?)|n|(?:n|num|number|count)[_. ](?:of[_. ])?{WHO}"
    r"|votes|voters|ballots|choices"
)
THINGS = {"case", "individual"}  # names of ids that can also be items of a wide table
AVAILABLE = r"av|avail|available|availability"
MARKED = re.compile(rf"(?:{AVAILABLE})[_.\s](?P<after>.+)|(?P<before>.+)[_.\s](?:{AVAILABLE})", re.IGNORECASE)
Columns = Mapping[str, str | Sequence[str] | Mapping[str, object]]
Prices = str | Sequence[str] | Mapping[str, str]
IN_OFFERS = "offered"
PRICED = re.compile(r"prices?[_.\s](?P<after>.+)|(?P<before>.+)[_.\s]prices?", re.IGNORECASE)


def parsed(words: str) -> dict[str, Any]:
    """Parse columns by role from the text of the command line, where ';' separates a list, or from JSON.

    >>> parsed("chosen=CHOICE,items=TRAIN_AV:1;CAR_AV:3")
    {'chosen': 'CHOICE', 'items': ['TRAIN_AV:1', 'CAR_AV:3']}
    >>> parsed('{"items": ["Granola", "Jam, Strawberry"]}')
    {'items': ['Granola', 'Jam, Strawberry']}
    """
    if words.lstrip().startswith("{"):
        found = _from_json("The columns", words, dict, """them as '{"chosen": "choice"}'""")
        return dict(found)
    roles: dict[str, Any] = {}
    for part in words.split(","):
        role, equals, column = (word.strip() for word in part.partition("="))
        if not (role and equals and column):
            raise ValueError(
                f"The columns {shown(words)} are not of the form 'observation=case,item=alt': see {shown(part)}, and "
                """write names with a comma as JSON, such as '{"items": ["Granola", "Jam, Strawberry"]}'."""
            )
        if role in roles:
            raise ValueError(f"The columns {shown(words)} map {role!r} twice: map it once.")
        many = ";" in column or role == "items"
        roles[role] = [name.strip() for name in column.split(";")] if many else column
    return roles


def _from_json(what: str, words: str, kinds: Any, example: str) -> Any:
    try:
        found = json.loads(words)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, kinds):
        raise ValueError(f"{what} {shown(words)} are not JSON: write {example}.")
    return found


def match_roles(
    name: str, columns: Sequence[str], given: Mapping[str, Any], names: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Return the column of each role: the given one, or the one with a usual name of the role."""
    roles: dict[str, str] = {}
    for role, column in given.items():
        if role not in names:
            raise ValueError(f"Unknown column role {role!r}: the roles are {', '.join(names)} and items.")
        if column == "":
            raise ValueError(f"The column for {role!r} is '', which is not a name: give it one, in the file as well.")
        if not isinstance(column, str) or column not in columns:
            raise ValueError(
                f"{name} has no column {shown(column)} for {role!r} (it has {listed_names(columns)}): use one of these."
            )
        roles[role] = column
    plain = {column.strip().lower(): column for column in columns if column not in roles.values()}
    for role, usual in names.items():
        known = next((known for known in usual if known in plain), None)
        if role not in roles and known is not None:
            roles[role] = plain[known]
    return roles


def roles_of(name: str, columns: Sequence[str], given: Columns, absent: Collection[str] = ()) -> dict[str, str]:
    """Return the column of each role, given or recognised by its name; ``absent`` roles have no column."""
    names = {role: () if role in absent else usual for role, usual in NAMES.items()}
    roles = match_roles(name, columns, given, names)
    plain = {column.strip().lower(): column for column in columns if column not in given.values()}
    if "chosen_item" in roles and ("chosen_item" in given or "chosen" not in roles):
        roles["chosen"] = roles["chosen_item"]
    roles |= _till_roles(roles, plain.get(QUANTITY))
    if "count" not in roles and "chosen" not in roles:  # rankings or items may have a column of counts
        free = [column for column in columns if column not in roles.values()]
        counts = [column for column in free if COUNT_LIKE.fullmatch(column.strip().lower())]
        if len(counts) > 1:
            names_of_counts = listed_names(counts)
            raise ValueError(f"{name} may have counts in {names_of_counts}: set columns='count=YOUR_COLUMN'.")
        if counts:
            roles["count"] = counts[0]
    return roles


def _till_roles(roles: Mapping[str, str], quantity: str | None) -> dict[str, str]:
    """Return the roles of the columns 'quantity' and 'available': flags of a long table, or a count and an offer.

    >>> _till_roles({"observation": "receipt", "item": "sku"}, "quantity"), _till_roles({"available": "shelf"}, None)
    ({'chosen': 'quantity'}, {'offered': 'shelf'})
    """
    is_long = "observation" in roles and "item" in roles and "offered" not in roles
    has_choices = "chosen" in roles or "count" in roles
    if quantity is not None and is_long and not has_choices:
        return {"chosen": quantity}
    if "available" not in roles or "offered" in roles or (is_long and "chosen" in roles):
        return {}
    offered = {"offered": roles["available"]}
    if "item" not in roles or has_choices:
        return offered
    return offered | ({"chosen": roles["item"]} if quantity is None else {"count": quantity})


def listed_names(columns: Sequence[str]) -> str:
    """Return up to 20 names for a message."""
    names = ", ".join(map(shown, columns[:20]))
    return names if len(columns) <= 20 else f"{names} and {len(columns) - 20:,} more"


def check_names(name: str, columns: Sequence[str]) -> None:
    """Raise a ValueError if there are too many columns, or two that differ only in case, which DuckDB ignores."""
    if len(columns) > MOST_COLUMNS:
        raise ValueError(f"{name} has more than {MOST_COLUMNS:,} columns: keep those that are needed.")
    seen: dict[str, str] = {}
    for column in columns:
        first = seen.get(column.lower())
        if first is not None:
            raise ValueError(
                f"{name} has the columns {shown(first)} and {shown(column)}: rename one, as case does not count."
            )
        seen[column.lower()] = column


def items_of(name: str, columns: Sequence[str], wanted: object, taken: set[str]) -> dict[str, str]:
    """Return the columns of items of a wide table, each with its code in the column of choices.

    Unless the user names them, these are the columns marked as in ``train_av`` if there are two or more, else all.
    """
    if wanted is None:
        free = [column for column in columns if column not in taken]
        marked = [column for column in free if MARKED.fullmatch(column)]
        return {column: item_name(column) for column in (marked if len(marked) > 1 else free)}
    if isinstance(wanted, Mapping):
        codes = {str(column): str(code) for column, code in wanted.items()}
    else:
        listed = (wanted,) if isinstance(wanted, str) else tuple(wanted) if isinstance(wanted, Sequence) else ()
        codes = {}
        for words in map(str, listed):
            column, colon, code = words.rpartition(":")
            codes |= {column: code} if colon and words not in columns else {words: item_name(words)}
    for column in codes:
        if column not in columns:
            raise ValueError(
                f"{name} has no column {shown(column)} for an item (it has {listed_names(columns)}): use one of these."
            )
    return codes


def item_name(column: str) -> str:
    """Return the item of a wide table's column: its name without a mark such as ``_av``.

    >>> item_name("TRAIN_AV"), item_name("avail.car"), item_name("tea")
    ('TRAIN', 'car', 'tea')
    """
    marked = MARKED.fullmatch(column)
    return ((marked["after"] or marked["before"]) if marked else column).strip()


@dataclass(frozen=True)
class PriceColumns:
    """Columns of prices as named by the user; ``by_item`` if the user also named their items."""

    columns: tuple[str, ...] = ()
    by_item: Mapping[str, str] = field(default_factory=dict)

    def beside(self, offered: str | None) -> set[str]:
        """Return the columns that contain only prices."""
        return set(self.columns) - {IN_OFFERS, offered}

    def in_offers(self, name: str, offered: str | None) -> None:
        """Check that the prices are in the offers, as they must be where an offer is one cell."""
        if self.by_item or len(self.columns) > 1 or self.columns[0] not in (IN_OFFERS, offered):
            raise ValueError(
                f"{name} has each offer in one cell: write the prices there, as in 'tea@3.50;cake@4', and give "
                f"prices={IN_OFFERS!r} instead of {listed_names(self.columns)}."
            )

    def alone(self, name: str) -> str:
        """Return the only column of prices of a long table."""
        if self.by_item or len(self.columns) > 1 or self.columns[0] == IN_OFFERS:
            raise ValueError(
                f"{name} has a row for each item: name its one column of prices, such as prices='price', instead of "
                f"{listed_names(self.columns)}."
            )
        return self.columns[0]

    def of_items(self, name: str, codes: Mapping[str, str], closed: bool) -> dict[str, str]:
        """Return the column of each item with a price in a wide table; ``codes`` are its items by code and name.

        An item may have a price and no column of flags, unless the list of items is complete (``closed``).
        """
        named = self.by_item or {item_with_price(name, column): column for column in self.columns}
        if len(named) < len(self.columns):
            raise ValueError(
                f"{name} has two price columns for one item among {listed_names(self.columns)}: use one of them."
            )
        columns: dict[str, str] = {}
        for item, column in named.items():
            if item not in codes and closed and not self.by_item:
                raise ValueError(
                    f"{name} has no item {item!r} for the prices in {column!r}: map the column to an item, as in "
                    f"{{'tea': {column!r}}}."
                )
            columns[codes.get(item, item)] = column
        return columns


def price_columns(name: str, columns: Sequence[str], given: Prices | None) -> PriceColumns:
    """Return the columns of prices that a user names, or raise a ValueError.

    Text is a column, several separated by commas, or pairs such as "tea=p1,cake=p2"; JSON if a name has a comma.

    >>> price_columns("data", ["p1", "p2", "chosen"], "tea=p1,cake=p2").by_item
    {'tea': 'p1', 'cake': 'p2'}
    """
    if given is None:
        return PriceColumns()
    wanted = _parsed_prices(given, columns) if isinstance(given, str) else given
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


def _parsed_prices(words: str, columns: Sequence[str]) -> Any:
    if words in columns or words == IN_OFFERS:
        return [words]
    if words.lstrip().startswith(("{", "[")):
        return _from_json("The price columns", words, dict | list, """{"tea": "price_tea"}""")
    parts = [part.strip() for part in words.split(",")]
    if not all("=" in part for part in parts):
        return parts
    pairs = [part.partition("=") for part in parts]
    if len({item.strip() for item, *_ in pairs}) < len(pairs):
        raise ValueError(f"The price columns {shown(words)} include an item twice: list each once.")
    return {item.strip(): column.strip() for item, _, column in pairs}


def item_with_price(name: str, column: str) -> str:
    """Return the item in the name of a column of prices.

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
