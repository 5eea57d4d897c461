"""The command ``rankstream plot``: draw a saved model, its fit to choices, or shares over time."""

from pathlib import Path
from typing import Annotated, Any

import typer

from rankstream._core.terminal import print_answer
from rankstream.cli.markets import per_market
from rankstream.cli.model_answers import as_rows, demand_curves, joined, refitted
from rankstream.cli.options import AsJson, ReadingOptions, Replicates, choice, reading_options
from rankstream.cli.pictures import draw_segments, draw_shares, draw_substitution, new_figure
from rankstream.models.item_names import offer_in

KINDS = ("segments", "substitution", "fit", "shares", "demand", "importance")
PERIODS = ("hour", "day", "week", "month", "year")


@per_market(takes_choices=lambda named: named["kind"] == "fit")
@reading_options(without=("between",))
def plot(
    model: Annotated[Path, typer.Argument(help="Model file; for shares over time, a file of choices.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file: .png, .svg, .pdf or .jpg.")],
    kind: Annotated[str, choice(*KINDS)] = "segments",
    data: Path | None = None,
    top: Annotated[int, typer.Option(min=1, max=100)] = 10,
    offer: str | None = None,
    item: str | None = None,
    period: Annotated[str | None, choice(*PERIODS)] = None,
    replicates: Replicates = 50,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for intervals.")] = 0,
    as_json: AsJson = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Draw customer types, substitution, the fit, shares over time, demand, or the importance of attributes.

    Example: rankstream plot model.json -o substitution.png --kind substitution

    Options:
    kind: What to draw: customer types, substitution, predicted against observed (with --data), shares over time,
        demand by price, or which attributes explain choice.
    data: With --kind fit: choices to compare with the model. Otherwise: the choices it was fitted to, for
        intervals.
    top: With --kind segments: maximum number of customer types.
    offer: Offer to draw, such as 'tea;cake' (default: all items; for shares, the most frequent offer).
    item: With --kind demand: the item to draw (default: every item with at least two price levels).
    period: With --kind shares: length of a period (default: month).
    """
    from rankstream import plots
    from rankstream._core.files import check_picture, save_picture
    from rankstream.models.files import is_model, load_model

    check_kind(kind, data, offer, item, period)
    check_picture(out)
    content: dict[str, Any] = {"chart": str(out), "kind": kind}
    text = f"Saved {out}."
    if kind == "shares":
        if is_model(model):
            raise ValueError(f"{model} is a model: shares over time are drawn from a file of choices.")
        choices = reading.read(model, period=period or "month")
        figure, members = draw_shares(choices, offer, period or "month")
        content["offer"] = list(map(str, members))
        if offer is None and (n_offers := choices.counts.assortments.n_offers) > 1:
            text += f" It shows the most frequent of {n_offers:,} offers; for another, add --offer '{joined(members)}'."
    else:
        loaded = load_model(model)
        if kind == "fit" and data is not None:
            figure = new_figure(6.0, 6.0)
            plots.predicted_against_observed(loaded, reading.as_fitted(loaded).read(data).counts, figure.subplots())
        elif kind == "demand":
            curves = demand_curves(loaded, item, offer, refitted(loaded, data, reading, replicates, seed))
            content["demand"], figure = as_rows(curves), new_figure(7.0, 4.5)
            plots.demand(curves, figure.subplots())
        elif kind == "importance":
            found, figure = loaded.importance(seed=seed), new_figure(6.5, 3.5)
            content["importance"] = {name: part._asdict() for name, part in found.items()}
            plots.importance(found, figure.subplots())
        elif kind == "segments":
            figure = draw_segments(loaded, top, refitted(loaded, data, reading, replicates, seed))
        else:
            items: Any = None if offer is None else offer_in(offer, loaded)
            if isinstance(items, dict) and loaded.price_levels:
                items = loaded.price_levels.offer(items)
            figure = draw_substitution(loaded, items, refitted(loaded, data, reading, replicates, seed))
    save_picture(figure, out)
    print_answer(as_json, content, text)


def check_kind(kind: str, data: Path | None, offer: str | None, item: str | None, period: str | None) -> None:
    """Raise a ValueError for options that do not work together."""
    if kind == "fit" and data is None:
        raise ValueError("--kind fit needs the choices: add --data.")
    if kind == "shares" and data is not None:
        raise ValueError("--kind shares reads its choices from the first argument: leave out --data.")
    if offer is not None and kind not in ("substitution", "shares", "demand"):
        raise ValueError(f"--offer does not work with --kind {kind}: leave it out.")
    if item is not None and kind != "demand":
        raise ValueError(f"--item does not work with --kind {kind}: leave it out.")
    if period is not None and kind != "shares":
        raise ValueError(f"--period does not work with --kind {kind}: leave it out.")
