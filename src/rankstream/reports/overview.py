"""The first screen of a report: what sells, what to do against today's offer, and what changed, each with how sure."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankstream._core.terminal import plural
from rankstream._core.types import Label
from rankstream.data.counts import ChoiceCounts
from rankstream.data.drift import DriftReport
from rankstream.data.prices import split_label
from rankstream.decide.decision import Decision, Units, named
from rankstream.models.answers import Substitution
from rankstream.models.prices import levels_of
from rankstream.plots.models import wilson
from rankstream.reports.blocks import Section, TableBlock, percent, share_and_ends, table
from rankstream.reports.origin import period_of
from rankstream.reports.sections import gained, joined

MIN_PRICE_EFFECT = 0.05
"""Relative: an item whose share falls by less between its lowest and its highest price is not worth a finding."""
ACTIONS = {"drop": "Delist", "add": "List", "swap": "Swap", "price": "Reprice"}


def period_line(times: tuple[float, float] | None, choices: float) -> str:
    """Return the period and the number of visits, below the title.

    >>> period_line((1772438400.0, 1788100000.0), 40000.0)
    '2 March 2026 to 30 August 2026 · 40,000 visits'
    """
    return " · ".join(filter(None, (period_of(times), plural(choices, "visit"))))


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
    """What sells most, and how many leave without buying, as observed."""
    levels, owner = levels_of(model), counts.assortments.members
    sold: dict[Label, float] = {}
    for code, number in zip(owner.tolist(), counts.tallies.tolist(), strict=True):
        label = counts.assortments.items[code]
        item = label if levels is None or label not in levels.labels else levels.of(label)[0]
        sold[item] = sold.get(item, 0.0) + number
    total, nothing = counts.observations, model.no_choice
    if not total:
        return []
    left = sold.pop(nothing, None)
    best = max(sold, key=lambda item: sold[item])
    sentences = [f"{best} sells most: {_observed(sold[best], total)} of all visits."]
    if left is not None:
        sentences.append(f"{_observed(left, total)} of visits end without a purchase.")
    return sentences


def _observed(number: float, total: float) -> str:
    low, high = wilson(np.array([number / total]), np.array([total]))
    return percent(number / total, (float(low[0]), float(high[0])))


def _missing(model: Any, moves: Substitution) -> list[str]:
    """Which item costs most customers when it is out of stock, and who gains."""
    nothing = model.no_choice
    if nothing not in moves.items:
        return []
    column = moves.items.index(nothing)
    rows = [row for row, item in enumerate(moves.items) if item != nothing and moves.before[row] > 0.0]
    if not rows:
        return []
    row = max(rows, key=lambda place: moves.before[place] * moves.shares[place, column])
    rest = [place for place in range(len(moves.items)) if place not in (row, column)]
    text = f"When {moves.items[row]} is out of stock, {gained(moves, row, column)} of its buyers leave without buying"
    if rest:
        to = max(rest, key=lambda place: moves.shares[row, place])
        text += f"; {gained(moves, row, to)} take {moves.items[to]} instead"
        if moves.low is not None and moves.low[row, to] <= 0.0:
            text += ", which the data barely support"
    return [f"{text}."]


def _prices(curves: Mapping[Label, Mapping[float, Any]]) -> list[str]:
    """Which item's sales fall most with its price."""
    falls: list[tuple[float, str]] = []
    for item, curve in curves.items():
        low, high = min(curve), max(curve)
        cheap, dear = (share_and_ends(curve[price])[0] for price in (low, high))
        if cheap > 0.0 and low < high:
            shares = " instead of ".join(percent(*share_and_ends(curve[price])) for price in (high, low))
            text = f"At {high:g} instead of {low:g}, {item} is bought in {shares} of visits"
            falls.append((1.0 - dear / cheap, f"{text}, other prices unchanged."))
    best = max(falls, default=(0.0, ""))
    return [best[1]] if best[0] >= MIN_PRICE_EFFECT else []


