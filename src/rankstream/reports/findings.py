"""Sections of a report beside those of the model: its first screen, the data, drift, and the best offer."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from rankstream._core.types import Label
from rankstream.data import ChoiceCounts, DriftReport, price_text, split_label
from rankstream.data.drift import LISTED_ITEMS
from rankstream.data.readers.reading import Reading
from rankstream.decide.context import equally_often, most_frequent_offer
from rankstream.decide.decision import Decision, Units, explanation, named, summary
from rankstream.models.answers import Substitution
from rankstream.models.prices import levels_of
from rankstream.plots.models import wilson
from rankstream.reports.blocks import Chart, Section, TableBlock, percent, share_and_ends
from rankstream.reports.origin import MIN_DATE, account_of
from rankstream.reports.sections import gained, joined

MIN_PRICE_EFFECT = 0.05
"""Relative: an item whose share falls by less between its lowest and its highest price is not worth a finding."""
ACTIONS = {"drop": "Drop", "add": "Add", "swap": "Swap", "price": "Reprice"}
MOST_LINES = 10
"""Items whose gains and losses are drawn."""
MAX_TREND_LINES = 5
"""Items whose shares are drawn over time: more lines than that cannot be told apart."""
MAX_COMPARED = 40
"""Items that a page has the shares of, to compare two periods."""
MIN_OFFER_SHARE = 0.5
"""Of all choices that must be from one offer, if shares over time are to be of that offer."""
REMEDY = "One model of all choices fits neither period well. Fit only the later choices, or let older ones count less."

Span = tuple[float, float]


def findings_section(
    model: Any, counts: ChoiceCounts, moves: Substitution, curves: Mapping[Label, Mapping[float, Any]], interval: str
) -> Section:
    """Return three to five findings in the language of a shop, each with its uncertainty.

    ``curves`` are the shares of items by their own prices, empty without prices; ``interval`` says what brackets are.
    """
    sentences = [*_sales(model, counts), *_missing(model, moves), *_prices(curves)]
    known = moves.low is not None
    sentences.append(f"Brackets are {interval}." if known else "Brackets are 95 % intervals of observed shares.")
    return Section("findings", "What you should know", tuple(sentences))


def _sales(model: Any, counts: ChoiceCounts) -> list[str]:
    levels, offers = levels_of(model), counts.assortments
    sold: dict[Label, float] = defaultdict(float)
    for label, number in zip((label for offer in offers.offers for label in offer), counts.tallies, strict=True):
        sold[label if levels is None else levels.of(label)[0]] += float(number)
    total, nothing = counts.observations, model.no_choice
    if not total:
        return []
    left = sold.pop(nothing, None)
    best = max(sold, key=lambda item: sold[item])
    sentences = [f"{best} sells most: {_observed(sold[best], total)} of all customers."]
    if left is not None:
        sentences.append(f"{_observed(left, total)} of customers leave without buying.")
    return sentences


def _observed(number: float, total: float) -> str:
    low, high = wilson(np.array([number / total]), np.array([total]))
    return percent(number / total, (float(low[0]), float(high[0])))


def _missing(model: Any, moves: Substitution) -> list[str]:
    nothing, names = model.no_choice, [split_label(item)[0] for item in moves.items]
    if nothing not in moves.items:
        return []
    column = moves.items.index(nothing)
    rows = [row for row, item in enumerate(moves.items) if item != nothing and moves.before[row] > 0.0]
    if not rows:
        return []
    row = max(rows, key=lambda place: moves.before[place] * moves.shares[place, column])
    rest = [place for place in range(len(moves.items)) if place not in (row, column)]
    text = f"When only {names[row]} is out of stock, {gained(moves, row, column)} of its buyers leave without buying"
    if rest:
        to = max(rest, key=lambda place: moves.shares[row, place])
        text += f"; {gained(moves, row, to)} take {names[to]} instead"
        if moves.low is not None and moves.low[row, to] <= 0.0:
            text += ", which the data barely support"
    return [f"{text}."]


def _prices(curves: Mapping[Label, Mapping[float, Any]]) -> list[str]:
    falls: list[tuple[float, str]] = []
    for item, curve in curves.items():
        low, high = min(curve), max(curve)
        cheap, dear = (share_and_ends(curve[price])[0] for price in (low, high))
        if cheap > 0.0 and low < high:
            shares = " instead of ".join(percent(*share_and_ends(curve[price])) for price in (high, low))
            text = f"At {price_text(high)} instead of {price_text(low)}, {item} is bought by {shares} of customers"
            known = "" if share_and_ends(curve[low])[1] else " (no intervals)"
            falls.append((1.0 - dear / cheap, f"{text}, other prices unchanged{known}."))
    best = max(falls, default=(0.0, ""))
    return [best[1]] if best[0] >= MIN_PRICE_EFFECT else []


def advice_section(found: Decision, units: Units, warnings: tuple[str, ...] = (), origin: str = "") -> Section:
    """Return what to do, with the gain compared with today's offer: single changes first, then the best offer.

    ``origin`` says where today's offer comes from.
    """
    around = found.context
    value = f"the best offer earns {units.per(found.expected)}{units.ends(found.interval)}"
    if around is None or around.present is None:
        return Section("advice", "What to do", (*warnings, f"According to the model, {value}: {named(found.offer)}."))
    sentences = [*warnings, f"According to the model, today's offer earns {units.per(around.present_value)}; {value}."]
    today = f"Today's offer{origin and f' ({origin})'}: {named(around.present)}."  # last: the rest is about the best
    rows = [
        (ACTIONS[change.kind], change.words, units.change(change.gain), _sure(change.gain, change.interval, units))
        for change in around.changes
        if change.gain > 0.0
    ]
    if set(around.present) != set(found.offer):
        words, sure = differences(around.present, found.offer), _sure(around.gain, around.gain_interval, units)
        rows.insert(0, ("Best offer", words, units.change(around.gain), sure))
        gain = f"{units.amount(abs(around.gain))} {'more' if around.gain >= 0.0 else 'less'}"
        sentences.insert(0, f"The best offer earns {gain} per {units.customers:,} customers than today's: {sure}.")
    if not rows:
        sentences.insert(0, "No change was found that earns more: keep today's offer.")
        return Section("advice", "What to do", (*sentences, today))
    if around.nearness is not None:
        far = "It is far from anything in the data: try it in one store first, or start with one change."
        sentences += [around.nearness.words, *([far] if around.nearness.is_extrapolation else [])]
    head = ("action", "what to change", f"gain per {units.customers:,} customers", "certainty")
    return Section(
        "advice", "What to do", (*sentences, today), (TableBlock("Gains compared with today's offer", head, rows, 2),)
    )


def differences(present: tuple[Label, ...], offer: tuple[Label, ...], briefly: bool = False) -> str:
    """Return how one offer differs from another: items that come and go, and prices that change.

    >>> differences(("tea @ 3.00", "pie"), ("tea @ 3.50", "cake"))
    'add cake; drop pie; price tea at 3.50 (now 3.00)'
    """
    before, after = (dict(map(split_label, labels)) for labels in (present, offer))
    comes = [label for label in offer if split_label(label)[0] not in before]
    goes = [label for label in present if split_label(label)[0] not in after]
    most = 3 if briefly else len(offer) + len(present)
    if briefly:
        comes, goes = ([split_label(label)[0] for label in labels] for labels in (comes, goes))
    parts = [f"add {joined(comes, most)}"] * bool(comes) + [f"drop {joined(goes, most)}"] * bool(goes)
    priced = [(item, price) for item, price in after.items() if item in before and price != before[item]]
    prices = [(item, price_text(price), price_text(before[item])) for item, price in priced]
    if briefly:
        parts += [joined((f"{item} at {price}" for item, price, _ in prices), most)] * bool(prices)
    else:
        parts += [f"price {item} at {price} (now {was})" for item, price, was in prices]
    return "; ".join(parts)


def offers_section(counts: ChoiceCounts, most: int) -> Section:
    """List the most frequent offers, by what differs from the most frequent one."""
    offers, usual, totals = counts.assortments.offers, most_frequent_offer(counts), counts.totals.round(1)
    order = sorted(range(len(offers)), key=lambda place: (-counts.totals[place], offers[place] != usual))
    ties = equally_often(counts, usual)
    alike = f" (one of {ties:,} shown equally often)" if ties else ""
    rows = [
        (differences(usual, offers[place], briefly=True) or "the most frequent offer", f"{totals[place]:,.12g}")
        for place in order
        if totals[place] > 0.0
    ]
    heads = ("what differs from the most frequent offer", "choices")
    shown = TableBlock("Offers and how often customers chose from them", heads, rows, most=most, which="most frequent")
    return Section("offers", "Offers", (f"The most frequent offer{alike}: {joined(usual, 20)}.",), (shown,))


def _sure(gain: float, interval: tuple[float, float] | None, units: Units) -> str:
    if interval is None:
        return "certainty not estimated"
    return ("a clear gain" if interval[0] > 0.0 < gain else "may be chance") + units.ends(interval)


def drift_section(
    report: DriftReport,
    periods: Sequence[ChoiceCounts] = (),
    times: Sequence[Span] = (),
    remedy: str = REMEDY,
    across: str = "time",
    alarms: Sequence[float] = (),
    nothing: Any = None,
    cut: str = "",
) -> Section:
    """What changed between two halves, and shares period by period; ``cut`` says where they are divided.

    ``periods`` are counts over the same offers, ``times`` the first and last time of each, and ``alarms`` when changes
    were noticed. ``remedy`` says what to do about a change, and ``across`` what times are that are no dates. The
    no-purchase option ``nothing`` is no line of the chart: its share is often so large that it flattens all others.
    """
    words = [report.verdict, *([remedy] if report.changed else [])]
    if report.tested:
        words.append(
            f"Between the earlier and the later half of the choices{cut}, {len(report.moved):,} of {report.tested:,} "
            f"offers changed significantly, tested one by one ({100 * report.level:g} % false-alarm rate in all)."
        )
    words += [f"{len(report.appeared):,} offers were made only in the later half."] if report.appeared else []
    words += [f"{len(report.vanished):,} offers were made only in the earlier half."] if report.vanished else []
    parts: list[Any] = []
    if report.items:
        words.append(LISTED_ITEMS)
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
