"""What was on offer when: four forms of stock logs as changes of each store's offer, and the offers they lead to.

Sums of sales by state become choices from the offer of each state, coarser where there are too many. Items that one
snapshot lists and the next does not sold out in between: at their last sale, or at a time that is not known.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from itertools import groupby
from operator import itemgetter, or_
from typing import Any, NamedTuple

import numpy as np

from rankstream._core.types import Codes as Numbers
from rankstream._core.types import Label
from rankstream.data.readers.sales.tables import FOREVER, FROM, SECOND, SalesTable, put_columns
from rankstream.data.readers.sources.database import Connection
from rankstream.data.uncertain import UncertainCounts

SLOTS = 24  # parts of the time between two snapshots, at whose ends items may leave: hours of a day
FORMS = ("events", "snapshots", "intervals", "offers")
LISTINGS = ("intervals", "offers")  # forms in which an item that is gone for good was delisted, and is not out of stock
MIN_LISTED_SHARE = 0.5  # of a store's items that a snapshot lists; an event lists one or a few. Not tuned
MIN_SNAPSHOT_SHARE = 0.9  # of the times of a log that list so many, or else rows are events; not tuned
MIN_SNAPSHOTS, MIN_SNAPSHOT_ITEMS = 3, 4  # times and items of a log that can be recognised as snapshots


class ShelfChange(NamedTuple):
    """An item that comes or goes at a place, or with a price gets it; a place of -1 is all places.

    An item that goes is still on offer at the very time of its last row: the sale that emptied the shelf has that
    time. So it goes one microsecond later. An item that is ``doubtful`` may have gone from then on.
    """

    place: int
    time: int
    item: int
    available: bool = True
    price: float | None = None
    doubtful: bool = False


class ShelfState(NamedTuple):
    """What a place offers for a while: the items as bits of a number, those that are out of stock, and all prices.

    ``doubtful`` are items that may have gone; each while with some has a ``slot`` of its own.
    """

    items: int
    missing: int
    prices: tuple[float | None, ...] | None = None
    doubtful: int = 0
    slot: int = 0


class Timeline(NamedTuple):
    """The states of all places: place, first time and number of the state, in this order."""

    places: Numbers
    times: Numbers
    numbers: Numbers
    states: list[ShelfState]

    def of_place(self, place: int) -> tuple[Numbers, Numbers]:
        """The first times and the states of one place."""
        first, last = np.searchsorted(self.places, [place, place + 1])
        return self.times[first:last], self.numbers[first:last]


def items_of(mask: int) -> tuple[int, ...]:
    """The items that are bits of a number.

    >>> items_of(0b1011)
    (0, 1, 3)
    """
    return tuple(place for place, bit in enumerate(reversed(f"{mask:b}")) if bit == "1")


def form_of(table: SalesTable, database: Connection, asked: str | None) -> str:
    """Which form a stock log has: by its columns, or by how many items its rows of one time list."""
    roles = table.roles
    if "offered" not in roles and "item" not in roles:
        raise ValueError(f"{table.source.name} names no items: call a column 'item', or 'offered' for whole offers.")
    if asked is not None:
        return asked
    if "offered" in roles:
        return "offers"
    if "to" in roles or roles["time"].strip().lower() in FROM:
        return "intervals"
    if "on_hand" not in roles and "available" not in roles:
        return "snapshots"
    share, times, items = database.execute(
        f"WITH sizes AS (SELECT store, time, count(DISTINCT item) AS k FROM stock GROUP BY store, time), "
        f"stores AS (SELECT store, count(DISTINCT item) AS items FROM stock GROUP BY store) "
        f"SELECT avg((k >= {MIN_LISTED_SHARE} * items)::INT), count(*), max(items) FROM sizes JOIN stores "
        f"ON sizes.store IS NOT DISTINCT FROM stores.store"
    ).fetchall()[0]
    is_long = times >= MIN_SNAPSHOTS and items >= MIN_SNAPSHOT_ITEMS
    return "snapshots" if is_long and share >= MIN_SNAPSHOT_SHARE else "events"


def stock_changes(database: Connection, table: SalesTable, form: str) -> list[ShelfChange]:
    """All changes of what is on offer, whatever the form of the log.

    What a snapshot lists is on offer until the next one. Intervals of an item that overlap are one.
    """
    level = "on_hand" if "on_hand" in table.roles else "available" if "available" in table.roles else "1"
    item = "unnest(offered)" if "offered" in table.roles else "item"
    rows = f'(SELECT coalesce(store, 0) AS place, time, {item} AS item, "to" AS until, {level} AS level, n FROM stock)'
    spells = f"(SELECT place, item, time, until FROM {rows} WHERE level > 0 AND coalesce(until >= time, true))"
    if form != "intervals" and "to" not in table.roles:
        latest = "arg_max(level, n) > 0"
        if form == "events":
            found = database.execute(f"SELECT place, time, item, {latest} FROM {rows} GROUP BY ALL").fetchall()
            return [ShelfChange(place, time + (not is_on), item, is_on) for place, time, item, is_on in found]
        until = "lead(time) OVER (PARTITION BY place ORDER BY time) AS until"
        times = f"(SELECT place, time, {until} FROM {rows} GROUP BY place, time)"
        listed = f"(SELECT place, item, time FROM {rows} GROUP BY ALL HAVING {latest})"
        spells = f"(FROM {listed} JOIN {times} USING (place, time))"
    within = "PARTITION BY place, item ORDER BY time"
    so_far = f"{within} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    parts = f"SELECT *, time > max(coalesce(until, {FOREVER})) OVER ({so_far}) + 1 AS is_apart FROM {spells}"
    numbered = f"SELECT *, count(*) FILTER (is_apart) OVER ({within}) AS number FROM ({parts})"
    changes = []
    for place, item, start, end in database.execute(
        f"SELECT place, item, min(time), nullif(max(coalesce(until, {FOREVER})), {FOREVER}) FROM ({numbered}) "
        "GROUP BY place, item, number"
    ).fetchall():
        changes.append(ShelfChange(place, start, item))
        changes += [] if end is None else [ShelfChange(place, end + 1, item, available=False)]
    return changes


def price_changes(database: Connection, listed: bool, shared: bool) -> list[ShelfChange]:
    """When prices change: those of a price list; of items that it lacks, the prices paid.

    After the end of a promotion, the last price without an end holds again.
    """
    place = 0 if shared else "coalesce(store, 0)"
    queries = [
        f"SELECT {place} AS place, item, time, price FROM receipts WHERE price IS NOT NULL "
        f"{'AND item NOT IN (SELECT item FROM prices)' * listed} "
        "QUALIFY price IS DISTINCT FROM lag(price) OVER (PARTITION BY place, item ORDER BY time, n)"
    ]
    if listed:
        lists = '(SELECT coalesce(store, -1) AS place, item, time, "to" AS until, price, n FROM prices)'
        usual = f"(SELECT place, item, time, arg_max(price, n) AS price FROM {lists} WHERE until IS NULL GROUP BY ALL)"
        queries += [
            f"SELECT p.place, p.item, until + 1, usual.price FROM {lists} p ASOF JOIN {usual} usual "
            "ON p.place = usual.place AND p.item = usual.item AND until >= usual.time",
            f"SELECT place, item, time, price FROM {lists} ORDER BY time, n",
        ]
    return [
        ShelfChange(place, time, item, price=price)
        for query in queries
        for place, item, time, price in database.execute(query).fetchall()
    ]


def timeline_of(stock: list[ShelfChange], prices: list[ShelfChange] | None, n_items: int, listing: bool) -> Timeline:
    """The states of all places, from changes in any order.

    An item that was on offer at a place and is not is out of stock; of a ``listing``, only until it was last listed.
    """
    rows, numbers = list[tuple[int, int, int]](), dict[ShelfState, int]()
    by_place: dict[int, list[ShelfChange]] = defaultdict(list)
    for change in stock:
        by_place[change.place].append(change)
    for change in prices or ():
        for place in list(by_place) if change.place < 0 else [change.place] * (change.place in by_place):
            by_place[place].append(change)
    for place in sorted(by_place):
        changes = sorted(by_place[place], key=itemgetter(1))
        returns = Counter(change.item for change in changes if change.price is None and change.available)
        items, seen, doubtful, begun = 0, 0, 0, False
        current: list[float | None] = [None] * n_items
        for change in reversed(changes):
            if change.price is not None:
                current[change.item] = change.price  # an item has its first price before that
        for time, some in groupby(changes, key=itemgetter(1)):
            for change in some:
                bit = 1 << change.item
                doubtful = doubtful | bit if change.doubtful else doubtful & ~bit
                if change.price is not None:
                    current[change.item] = change.price
                elif change.available:
                    items, seen, begun = items | bit, seen | bit, True
                    returns[change.item] -= 1
                else:
                    items, begun = items & ~bit, True
                    seen = seen & ~bit if listing and not returns[change.item] else seen
            if begun:
                at = None
                if prices is not None:  # those of items that were never there must not make a state of their own
                    at = tuple(price if seen >> item & 1 else None for item, price in enumerate(current))
                state = ShelfState(items, seen & ~items, at, doubtful, len(rows) if doubtful else 0)
                rows.append((place, time, numbers.setdefault(state, len(numbers))))
    places, times, states = np.array(rows, np.int64).reshape(-1, 3).T
    return Timeline(places, times, states, list(numbers))


class Sum(NamedTuple):
    """How much was chosen at a store from a state: an item of a category at a price paid, or nothing (-1).

    ``slice`` and ``period`` are parts of the time. With a half-life, ``faded`` and ``squared`` are as in
    ``groups.Group``.
    """

    store: int
    state: int
    category: int
    item: int
    price: float | None
    period: datetime | None
    slice: int
    weight: float
    faded: float
    squared: float


@dataclass
class StateOffers:
    """The offers of states: which items belong to each category, their names, and those that are ignored.

    ``chosen`` is what was chosen from each state in each category: bit 0 is nothing, and bit k + 1 item k.
    """

    states: Sequence[ShelfState]
    names: Sequence[str]
    masks: dict[int, int]
    no_choice: str | None
    chosen: dict[tuple[int, int], int]
    ignored: int = 0
    _labels: dict[Any, tuple[Any, ...]] = field(default_factory=dict)

    def mask(self, one: Sum) -> int:
        """The items of the offer that a choice was made from, those of its category that are not ignored."""
        mask = self.states[one.state].items & self.masks[one.category] & ~self.ignored
        return mask if one.item < 0 else mask | 1 << one.item

    def is_conflict(self, one: Sum) -> bool:
        """Whether something was sold that was not on offer."""
        return one.item >= 0 and not self.states[one.state].items >> one.item & 1

    def conflicts(self) -> list[tuple[int, int]]:
        """The states and items of which something was sold that was not on offer."""
        found = {(state, chosen >> 1 & ~self.states[state].items) for (state, _), chosen in self.chosen.items()}
        return [(state, item) for state, mask in found if mask for item in items_of(mask)]

    def count(self) -> int:
        """How many different offers there are, without prices."""
        kept, found = reduce(or_, self.masks.values(), 0) & ~self.ignored, set()
        kept_or_nothing = kept << 1 | 1
        for (state, category), chosen in self.chosen.items():
            if not chosen & kept_or_nothing:
                continue
            mask, sold = self.states[state].items & self.masks[category] & kept, chosen >> 1 & kept
            if chosen & 1 or sold & mask:
                found.add((category, mask))
            if sold | mask != mask:
                found |= {(category, mask | 1 << item) for item in items_of(sold & ~mask)}
        return len(found)

    def coarsen(self, sold: Mapping[int, float], most: int) -> list[str]:
        """Ignore as few items as leave at most so many offers, beginning with what nobody chose; return their names."""
        if self.count() <= most:
            return []
        order = items_of(reduce(or_, self.masks.values()))
        order = tuple(sorted(order, key=lambda item: (sold.get(item, 0.0), self.names[item])))

        def fits(number: int) -> bool:
            self.ignored = sum(1 << item for item in order[:number])
            return self.count() <= most

        # offers merge when an item is ignored, so that fewer of them are never more
        number = bisect_left(range(len(order) - 1), True, lo=sum(item not in sold for item in order), key=fits)
        fits(number)
        return sorted(self.names[item] for item in order[:number])

    def merged(self) -> Iterator[tuple[int, int, int]]:
        """Each state and category, and the first state with the same offer, stock-outs and prices."""
        first = dict[Any, int]()
        for state, category in self.chosen:
            items, missing, prices, *_ = self.states[state]
            mask = self.masks[category] & ~self.ignored
            yield state, category, first.setdefault((category, items & mask, missing & mask, prices), state)

    def entries(self, state: ShelfState, mask: int, ends: bool = True) -> tuple[Any, ...]:
        """Items as labels in the order of their names, at the prices of a state; and what no choice is called."""
        key = mask, state.prices, ends
        found = self._labels.get(key)
        if found is None:
            named = sorted((self.names[item], item) for item in items_of(mask))
            labels = tuple(self.entry(state, item) for _, item in named)
            found = self._labels[key] = (*labels, *([self.no_choice] if ends and self.no_choice is not None else []))
        return found

    def entry(self, state: ShelfState, item: int, paid: float | None = None) -> Any:
        """An item, at the price paid or that of its state where there are prices."""
        if state.prices is None:
            return self.names[item]
        price = state.prices[item] if paid is None else paid
        return self.names[item] if price is None else (self.names[item], price)

    def outcome(self, one: Sum) -> tuple[tuple[Any, ...], Any]:
        """The offer and the choice; what was bought has the price that was paid."""
        state, mask = self.states[one.state], self.mask(one)
        offer = self.entries(state, mask)
        if one.item < 0:
            return offer, self.no_choice
        usual, chosen = self.entry(state, one.item), self.entry(state, one.item, one.price)
        return offer if usual == chosen else tuple(chosen if one == usual else one for one in offer), chosen


def date_sell_outs(
    database: Connection, changes: Sequence[ShelfChange], shared: bool, between: str
) -> Iterator[ShelfChange]:
    """Yield the changes of snapshots, with each item that went doubtful, or gone, after its last sale.

    An item without a sale since the snapshot that lists it is doubtful at once; with ``between="last sale"`` it stays.
    """
    gone = [(one.place, one.item, one.time - 1) for one in changes if not one.available]
    put_columns(database, "gone", dict.fromkeys(("place", "item", "until"), "BIGINT"), zip(*gone, strict=True))
    same = f"{0 if shared else 'coalesce(r.store, 0)'} = gone.place AND r.item = gone.item"
    rows = database.execute(
        "SELECT gone.place, gone.item, listed.time, until, max(r.time) FROM gone ASOF JOIN "
        "(SELECT DISTINCT coalesce(store, 0) AS place, time FROM stock) AS listed "
        "ON gone.place = listed.place AND until > listed.time "
        f"LEFT JOIN receipts r ON {same} AND r.time BETWEEN listed.time AND until GROUP BY ALL"
    ).fetchall()
    if between == "uncertain":
        yield from changes
        for place, item, start, end, sold in rows:
            first = (start if sold is None else sold) + 1
            times = (first, *(start + (end - start) * part // SLOTS for part in range(1, SLOTS)))
            yield from (ShelfChange(place, time, item, doubtful=True) for time in times if first <= time <= end)
    else:
        ends = {(place, item, end): end if sold is None else sold for place, item, _, end, sold in rows}
        for one in changes:
            yield one if one.available else one._replace(time=ends[one.place, one.item, one.time - 1] + 1)


def uncertain_counts(
    timeline: Timeline,
    offers: StateOffers,
    sums: Iterable[Sum],
    items: Sequence[Label],
    shared: bool,
    stores: Sequence[str],
) -> UncertainCounts:
    """Sums of sales as choices from offers that are known in part; those of each known offer are one period."""
    found, states = UncertainCounts(items), timeline.states
    certain: dict[Any, dict[Label, float]] = defaultdict(lambda: defaultdict(float))
    slots: dict[Any, dict[int, dict[Label, float]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for one in sums:
        state, mask, label = states[one.state], offers.mask(one), offers.outcome(one)[1]
        if not state.doubtful & mask:
            certain[offers.entries(state, mask)][label] += one.weight
        elif offers.is_conflict(one):  # an offer of its own, for this sale
            smallest = offers.entries(state, mask & ~state.doubtful)
            found.observe(smallest, offers.entries(state, mask), label, one.weight)
        else:
            slots[one.store, one.category][one.state][label] += one.weight
    for offer, chosen in certain.items():
        found.observe_period(offer, offer, [chosen])
    for (store, category), by_state in slots.items():
        times, numbers = (codes.tolist() for codes in timeline.of_place(0 if shared else store))
        rows = list(zip(times, [*times[1:], times[-1]], numbers, strict=True))
        # what may be there stays the same from the first doubt to the next snapshot
        for _, some in groupby(rows, key=lambda row: states[row[2]].items if states[row[2]].doubtful else -1):
            run = list(some)
            if any(number in by_state for *_, number in run):
                last = states[run[-1][2]]
                mask = last.items & offers.masks[category] & ~offers.ignored
                found.observe_period(
                    offers.entries(last, mask & ~last.doubtful), offers.entries(last, mask),
                    [by_state.get(number, {}) for *_, number in run], [(end - time) / SECOND for time, end, _ in run],
                    place=stores[store], start=run[0][0] / SECOND,
                )  # fmt: skip
    return found
