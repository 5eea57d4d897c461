"""What was learned beyond the model, section by section: drift, a comparison with rivals, and the best offer."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from rankstream._core.types import Label
from rankstream.data.counts import ChoiceCounts
from rankstream.data.drift import DriftReport
from rankstream.decide.decision import Decision, explanation, named, summary
from rankstream.evaluate.comparison import HELD_OUT, Comparison
from rankstream.plots.models import wilson
from rankstream.reports.blocks import Chart, Section, percent, table
from rankstream.reports.sections import joined

MOST_LINES = 10
"""Items whose shares are drawn over time."""
DATES = 1e8
"""Seconds since 1970 from which on numbers are taken for times: before that, for numbers."""
REMEDY = "A model of all choices describes neither half. Fit one to the later choices, or follow the change."

Span = tuple[float, float]


def drift_section(
    report: DriftReport,
    periods: Sequence[ChoiceCounts] = (),
    times: Sequence[Span] = (),
    remedy: str = REMEDY,
    across: str = "time",
    alarms: Sequence[float] = (),
) -> Section:
    """What changed between two halves, and the shares of the most frequent offer, period by period.

    Parameters
    ----------
    report : DriftReport
        The later half against the earlier one.
    periods, times : sequences
        Counts over the same offers, and the first and last time of each.
    remedy : str
        What to do where something changed.
    across : str
        What times are where they are no dates.
    alarms : sequence of float
        When changes were noticed, as times are.
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
        shown = table("Items whose shares changed, the clearest first", heads, rows, most=20, which="clearest")
        values = [
            {"item": str(one.item), "change": 100 * one.change, "clear": one.p_value < report.level}
            for one in sorted(report.items[:MOST_LINES], key=lambda one: -one.change)
        ]
        parts.append(Chart("moves", "Which items gained and lost", values, shown))
    if periods and times:
        parts.insert(0, _over_time(periods, times, across, alarms))
    return Section("drift", "What changed over time", tuple(words), tuple(parts))


def _over_time(periods: Sequence[ChoiceCounts], times: Sequence[Span], across: str, alarms: Sequence[float]) -> Chart:
    """The shares of the offer that was made most often; of a large one, those of its most chosen items."""
    totals = np.sum([counts.totals for counts in periods], axis=0)
    offers = periods[0].assortments
    place = int(np.argmax(totals))
    offer, ends = offers.offers[place], slice(int(offers.indptr[place]), int(offers.indptr[place + 1]))
    tallies = np.array([counts.tallies[ends] for counts in periods])
    lines = [offer[at] for at in np.sort(np.argsort(-tallies.sum(axis=0), kind="stable")[:MOST_LINES]).tolist()]
    dated = times[0][0] >= DATES
    middle = [round((first + last) / 2.0) for first, last in times]
    rows = [_row(counts, span, offer, lines, dated) for counts, span in zip(periods, times, strict=True)]
    some = "" if len(lines) == len(offer) else f", {len(lines)} of its {len(offer):,} items"
    caption = f"Shares of the most frequent offer ({joined(offer)}){some} over time, with 95 % intervals"
    shown = table(caption, ("from", "choices", *map(str, lines)), [row for row in rows if row[1] != "0"])

    values = {
        "dated": dated, "across": across, "at": middle, "alarms": list(alarms),
        "items": [
            {"item": str(item), "shares": [_share(counts, offer, item) for counts in periods]} for item in lines
        ],
    }  # fmt: skip
    return Chart("trend", f"Shares of the most frequent offer{some} over time", values, shown)


def _share(counts: ChoiceCounts, offer: tuple[Label, ...], item: Label) -> list[float] | None:
    """The share of an item in a period, and the ends of its interval; None where the offer was not made."""
    place = counts.assortments.coordinate(offer, item)
    total = float(counts.totals[counts.assortments.owner[place]])
    if not total:
        return None
    share = np.array([counts.tallies[place] / total])
    return [float(part[0]) for part in (share, *wilson(share, np.array([total])))]


def _row(
    counts: ChoiceCounts, span: Span, offer: tuple[Label, ...], lines: Sequence[Label], dated: bool
) -> tuple[str, ...]:
    total = float(counts.totals[counts.assortments.owner[counts.assortments.coordinate(offer, lines[0])]])
    began = datetime.fromtimestamp(span[0], UTC).strftime("%Y-%m-%d %H:%M") if dated else f"{span[0]:g}"
    shares = [_share(counts, offer, item) for item in lines]
    return (began, f"{total:,.12g}", *("" if one is None else percent(one[0], one[1:]) for one in shares))


def comparison_section(found: Comparison, notes: Sequence[str] = ()) -> Section:
    """Which kind of model predicts best what it was not fitted to, with notes on how that was found out."""
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
    heads = ("model", "behind the best, log-likelihood per choice", "log-likelihood", "mean error, points", "size")
    shown = table("Models by how well they predict what was held out", heads, rows)
    values = [{"name": row.name, "behind": row.behind, "margin": row.margin} for row in found.rows]
    draw = Chart("behind", "How far models are behind the best", values, shown)
    words = (
        f"Each model was fitted to a part of the choices and predicted the rest, {len(found.rows[0].scores)} "
        f"times; {HELD_OUT[found.holdout]} were held out. Orange triangles are significantly behind the best.",
        *notes,
        found.verdict,
    )
    return Section("comparison", "Compared with other kinds of models", words, (draw,))


def offer_section(found: Decision) -> Section:
    """The best offer, why it is that one, and what the best offer of each size is worth."""
    rows = [
        (named(offer), f"{value:.4g}", "" if not place else f"{found.value - value:.3g}")
        for place, (offer, value) in enumerate(
            [(found.offer, found.value), *((one.offer, one.value) for one in found.runners_up)]
        )
    ]
    offers = table("The best offers", ("offer", "value per customer", "less than the best"), rows)
    parts: list[Any] = [offers]
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
        values = [{"size": size, "value": value, "chosen": size == len(found.offer)} for size, value in sizes.items()]
        parts.append(Chart("sizes", "The value of shelf space", values, shown))
    shares = table(
        "What customers take from the offer", ("item", "share"),
        [(item, percent(share)) for item, share in sorted(found.shares.items(), key=lambda pair: -pair[1])],
    )  # fmt: skip
    words = (*summary(found), *explanation(found)[1:])
    return Section("offer", "Best offer", words, (*parts, shares))
