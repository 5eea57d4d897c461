"""The command ``rankstream plot``: draw a saved model, its fit to choices, or shares over time."""

from datetime import datetime
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankstream._core.terminal import plural, print_answer
from rankstream.cli.markets import per_market
from rankstream.cli.model_answers import as_rows, demand_curves, joined, refitted
from rankstream.cli.options import AsJson, ReadingOptions, Replicates, choice, reading_options
from rankstream.models.item_names import items_in, offer_in

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankstream._core.types import Label
    from rankstream.data.counts import ChoiceCounts
    from rankstream.data.readers import Reading
    from rankstream.estimation.intervals import Bootstrap
    from rankstream.models.files import Model

EPOCH = datetime(1970, 1, 1)  # day 0 of matplotlib's dates
MAX_TITLE_ITEMS = 8  # items of an offer in the title
MOST_ITEMS = 60  # rows of a substitution matrix whose names can still be read
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
    offer: Offer to draw, separated by ';': 'tea;cake' (default: all items; for shares, the most frequent offer).
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


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure; sizes are in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def draw_segments(model: "Model", top: int = 10, many: "Bootstrap | None" = None) -> "Figure":
    """Draw the customer types by their first two choices."""
    from rankstream import plots
    from rankstream.models.answers import most_chosen
    from rankstream.plots.models import MAX_ITEMS as FIRST

    figure = new_figure(8.0, 5.0)
    ends = None
    if many is not None:
        shares = many.favourites(model.no_choice, gone=most_chosen(model, FIRST))
        ends = {key: (share.low, share.high) for key, share in shares.items()}
    axes = plots.segments(model, figure.subplots(), top, ends=ends)
    figure.set_figheight(1.4 + 0.32 * len(axes.patches))
    figure.set_figwidth(max(8.0, 4.5 + 0.08 * max(len(label.get_text()) for label in axes.get_yticklabels())))
    return figure


def draw_substitution(model: "Model", items: "list[Label] | None" = None, many: "Bootstrap | None" = None) -> "Figure":
    """Draw the substitution matrix, of many items only for the most chosen."""
    from rankstream import plots
    from rankstream.models.answers import most_chosen
    from rankstream.models.prices import everything

    offered = everything(model) if items is None else items
    drawn = most_chosen(model, MOST_ITEMS) if items is None else tuple(items)
    moves = model.substitution(items, drawn) if many is None else many.substitution(items, gone=drawn)
    if len(drawn) < len(offered):
        moves = moves.among(drawn)
    wide = 0.5 - 0.02 * max(0, len(moves.items) - 8) if many is None else 0.75 - 0.02 * max(0, len(moves.items) - 12)
    side = 3.5 + max(0.22, wide) * len(moves.items)
    figure = new_figure(side + 0.8, side)
    axes = plots.substitution(moves, figure.subplots())
    if len(drawn) < len(offered):
        axes.set_title(f"{axes.get_title()}: the {len(drawn)} most chosen of {len(offered):,} items")
    elif len(offered) < len(model.items) and items is None:
        axes.set_title(f"{axes.get_title()}, at usual prices")
    return figure


def draw_shares(choices: "Reading", offer: str | None, period: str) -> "tuple[Figure, tuple[Label, ...]]":
    """Draw the shares of an offer over time, by default of the most frequent one; also return that offer."""
    from rankstream import plots
    from rankstream.data.readers.groups import PERIODS
    from rankstream.plots.fits import date_axis
    from rankstream.plots.models import short_names

    counts, members = choices.counts, _wanted(choices.counts, offer)
    times = [(datetime.strptime(str(key), PERIODS[period]) - EPOCH).total_seconds() / 86_400 for key in choices.groups]
    figure = new_figure(7.0 + 1.5 * -(-len(members) // 15), 4.8)
    axes = plots.shares_over_time(list(choices.groups.values()), members, figure.subplots(), times)
    names, total = list(short_names(members).values()), counts.totals[counts.assortments.number(members)]
    more = f" and {len(names) - MAX_TITLE_ITEMS} more" if len(names) > MAX_TITLE_ITEMS else ""
    title = fill(", ".join(names[:MAX_TITLE_ITEMS]) + more, 56)
    axes.set_title(f"{title}\n{plural(float(total), 'choice')}", fontsize="medium")
    date_axis(axes)
    n_offers = counts.assortments.n_offers
    which = "" if offer is not None or n_offers == 1 else f": the most frequent of {n_offers:,} offers"
    figure.suptitle(f"Shares over time, by {period}{which}")
    return figure, members


def _wanted(counts: "ChoiceCounts", offer: str | None) -> "tuple[Label, ...]":
    offers = counts.assortments
    if offer is None:
        return offers.offers[int(counts.totals.argmax())]
    number = offers.number(items_in(offer, {str(item): item for item in offers.items}))
    if number is None:
        raise ValueError(f"No record offers exactly {offer!r}: choose an offer that occurs in the data.")
    return offers.offers[number]
