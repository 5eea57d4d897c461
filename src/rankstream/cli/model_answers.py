"""Helpers of the commands that query a model: offers and prices as text, demand curves, bootstrap refits."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankstream._core.terminal import print_note, progress, shown
from rankstream.models.files import method_of
from rankstream.models.fit_warnings import noted
from rankstream.models.item_names import find_item, own_names, prices_in

if TYPE_CHECKING:
    from rankstream._core.types import Label
    from rankstream.cli.options import ReadingOptions
    from rankstream.data import ChoiceCounts, PriceLevels
    from rankstream.estimation.intervals import Bootstrap
    from rankstream.models.files import Model


def read_offers(file: Path) -> list[str]:
    """Return the non-empty lines of a text file; a first line "offered" is a heading."""
    if not file.is_file():
        raise ValueError(f"There is no file {file}: give a text file with one offer per line.")
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not a text file in UTF-8 ({error}): save it as one.") from None
    offers = [line[1:-1] if line[0] == line[-1] == '"' else line for line in lines if line]
    offers = offers[1:] if offers and offers[0] == "offered" else offers
    if not offers:
        raise ValueError(f"{file} has no offers: write one per line, such as tea;cake.")
    return offers


def joined(offer: "Iterable[Any]") -> str:
    """Return an offer as it is written in a line or an option."""
    return ";".join(map(shown, offer))


def ends_of(row: "Mapping[str, float]") -> str:
    """Return the interval of a share in brackets; empty without one."""
    return f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]" if "low" in row else ""


def refitted(
    model: "Model", data: Path | None, reading: "ReadingOptions", replicates: int, seed: int
) -> "Bootstrap | None":
    """Return a bootstrap of the model; None without choices, which are read with the options of the fit by default."""
    if data is None:
        return None
    if "uncertain" in model.about:
        raise ValueError(
            "Refits have no intervals where offers are known in part: leave out --data, or use 'predict --range' or "
            "'decide --safe', which hold whatever was on offer."
        )
    counts = reading.as_fitted(model).read(data).counts
    check_choices(model, counts, data)
    return refitted_to(model, counts, replicates, seed)


def check_choices(model: "Model", counts: "ChoiceCounts", data: Path) -> None:
    """Raise a ValueError if the choices lack an item of the model; print a note if they are not those of the fit."""
    known = set(counts.assortments.items)
    missing = next((item for item in model.items if item not in known), None)
    if missing is not None:
        raise ValueError(
            f"{data} never offers {missing!r}, an item of the model: give the choices that it was fitted to."
        )
    digest = noted(model.about, "data").get("digest")
    if digest is not None and digest != counts.digest():
        print_note(f"{data} is not what the model was fitted to: the intervals are for a fit to this file.")


def refitted_to(model: "Model", counts: "ChoiceCounts", replicates: int, seed: int) -> "Bootstrap":
    """Return a bootstrap of the model on its choices, with a progress bar."""
    from rankstream.estimation.intervals import Bootstrap

    with progress("refitting") as tell:
        return Bootstrap(counts, method_of(model), replicates, seed, model=model, watch=tell)


def describe_levels(levels: "PriceLevels") -> dict[str, list[float]]:
    """Return the levels of each item, for JSON."""
    return {str(item): list(prices) for item, prices in levels.levels.items()}


def levels_line(prices: Mapping[str, Sequence[float]]) -> str:
    """Return the levels of each item as a line of text."""
    from rankstream.data.prices import AT, PriceLevels

    texts: dict[str, str] = {}
    for label in PriceLevels(dict(prices)).labels:
        item, _, price = label.rpartition(AT)
        texts[item] = f"{texts[item]}, {price}" if item in texts else f"{shown(item)} {price}"
    return f"Price levels: {'; '.join(texts.values())}."


def demand_curves(
    model: "Model", item: str | None, offer: str | None, many: "Bootstrap | None" = None
) -> "dict[Label, dict[float, Any]]":
    """Return the demand curve of an item, or of each with two price levels, in an offer or at usual prices."""
    from rankstream.models.prices import curves_of, require_levels, usual_prices

    require_levels(model)
    whole = usual_prices(model) if offer is None else prices_in(offer, model)
    ask: Any = model.demand if many is None else many.demand
    if item is not None:
        label = find_item(item, own_names(model), "--item names")
        return {label: dict(ask(label, {other: price for other, price in whole.items() if other != label}))}
    curves = curves_of(model, ask, whole, whole)
    if not curves:
        raise ValueError("A demand curve needs an item with two price levels: choose other items with --offer.")
    return curves


def as_rows(curves: "Mapping[Label, Mapping[float, Any]]") -> dict[str, list[dict[str, float]]]:
    """Return demand curves for JSON."""
    return {
        str(item): [
            {"price": price, **({"share": share} if isinstance(share, float) else share._asdict())}
            for price, share in curve.items()
        ]
        for item, curve in curves.items()
    }


def demand_lines(content: Mapping[str, Any]) -> list[str]:
    """Return the price levels and the demand at usual prices as text, for ``show``."""
    from rankstream.data.prices import price_text

    lines = ["", levels_line(content["prices"]), "Demand by an item's own price, others at usual prices:"]
    for item, rows in content["demand"].items():
        shares = ", ".join(f"{price_text(row['price'])}: {100 * row['share']:.1f} %{ends_of(row)}" for row in rows)
        lines.append(f"  {shown(item)}  {shares}")
    return lines if content["demand"] else lines[:2]
