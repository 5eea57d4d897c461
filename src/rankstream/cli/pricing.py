"""Prices at the shell: offers such as "tea@3.50;nothing", levels in a line, and demand at middle prices."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rankstream.cli.asking import as_items, by_name, find_item, shown

if TYPE_CHECKING:
    from rankstream._core.types import Label
    from rankstream.cli.asking import Model
    from rankstream.data.prices import PriceLevels
    from rankstream.estimation.intervals import Bootstrap

    Asked = list[Label] | dict[Label, Any]


def as_asked(text: str, model: "Model") -> "Asked":
    """What a text asks a model: items, and of a model with prices, items at prices."""
    return as_items(text, by_name(model)) if model.price_levels is None else at_prices(text, model)


def as_labels(text: str, model: "Model") -> "list[Label]":
    """The model's own items in an offer; of a model with prices, those at the nearest levels."""
    asked = as_asked(text, model)
    return list(model.price_levels.offer(asked)) if isinstance(asked, dict) and model.price_levels else list(asked)


def at_prices(text: str, model: "Model") -> "dict[Label, Any]":
    """The prices of items in a text such as "tea@3.50;nothing", a JSON list of these, or {"tea": 3.5}."""
    from rankstream.data.readers.prices import pairs_in, price_in

    names = own_names(model)
    words: Any = text
    if text.lstrip().startswith(("[", "{")):
        with suppress(ValueError, RecursionError):
            words = json.loads(text)
    found: dict[Label, Any] = {}
    for name, cell in pairs_in(words, ";"):
        item = find_item(name, names, f"The offer {text!r} names")
        if item in found:
            raise ValueError(f"The offer {text!r} has {name!r} twice: give each item one price.")
        found[item] = price_in(name, cell)
    return found


def own_names(model: "Model") -> "dict[str, Label]":
    """The items of a model with prices by their own names."""
    from rankstream.models.prices import own_items

    return {str(item).strip(): item for item in own_items(model)}


def all_names(model: "Model") -> "dict[str, Label]":
    """What can be named when deciding: items, and of a model with prices also items at levels, as in "tea@3.50"."""
    from rankstream.data.prices import AT

    labels = by_name(model)
    if model.price_levels is None:
        return labels
    return own_names(model) | {name.replace(AT, "@"): label for name, label in labels.items()} | labels


def between_levels(model: "Model", asked: "Asked") -> dict[str, Any]:
    """For JSON: which items of an offer are between two of their levels; nothing for a model without prices."""
    from rankstream.models.prices import nearby_offers

    if model.price_levels is None or not isinstance(asked, dict):
        return {}
    return {"between_levels": [str(item) for item in nearby_offers(model.price_levels, model.items, asked).between]}


def between_lines(content: Mapping[str, Any]) -> list[str]:
    """The same in a sentence."""
    names = [shown(name) for name in content.get("between_levels", ())]
    if not names:
        return []
    which = "is between two price levels" if len(names) == 1 else "are between two price levels each"
    return [f"  ({', '.join(names)} {which}: shares are taken to be linear between them.)"]


def describe_levels(levels: "PriceLevels") -> dict[str, list[float]]:
    """The levels of each item, for JSON."""
    return {str(item): list(prices) for item, prices in levels.levels.items()}


def levels_line(prices: Mapping[str, Sequence[float]]) -> str:
    """The levels of each item in a line."""
    from rankstream.data.prices import AT, PriceLevels

    levels = PriceLevels(dict(prices))
    texts: dict[str, str] = {}
    for label in levels.labels:
        item, _, price = label.rpartition(AT)
        texts[item] = f"{texts[item]}, {price}" if item in texts else f"{shown(item)} {price}"
    return f"Price levels: {'; '.join(texts.values())}."


def demand_curves(
    model: "Model", item: str | None, offer: str | None, many: "Bootstrap | None" = None
) -> "dict[Label, dict[float, Any]]":
    """The demand of an item, or of each with two levels, beside the others of an offer, or at middle prices."""
    from rankstream.models.prices import curves_of, middle_prices, require_levels

    require_levels(model)
    whole = middle_prices(model) if offer is None else at_prices(offer, model)
    ask: Any = model.demand if many is None else many.demand
    if item is not None:
        one = find_item(item, own_names(model), "--item names")
        return {one: dict(ask(one, {other: price for other, price in whole.items() if other != one}))}
    found = curves_of(model, ask, whole, whole)
    if not found:
        raise ValueError("No item of the offer has two price levels: a demand curve needs some, name them by --offer.")
    return found


def as_rows(curves: "Mapping[Label, Mapping[float, Any]]") -> dict[str, list[dict[str, float]]]:
    """Demand curves for JSON."""
    return {str(item): [{"price": price, **_row(curve[price])} for price in curve] for item, curve in curves.items()}


def _row(value: Any) -> dict[str, float]:
    return {"share": value} if isinstance(value, float) else value._asdict()


def describe_demand(model: "Model", many: "Bootstrap | None") -> dict[str, Any]:
    """Levels and demand for ``show``, where everything is at its middle level."""
    from rankstream.models.prices import middle_prices, require_levels

    levels = require_levels(model)
    middle = {str(item): price for item, price in middle_prices(model).items()}
    several = any(len(prices) > 1 for prices in levels.levels.values())
    rows = as_rows(demand_curves(model, None, None, many)) if several else {}
    return {"prices": describe_levels(levels), "middle_offer": middle, "demand": rows}


def demand_lines(content: Mapping[str, Any]) -> list[str]:
    """The same in lines."""
    lines = ["", levels_line(content["prices"]), "Demand by an item's own price, beside the others at middle prices:"]
    for item, rows in content["demand"].items():
        shares = ", ".join(f"{_price(row['price'])}: {100 * row['share']:.1f} %{_ends(row)}" for row in rows)
        lines.append(f"  {shown(item)}  {shares}")
    return lines if content["demand"] else lines[:2]


def _price(price: float) -> str:
    return f"{price:.2f}" if round(price, 2) == price else f"{price:g}"


def _ends(row: Mapping[str, float]) -> str:
    return f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]" if "low" in row else ""
