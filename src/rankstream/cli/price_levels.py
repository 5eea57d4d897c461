"""Prices at the shell: levels in a line, offers between them, and demand at usual prices."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankstream._core.terminal import shown
from rankstream.cli.model_answers import ends_of
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
    return {
        str(item): [
            {"price": price, **({"share": share} if isinstance(share, float) else share._asdict())}
            for price, share in curve.items()
        ]
        for item, curve in curves.items()
    }


def demand_lines(content: Mapping[str, Any]) -> list[str]:
    """Levels and demand for ``show``, where everything is at its usual price."""
    lines = ["", levels_line(content["prices"]), "Demand by an item's own price, others at usual prices:"]
    for item, rows in content["demand"].items():
        shares = ", ".join(f"{_price(row['price'])}: {100 * row['share']:.1f} %{ends_of(row)}" for row in rows)
        lines.append(f"  {shown(item)}  {shares}")
    return lines if content["demand"] else lines[:2]


def _price(price: float) -> str:
    return f"{price:.2f}" if round(price, 2) == price else f"{price:g}"
