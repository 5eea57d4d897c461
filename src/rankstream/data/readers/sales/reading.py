"""``read_sales``: receipts, a stock log and perhaps visits and prices as choices from offers, with an account."""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from rankstream.data.readers.options import translated
from rankstream.data.readers.prices import OCCURRING, Levels
from rankstream.data.readers.reading import Reading
from rankstream.data.readers.sales.shop import MAX_OFFERS, MEMORY_LIMIT, open_shop


def read_sales(
    receipts: Any,
    stock: Any,
    *,
    visits: Any = None,
    prices: Any = None,
    by: str | Sequence[str] = (),
    category: str | None = None,
    period: str | None = None,
    columns: Mapping[str, str] | str | None = None,
    stock_format: str | None = None,
    between: str = "present",
    conflicts: str = "extend",
    per_receipt: str = "units",
    duplicates: str = "drop",
    timezone: str | None = None,
    since: Any = None,
    until: Any = None,
    time_slices: int | None = None,
    half_life: float | str | timedelta | None = None,
    items: Iterable[Any] | None = None,
    no_choice: str | None = None,
    outside_share: float | Mapping[Any, float] | None = None,
    price_levels: Levels = OCCURRING,
    max_offers: int = MAX_OFFERS,
    separator: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    decimal: str | None = None,
    dates: str | None = None,
    on_error: str = "stop",
    rejects: str | os.PathLike[str] | None = None,
    memory: str = MEMORY_LIMIT,
) -> Reading:
    """Read receipts with a stock log: each sale is a choice from what its store offered at that moment.

    ``Reading.account`` says what was assumed, and how many sales each rule concerned.

    Parameters
    ----------
    receipts : path, glob, list of them, or table
        A row for each line of a receipt: time and item; perhaps store, receipt, quantity and price.
    stock : path, glob, list of them, or table
        What was available, in one of four forms: events (time, item, on_hand or available), snapshots (the same, all
        items at once), intervals (item, from, to) or offers (time, offered). Perhaps with a store.
    visits : path or table, optional
        How many people came: time, count and perhaps store. Visits less receipts are no-purchases.
    prices : path, table or "paid", optional
        A price list (item, time, price, perhaps store and to), or "paid" for the prices on receipts alone.
    by : str or sequence of str
        The column of stores, to count each store apart.
    category : str, optional
        A column of categories, each of which is a market of its own.
    period : "hour", "day", "week", "month" or "year", optional
        Also count each period.
    columns : mapping or str, optional
        The column of each role, such as "item=sku,stock.time=changed"; before a point is the table meant.
    stock_format : "events", "snapshots", "intervals" or "offers", optional
        The form of the stock log; without it, recognised.
    between : "present", "uncertain" or "last sale"
        An item that one snapshot lists and the next does not: on offer until that, perhaps sold out from its last sale
        on (``Reading.uncertain`` has these choices), or gone after its last sale, where receipts are complete.
    conflicts : "extend", "skip" or "stop"
        A sale of an item that was not in stock: on offer for that sale, left out, or an error.
    per_receipt : "units", "first", "weighted" or "single"
        A receipt of several units: each is a choice, the first is, they share one choice, or the receipt is left out.
    duplicates : "drop" or "keep"
        Whether rows of one receipt with the same time, item, quantity and price are one.
    timezone : str, optional
        The zone of times that name none, such as "Europe/Berlin"; without it UTC.
    since, until : time, optional
        Count sales and visits from the first time on, and before the second.
    time_slices, half_life : int, and number, timedelta or str, optional
        As for ``read``; visits without a purchase have times, too.
    items : list of items, optional
        Sales of other items are left out; without it, of items that the stock log does not list.
    no_choice : str, optional
        The name of the no-purchase option.
    outside_share : float or mapping, optional
        The assumed share of customers who bought nothing, where visits were not counted.
    price_levels : PriceLevels, "occurring" or int
        As for ``read``.
    max_offers : int
        With more different offers, items with the fewest sales are ignored until there are as few.
    separator, encoding, sheet, decimal, dates : str, optional
        As for ``read``, for all tables.
    on_error : "stop" or "skip"
        Whether a row with a bad cell is a ValueError, or left out.
    rejects : path, optional
        A file for all rows of receipts that are left out.
    memory : str
        What DuckDB may take before it goes to disk.

    Examples
    --------
    >>> import pandas
    >>> sales = pandas.DataFrame({"time": ["2026-01-01 09:30", "2026-01-01 11:00"], "item": ["tea", "pie"]})
    >>> log = pandas.DataFrame({
    ...     "time": ["2026-01-01 08:00", "2026-01-01 08:00", "2026-01-01 10:00"],
    ...     "item": ["tea", "pie", "tea"], "on_hand": [5, 9, 0],
    ... })
    >>> read_sales(sales, log).counts.assortments.offers
    (('pie',), ('pie', 'tea'))
    """
    options = {name: value for name, value in locals().items() if name != "memory"}
    shop = open_shop({name: options.pop(name) for name in ("receipts", "stock", "visits", "prices")}, **options)
    with shop.problems, translated():
        return shop.read(memory)
