"""Read a table of items: margins, costs and shelf space."""

from collections.abc import Collection
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankstream.models.item_names import find_item

if TYPE_CHECKING:
    from rankstream._core.types import Label


@dataclass(frozen=True)
class Items:
    """Margins of items and, if the table has them, listing costs and space.

    ``unit_costs`` are for items at price levels, which earn the price minus that; None for a model without prices.
    """

    margins: "dict[Label, float]"
    listing_costs: "dict[Label, float] | None"
    space: "dict[Label, float] | None"
    unit_costs: "dict[Label, float] | None" = None


def read_items(
    path: Path,
    names: "dict[str, Label]",
    nothing: str | None,
    priced: "Collection[Label] | None" = None,
    others: "Collection[str]" = (),
) -> Items:
    """Read a CSV file with columns item and margin, or price and unit_cost; optionally listing_cost and space.

    For a model with price levels, ``priced`` are the items that have some. A line about such an item needs its
    unit_cost, because its price is to be decided; a line about one of its levels needs the margin. Errors name the
    line. The no-choice item may be left out, or earn 0. Lines about ``others``, items of other markets, are skipped.
    """
    rows = _rows(path, priced is not None)
    table = Items(
        {}, {} if "listing_cost" in rows[0] else None, {} if "space" in rows[0] else None,
        None if priced is None else {},
    )  # fmt: skip
    for number, row in enumerate(rows, start=2):
        place, text = f"Line {number} of {path}", (row["item"] or "").strip()
        if text in others and text not in names:
            continue
        item = find_item(text, names, f"{place} names")
        if item in table.margins or item in (table.unit_costs or {}):
            raise ValueError(f"{place} lists {text!r} again: keep one line per item.")
        if table.unit_costs is not None and item in (priced or ()):
            if "unit_cost" not in row:
                raise ValueError(f"{place}: {text!r} needs a unit cost to decide its price. Add a column unit_cost.")
            table.unit_costs[item] = _number(place, "unit_cost", row)
        else:
            table.margins[item] = _margin(place, text, row, nothing, priced is not None)
        for name, column in (("listing_cost", table.listing_costs), ("space", table.space)):
            if column is not None and (row[name] or "").strip():
                column[item] = _number(place, name, row)
        if table.space is not None and table.space.get(item, 0.0) < 0.0:
            raise ValueError(f"{place}: the space of {text!r} is {table.space[item]:g}. It must be at least 0.")
    for text, item in names.items() if priced is None else ():
        if item not in table.margins and text != nothing:
            raise ValueError(f"{path} has no line for {text!r}: give every item a margin, 0 if it earns nothing.")
    return table


def _margin(place: str, text: str, row: dict[str, Any], nothing: str | None, priced: bool) -> float:
    """Return the margin in a line; with price levels, the line is about a level or an item without a price."""
    if priced and text == nothing and not (row.get("margin") or "").strip():
        return 0.0
    if "margin" in row:
        margin = _number(place, "margin", row)
    elif priced:
        raise ValueError(f"{place}: {text!r} has no price to decide, so it needs a margin. Add a column margin.")
    else:
        margin = _number(place, "price", row) - _number(place, "unit_cost", row)
    if text == nothing and margin:
        raise ValueError(f"{place} gives {text!r} a margin, but it means buying nothing: remove the margin.")
    return margin


def _rows(path: Path, priced: bool = False) -> list[dict[str, Any]]:
    from rankstream.data.attributes import read_lines  # with numpy, which help does not need

    rows = read_lines(path, "a CSV file with the columns item and margin")
    heads = list(rows[0])
    if priced and ("item" not in heads or not {"margin", "unit_cost"} & set(heads)):
        raise ValueError(f"{path} needs the columns item and unit_cost (or margin, for levels); it has {heads}.")
    if not priced and ("item" not in heads or not ("margin" in heads or {"price", "unit_cost"} <= set(heads))):
        raise ValueError(f"{path} needs the columns item and margin (or price and unit_cost); it has {heads}.")
    return rows


def _number(place: str, name: str, row: dict[str, Any]) -> float:
    text = (row[name] or "").strip()
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise ValueError(f"{place} has the {name} {text!r} for {row['item']!r}: it must be a finite number.")
    return value


def word_pairs(option: str, texts: list[str], names: "dict[str, Label]") -> list[tuple[str, str]]:
    """Parse pairs such as "cream:tea"; names may contain a colon if only one way of splitting has known items."""
    pairs = []
    for text in texts:
        parts = text.split(":")
        ways = [(":".join(parts[:cut]).strip(), ":".join(parts[cut:]).strip()) for cut in range(1, len(parts))]
        if len(ways) > 1:
            ways = [way for way in ways if way[0] in names and way[1] in names]
        if len(ways) != 1:
            raise ValueError(f"{option} is {text!r}: give two items as cream:tea.")
        pairs += ways
    return pairs
