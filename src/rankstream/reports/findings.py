"""What is known beyond the model, section by section: the data, drift, the best offer."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from rankstream.data.counts import ChoiceCounts
from rankstream.data.drift import DriftReport
from rankstream.data.prices import split_label
from rankstream.data.readers.reading import Reading
from rankstream.decide.decision import Decision, Units, explanation, summary
from rankstream.plots.models import wilson
from rankstream.reports.blocks import Chart, Section, TableBlock, percent
from rankstream.reports.origin import MIN_DATE, account_of
from rankstream.reports.overview import differences
from rankstream.reports.sections import joined

MOST_LINES = 10
"""Items whose gains and losses are drawn."""
MAX_TREND_LINES = 5
"""Items whose shares are drawn over time: more lines than that cannot be told apart."""
MAX_COMPARED = 40
"""Items that a page has the shares of, to compare two periods."""
MIN_OFFER_SHARE = 0.5
"""Of all choices that must be from one offer, if shares over time are to be of that offer."""
ORANGE = " Orange triangles are significantly behind the best."
REMEDY = "One model of all choices fits neither period well. Fit only the later choices, or let older ones count less."

Span = tuple[float, float]


def drift_section(
    report: DriftReport,
    periods: Sequence[ChoiceCounts] = (),
    times: Sequence[Span] = (),
    remedy: str = REMEDY,
    across: str = "time",
    alarms: Sequence[float] = (),
    nothing: Any = None,
) -> Section:
    """What changed between two halves, and shares period by period.

    ``periods`` are counts over the same offers, ``times`` the first and last time of each, and ``alarms`` when changes
    were noticed. ``remedy`` says what to do about a change, and ``across`` what times are that are no dates. The
    outside option ``nothing`` is no line of the chart: its share is often so large that it flattens all others.
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
        words.append("Only items that gained or lost appeal of their own are listed, not those that lost to them.")
        rows = [
            (one.item, f"{100 * one.change:+.1f}", f"{one.p_value:.2g}", f"{one.moved:,} of {one.offers:,}")
            for one in report.items
        ]
        heads = ("item", "change of its share, points", "p-value", "offers with it that changed")
        shown = TableBlock("Items whose appeal changed, the largest first", heads, rows, most=20, which="largest")
        values = [
            {"item": str(one.item), "change": 100 * one.change, "clear": one.p_value < report.level}
            for one in sorted(report.items[:MOST_LINES], key=lambda one: -one.change)
        ]
        parts.append(Chart("moves", "Which items gained and lost", values, shown))
    if periods and times:
        parts.insert(0, _over_time(periods, times, across, alarms, None if nothing is None else str(nothing)))
    return Section("drift", "What changed over time", tuple(words), tuple(parts))