def advice_section(found: Decision, units: Units, warnings: tuple[str, ...] = ()) -> Section:
    """Return what to do, with the gain against today's offer: single changes first, then the best offer overall."""
    around = found.context
    value = f"the best offer earns {units.per(found.value)}{units.ends(found.interval)}"
    if around is None or around.present is None:
        return Section("advice", "What to do", (*warnings, f"According to the model, {value}: {named(found.offer)}."))
    sentences = [*warnings, f"According to the model, today's offer earns {units.per(around.present_value)}; {value}."]
    rows = [
        (ACTIONS[change.kind], change.words, units.change(change.gain), _sure(change.gain, change.interval, units))
        for change in around.changes
        if change.gain > 0.0
    ]
    if set(around.present) != set(found.offer):
        words, sure = differences(around.present, found.offer), _sure(around.gain, around.gain_interval, units)
        rows.insert(0, ("Best offer", words, units.change(around.gain), sure))
        gain = f"{units.change(around.gain)} per {units.customers:,} visits"
        sentences.insert(0, f"{words[:1].upper()}{words[1:]}: {gain}, {sure}.")
    if not rows:
        sentences.insert(0, "No change was found that earns more: keep today's offer.")
        return Section("advice", "What to do", tuple(sentences))
    if around.nearness is not None:
        far = "It is far from anything in the data: try it in one store first, or start with one change."
        sentences += [around.nearness.words, *([far] if around.nearness.is_extrapolation else [])]
    head = ("action", "what to change", f"gain per {units.customers:,} visits", "certainty")
    return Section("advice", "What to do", tuple(sentences), (table("Gains against today's offer", head, rows, 2),))


def differences(present: tuple[Label, ...], offer: tuple[Label, ...]) -> str:
    """Return how one offer differs from another: items that come and go, and prices that change.

    >>> differences(("tea @ 3.00", "pie"), ("tea @ 3.50", "cake"))
    'add cake; drop pie; price tea at 3.50 (now 3.00)'
    """
    before, after = (dict(map(split_label, labels)) for labels in (present, offer))
    comes = [label for label in offer if split_label(label)[0] not in before]
    goes = [label for label in present if split_label(label)[0] not in after]
    parts = [f"add {named(tuple(comes))}"] * bool(comes) + [f"drop {named(tuple(goes))}"] * bool(goes)
    parts += [
        f"price {item} at {price:.2f} (now {before[item]:.2f})"
        for item, price in after.items()
        if item in before and price != before[item]
    ]
    return "; ".join(parts)


def offers_table(counts: ChoiceCounts, caption: str, most: int) -> tuple[tuple[Label, ...], TableBlock]:
    """Return the most frequent offer, and a table of what differs from it in others, the most frequent first."""
    offers, order = counts.assortments.offers, (-counts.totals).argsort(kind="stable").tolist()
    usual = offers[order[0]]
    rows = [
        (_briefly(usual, offers[place]) or "the most frequent offer", f"{round(counts.totals[place], 1):,.12g}")
        for place in order
        if counts.totals[place] > 0.0
    ]
    heads = ("what differs from the most frequent offer", "choices")
    return usual, table(caption, heads, rows, most=most, which="most frequent")


def _briefly(usual: tuple[Label, ...], offer: tuple[Label, ...]) -> str:
    """Return how an offer differs from the most frequent one, in a cell: the first items, and how many prices."""
    before, after = (dict(map(split_label, labels)) for labels in (usual, offer))
    more, less = ([item for item in one if item not in other] for one, other in ((after, before), (before, after)))
    prices = sum(item in before and price != before[item] for item, price in after.items())
    parts = [f"with {joined(more, 4)}"] * bool(more) + [f"without {joined(less, 4)}"] * bool(less)
    return "; ".join([*parts, *([f"{plural(prices, 'other price')}"] if prices else [])])


def _sure(gain: float, interval: tuple[float, float] | None, units: Units) -> str:
    if interval is None:
        return "certainty not estimated"
    how = "a clear gain" if interval[0] > 0.0 < gain else "within noise"
    return f"{how}{units.ends(interval, '.3g')}"


def change_section(report: DriftReport | None, reason: str = "") -> Section:
    """Return the verdict on what changed over time, or why there is none."""
    title = "What changed"
    if report is None:
        return Section("changed", title, (reason or "The choices have no times, so changes cannot be tested.",))
    sentences = [report.verdict]
    for item in report.items[:3]:
        way = "rose" if item.change > 0.0 else "fell"
        points = f"{100 * abs(item.change):.1f} points"
        sentences.append(f"The share of {item.item} {way} by {points} in {plural(item.offers, 'offer')}.")
    return Section("changed", title, tuple(sentences))
