"""The command ``rankstream plot``: a picture of a saved model, of its fit to choices, or of shares over time."""

from datetime import datetime
from pathlib import Path
from typing import Any

from rankstream import plots
from rankstream._core.terminal import print_json, print_plain
from rankstream.choice_files import read_choices
from rankstream.data.counts import ChoiceCounts
from rankstream.data.readers import Reading
from rankstream.data.readers.grouping import PERIODS
from rankstream.model_commands import Model, as_items
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.files import is_model, load_model
from rankstream.options import KINDS
from rankstream.plots.saving import check_picture, save_picture

EPOCH = datetime(1970, 1, 1)  # where matplotlib's days begin


def run(
    path: Path,
    out: Path,
    kind: str,
    data: Path | None,
    top: int,
    places: int,
    offer: str | None,
    period: str | None,
    seed: int,
    as_json: bool,
    **reading: Any,
) -> None:
    """Load, draw, save; what is wrong is told before any work is done."""
    check(kind, data, offer, period)
    check_picture(out)
    if kind == "shares":
        if is_model(path):
            raise ValueError(f"{path} is a model: shares over time are drawn from a file of choices.")
        draw_shares(read_choices(path, period=period or "month", **reading), offer, period or "month", out)
    else:
        model = load_model(path)
        if data is not None:
            draw_fit(model, read_choices(data, **reading).counts, out)
        elif kind == "segments":
            draw_segments(model, out, top, places, seed)
        else:
            draw_substitution(model, offer, out)
    if as_json:
        print_json({"picture": str(out), "kind": kind})
    else:
        print_plain(f"Saved {out}.")


def check(kind: str, data: Path | None, offer: str | None, period: str | None) -> None:
    """Refuse options that do not go together."""
    if kind not in KINDS:
        raise ValueError(f"There is no kind {kind!r} of picture: choose one of {', '.join(map(repr, KINDS))}.")
    if (kind == "fit") != (data is not None):
        raise ValueError("A picture of the fit, and no other, needs the choices: give --kind fit and --data together.")
    if offer is not None and kind not in ("substitution", "shares"):
        raise ValueError(f"A picture of kind {kind!r} is about no single offer: leave --offer out.")
    if period is not None and kind != "shares":
        raise ValueError(f"A picture of kind {kind!r} is about no periods: leave --period out.")


def draw_fit(model: Model, counts: ChoiceCounts, out: Path) -> None:
    """Predicted against observed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 6.0), layout="constrained")
    plots.predicted_against_observed(model, counts, figure.subplots())
    save_picture(figure, out)


def draw_segments(model: Model, out: Path, top: int = 10, places: int = 2, seed: int = 0) -> None:
    """The customer types, with room for their names; of a model of all rankings, more than two places are drawn."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    drawn = model.draw(1000, seed) if isinstance(model, EntropyModel) and places > 2 else model
    axes = plots.segments(drawn, figure.subplots(), top, places)
    figure.set_figheight(1.4 + 0.32 * len(axes.patches))
    figure.set_figwidth(max(8.0, 4.5 + 0.08 * max(len(label.get_text()) for label in axes.get_yticklabels())))
    save_picture(figure, out)


def draw_substitution(model: Model, offer: str | None, out: Path) -> None:
    """The substitution matrix, as large as its items need."""
    from matplotlib.figure import Figure

    items = None if offer is None else as_items(offer, {str(item): item for item in model.items})
    moves = model.substitution(items)
    side = 3.5 + max(0.22, 0.5 - 0.02 * max(0, len(moves.items) - 8)) * len(moves.items)
    figure = Figure(figsize=(side + 0.8, side), layout="constrained")
    plots.substitution(moves, figure.subplots())
    save_picture(figure, out)


def draw_shares(found: Reading, offer: str | None, period: str, out: Path) -> None:
    """The shares of an offer, period by period; without one, of the offer that was made most often."""
    from matplotlib import dates
    from matplotlib.figure import Figure

    offers = found.counts.assortments
    wanted = offers.offers[int(found.counts.totals.argmax())]
    if offer is not None:
        items = frozenset(as_items(offer, {str(item): item for item in offers.items}))
        known = {frozenset(one): one for one in offers.offers}
        if items not in known:
            raise ValueError(f"Nobody was offered {offer!r} and nothing else: name an offer that the choices hold.")
        wanted = known[items]
    times = [(datetime.strptime(str(key), PERIODS[period]) - EPOCH).total_seconds() / 86_400 for key in found.groups]
    figure = Figure(figsize=(8.5 + 1.6 * (len(wanted) // 15), 4.8), layout="constrained")  # its legend grows
    axes = plots.shares_over_time(list(found.groups.values()), wanted, figure.subplots(), times)
    axes.set(title=f"Shares over time, by {period}", xlabel="")
    if len(wanted) <= 5:  # beside the bars, not on them
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.02))
    locator = dates.AutoDateLocator(minticks=2, maxticks=10)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    save_picture(figure, out)
