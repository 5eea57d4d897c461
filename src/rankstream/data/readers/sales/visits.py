"""Who came and bought nothing: visits less receipts of the same time, shared out to the offers by their duration."""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from rankstream._core.types import Codes as Numbers
from rankstream._core.types import Vec
from rankstream.data.readers.sales.availability import Timeline
from rankstream.data.readers.sales.tables import SECOND
from rankstream.data.readers.sources.database import Connection

HOUR = 3600 * SECOND
Window = tuple[int | None, int | None]


@dataclass
class Visits:
    """Visits less receipts: ``left`` without a purchase by store, state and category.

    ``shortfall`` are receipts beyond the visits of their time, ``unknown`` visits at times without a known offer.
    """

    visits: int = 0
    shortfall: int = 0
    unknown: int = 0
    left: dict[tuple[int, int, int], int] = field(default_factory=lambda: defaultdict(int))


def visit_periods(database: Connection, has_count: bool, window: Window) -> None:
    """Create a table of periods with store, first and last time and visits, and attach each sale to its period.

    A count holds until the next count of its store, or for as long as most counts do where the next is later. Rows
    without counts are visits one by one, and are counted by the hour.
    """
    time, until, number = (
        ("time", '"to"', "count")
        if has_count
        else (f"time // {HOUR} * {HOUR}", f"time // {HOUR} * {HOUR} + {HOUR - 1}", "1")
    )
    rows = f"SELECT coalesce(store, 0) AS store, {time} AS time, {until} AS until, {number} AS visits FROM visits"
    rows = f"SELECT store, time, max(until) AS until, sum(visits) AS visits FROM ({rows}) GROUP BY store, time"
    step = "lead(time) OVER (PARTITION BY store ORDER BY time) - time"
    database.execute(f"CREATE TEMP TABLE counts AS SELECT *, {step} AS step FROM ({rows})")
    usual = f"coalesce((SELECT mode(step) FROM counts), {HOUR})"
    end = f"coalesce(until + 1, time + least(step, {usual}), time + {usual})"
    within = [f"time >= {window[0]}"] * (window[0] is not None) + [f"time < {window[1]}"] * (window[1] is not None)
    database.execute(
        f"CREATE TEMP TABLE periods AS SELECT store, time AS start, {end} AS until, "
        f"CAST(round(visits) AS BIGINT) AS visits FROM counts WHERE {' AND '.join(within) or 'true'}"
    )
    database.execute(
        "CREATE OR REPLACE TEMP TABLE sales AS SELECT s.*, CASE WHEN s.time < p.until THEN p.start END AS period "
        "FROM sales s ASOF LEFT JOIN periods p ON s.store = p.store AND s.time >= p.start"
    )


def left_without(database: Connection, timeline: Timeline, shared: bool, categories: list[int]) -> Visits:
    """Visits of each period less its receipts of each category, apportioned to the states of the period.

    With ``shared`` all stores have one timeline. A receipt belongs to the period of its first line.
    """
    found = Visits()
    receipts = "SELECT store, category, min(period) AS period FROM sales GROUP BY store, category, receipt"
    rows = database.execute(f"SELECT store, period, category, count(*) FROM ({receipts}) GROUP BY ALL").fetchall()
    bought = defaultdict(int, {(store, start, category): number for store, start, category, number in rows})
    for store, start, until, visits in database.execute("SELECT * FROM periods ORDER BY store, start").fetchall():
        found.visits += visits
        times, states = timeline.of_place(0 if shared else store)
        first, last = np.searchsorted(times, [start, until])
        first = max(0, int(first) - 1)
        edges = np.clip(np.append(times[first:last], until), start, until)
        lengths = np.append(edges[0] - start, np.diff(edges)).astype(np.float64)
        for category in categories:
            number = visits - bought[store, start, category]
            found.shortfall += max(0, -number)
            unknown, *parts = apportion(max(0, number), lengths).tolist()
            found.unknown += unknown
            for state, part in zip(states[first:last].tolist(), parts, strict=True):
                if part:
                    found.left[store, state, category] += part
    return found


def apportion(number: int, weights: Vec) -> Numbers:
    """A whole number in whole parts that are as near to the weights as can be: by the largest remainders.

    >>> apportion(7, np.array([1.0, 1.0, 2.0])).tolist()
    [2, 2, 3]
    """
    total = float(weights.sum())
    exact = number * weights / total if total > 0.0 else np.zeros(len(weights))
    parts = np.floor(exact + 1e-9).astype(np.int64)
    rest = number - int(parts.sum())
    if total > 0.0 and rest > 0:
        parts[np.argsort(-(exact - parts), kind="stable")[:rest]] += 1
    return parts
