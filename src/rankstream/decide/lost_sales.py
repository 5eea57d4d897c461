"""Lost sales: what stock-outs cost, in units and money, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rankstream._core.types import Label, Vec
from rankstream.data import Assortments, ChoiceCounts
from rankstream.data.readers.account import Account, Exposure
from rankstream.decide.intervals import bootstrap_of
from rankstream.decide.problem.items import Numbers, margin_vector, names_of
from rankstream.estimation.intervals import Bootstrap


class ItemLoss(NamedTuple):
    """Units and money lost, and the ends of the interval of the money; None without one."""

    units: float
    money: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class LostSales:
    """What stock-outs cost.

    ``total`` compares the items on the shelf with all listed items: purchases and money lost. ``items`` has each item,
    the largest loss first: the units that it would have sold to customers who did not find it, and the money lost
    because it alone was missing, net of what customers bought instead. Several items may be missing at once, so items
    need not add up to the total. ``met`` of ``customers`` met a stock-out.
    """

    total: ItemLoss
    items: dict[Label, ItemLoss]
    met: float
    customers: float

    def table(self) -> str:
        """Return a text table with a line for each item, and one for the total."""
        width = max(5, *(len(str(item)) for item in self.items)) if self.items else 5
        lines = [f"{'item':<{width}}     units     money{'' if self.total.low is None else '  interval'}"]
        for name, loss in (*self.items.items(), ("total", self.total)):
            ends = "" if loss.low is None else f"  [{loss.low:,.0f}, {loss.high:,.0f}]"
            lines.append(f"{name!s:<{width}}{loss.units:10,.0f}{loss.money:10,.0f}{ends}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        items = [{"item": item, **loss._asdict()} for item, loss in self.items.items()]
        return {"total": self.total._asdict(), "items": items, "met": self.met, "customers": self.customers}

    def __repr__(self) -> str:
        share = self.met / self.customers if self.customers else 0.0
        return f"LostSales({self.total.money:,.4g} lost; {share:.1%} of customers met a stock-out)"


def lost_sales(
    model: Any,
    account: Account,
    margins: Numbers | None = None,
    *,
    costs: Numbers | None = None,
    counts: ChoiceCounts | Bootstrap | None = None,
    market: Any = None,
    interval: float = 0.95,
    seed: int = 0,
) -> LostSales:
    """Estimate the sales that stock-outs cost, in units and money.

    Parameters
    ----------
    model : model
        A model fitted to the choices of the account, including no-purchases.
    account : Account
        ``Reading.account`` of ``read_sales`` for the time in question, such as last month (``since``).
    margins, costs : dict, Series or number
        As for ``best_offer``.
    counts : ChoiceCounts or Bootstrap, optional
        The choices that the model was fitted to, for intervals.
    market : optional
        Only this market of the account, as in ``Reading.groups``.
    interval : float
        Confidence level of the intervals.
    seed : int
        Seed of the refits.

    Examples
    --------
    >>> import pandas, rankstream as rs
    >>> hours = [f"2026-01-01 {hour:02}:00" for hour in range(8, 18)]
    >>> rows = [(hours[0], "tea", 9), (hours[0], "pie", 9), (hours[5], "tea", 0)]
    >>> log = pandas.DataFrame(rows, columns=["time", "item", "on_hand"])
    >>> sales = pandas.DataFrame({"time": hours * 2, "item": ["tea"] * 5 + ["pie"] * 15})
    >>> door = pandas.DataFrame({"time": hours, "count": 4})
    >>> reading = rs.read_sales(sales, log, visits=door)
    >>> found = lost_sales(rs.estimate(reading.counts, method="mnl").model, reading.account, {"tea": 2, "pie": 1})
    >>> found.met, found.customers, found.total.money > 0
    (18.0, 40.0, True)
    """
    nothing = account.no_choice or getattr(model, "no_choice", None)
    if nothing not in model.items:
        raise ValueError("Lost sales need customers who bought nothing: give visits or outside_share to read_sales.")
    if account.between == "uncertain":
        raise ValueError("Lost sales need known times of stock-outs: read with between='last sale' or 'present'.")
    exposures = [exposure for exposure in account.exposures if market is None or exposure.market == market]
    if not exposures:
        raise ValueError(f"The account has no customers of the market {market!r}: give one of Reading.groups.")
    met = [exposure for exposure in exposures if exposure.missing]
    customers, met_customers = (sum(exposure.customers for exposure in part) for part in (exposures, met))
    gains = margin_vector(model.items, names_of(model, nothing).margins(margins, costs), nothing)
    if not met:
        return LostSales(ItemLoss(0.0, 0.0), {}, met_customers, customers)
    items = list(dict.fromkeys(item for exposure in met for item in exposure.missing))
    measure = partial(_losses, met, items, gains, model.items.index(nothing))
    values = measure(model).reshape(-1, 2)
    if counts is not None:
        many = counts if isinstance(counts, Bootstrap) else bootstrap_of(model, counts, seed)
        _, low, high = many.bounds_of(measure, interval, -np.inf, np.inf)
        values = np.column_stack([values, low[1::2], high[1::2]])
    *each, total = (ItemLoss(*row) for row in values.tolist())
    order = sorted(zip(items, each, strict=True), key=lambda pair: -pair[1].money)
    return LostSales(total, dict(order), met_customers, customers)


def _losses(met: Sequence[Exposure], items: Sequence[Label], gains: Vec, nothing: int, model: Any) -> Vec:
    offers: dict[tuple[Label, ...], int] = {}

    def number(*labels: Label) -> int:
        return offers.setdefault(tuple(sorted(labels, key=str)), len(offers))

    rows = []
    for exposure in met:
        more = [number(*exposure.offered, item) for item in exposure.missing]
        rows.append((exposure, number(*exposure.offered), number(*exposure.offered, *exposure.missing), more))
    assortments = Assortments(list(offers), model.items)
    shares, starts = model.probabilities(assortments), assortments.indptr[:-1]
    money = np.add.reduceat(shares * gains[assortments.members], starts)
    bought = np.add.reduceat(shares * (assortments.members != nothing), starts)
    losses = np.zeros((len(items) + 1, 2))
    for exposure, present, full, more in rows:
        total = np.array([bought[full] - bought[present], money[full] - money[present]])
        losses[-1] += exposure.customers * total
        for item, place in zip(exposure.missing, more, strict=True):
            sold = shares[assortments.coordinate(assortments.offers[full], item)]
            losses[items.index(item)] += exposure.customers * np.array([sold, money[place] - money[present]])
    return losses.ravel()
