"""Recognise the format of a table by the names of its columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rankstream.data.readers.problems import shown
from rankstream.data.readers.roles import (
    MARKED,
    NAMES,
    THINGS,
    Columns,
    PriceColumns,
    Prices,
    check_names,
    item_name,
    items_of,
    listed_names,
    parsed,
    price_columns,
    roles_of,
)
from rankstream.data.readers.sources.labels import text_or_nothing

NEEDED: dict[str, tuple[str, ...]] = {
    "long": ("observation", "item", "chosen"),
    "transactions": ("offered", "chosen"),
    "counts": ("offered", "item", "count"),
    "rankings": ("ranking",),
    "wide": ("chosen",),
}


@dataclass(frozen=True)
class Layout:
    """A format, and the columns of a table by role; ``raw`` are the columns with the offer, the choice and prices.

    - ``codes``: the items of a wide table by their code in the column of choices.
    - ``naming``: whether the choices of a long table name an item instead of flagging it; None if not known yet.
    - ``always``: the offer of all records, where no column has it.
    - ``by_id``: whether the first column has only the ids of offers.
    - ``has_prices``: whether there are prices: in the last column of a long table, in the last columns of a wide one
      (for the items ``priced``), or in the offers.
    """

    format: str
    raw: tuple[str, ...]
    count: str | None = None
    roles: dict[str, str] = field(default_factory=dict)
    codes: dict[str, str] = field(default_factory=dict)
    naming: bool | None = None
    always: tuple[str, ...] | None = None
    by_id: bool = False
    has_prices: bool = False
    priced: tuple[str, ...] = ()

    @property
    def items(self) -> tuple[str, ...]:
        """The items of the wide format, in the order of their columns."""
        return tuple(map(item_name, self.raw[1 : len(self.raw) - len(self.priced)]))


def recognise(
    name: str,
    columns: Sequence[str],
    format: str | None = None,  # noqa: A002
    given: Columns | str | None = None,
    besides: Sequence[str] = (),
    by_id: bool = False,
    prices: Prices | None = None,
) -> Layout:
    """Return the layout of a table with these columns; ``given`` names columns by role, ``besides`` are not items.

    With ``by_id`` the offers are ids, whose items are in another table. ``prices`` names columns of prices.

    >>> recognise("data", ["obs_id", "alt_id", "choice", "price"]).format
    'long'
    >>> recognise("data", ["tea", "pie", "chosen"]).items
    ('tea', 'pie')
    """
    if format is not None and format not in NEEDED:
        raise ValueError(f"Unknown format {format!r}: the formats are {', '.join(NEEDED)}.")
    check_names(name, columns)
    named: dict[str, Any] = dict(parsed(given) if isinstance(given, str) else given or {})
    absent = [role for role, column in named.items() if column is None]
    named = {role: column for role, column in named.items() if column is not None}
    wanted, always = named.pop("items", None), _always(named)
    roles, costs = roles_of(name, columns, named, absent), price_columns(name, columns, prices)
    numbered = "offer_id" in named or ("offer_id" in roles and "offered" not in roles and (by_id or "item" in roles))
    if numbered:
        roles["offered"] = roles["offer_id"]
    known = roles if always is None else roles | {"offered": ""}
    taken = {roles[role] for role in ("chosen", "count", "observation", "offer_id", "time") if role in roles}
    others = {*besides, *costs.beside(known.get("offered"))}
    items = items_of(name, columns, wanted, {*(part for part in taken if part.lower() not in THINGS), *others})
    n_items = len(items) + 1 if costs.beside(None) else len(items)  # an item may have a price and no flag
    form = _format(name, columns, known, n_items, "transactions" if always and format is None else format)
    if form == "wide" and not items and not costs.columns:
        raise ValueError(f"{name} has no columns for its items: add one of 0 and 1 for each item.")
    raw = tuple(known[role] for role in NEEDED[form] if role != "count" and known[role])
    by_number = form in ("transactions", "counts") and (numbered or by_id)
    naming = True if "chosen_item" in roles and roles["chosen"] == roles["chosen_item"] else None
    if form != "wide":
        layout = Layout(form, raw, roles.get("count"), roles, naming=naming, always=always, by_id=by_number)
    else:
        layout = Layout(form, raw + tuple(items), roles.get("count"), roles, _codes(name, items))
    closed = wanted is not None or any(map(MARKED.fullmatch, items))
    return _with_prices(name, layout, costs, closed) if costs.columns else layout


def _with_prices(name: str, layout: Layout, prices: PriceColumns, closed: bool) -> Layout:
    if layout.format == "rankings":
        raise ValueError(f"{name} has rankings, which have no prices: leave prices out.")
    if layout.format == "long":
        return replace(layout, raw=(*layout.raw, prices.alone(name)), has_prices=True)
    if layout.format != "wide":
        prices.in_offers(name, layout.roles.get("offered"))
        return replace(layout, has_prices=True)
    by_item = prices.of_items(name, layout.codes, closed)
    return replace(layout, raw=(*layout.raw, *by_item.values()), has_prices=True, priced=tuple(by_item))


def _always(named: dict[str, Any]) -> tuple[str, ...] | None:
    """Return the items offered to all, where the user gives these instead of a column."""
    if not isinstance(named.get("offered"), list | tuple):
        return None
    offered = tuple(map(text_or_nothing, named.pop("offered")))
    if not all(offered) or len(set(offered)) < len(offered):
        raise ValueError(f"The items offered to all are {list(offered)}: list each once, without empty names.")
    return offered


def _codes(name: str, items: Mapping[str, str]) -> dict[str, str]:
    """Return the items by code, name and column, because a choice may use any of them."""
    codes: dict[str, str] = {}
    for column, code in items.items():
        if text_or_nothing(item_name(column)) == "":
            remedy = "rename it, or list the columns of items: columns='items=YOUR_COLUMN'"
            raise ValueError(f"{name} has a column called {shown(column)}, which is not a name: {remedy}.")
        for word in {code, item_name(column), column}:
            if codes.setdefault(word, item_name(column)) != item_name(column) or word == "":
                raise ValueError(f"{name} has two items called {shown(word)}: give each its own code.")
    if len(set(map(item_name, items))) < len(items):
        raise ValueError(f"{name} has two columns for one item among {listed_names(list(items))}: name one of them.")
    return codes


def _format(name: str, columns: Sequence[str], roles: Mapping[str, str], n_items: int, wanted: str | None) -> str:
    """Return the wanted or the first fitting format, or raise a ValueError with the columns it lacks."""
    fitting = (form for form in NEEDED if _fits(form, roles, n_items))
    form = wanted or next(fitting, None)
    missing = _missing(form, roles)
    if form is not None and not missing:
        return form
    if not columns:
        raise ValueError(
            f"{name} has no records: a CSV file starts with the names of its columns, JSON Lines with '{{'."
        )
    has = listed_names(columns)
    likely = ("transactions", "counts", "long", "rankings")
    nearest = form or max(likely, key=lambda known: sum(role in roles for role in NEEDED[known]))
    missing = missing or _missing(nearest, roles)
    named = ",".join(f"{role}=YOUR_COLUMN" for role in missing)
    remedy = f"rename columns to {' and '.join(NEEDED[nearest])}, or map them: columns='{named}'"
    raise ValueError(f"{name} has no column {missing[0]!r} (it has {has}): {remedy}.")


def _missing(form: str | None, roles: Mapping[str, str]) -> list[str]:
    return [role for role in NEEDED[form] if role not in roles] if form else []


def _fits(form: str, roles: Mapping[str, str], n_items: int) -> bool:
    if form == "long" and roles.get("offered", "").lower() in ("offered", *NAMES["available"]):
        return False
    return not _missing(form, roles) and (form != "wide" or n_items > 1)
