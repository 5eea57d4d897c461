"""The command ``rankstream plot``: a picture of a saved model, of its fit to choices, or of shares over time."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankstream._core.terminal import print_json, print_plain
from rankstream.cli.asking import as_items
from rankstream.cli.options import AsJson, ReadingOptions, reading_options, words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rankstream.cli.asking import Model
    from rankstream.data.counts import ChoiceCounts
    from rankstream.data.readers import Reading

KINDS = ("segments", "substitution", "fit", "shares")
PERIODS = ("hour", "day", "week", "month", "year")
EPOCH = datetime(1970, 1, 1)  # where matplotlib's days begin


@reading_options()
def plot(
    model: Annotated[Path, typer.Argument(help="A model file; for shares over time, a file of choices.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The picture to write: .png, .svg or .pdf.")],
    kind: Annotated[
        str,
        typer.Option(
            help="segments, substitution, fit (needs --data), or shares over time.", autocompletion=words(*KINDS)
        ),
    ] = "segments",
    data: Annotated[Path | None, typer.Option(help="Choices to hold against the model.")] = None,
    top: Annotated[int, typer.Option(min=1, max=100, help="How many customer types.")] = 10,
    places: Annotated[int, typer.Option(min=1, help="How many of their favourites tell types apart.")] = 2,
    offer: Annotated[
        str | None, typer.Option(help="For substitution and shares: items joined by ';', not all.")
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(help="For shares: hour, day, week, month or year.", autocompletion=words(*PERIODS)),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Types of over two places, drawn from the model.")] = 0,
    as_json: AsJson = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Draw customer types, who gains, the fit, or shares over time.

    Example: rankstream plot model.json -o types.png --kind substitution
    """
    from rankstream.models.files import is_model, load_model
    from rankstream.plots.saving import check_picture, save_picture

    check_kind(kind, data, offer, period)
    check_picture(out)
    if kind == "shares":
        if is_model(model):
            raise ValueError(f"{model} is a model: shares over time are drawn from a file of choices.")
        figure = draw_shares(reading.read(model, period=period or "month"), offer, period or "month")
    else:
        loaded = load_model(model)
        if data is not None:
            figure = draw_fit(loaded, reading.read(data).counts)
        elif kind == "segments":
            figure = draw_segments(loaded, top, places, seed)
        else:
            figure = draw_substitution(loaded, offer)
    save_picture(figure, out)
    if as_json:
        print_json({"picture": str(out), "kind": kind})
    else:
        print_plain(f"Saved {out}.")


def check_kind(kind: str, data: Path | None, offer: str | None, period: str | None) -> None:
    """Refuse options that do not go together."""
    if kind not in KINDS:
        raise ValueError(f"There is no kind {kind!r} of picture: choose one of {', '.join(map(repr, KINDS))}.")
    if (kind == "fit") != (data is not None):
        raise ValueError("A picture of the fit, and no other, needs the choices: give --kind fit and --data together.")
    if offer is not None and kind not in ("substitution", "shares"):
        raise ValueError(f"A picture of kind {kind!r} is about no single offer: leave --offer out.")
    if period is not None and kind != "shares":
        raise ValueError(f"A picture of kind {kind!r} is about no periods: leave --period out.")


def draw_fit(model: "Model", counts: "ChoiceCounts") -> "Figure":
    """Predicted against observed."""
    from matplotlib.figure import Figure

    from rankstream import plots

    figure = Figure(figsize=(6.0, 6.0), layout="constrained")
    plots.predicted_against_observed(model, counts, figure.subplots())
    return figure


def draw_segments(model: "Model", top: int = 10, places: int = 2, seed: int = 0) -> "Figure":
    """The customer types, with room for their names; of a model of all rankings, more than two places are drawn."""
    from matplotlib.figure import Figure

    from rankstream import plots
    from rankstream.models.rankings import RankingModel

    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    drawn = model if isinstance(model, RankingModel) or places <= 2 else model.draw(1000, seed)
    axes = plots.segments(drawn, figure.subplots(), top, places)
    figure.set_figheight(1.4 + 0.32 * len(axes.patches))
    figure.set_figwidth(max(8.0, 4.5 + 0.08 * max(len(label.get_text()) for label in axes.get_yticklabels())))
    return figure


def draw_substitution(model: "Model", offer: str | None) -> "Figure":
    """The substitution matrix, as large as its items need."""
    from matplotlib.figure import Figure

    from rankstream import plots

    items = None if offer is None else as_items(offer, {str(item): item for item in model.items})
    moves = model.substitution(items)
    side = 3.5 + max(0.22, 0.5 - 0.02 * max(0, len(moves.items) - 8)) * len(moves.items)
    figure = Figure(figsize=(side + 0.8, side), layout="constrained")
    plots.substitution(moves, figure.subplots())
    return figure


def draw_shares(found: "Reading", offer: str | None, period: str) -> "Figure":
    """The shares of an offer, period by period; without one, of the offer that was made most often."""
    from matplotlib import dates
    from matplotlib.figure import Figure

    from rankstream import plots
    from rankstream.data.readers import grouping

    offers = found.counts.assortments
    wanted = offers.offers[int(found.counts.totals.argmax())]
    if offer is not None:
        items = frozenset(as_items(offer, {str(item): item for item in offers.items}))
        known = {frozenset(one): one for one in offers.offers}
        if items not in known:
            raise ValueError(f"Nobody was offered {offer!r} and nothing else: name an offer that the choices hold.")
        wanted = known[items]
    form = grouping.PERIODS[period]
    times = [(datetime.strptime(str(key), form) - EPOCH).total_seconds() / 86_400 for key in found.groups]
    figure = Figure(figsize=(8.5 + 1.6 * (len(wanted) // 15), 4.8), layout="constrained")  # its legend grows
    axes = plots.shares_over_time(list(found.groups.values()), wanted, figure.subplots(), times)
    axes.set(title=f"Shares over time, by {period}", xlabel="")
    if len(wanted) <= 5:  # beside the bars, not on them
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.02))
    locator = dates.AutoDateLocator(minticks=2, maxticks=10)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    return figure
