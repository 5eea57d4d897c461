"""The first screen of a report: what sells, what to do against today's offer, and what changed, each with how sure."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankstream._core.types import Label
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import price_text, split_label
from rankstream.decide.context import equally_often, most_frequent_offer
from rankstream.decide.decision import Decision, Units, named
from rankstream.models.answers import Substitution
from rankstream.models.prices import levels_of
from rankstream.plots.models import wilson
from rankstream.reports.blocks import Section, TableBlock, percent, share_and_ends
from rankstream.reports.sections import gained, joined

MIN_PRICE_EFFECT = 0.05
"""Relative: an item whose share falls by less between its lowest and its highest price is not worth a finding."""
ACTIONS = {"drop": "Drop", "add": "Add", "swap": "Swap", "price": "Reprice"}


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


def advice_section(found: Decision, units: Units, warnings: tuple[str, ...] = ()) -> Section:
    """Return what to do, with the gain against today's offer: single changes first, then the best offer overall."""
    around = found.context
    value = f"the best offer earns {units.per(found.expected)}{units.ends(found.interval)}"
    if around is None or around.present is None:
        return Section("advice", "What to do", (*warnings, f"According to the model, {value}: {named(found.offer)}."))
    sentences = [*warnings, f"According to the model, today's offer earns {units.per(around.present_value)}; {value}."]
    today = f"Today's offer: {named(around.present)}."  # last: what precedes it is about the best offer
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
        "advice", "What to do", (*sentences, today), (TableBlock("Gains against today's offer", head, rows, 2),)
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
    how = "a clear gain" if interval[0] > 0.0 < gain else "may be chance"
    return how + units.ends(interval)
