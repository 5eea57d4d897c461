"""Pictures of estimations and decisions, with matplotlib; every function draws on given axes and returns them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankstream._core.types import Label, Vec
from rankstream.data.counts import ChoiceCounts
from rankstream.decide.decision import PER_100, Decision
from rankstream.estimation.estimate import Estimate
from rankstream.evaluate.comparison import HELD_OUT, Comparison
from rankstream.models import ChoiceModel, Frontier
from rankstream.plots.models import BLUE, GREY, ORANGE, finish, short_names, wilson

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "os^Dv*"
LABEL = f"value per {PER_100.customers} customers"  # as in the sentences about a decision
LINES = ("-", "--", ":", "-.")  # with ten colours: sixty items that differ by colour, or by marker and line


def convergence(estimate: Estimate[Any], axes: "Axes") -> "Axes":
    """Distance and certified gap by the observations so far; by the rounds where those are not known or stay."""
    from matplotlib.ticker import EngFormatter

    history = estimate.history
    rounds = np.arange(1, len(history.distance) + 1)
    known = not np.isnan(history.observations).any() and bool(np.ptp(history.observations) or len(rounds) == 1)
    across = history.observations if known else rounds
    certified = ~np.isnan(history.gap)
    axes.plot(across, history.distance, color=BLUE, label="distance from the data")
    axes.plot(across[certified], history.gap[certified], color=ORANGE, linestyle="--", label="certified gap")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.legend(frameon=False)
    return finish(axes, yscale="log", xlabel="observations" if known else "rounds", title="Distance and certified gap")


def predicted_against_true(predicted: Vec, true: Vec, axes: "Axes") -> "Axes":
    """One dot per probability; on the diagonal the prediction is right."""
    top = 1.05 * float(max(predicted.max(), true.max()))
    axes.plot([0, top], [0, top], color=GREY, linewidth=1)
    axes.scatter(true, predicted, s=9, alpha=0.5, color=BLUE, linewidths=0)
    return finish(
        axes, xlim=(0, top), ylim=(0, top), aspect="equal", xlabel="true probability", ylabel="predicted probability",
        title=f"Offers never seen: MAE {np.abs(predicted - true).mean():.3f}",
    )  # fmt: skip


def comparison(found: Comparison, axes: "Axes") -> "Axes":
    """Draw how far each model is behind the best, with 95 % margins of paired differences; orange is significant."""
    for height, row in enumerate(found.rows):
        margin = 0.0 if np.isnan(row.margin) else row.margin
        axes.errorbar(row.behind, height, xerr=margin, fmt="o", color=BLUE if row.within_noise else ORANGE, capsize=3)
    axes.axvline(0.0, color=GREY, linewidth=1)
    axes.set_yticks(range(len(found.rows)), [row.name for row in found.rows])
    axes.invert_yaxis()
    title = f"Held out: {HELD_OUT[found.holdout]}, {len(found.rows[0].scores)} folds"
    return finish(axes, "x", xlabel=f"log-likelihood per choice behind {found.winner}", title=title)


def frontier(found: Frontier, axes: "Axes") -> "Axes":
    """How the error falls with the number of rankings (``RankingModel.frontier``)."""
    axes.step(found.sizes, found.errors, where="post", color=BLUE)
    axes.plot(found.sizes, found.errors, color=BLUE, marker=".", linestyle="none")
    return finish(axes, yscale="log", xlabel="rankings", ylabel="mean absolute error", title="Accuracy against size")


def shares_over_time(
    periods: Sequence[ChoiceCounts],
    offer: Sequence[Label],
    axes: "Axes",
    times: Sequence[float] | None = None,
    models: Sequence[ChoiceModel] | None = None,
) -> "Axes":
    """Draw the share of every item of an offer by period, with 95 % intervals; lines are models of the periods.

    Periods without the offer are left out. Without models, lines connect the dots.

    Parameters
    ----------
    periods : sequence of ChoiceCounts
        The choices of each period.
    offer : sequence
        The offer, as the counts have it.
    axes : Axes
        Where to draw.
    times : sequence of float, optional
        Times of the periods (default: 1, 2, ...).
    models : sequence, optional
        A model of each period.
    """
    from matplotlib import colormaps

    across = np.arange(1.0, len(periods) + 1.0) if times is None else np.asarray(times, dtype=np.float64)
    shares, low, high = period_shares(periods, tuple(offer))
    colours = colormaps["tab10"].colors  # type: ignore[attr-defined]
    predicted = [model.predict(offer) for model in models or ()]
    seen, names = ~np.isnan(shares).any(axis=1), short_names(offer)
    for column, item in enumerate(offer):
        ten, one = divmod(column, 10)
        colour, mark, line = colours[one], MARKERS[ten % len(MARKERS)], LINES[ten % len(LINES)]
        axes.errorbar(
            across[seen], shares[seen, column], [(shares - low)[seen, column], (high - shares)[seen, column]],
            color=colour, label=names[item], marker=mark, linestyle="none" if predicted else line,
            markersize=6 if len(offer) <= 10 else 4, elinewidth=1.5 if len(offer) <= 6 else 0.7,
        )  # fmt: skip
        if predicted:
            axes.plot(across, [prediction[item] for prediction in predicted], color=colour, linestyle=line)
    highest = [np.nanmax(high) if seen.any() else 1.0, *(max(row.values()) for row in predicted)]
    top = min(1.03, 1.1 * max(highest))  # so that a dot at 1 is not cut
    _legend(axes, len(offer))
    across_label = "period" if times is None else "time"
    return finish(axes, ylim=(-0.03 * top, top), xlabel=across_label, ylabel="share", title="Shares over time")


def _legend(axes: "Axes", entries: int) -> None:
    if entries <= 5:
        axes.legend(frameon=False)
        return
    columns, size = -(-entries // 15), "medium" if entries <= 10 else "small"
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.02), ncols=columns, fontsize=size)


def period_shares(periods: Sequence[ChoiceCounts], offer: tuple[Label, ...]) -> tuple[Vec, Vec, Vec]:
    """Return the shares of an offer in each period, NaN without choices, and the ends of their intervals."""
    shares, sizes = np.full((len(periods), len(offer)), np.nan), np.ones((len(periods), 1))
    for row, counts in enumerate(periods):
        places = [counts.assortments.coordinate(offer, item) for item in offer]
        shares[row] = counts.frequencies()[places]
        sizes[row] = max(1.0, float(counts.effective_totals[counts.assortments.owner[places[0]]]))
    low, high = wilson(shares, sizes)
    return shares, np.minimum(low, shares), np.maximum(high, shares)


def date_axis(axes: "Axes") -> None:
    """Label an axis of days since 1970 with dates, as few as fit."""
    from matplotlib import dates

    axes.set_xlabel("")
    locator = dates.AutoDateLocator(minticks=2, maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def value_by_size(found: Decision, axes: "Axes") -> "Axes":
    """The best value per 100 customers for each number of items; the offer's own size is orange."""
    from matplotlib.ticker import MaxNLocator

    sizes = sorted(found.by_size)
    worth = [PER_100.customers * found.expect(found.by_size[size]) for size in sizes]
    axes.plot(sizes, worth, color=GREY, linewidth=1, zorder=1)
    for mine, colour, label in ((False, BLUE, "best of its size"), (True, ORANGE, "the offer")):
        picked = [place for place, size in enumerate(sizes) if (size == len(found.offer)) == mine]
        axes.scatter([sizes[p] for p in picked], [worth[p] for p in picked], color=colour, label=label, zorder=2)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, loc="lower right")
    return finish(axes, xlabel="number of items", ylabel=LABEL, title="The value of shelf space")


