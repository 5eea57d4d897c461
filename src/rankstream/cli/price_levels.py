"""Prices at the shell: levels in a line, offers between them, and demand at usual prices."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankstream.cli.model_answers import ends_of, shown
from rankstream.models.item_names import find_item, offer_in, own_names, prices_in

if TYPE_CHECKING:
    from rankstream._core.types import Label
    from rankstream.data.prices import PriceLevels
    from rankstream.estimation.intervals import Bootstrap
    from rankstream.models.files import Model

    Asked = list[Label] | dict[Label, Any]


def as_labels(text: str, model: "Model") -> "list[Label]":
    """The model's own items in an offer; of a model with prices, those at the nearest levels."""
    asked = offer_in(text, model)
    return list(model.price_levels.offer(asked)) if isinstance(asked, dict) and model.price_levels else list(asked)


def between_lines(content: Mapping[str, Any]) -> list[str]:
    """A sentence on the items of a prediction that are between two of their levels, if any."""
    names = [shown(name) for name in content.get("between_levels", ())]
    if not names:
        return []
    which = "is between two price levels" if len(names) == 1 else "are between two price levels each"
    return [f"  ({', '.join(names)} {which}: shares are interpolated linearly between them.)"]


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
    """The demand of an item, or of each with two levels, beside the others of an offer, or at usual prices."""
    from rankstream.models.prices import curves_of, require_levels, usual_prices

    require_levels(model)
    whole = usual_prices(model) if offer is None else prices_in(offer, model)
    ask: Any = model.demand if many is None else many.demand
    if item is not None:
        one = find_item(item, own_names(model), "--item names")
        return {one: dict(ask(one, {other: price for other, price in whole.items() if other != one}))}
    found = curves_of(model, ask, whole, whole)
    if not found:
        raise ValueError("A demand curve needs an item with two price levels: choose other items with --offer.")
    return found


def as_rows(curves: "Mapping[Label, Mapping[float, Any]]") -> dict[str, list[dict[str, float]]]:
    """Demand curves for JSON."""
    return {str(item): [{"price": price, **_row(curve[price])} for price in curve] for item, curve in curves.items()}


def _row(value: Any) -> dict[str, float]:
    return {"share": value} if isinstance(value, float) else value._asdict()


def describe_demand(model: "Model", many: "Bootstrap | None") -> dict[str, Any]:
    """Levels and demand for ``show``, where everything is at its usual price."""
    from rankstream.models.prices import require_levels, usual_prices

    levels = require_levels(model)
    usual = {str(item): price for item, price in usual_prices(model).items()}
    several = any(len(prices) > 1 for prices in levels.levels.values())
    rows = as_rows(demand_curves(model, None, None, many)) if several else {}
    return {"prices": describe_levels(levels), "usual_offer": usual, "demand": rows}


def demand_lines(content: Mapping[str, Any]) -> list[str]:
    """The same in lines."""
    lines = ["", levels_line(content["prices"]), "Demand by an item's own price, others at usual prices:"]
    for item, rows in content["demand"].items():
        shares = ", ".join(f"{_price(row['price'])}: {100 * row['share']:.1f} %{ends_of(row)}" for row in rows)
        lines.append(f"  {shown(item)}  {shares}")
    return lines if content["demand"] else lines[:2]


def _price(price: float) -> str:
    return f"{price:.2f}" if round(price, 2) == price else f"{price:g}"
