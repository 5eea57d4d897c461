"""The command ``rankstream plot``: a picture of a saved model, of its fit to choices, or of shares over time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankstream.cli.markets import per_market
from rankstream.cli.model_answers import joined, refitted
from rankstream.cli.options import AsJson, ReadingOptions, Replicates, choice, print_answer, reading_options
from rankstream.cli.pictures import draw_demand, draw_fit, draw_segments, draw_shares, draw_substitution
from rankstream.cli.price_levels import as_labels, as_rows, demand_curves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankstream.models.files import Model

KINDS = ("segments", "substitution", "fit", "shares", "demand")
PERIODS = ("hour", "day", "week", "month", "year")


@per_market(takes_choices=lambda named: named["kind"] == "fit")
@reading_options()
def plot(
    model: Annotated[Path, typer.Argument(help="Model file; for shares over time, a file of choices.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file: .png, .svg, .pdf or .jpg.")],
    kind: Annotated[
        str,
        choice(
            "What to draw: customer types, substitution, predicted against observed (with --data), shares over time, "
            "or demand by price.",
            *KINDS,
        ),
    ] = "segments",
    data: Annotated[
        Path | None,
        typer.Option(
            help="With --kind fit: choices to compare with the model. Otherwise: the choices it was fitted to, for "
            "intervals."
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, max=100, help="With --kind segments: maximum number of customer types.")
    ] = 10,
    places: Annotated[int, typer.Option(min=1, help="With --kind segments: how many top choices define a type.")] = 2,
    offer: Annotated[
        str | None,
        typer.Option(
            help="Offer to draw, such as 'tea;cake' (default: all items; for shares, the most frequent offer)."
        ),
    ] = None,
    item: Annotated[
        str | None,
        typer.Option(help="With --kind demand: the item to draw (default: every item with at least two price levels)."),
    ] = None,
    period: Annotated[str | None, choice("With --kind shares: length of a period (default: month).", *PERIODS)] = None,
    replicates: Replicates = 50,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for sampled customer types and intervals.")] = 0,
    as_json: AsJson = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Draw customer types, substitution, the fit, shares over time, or demand.

    Example: rankstream plot model.json -o substitution.png --kind substitution
    """
    from rankstream._core.files import check_picture, save_picture
    from rankstream.models.files import is_model, load_model

    check_kind(kind, data, offer, period, places)
    if item is not None and kind != "demand":
        raise ValueError(f"--item does not work with --kind {kind}: leave it out.")
    check_picture(out)
    content: dict[str, Any] = {"chart": str(out), "kind": kind}
    note = ""
    if kind == "shares":
        if is_model(model):
            raise ValueError(f"{model} is a model: shares over time are drawn from a file of choices.")
        figure, offers, of = draw_shares(reading.read(model, period=period or "month"), offer, period or "month")
        content |= {"offers": [[str(item) for item in one] for one in offers], "of_offers": of}
        what = "the most frequent offer" if len(offers) == 1 else f"the {len(offers)} most frequent offers"
        if offer is None and of > 1:
            note = f"It shows {what} of {of:,}; choose another with --offer, such as --offer '{joined(offers[0])}'."
    elif kind == "demand":
        loaded = load_model(model)
        curves = demand_curves(loaded, item, offer, refitted(loaded, data, reading, replicates, seed))
        content["demand"] = as_rows(curves)
        figure = draw_demand(curves)
    else:
        figure = draw_model(load_model(model), kind, data, offer, (top, places), (replicates, seed), reading)
    save_picture(figure, out)
    print_answer(as_json, content, f"Saved {out}." + (f" {note}" if note else ""))


def check_kind(kind: str, data: Path | None, offer: str | None, period: str | None, places: int) -> None:
    """Refuse options that do not go together."""
    if kind == "fit" and data is None:
        raise ValueError("--kind fit needs the choices: add --data.")
    if kind == "shares" and data is not None:
        raise ValueError("--kind shares reads its choices from the first argument: leave out --data.")
    if kind == "segments" and data is not None and places > 2:
        raise ValueError(f"--places is {places}: intervals exist for up to two places. Leave out --data for more.")
    if offer is not None and kind not in ("substitution", "shares", "demand"):
        raise ValueError(f"--offer does not work with --kind {kind}: leave it out.")
    if period is not None and kind != "shares":
        raise ValueError(f"--period does not work with --kind {kind}: leave it out.")


def draw_model(
    model: "Model",
    kind: str,
    data: Path | None,
    offer: str | None,
    types: tuple[int, int],
    refits: tuple[int, int],
    reading: ReadingOptions,
) -> "Figure":
    """A picture of a model; ``types`` are how many and by how many places, ``refits`` how many and by which seed."""
    items = None if offer is None else as_labels(offer, model)
    if kind == "fit" and data is not None:
        return draw_fit(model, reading.as_fitted(model).read(data).counts)
    many = refitted(model, data, reading, *refits)
    if kind == "segments":
        return draw_segments(model, *types, refits[1], many)
    return draw_substitution(model, items, many)