def runners_up(found: Decision, axes: "Axes") -> "Axes":
    """The offer and its runners-up as a table of dots, a row each, with their values; orange where they differ from it.

    A full dot is an item in the offer, a small one an item that is not; items in none of them are left out.
    """
    rows = [(found.offer, found.value), *((one.offer, one.value) for one in found.runners_up)]
    used = [item for item in found.problem.items if any(item in offer for offer, _ in rows)]
    names = short_names(found.problem.items)
    for row, (offer, _) in enumerate(rows):
        for column, item in enumerate(used):
            inside, same = item in offer, (item in offer) == (item in found.offer)
            colour = (BLUE if inside else "#cccccc") if same else ORANGE
            face = colour if inside or same else "none"
            axes.scatter(column, row, s=130 if inside or not same else 14, facecolor=face, edgecolor=colour, zorder=2)
    ends = PER_100.ends(found.interval)
    labels = [PER_100.amount(found.expect(value)) + ends * (not row) for row, (_, value) in enumerate(rows)]
    axes.set_yticks(range(len(rows)), labels)
    axes.set_xticks(range(len(used)), [names[item] for item in used], rotation=45, ha="right", rotation_mode="anchor")
    axes.set_axisbelow(True)
    return finish(
        axes, "x", xlim=(-0.6, len(used) - 0.4), ylim=(len(rows) - 0.5, -0.5), ylabel=LABEL,
        title="The offer, and its runners-up" if found.runners_up else "The offer",
    )  # fmt: skip
