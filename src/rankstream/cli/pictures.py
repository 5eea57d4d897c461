"""The figures of ``rankstream plot``, sized for their items."""

from datetime import datetime
from textwrap import fill
from typing import TYPE_CHECKING

from rankstream._core.terminal import plural
from rankstream.models.item_names import items_in

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
