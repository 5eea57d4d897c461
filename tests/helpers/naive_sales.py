"""The join of sales with a stock log, sale by sale in plain Python: what ``read_sales`` must count."""

import itertools
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

MICROSECOND = Fraction(1, 1_000_000)
NOTHING = "no choice"


class Event(NamedTuple):
    store: str
    time: int
    item: str
    on_hand: int


class Sale(NamedTuple):
    store: str
    time: int
    item: str
    receipt: str
    quantity: int = 1


class Visit(NamedTuple):
    store: str
    start: int
    until: int
    number: int


def latest(events: Sequence[Event], store: str) -> dict[str, list[tuple[int, bool]]]:
    """For each item of a store when it came and went, in order; of rows of one time the last counts."""
    found: dict[str, dict[int, bool]] = {}
    for event in events:
        if event.store == store:
            found.setdefault(event.item, {})[event.time] = event.on_hand > 0
    return {item: sorted(rows.items()) for item, rows in found.items()}


def offer_at(events: Sequence[Event], store: str, time: Fraction | int) -> frozenset[str] | None:
    """What a store offers at a time: an item that goes is there at the very time of its row. None before all rows."""
    known, offer = False, set()
    for item, rows in latest(events, store).items():
        is_on = False
        for at, level in rows:
            if at < time or (at == time and level):
                known, is_on = True, level
        if is_on:
            offer.add(item)
    return frozenset(offer) if known else None


def segments(events: Sequence[Event], visit: Visit) -> list[tuple[Fraction, frozenset[str] | None]]:
    """The parts of a period between rows of the stock log, with their length and offer."""
    rows = [row for item in latest(events, visit.store).values() for row in item]
    edges = {Fraction(time) if level else time + MICROSECOND for time, level in rows}
    inner = sorted(edge for edge in edges if visit.start < edge < visit.until)
    ends = [Fraction(visit.start), *inner, Fraction(visit.until)]
    return [(end - start, offer_at(events, visit.store, start)) for start, end in itertools.pairwise(ends)]


def shares(number: int, lengths: Sequence[Fraction]) -> list[int]:
    """Whole parts by the largest remainders, the first of equals."""
    exact = [number * length / sum(lengths) for length in lengths]
    parts = [int(one) for one in exact]
    order = sorted(range(len(exact)), key=lambda place: parts[place] - exact[place])
    for place in order[: number - sum(parts)]:
        parts[place] += 1
    return parts


def count(
    sales: Sequence[Sale], events: Sequence[Event], visits: Sequence[Visit] | None = None
) -> Counter[tuple[str, tuple[str, ...], str]]:
    """How often each item was chosen from each offer of each store, a sale against the stock log extending it."""
    found: Counter[tuple[str, tuple[str, ...], str]] = Counter()
    listed, ends = {event.item for event in events}, () if visits is None else (NOTHING,)
    used = [sale for sale in sales if sale.item in listed]
    for sale in used:
        offer = offer_at(events, sale.store, sale.time)
        counted = visits is None or any(
            visit.store == sale.store and visit.start <= sale.time < visit.until for visit in visits
        )
        if offer is not None and counted:
            found[sale.store, (*sorted(offer | {sale.item}), *ends), sale.item] += sale.quantity
    for visit in visits or ():
        first = {sale.receipt: min(one.time for one in used if one.receipt == sale.receipt) for sale in used}
        bought = {
            sale.receipt
            for sale in used
            if sale.store == visit.store and visit.start <= first[sale.receipt] < visit.until
        }
        parts = segments(events, visit)
        for number, (_, offer) in zip(
            shares(max(0, visit.number - len(bought)), [length for length, _ in parts]), parts, strict=True
        ):
            if number and offer:
                found[visit.store, (*sorted(offer), NOTHING), NOTHING] += number
    return found
