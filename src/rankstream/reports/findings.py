"""What was learned beyond the model, section by section: drift, a comparison with rivals, and the best offer."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from rankstream import plots
from rankstream._core.types import Label
from rankstream.data.counts import ChoiceCounts
from rankstream.data.drift import DriftReport
from rankstream.decide.decision import Decision, explanation, named, summary
from rankstream.evaluate.comparison import HELD_OUT, Comparison
from rankstream.plots.fits import date_axis
from rankstream.plots.models import wilson
from rankstream.reports.blocks import Picture, Section, Sheet, percent, table
from rankstream.reports.sections import joined

MOST_LINES = 10
"""Items whose shares are drawn over time."""
DATES = 1e8
"""Seconds since 1970 from which on numbers are taken for times: before that, for numbers."""
DAY = 86_400.0
REMEDY = "A model of all choices describes neither half. Fit one to the later choices, or follow the change."

Span = tuple[float, float]


def drift_section(
    sheet: Sheet,
    report: DriftReport,
    periods: Sequence[ChoiceCounts] = (),
    times: Sequence[Span] = (),
    remedy: str = REMEDY,
    across: str = "time",
) -> Section:
    """What changed between two halves, and the shares of the most frequent offer, period by period.

    Parameters
    ----------
    sheet : Sheet
        Where pictures are made.
    report : DriftReport
        The later half against the earlier one.
    periods, times : sequences
        Counts over the same offers, and the first and last time of each.
    remedy : str
        What to do where something changed.
    across : str
        What times are where they are no dates.

    """
    words = [report.verdict, *([remedy] if report.changed else [])]
    if report.tested:
        words.append(
            f"Between the earlier and the later half of the choices, {len(report.moved):,} of {report.tested:,} offers "
            f"changed significantly when tested alone ({100 * report.level:g} % false-alarm rate)."
        )
    words += [f"{len(report.appeared):,} offers were made only in the later half."] if report.appeared else []
    words += [f"{len(report.vanished):,} offers were made only in the earlier half."] if report.vanished else []
    parts: list[Any] = []
    if report.items:
        rows = [
            (one.item, f"{100 * one.change:+.1f}", f"{one.p_value:.2g}", f"{one.moved:,} of {one.offers:,}")
            for one in report.items
        ]
        heads = ("item", "change of its share, points", "p-value", "offers with it that changed")
        parts.append(table("Items whose shares changed, the clearest first", heads, rows, most=20, which="clearest"))
    if periods and times:
        parts.append(_over_time(sheet, periods, times, across))
    return Section("drift", "What changed over time", tuple(words), tuple(parts))


def _over_time(sheet: Sheet, periods: Sequence[ChoiceCounts], times: Sequence[Span], across: str) -> Picture:
    """The shares of the offer that was made most often; of a large one, those of its most chosen items."""
    totals = np.sum([counts.totals for counts in periods], axis=0)
    offers = periods[0].assortments
    place = int(np.argmax(totals))
    offer, ends = offers.offers[place], slice(int(offers.indptr[place]), int(offers.indptr[place + 1]))
    tallies = np.array([counts.tallies[ends] for counts in periods])
    lines = [offer[at] for at in np.sort(np.argsort(-tallies.sum(axis=0), kind="stable")[:MOST_LINES]).tolist()]
    dated = times[0][0] >= DATES
    middle = [(first + last) / 2.0 / (DAY if dated else 1.0) for first, last in times]
    rows = [_row(counts, span, offer, lines, dated) for counts, span in zip(periods, times, strict=True)]
    some = "" if len(lines) == len(offer) else f", {len(lines)} of its {len(offer):,} items"
    caption = f"Shares of the most frequent offer ({joined(offer)}){some} over time, with 95 % intervals"
    shown = table(caption, ("from", "choices", *map(str, lines)), [row for row in rows if row[1] != "0"])

    def draw(figure: Any) -> None:
        axes = plots.shares_over_time(periods, offer, figure.subplots(), middle, order=lines)
        axes.set_xlabel(across)
        if dated:
            date_axis(axes)
        axes.set_title(f"Shares of the most frequent offer{some}")
        legend = axes.get_legend()
        if legend is not None:
            legend.remove()
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=2, frameon=False)

    return sheet.picture("Shares over time", shown, draw, height=3.4 + 0.22 * (-(-len(lines) // 2)))


def _row(
    counts: ChoiceCounts, span: Span, offer: tuple[Label, ...], lines: Sequence[Label], dated: bool
) -> tuple[str, ...]:
    first = coordinates_of(counts, offer, lines)
    total = float(counts.totals[counts.assortments.owner[first[0]]])
    began = datetime.fromtimestamp(span[0], UTC).strftime("%Y-%m-%d %H:%M") if dated else f"{span[0]:g}"
    if not total:
        return (began, "0", *("" for _ in lines))
    shares = counts.tallies[first] / total
    low, high = wilson(shares, np.full(len(lines), total))
    cells = [percent(*row) for row in zip(shares.tolist(), zip(low.tolist(), high.tolist(), strict=True), strict=True)]
    return (began, f"{total:,.12g}", *cells)


def coordinates_of(counts: ChoiceCounts, offer: tuple[Label, ...], items: Sequence[Label]) -> list[int]:
    """Where the items of an offer are in the counts."""
    return [counts.assortments.coordinate(offer, item) for item in items]


def comparison_section(sheet: Sheet, found: Comparison) -> Section:
    """Which kind of model predicts best what it was not fitted to."""
    rows = [
        (
            row.name,
            "the best" if row.behind == 0.0 == row.behind_error else f"{row.behind:.4f} ± {row.margin:.4f}",
            f"{row.mean('log_likelihood'):.4f}",
            f"{100 * row.mean('mae'):.2f}",
            f"{row.mean('size'):,.0f} {row.unit}" if row.unit else "",
        )
        for row in found.rows
    ]
    heads = ("model", "behind the best, nats per choice", "log-likelihood", "mean error, points", "size")
    shown = table("Models by how well they predict what was held out", heads, rows)
    draw = sheet.picture(
        "How far models are behind the best", shown, lambda figure: plots.comparison(found, figure.subplots()),
        height=1.5 + 0.4 * len(found.rows),
    )  # fmt: skip
    words = (
        f"Each model was fitted to a part of the choices and predicted the rest, {len(found.rows[0].scores)} "
        f"times; {HELD_OUT[found.holdout]} were held out. Orange models are significantly behind the best.",
        found.verdict,
    )
    return Section("comparison", "Compared with other kinds of models", words, (draw,))


def offer_section(sheet: Sheet, found: Decision) -> Section:
    """The best offer, why it is that one, and what the best offer of each size is worth."""
    rows = [
        (named(offer), f"{value:.4g}", "" if not place else f"{found.value - value:.3g}")
        for place, (offer, value) in enumerate(
            [(found.offer, found.value), *((one.offer, one.value) for one in found.runners_up)]
        )
    ]
    offers = table("The best offers", ("offer", "value per customer", "less than the best"), rows)
    used = set(found.offer) | {item for one in found.runners_up for item in one.offer}
    parts = [
        sheet.picture(
            "The offer and its runners-up", offers,
            lambda figure: plots.runners_up(found, figure.subplots()), max(5.0, 1.6 + 0.36 * len(used)),
            2.2 + 0.4 * len(rows),
        )
    ]  # fmt: skip
    sizes = found.by_size
    if len(sizes) > 1:
        before = [float("nan"), *list(sizes.values())[:-1]]
        worth = [
            (str(size), f"{value:.4g}", "" if np.isnan(less) else f"{value - less:+.3g}")
            for (size, value), less in zip(sizes.items(), before, strict=True)
        ]
        shown = table(
            "The best value for each number of items", ("items", "value per customer", "one more adds"), worth
        )
        parts.append(
            sheet.picture(
                "The value of shelf space", shown, lambda figure: plots.value_by_size(found, figure.subplots())
            )
        )
    shares = table(
        "What customers take from the offer", ("item", "share"),
        [(item, percent(share)) for item, share in sorted(found.shares.items(), key=lambda pair: -pair[1])],
    )  # fmt: skip
    words = (*summary(found), *explanation(found)[1:])
    return Section("offer", "Best offer", words, (*parts, shares))