def _over_time(
    periods: Sequence[ChoiceCounts], times: Sequence[Span], across: str, alarms: Sequence[float], nothing: str | None
) -> Chart:
    """The shares of the most chosen items, in the most frequent offer, or in all choices where few are from it."""
    totals = np.array([counts.totals for counts in periods])
    offers, place = periods[0].assortments, int(np.argmax(totals.sum(axis=0)))
    tallies, sizes = np.array([counts.tallies for counts in periods]), totals.sum(axis=1)
    if totals[:, place].sum() >= MIN_OFFER_SHARE * totals.sum():
        names = [str(item) for item in offers.offers[place]]
        tallies, sizes = tallies[:, int(offers.indptr[place]) : int(offers.indptr[place + 1])], totals[:, place]
        what, title = f"the most frequent offer ({joined(offers.offers[place])})", "Shares of the most frequent offer"
    else:
        labels = [str(split_label(offers.items[code])[0]) for code in offers.members.tolist()]
        names = list(dict.fromkeys(labels))
        owner = np.array([names.index(name) for name in labels])
        tallies = np.array([np.bincount(owner, row, len(names)) for row in tallies])
        what, title = "all choices, whatever was on offer", "Share of all choices"
    order = np.argsort(-tallies.sum(axis=0), kind="stable")[:MAX_COMPARED].tolist()
    order.sort(key=lambda at: names[at] == nothing)
    totals = np.maximum(sizes, 1e-9)[:, None]
    shares = tallies[:, order] / totals
    ends = np.stack([shares, *wilson(shares, np.broadcast_to(totals, shares.shape))], axis=-1).tolist()
    cells: list[Any] = [found if size else [None] * len(order) for found, size in zip(ends, sizes, strict=True)]
    lines = [at for at in order if names[at] != nothing][:MAX_TREND_LINES]
    dated = times[0][0] >= MIN_DATE
    began = [datetime.fromtimestamp(one, UTC).strftime("%Y-%m-%d %H:%M") if dated else f"{one:g}" for one, _ in times]
    rows = [
        (start, f"{size:,.12g}", *(percent(one[0], one[1:]) for one in found[: len(lines)]))
        for start, size, found in zip(began, sizes, cells, strict=True)
        if size
    ]
    some = "" if len(lines) == (number := len({*names} - {nothing})) else f", {len(lines)} of {number:,} items"
    note = " (shares also change with what was on offer)" if title == "Share of all choices" else ""
    heads = ("from", "choices", *(names[at] for at in lines))
    shown = TableBlock(f"Shares of {what}{some}, with 95 % intervals", heads, rows)
    values = {
        "dated": dated, "across": across, "at": [round(first) for first, _ in times],
        "spans": list(times), "choices": sizes.tolist(), "alarms": list(alarms), "drawn": len(lines),
        "items": [{"item": names[at], "shares": [found[n] for found in cells]} for n, at in enumerate(order)],
    }  # fmt: skip
    return Chart("trend", f"{title} over time{some}{note}", values, shown)


def offer_section(found: Decision, units: Units) -> Section:
    """The best offer, why it is that one, and what the best offer of each size is worth."""
    per = f"value per {units.customers:,} customers"
    offers = [(found.offer, found.value), *((one.offer, one.value) for one in found.runners_up)]
    rows = [
        (
            differences(found.offer, offer) if place else joined(offer, len(offer)),
            units.amount(found.expect(value)),
            units.amount(found.expected - found.expect(value)) if place else "",
        )
        for place, (offer, value) in enumerate(offers)
    ]
    heads = ("the best offer, then how the next best differ from it", per, "less than the best")
    parts: list[Any] = [TableBlock("The best offers", heads, rows)]
    sizes = {size: found.expect(value) for size, value in found.by_size.items()}
    if len(sizes) > 1:
        before = [float("nan"), *list(sizes.values())[:-1]]
        worth = [
            (str(size), units.amount(value), "" if np.isnan(less) else units.change(value - less))
            for (size, value), less in zip(sizes.items(), before, strict=True)
        ]
        shown = TableBlock("The best value by number of items", ("items", per, "one more adds"), worth)
        values = [{"size": size, "value": value, "chosen": size == len(found.offer)} for size, value in sizes.items()]
        parts.append(Chart("sizes", "The value of shelf space", values, shown))
    shares = TableBlock(
        "What customers take from the offer", ("item", "share"),
        [(item, percent(share)) for item, share in sorted(found.shares.items(), key=lambda pair: -pair[1])],
    )  # fmt: skip
    proof = [line for line in summary(found, units) if "roven best" in line]  # the rest is said above
    return Section("offer", "Best offer", (*proof, *explanation(found, units)[1:]), (*parts, shares))


def read_section(found: Reading) -> Section:
    """What was read, and what was skipped."""
    counts, skipped = found.counts, found.problems.summary()  # of which a table has the rest
    words = [one.partition("\n")[0] if one == skipped else one for one in account_of(found, counts)]
    words += [column.sentence for column in found.unused]
    parts = []
    if found.problems.total:
        first = {one.kind: str(one) for one in reversed(found.problems.first)}
        rows = [(kind, f"{number:,}", first.get(kind, "")) for kind, number in found.problems.by_kind.most_common()]
        parts.append(TableBlock("Skipped records", ("problem", "records", "first case"), rows, numbers=3))
    return Section("read", "Data", tuple(words), tuple(parts))
