"""Items that one snapshot lists and the next does not: when they may have sold out, and what was chosen meanwhile."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from rankstream._core.types import Label
from rankstream.data.readers.sales.availability import ShelfChange, StateOffers, Sum, Timeline
from rankstream.data.readers.sales.tables import SECOND, put_columns
from rankstream.data.readers.sources.database import Connection
from rankstream.data.uncertain import UncertainCounts

SLOTS = 24  # parts of the time between two snapshots, at whose ends items may leave: hours of a day


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
