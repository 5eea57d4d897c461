"""Charts of one model: its fit to the data, its customer types, and substitution."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rankstream._core import Label, Vec, number_between, whole_number
from rankstream._core.terminal import plural, visible
from rankstream.data.counts import ChoiceCounts
from rankstream.models import ChoiceModel, Model
from rankstream.models.answers import Substitution, favourites, most_chosen
from rankstream.models.fit_warnings import interval_words
from rankstream.models.prices import levels_of
from rankstream.models.rankings import DenseModel, RankingModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rankstream.models.entropy.new_items import Importance

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#767676"  # distinct for colour-blind readers and in print
COLOURS = (GREY, BLUE, ORANGE, "#009e73")
Curve = Mapping[float, Any]
MAX_NUMBERS = 20  # items of a matrix up to which cells have room for numbers; not tuned
MAX_ITEMS = 100
"""Number of first favourites in a chart of customer types; thousands of items would take long."""
MAX_NAME_LENGTH = 18  # letters beside an axis; not tuned


def finish(axes: "Axes", grid: Literal["both", "x", "y"] = "both", **labels: Any) -> "Axes":
    """Set labels, limits and title as ``Axes.set`` does, over a faint grid; returns the axes."""
    axes.set(**labels)
    axes.grid(alpha=0.3, axis=grid)
    return axes


def predicted_against_observed(
    model: ChoiceModel, counts: ChoiceCounts, axes: "Axes", interval: float = 0.95
) -> "Axes":
    """Draw a dot per offer and item, with Wilson intervals of the observed share, orange if they miss the prediction.

    The intervals cover the sampling error of the data only. For a true model about one in twenty misses at 95 %; for a
    model fitted to the same data, fewer.
    """
    predicted = model.probabilities(counts.assortments)
    totals = counts.effective_totals[counts.assortments.owner]
    seen = totals > 0
    if not seen.any():
        raise ValueError("The counts have no observations yet: observe some choices first.")
    predicted, observed = predicted[seen], counts.frequencies()[seen]
    low, high = wilson(observed, totals[seen], interval)
    hit = (low <= predicted + 1e-12) & (predicted <= high + 1e-12)
    top = 1.04 * float(max(predicted.max(), high.max()))
    many = len(predicted) > 100
    axes.plot([0, top], [0, top], color=GREY, linewidth=1, zorder=1)
    for mask, colour, label in ((hit, BLUE, "within sampling error"), (~hit, ORANGE, "outside")):
        if mask.any():
            sides = np.maximum(0.0, [observed[mask] - low[mask], high[mask] - observed[mask]])
            axes.errorbar(
                observed[mask], predicted[mask], xerr=sides, fmt="o", color=colour, label=f"{label}: {mask.sum()}",
                markersize=2.5 if many else 4.5, elinewidth=0.5 if many else 1.0, alpha=0.6 if many else 0.9,
            )  # fmt: skip
    axes.legend(frameon=False, loc="upper left")
    return finish(
        axes, xlim=(-0.02 * top, top), ylim=(-0.02 * top, top), aspect="equal",
        xlabel=f"observed share, {100 * interval:g} % bars", ylabel="predicted share",
        title=f"Predicted against observed: MAE {np.abs(predicted - observed).mean():.3f}",
    )  # fmt: skip


def importance(found: "Mapping[str, Importance]", axes: "Axes") -> "Axes":
    """Draw the shares of ``EntropyModel.importance`` as bars with their intervals, the largest on top."""
    rows = sorted(found.items(), key=lambda pair: pair[1].share)
    shares, lows, highs = np.array([part for _, part in rows]).T
    ends = np.maximum(0.0, [shares - lows, highs - shares])
    axes.barh([visible(name) for name, _ in rows], shares, xerr=ends, color=BLUE, ecolor=GREY, capsize=3)
    return finish(axes, "x", xlabel="share of the differences between items", title="What attributes explain")


def wilson(shares: Vec, totals: Vec, interval: float = 0.95) -> tuple[Vec, Vec]:
    """Return Wilson score intervals of shares, given the numbers of choices; also useful at shares of 0 and 1.

    >>> low, high = wilson(np.array([0.0, 0.5]), np.array([10.0, 10.0]))
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.237], [0.278, 0.763])
    """
    from scipy.special import ndtri

    z = float(ndtri(0.5 + 0.5 * number_between("interval", interval, 1e-6, 1.0 - 1e-6)))
    middle = (shares + z**2 / (2.0 * totals)) / (1.0 + z**2 / totals)
    reach = z * np.sqrt(shares * (1.0 - shares) / totals + (z / (2.0 * totals)) ** 2) / (1.0 + z**2 / totals)
    return np.maximum(0.0, middle - reach), np.minimum(1.0, middle + reach)


def segments(
    model: RankingModel | DenseModel,
    axes: "Axes",
    top: int = 10,
    places: int = 2,
    ends: Mapping[tuple[Label, ...], tuple[float, float]] | None = None,
) -> "Axes":
    """The largest customer types as bars; the title says how many others there are, and their share.

    Types that agree on their first ``places`` items are one: with many items, whole rankings are too many to show. Up
    to two places are exact for any model; more are those of ``model.segments()``.

    Parameters
    ----------
    model : model
        What is drawn.
    axes : Axes
        Where.
    top : int
        The most types.
    places : int
        How many of their favourites types differ by.
    ends : mapping, optional
        For types, the ends of the intervals of their shares, as of ``Bootstrap.favourites``: error bars.
    """
    whole_number("places", places, least=1)
    nothing = model.no_choice
    if places <= 2 <= len(model.items):
        merged = favourites(model.substitution(None, most_chosen(model, MAX_ITEMS)), nothing, places)
    else:
        merged = {}
        for segment in model.segments():
            first = segment.ranking[:places]
            merged[first] = merged.get(first, 0.0) + segment.share
    found = sorted(merged.items(), key=lambda pair: -pair[1])
    shown = found[: whole_number("top", top, least=1)]
    shares = [100 * share for _, share in shown]
    names, last = short_names(model.items), places if nothing is None else places - 1
    rows = [] if ends is None else [(share - ends[key][0], ends[key][1] - share) for key, share in shown]
    sides = None if ends is None else np.maximum(0.0, 100 * np.transpose(rows))
    bars = axes.barh(range(len(shown)), shares, color=BLUE, xerr=sides, capsize=3, ecolor=ORANGE)
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.margins(y=0.02)
    alone = [] if nothing is None else [f"({names[nothing]})"]  # who would rather take none of the others
    labels = [
        " > ".join([*(names[item] for item in ranking), *(alone if len(ranking) <= last else [])])
        for ranking, _ in shown
    ]
    axes.set_yticks(range(len(shown)), labels)
    axes.invert_yaxis()
    rest, what = len(found) - len(shown), "first choice" if places == 1 else f"first {places} choices"
    others = f"\n{plural(rest, 'smaller type')}: {100 - sum(shares):.1f} % together" if rest else ""
    known = "" if ends is None else f", with {interval_words(getattr(model, 'about', {}))}"
    furthest = max(shares) if ends is None else max(100 * ends[key][1] for key, _ in shown)
    prices = "" if levels_of(model) is None else "\nat usual prices"
    stretch = 1.1 + 0.005 * max(map(len, labels))  # long names leave short bars beside their numbers
    axes.set_axisbelow(True)
    title, limits = f"Customer types by {what}{prices}{others}", (0, stretch * furthest)
    return finish(axes, "x", xlabel=f"share of customers, %{known}", title=title, xlim=limits)


def substitution(found: Substitution | Model, axes: "Axes") -> "Axes":
    """A row for each item that is gone: which part of its buyers takes which other item, darker for more.

    A row's name has the item's share while everything is there; a grey row is an item that nobody buys then. Up to
    twenty items have numbers too, in percent, and below them the ends of their intervals where these are known.
    """
    moves = found if isinstance(found, Substitution) else found.substitution()
    size, gone = len(moves.items), [place for place, item in enumerate(moves.items) if item != moves.no_choice]
    hidden = (np.eye(size, dtype=bool) | ~moves.shares.any(axis=1, keepdims=True))[gone]
    table = np.ma.masked_array(100 * moves.shares[gone], mask=hidden)
    top = max(1.0, float(table.data.max()))
    image = axes.imshow(table, cmap="Blues", vmin=0.0, vmax=top, aspect="equal")
    axes.set_facecolor("#dddddd")
    small = 10 if size <= 12 else 8 if size <= MAX_NUMBERS else 7
    names = list(short_names(moves.items).values())
    axes.set_xticks(range(size), names, rotation=90 if size > 6 else 35, fontsize=small,
                    ha="center" if size > 6 else "right", rotation_mode=None if size > 6 else "anchor")  # fmt: skip
    rows = [f"{names[place]} ({100 * moves.before[place]:.0f} %)" for place in gone]
    axes.set_yticks(range(len(rows)), rows, fontsize=small)
    if size <= MAX_NUMBERS:
        for row, column in zip(*np.nonzero(~hidden), strict=True):
            share = float(table[row, column])
            colour = "white" if share > 0.6 * top else "black"
            text = f"{share:.0f}"
            if moves.low is not None and moves.high is not None:
                text += f"\n{100 * moves.low[gone[row], column]:.0f} to {100 * moves.high[gone[row], column]:.0f}"
            letters = 9.0 if size <= 12 else 7.0
            axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=letters, linespacing=1.1)
    figure = axes.get_figure()
    if figure is not None:
        figure.colorbar(image, ax=axes, label="% of the buyers", shrink=0.8)
    title = "Where the buyers go" + ("" if moves.low is None else f", %, with {moves.interval_name}")
    axes.set(xlabel="what buyers take instead", ylabel="item out of stock (its share)", title=title)
    return axes


def shortened(text: str, most: int = MAX_NAME_LENGTH) -> str:
    """A name that fits beside an axis; dollar signs are text, not mathematics."""
    text = visible(text, keep="")
    return (text if len(text) <= most else text[: most - 1].rstrip() + "…").replace("$", r"\$")


def short_names(items: Iterable[Label]) -> dict[Label, str]:
    """Names that fit beside an axis, each its own: where long ones begin alike, what differs is kept.

    >>> list(short_names(["rye bread from the oven, 250 g", "rye bread from the oven, 500 g", "tea"]).values())
    ['rye brea…250 g', 'rye brea…500 g', 'tea']
    """
    known = list(items)
    return dict(zip(known, _apart([str(item) for item in known]), strict=True))


def _apart(texts: list[str], alike: int = 0) -> list[str]:
    """The texts, whose first ``alike`` letters agree, cut short; again where that makes some the same."""
    half = MAX_NAME_LENGTH // 2 - 1
    long = alike >= MAX_NAME_LENGTH - 1
    head = [f"{text[:half].rstrip()}…" if long else "" for text in texts]
    tail = [text[alike:] if long else text for text in texts]
    names = [
        shortened(a, MAX_NAME_LENGTH) + shortened(b, MAX_NAME_LENGTH - len(a)) for a, b in zip(head, tail, strict=True)
    ]
    for name in {one for one in names if names.count(one) > 1}:
        same = [place for place, one in enumerate(names) if one == name]
        letters = zip(*(texts[place] for place in same), strict=False)
        more = len(list(takewhile(lambda column: len(set(column)) == 1, letters)))
        if more > alike:
            for place, other in zip(same, _apart([texts[place] for place in same], more), strict=True):
                names[place] = other
    return names


def demand(curves: Mapping[Any, Curve], axes: "Axes") -> "Axes":
    """The share of each item by its own price, as ``model.demand`` or ``Bootstrap.demand`` gave it.

    Dots are price levels; lines between them are what the model predicts there, and bands are intervals.
    """
    names = short_names(curves)
    for number, (item, curve) in enumerate(curves.items()):
        prices = sorted(curve)
        rows = [curve[price] if isinstance(curve[price], Sequence) else (curve[price],) for price in prices]
        colour = COLOURS[(number + 1) % len(COLOURS)]
        axes.plot(prices, [100.0 * row[0] for row in rows], "o-", color=colour, label=names[item])
        if all(len(row) == 3 for row in rows):
            low, high = ([100.0 * row[place] for row in rows] for place in (1, 2))
            axes.fill_between(prices, low, high, color=colour, alpha=0.2, linewidth=0)
            axes.vlines(prices, low, high, color=colour, linewidth=1)
    axes.set_ylim(bottom=0.0)
    if len(curves) > 1:
        axes.legend(frameon=False)
    title = "Demand by price" if len(curves) > 1 else f"Demand for {next(iter(names.values()))} by its price"
    return finish(axes, xlabel="price", ylabel="share, %", title=title)
