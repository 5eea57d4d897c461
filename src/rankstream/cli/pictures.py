"""The figures of ``rankstream plot``, sized for their items."""

from collections.abc import Sequence
from datetime import datetime
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rankstream._core.terminal import plural
from rankstream.cli.model_answers import require_drawn
from rankstream.models.item_names import items_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rankstream._core.types import Label
    from rankstream.data.counts import ChoiceCounts
    from rankstream.data.readers import Reading
    from rankstream.estimation.intervals import Bootstrap
    from rankstream.models.files import Model

EPOCH = datetime(1970, 1, 1)  # day 0 of matplotlib's dates
MAX_PANELS = 4  # offers to draw if none is given; two rows of two
MAX_TITLE_ITEMS = 8  # items of an offer in the title of its panel: one line
MOST_ITEMS = 60  # rows of a substitution matrix whose names can still be read


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure; sizes are in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def draw_segments(
    model: "Model", top: int = 10, places: int = 2, seed: int = 0, many: "Bootstrap | None" = None
) -> "Figure":
    """Draw the customer types; more than two places need rankings, which are sampled from other models."""
    from rankstream import plots
    from rankstream.models.answers import most_chosen
    from rankstream.models.rankings import RankingModel
    from rankstream.plots.models import MAX_ITEMS as FIRST

    if places > 2:
        require_drawn(model, f"--places {places}")
    figure = new_figure(8.0, 5.0)
    drawn = model if isinstance(model, RankingModel) or places <= 2 else model.draw(1000, seed)
    ends = None
    if many is not None:
        shares = many.favourites(model.no_choice, places, gone=most_chosen(model, FIRST))
        ends = {key: (share.low, share.high) for key, share in shares.items()}
    axes = plots.segments(drawn, figure.subplots(), top, places, ends)
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


def draw_shares(choices: "Reading", offer: str | None, period: str) -> "tuple[Figure, list[tuple[Label, ...]], int]":
    """Draw the shares of an offer over time, or a panel for each of the most frequent offers.

    Also return the offers in the figure, and the number of all offers.
    """
    from rankstream import plots
    from rankstream.data.readers.groups import PERIODS
    from rankstream.plots.fits import date_axis
    from rankstream.plots.models import short_names

    wanted = _wanted(choices.counts, offer)
    times = [(datetime.strptime(str(key), PERIODS[period]) - EPOCH).total_seconds() / 86_400 for key in choices.groups]
    items = list(dict.fromkeys(item for members in wanted for item in members))
    rows, columns = -(-len(wanted) // 2), min(2, len(wanted))
    legend = 1.5 * -(-len(items) // (15 * rows))  # its width
    figure = new_figure(7.0 * (1.0 if columns == 1 else 1.4) + legend, 0.6 + 4.2 * rows)
    panels = list(figure.subplots(rows, columns, squeeze=False).ravel())
    totals = dict(zip(choices.counts.assortments.offers, choices.counts.totals.tolist(), strict=True))
    for axes, members in zip(panels, wanted, strict=False):
        plots.shares_over_time(list(choices.groups.values()), members, axes, times, order=items)
        names = list(short_names(members).values())
        more = f" and {len(names) - MAX_TITLE_ITEMS} more" if len(names) > MAX_TITLE_ITEMS else ""
        title = fill(", ".join(names[:MAX_TITLE_ITEMS]) + more, 56)
        axes.set_title(f"{title}\n{plural(totals[members], 'choice')}", fontsize="medium")
        if axes.get_legend() is not None:
            axes.get_legend().remove()  # there is one for all panels
        date_axis(axes)
    for axes in panels[len(wanted) :]:
        axes.remove()
    _legend(figure, panels[: len(wanted)], rows)
    n_offers = choices.counts.assortments.n_offers
    number = "" if len(wanted) == 1 else f"{len(wanted)} "
    which = "" if offer is not None or n_offers == 1 else f": the {number}most frequent of {n_offers:,} offers"
    figure.suptitle(f"Shares over time, by {period}{which}")
    return figure, wanted, n_offers


def _wanted(counts: "ChoiceCounts", offer: str | None) -> "list[tuple[Label, ...]]":
    offers = counts.assortments
    if offer is None:
        order = (-counts.totals).argsort(kind="stable")[:MAX_PANELS].tolist()
        return [offers.offers[place] for place in order if counts.totals[place] > 0.0]
    items = frozenset(items_in(offer, {str(item): item for item in offers.items}))
    known = {frozenset(members): members for members in offers.offers}
    if items not in known:
        raise ValueError(f"No record offers exactly {offer!r}: choose an offer that occurs in the data.")
    return [known[items]]


def _legend(figure: "Figure", panels: "Sequence[Axes]", rows: int) -> None:
    entries: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    columns = -(-len(entries) // (15 * rows))
    figure.legend(list(entries.values()), list(entries), loc="outside right upper", frameon=False, ncols=columns)
