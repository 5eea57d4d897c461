"""Rules for rows of receipts, their ASOF join with the offer of each store at that moment, and who bought nothing."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from rankstream._core.types import Codes as Numbers
from rankstream._core.types import Vec
from rankstream.data.readers.groups import slice_spans, slice_sql
from rankstream.data.readers.problems import MAX_EXAMPLES, BadRecordError, Problems
from rankstream.data.readers.sales.availability import FORMS, Timeline
from rankstream.data.readers.sales.tables import SECOND, Codes, SalesTable, put_columns
from rankstream.data.readers.sources.database import Connection
from rankstream.data.readers.times import Span

HOUR = 3600 * SECOND
Window = tuple[int, int]
CHOICES: dict[str, tuple[str | None, ...]] = {
    "conflicts": ("extend", "skip", "stop"),
    "per_receipt": ("units", "first", "weighted", "single"),
    "duplicates": ("drop", "keep"),
    "on_error": ("stop", "skip"),
    "between": ("present", "uncertain", "last sale"),
    "stock_format": (None, *FORMS),
}
KEY = "coalesce(receipt, hash(n))"
SAME_LINE = "hash(receipt, time, store, item, quantity, price)"
TIMED = f"SELECT *, time / {SECOND} AS t, weight AS w FROM sales WHERE weight > 0"
CONFLICTS = "EXISTS (FROM conflicts WHERE s = state AND i = item)"
UNITS = "CASE WHEN quantity IS NULL OR quantity != floor(quantity) THEN 1 ELSE quantity END"


@dataclass(frozen=True)
class SalesRules:
    """What is done with sales that do not fit; see ``read_sales``."""

    conflicts: str = "extend"
    per_receipt: str = "units"
    duplicates: str = "drop"
    on_error: str = "stop"
    between: str = "present"
    stock_format: str | None = None

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                words = ", ".join(map(repr, filter(None, choices)))
                raise ValueError(f"{name} is {getattr(self, name)!r}: choose one of {words}.")


@dataclass
class Join:
    """Receipts in a database, from loading to sums by store, state and item."""

    database: Connection
    receipts: SalesTable
    codes: Codes
    rules: SalesRules
    problems: Problems

    def query(self, words: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self.database.execute(words).fetchall()

    def leave_out(self, kind: str, condition: str, message: str, table: str = "receipts") -> None:
        """Leave out the rows where a condition holds: count them, keep examples, write all to the rejects."""
        number: int = self.query(f"SELECT count(*) FROM {table} WHERE {condition}")[0][0]
        if not number:
            return
        most = "" if self.problems.writes else f"LIMIT {MAX_EXAMPLES}"
        rows = self.query(f"SELECT n, time, store, item FROM {table} WHERE {condition} ORDER BY n {most}")
        stores, items = self.codes.names("store"), self.codes.names("item")
        for n, time, store, item in rows:
            place = f"{self.receipts.source.name}, row {n}"
            moment = datetime.fromtimestamp(time // SECOND, UTC).isoformat(" ").removesuffix("+00:00")
            record = [moment, *([] if store is None or not stores else [stores[store]]), items[item]]
            self.problems.add(place, BadRecordError(kind, message.format(item=items[item], time=moment)), record)
        self.problems.by_kind[kind] += number - len(rows)
        self.database.execute(f"DELETE FROM {table} WHERE {condition}")

    def clean(self, known: Mapping[int, int], window: Window) -> None:
        """Leave out what is no choice: duplicates, returns and cancelled lines, items that nobody offers."""
        self.database.execute(f"DELETE FROM receipts WHERE time < {window[0]} OR time >= {window[1]}")
        if "receipt" in self.receipts.roles and self.rules.duplicates == "drop":
            again = f"SELECT {SAME_LINE} AS line, min(n) AS first FROM receipts WHERE receipt IS NOT NULL GROUP BY line"
            self.database.execute(f"CREATE TEMP TABLE repeats AS {again} HAVING count(*) > 1")
            same = f"receipt IS NOT NULL AND EXISTS (FROM repeats WHERE line = {SAME_LINE} AND n > first)"
            self.leave_out("duplicate", same, "the receipt has this line twice: it counts once.")
        if self.query("SELECT coalesce(min(quantity) <= 0, false) FROM receipts")[0][0]:
            self._cancel()
        kinds = {"item": "INTEGER", "category": "INTEGER"}
        put_columns(self.database, "known", kinds, [known, known.values()])
        unknown = "NOT EXISTS (FROM known WHERE known.item = receipts.item)"
        self.leave_out("unknown item", unknown, "the stock log does not list {item!r}: the sale is left out.")

    def _cancel(self) -> None:
        """Lines with a negative quantity take back units of the same receipt; other returns leave the choice as it was.

        The first line of a receipt and item has what is left of all of them.
        """
        sums = "SELECT receipt AS r, item AS i, sum(quantity) AS q, min(n) AS first FROM receipts"
        self.database.execute(
            f"CREATE TEMP TABLE cancelled AS {sums} WHERE receipt IS NOT NULL GROUP BY r, i "
            "HAVING min(quantity) < 0 AND max(quantity) > 0"
        )
        self.leave_out(
            "return", "EXISTS (FROM cancelled WHERE r = receipt AND i = item AND (n > first OR q <= 0))",
            "the receipt takes back units of {item!r}: its lines are added up.",
        )  # fmt: skip
        self.database.execute("UPDATE receipts SET quantity = q FROM cancelled WHERE r = receipt AND i = item")
        self.leave_out("return", "quantity <= 0", "a return: what was bought before remains a choice.")

    def attach(self, timeline: Timeline, shared: bool) -> None:
        """Create the table of sales: each row of receipts with its state, category and weight as a choice."""
        kinds = {"place": "INTEGER", "t": "BIGINT", "state": "INTEGER"}
        put_columns(self.database, "spans", kinds, [codes.tolist() for codes in timeline[:3]])
        of = f"PARTITION BY {KEY}, known.category"
        weight = {
            "units": UNITS,
            "first": f"CASE WHEN row_number() OVER ({of} ORDER BY time, n) = 1 THEN 1 ELSE 0 END",
            "weighted": f"{UNITS} / sum({UNITS}) OVER ({of})",
            "single": f"CASE WHEN sum({UNITS}) OVER ({of}) = 1 THEN 1 ELSE 0 END",
        }[self.rules.per_receipt]
        rows = (
            f"SELECT n, time, coalesce(store, 0) AS store, {0 if shared else 'coalesce(store, 0)'} AS place, "
            f"receipts.item, known.category, price, {KEY} AS receipt, {UNITS} AS units, ({weight})::DOUBLE AS weight "
            f"FROM receipts JOIN known ON known.item = receipts.item"
        )
        self.database.execute(
            f"CREATE TEMP TABLE sales AS SELECT r.*, state FROM ({rows}) r "
            "ASOF LEFT JOIN spans ON r.place = spans.place AND r.time >= spans.t"
        )
        self.database.execute("DROP TABLE receipts")

    def baskets(self) -> tuple[int, int]:
        """How many receipts there are, and how many have more than one unit, within a category."""
        units = "SELECT sum(units) AS units FROM sales GROUP BY receipt, category"
        found: list[tuple[int, int]] = self.query(f"SELECT count(*), count_if(units > 1) FROM ({units})")
        return found[0]

    def chosen(self) -> dict[tuple[int, int], int]:
        """What was chosen from each state in each category: bit 0 is nothing, and bit k + 1 item k."""
        rows = "SELECT state, category, list(DISTINCT item) FROM sales WHERE weight > 0 GROUP BY state, category"
        return {(state, kind): sum(1 << item + 1 for item in items) for state, kind, items in self.query(rows)}

    def weights(self) -> dict[int, float]:
        """How much was chosen of each item."""
        return dict(self.query("SELECT item, sum(weight) FROM sales WHERE weight > 0 GROUP BY item"))

    def conflicts(self, pairs: list[tuple[int, int]]) -> float:
        """How much was sold from these states of these items, which they do not offer."""
        put_columns(self.database, "conflicts", {"s": "INTEGER", "i": "INTEGER"}, zip(*pairs, strict=True))
        return float(self.query(f"SELECT coalesce(sum(weight), 0) FROM sales WHERE {CONFLICTS}")[0][0])

    def times(self, slices: int | None) -> tuple[Span, list[Span] | None]:
        """The first and last time of all choices in seconds, and those of each slice if there are to be slices."""
        span = self.query(f"SELECT min(t), max(t) FROM ({TIMED})")[0]
        return span, None if slices is None else slice_spans(self.database, f"({TIMED})", slices)

    def sums(
        self,
        merged: Iterable[tuple[int, int, int]],
        ignored: Sequence[int],
        keys: str,
        spans: Sequence[Span],
        faded: str,
    ) -> list[tuple[Any, ...]]:
        """The weights of choices by ``keys``, slice of time and the state that each state is merged with."""
        kinds = dict.fromkeys(("of", "kind", "state"), "INTEGER")
        put_columns(self.database, "merged", kinds, zip(*merged, strict=True))
        rows = (
            f"SELECT s.* REPLACE (merged.state AS state) FROM ({TIMED}) s "
            f"JOIN merged ON s.state = of AND category = kind WHERE item NOT IN ({', '.join(map(str, (*ignored, -2)))})"
        )
        return self.query(f"SELECT {keys}, {slice_sql(spans)} AS part, sum(w), {faded} FROM ({rows}) GROUP BY ALL")

    def unknown_time(self) -> float:
        """The share of the time between the first and the last sale of each place that is before its first offer."""
        sold = "(SELECT place, min(time) AS first, max(time) AS last FROM sales GROUP BY place)"
        known = "(SELECT place, min(t) AS begin FROM spans GROUP BY place)"
        share = "sum(greatest(0, least(begin, last) - first)) / nullif(sum(last - first), 0)"
        return float(self.query(f"SELECT coalesce({share}, 0) FROM {sold} LEFT JOIN {known} USING (place)")[0][0])


@dataclass
class Visits:
    """Visits less receipts: ``left`` without a purchase, as store, time, category, state and number.

    ``shortfall`` are receipts beyond the visits of their time. Visits at times without a known offer are left out.
    """

    visits: int = 0
    shortfall: int = 0
    left: list[tuple[int, int, int, int, int]] = field(default_factory=list)

    def add(self, database: Connection) -> None:
        """Add them to the sales, as choices of nothing."""
        kinds = dict.fromkeys(("store", "time", "category", "state", "weight"), "BIGINT")
        put_columns(database, "nothing", kinds, zip(*self.left, strict=True))
        database.execute("INSERT INTO sales BY NAME SELECT *, -1 AS item FROM nothing")


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
    database.execute(
        f"CREATE TEMP TABLE periods AS SELECT store, time AS start, {end} AS until, "
        f"CAST(round(visits) AS BIGINT) AS visits FROM counts WHERE time >= {window[0]} AND time < {window[1]}"
    )
    database.execute(
        "CREATE OR REPLACE TEMP TABLE sales AS SELECT s.*, CASE WHEN s.time < p.until THEN p.start END AS period "
        "FROM sales s ASOF LEFT JOIN periods p ON s.store = p.store AND s.time >= p.start"
    )


def left_without(database: Connection, timeline: Timeline, shared: bool, masks: Mapping[int, int]) -> Visits:
    """Visits of each period less its receipts of each category, apportioned to the states of the period.

    ``masks`` are the items of each category; a state with none of them has no visits. With ``shared`` all stores have
    one timeline. A receipt belongs to the period of its first line.
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
        for category, mask in masks.items():
            number = visits - bought[store, start, category]
            found.shortfall += max(0, -number)
            _, *parts = apportion(max(0, number), lengths).tolist()
            for time, state, part in zip(edges[:-1].tolist(), states[first:last].tolist(), parts, strict=True):
                if part and timeline.states[state].items & mask:
                    found.left.append((store, time, category, state, part))
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
