"""Simulate three stores for a year: ``python examples/receipts/stores.py`` writes what tills and shelves log.

Arguments: a folder, and the number of days (365).

- ``receipts.csv``: a row for each line of a receipt, with the price paid;
- ``stock.csv``: a row whenever a shelf is filled or sold out;
- ``door.csv``: visitors per hour;
- ``prices.csv``: usual prices, and promotions with an end;
- ``items.csv``: what a unit of each item costs, and its usual price.

Deliveries come before opening and sometimes fail, so that shelves run empty. Skyr is launched in the middle of the
time. There are three kinds of customers; each buys what she likes best among what is there, or nothing. All numbers
are invented. Since it is known what every customer would have bought from full shelves, so is what stock-outs cost.
"""

import csv
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

STORES = {"Leeds": 1.0, "Bath": 0.7, "York": 0.5}
ITEMS = ("yoghurt", "skyr", "granola", "porridge", "fruit", "juice")
PRICES = (1.5, 1.9, 2.4, 1.2, 1.0, 2.2)
COSTS = (0.7, 0.9, 1.2, 0.4, 0.5, 1.0)
PROMOTED = ("granola", "juice", "yoghurt")
DISCOUNT = 0.4
TASTES = np.array([[2.9, 3.6, 1.0, 0.2, 1.2, 0.6], [1.0, 1.2, 3.6, 2.2, 1.2, 1.0], [0.6, 1.0, 0.6, 0.4, 2.6, 3.6]])
SEGMENTS, PRICE_EFFECT = (0.4, 0.35, 0.25), 0.7
HOURS = range(9, 19)
FIRST_DAY = datetime(2025, 11, 1)
DELIVERY_FAILS = 0.12
DOUBLE = 0.05
"""The share of customers who take two of what they buy."""


@dataclass
class Truth:
    """What nobody logs: units and money lost by stock-outs, by item and by month."""

    units: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    money: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    by_month: dict[str, float] = field(default_factory=lambda: defaultdict(float))


@dataclass
class Store:
    """One store while time passes: its shelves and its logs."""

    name: str
    random: np.random.Generator
    shelf: np.ndarray = field(default_factory=lambda: np.zeros(len(ITEMS), int))
    receipts: list[tuple[object, ...]] = field(default_factory=list)
    stock: list[tuple[object, ...]] = field(default_factory=list)
    door: list[tuple[object, ...]] = field(default_factory=list)

    def deliver(self, day: datetime, listed: np.ndarray, usual: float) -> None:
        """Fill the shelves before opening, where the delivery comes."""
        for item in np.flatnonzero(listed):
            if self.random.random() < DELIVERY_FAILS and self.stock:
                continue
            self.shelf[item] = self.random.poisson(usual * (0.5 + 0.5 * TASTES[:, item].mean()))
            self.stock.append((day + timedelta(hours=8), self.name, ITEMS[item], self.shelf[item]))

    def open(self, day: datetime, listed: np.ndarray, prices: np.ndarray, visits: float, truth: Truth) -> None:
        """Let a day's customers in, one after the other."""
        margins = prices - COSTS
        for hour in HOURS:
            start = day + timedelta(hours=hour)
            number = int(self.random.poisson(visits / len(HOURS)))
            self.door.append((start, self.name, number))
            for second in np.sort(self.random.integers(0, 3600, number)).tolist():
                self._serve(start + timedelta(seconds=second), listed, prices, margins, truth)

    def _serve(self, time: datetime, listed: np.ndarray, prices: np.ndarray, margins: np.ndarray, truth: Truth) -> None:
        segment = self.random.choice(3, p=SEGMENTS)
        worth = TASTES[segment] - PRICE_EFFECT * prices + self.random.gumbel(size=len(ITEMS))
        nothing = self.random.gumbel() + 1.0
        wanted, found = (self._best(worth, nothing, there) for there in (listed, listed & (self.shelf > 0)))
        units = 1 + int(self.random.random() < DOUBLE)
        if wanted != found and wanted is not None:
            lost = float(margins[wanted] - (0.0 if found is None else margins[found]))
            truth.units[ITEMS[wanted]] += 1
            truth.money[ITEMS[wanted]] += lost
            truth.by_month[f"{time:%Y-%m}"] += lost
        if found is None:
            return
        units = min(units, int(self.shelf[found]))
        self.shelf[found] -= units
        number = f"{self.name[0]}{len(self.receipts)}"
        self.receipts.append((time, self.name, number, ITEMS[found], units, f"{prices[found]:.2f}"))
        if not self.shelf[found]:
            self.stock.append((time, self.name, ITEMS[found], 0))

    @staticmethod
    def _best(worth: np.ndarray, nothing: float, there: np.ndarray) -> int | None:
        best = int(np.argmax(np.where(there, worth, -np.inf)))
        return best if there[best] and worth[best] > nothing else None


def simulate(folder: Path, days: int = 365, visits: float = 110.0, seed: int = 0) -> Truth:
    """Write the tables of so many days into a folder; a store of size 1 has so many visits a day."""
    truth, launch = Truth(), days // 2
    stores = [Store(name, np.random.default_rng([seed, number])) for number, name in enumerate(STORES)]
    prices: list[tuple[object, ...]] = [
        (item, FIRST_DAY, "", f"{price:.2f}") for item, price in zip(ITEMS, PRICES, strict=True)
    ]
    promoted: dict[int, str] = {}
    for week in range(2, max(3, days // 7), 3):
        item = PROMOTED[week // 3 % len(PROMOTED)]
        start = FIRST_DAY + timedelta(weeks=week)
        cut = PRICES[ITEMS.index(item)] - DISCOUNT
        prices.append((item, start, start + timedelta(days=7, microseconds=-1), f"{cut:.2f}"))
        promoted |= dict.fromkeys(range(7 * week, 7 * week + 7), item)
    for number in range(days):
        day = FIRST_DAY + timedelta(days=number)
        listed = np.array([item != "skyr" or number >= launch for item in ITEMS])
        paid = np.array(PRICES) - DISCOUNT * np.array([item == promoted.get(number) for item in ITEMS])
        for store in stores:
            store.deliver(day, listed, 0.19 * visits * STORES[store.name])
            store.open(day, listed, paid, visits * STORES[store.name], truth)
    for name, head, rows in (
        ("receipts", "time,store,receipt,item,quantity,price", [row for store in stores for row in store.receipts]),
        ("stock", "time,store,item,on_hand", [row for store in stores for row in store.stock]),
        ("door", "time,store,visitors", [row for store in stores for row in store.door]),
        ("prices", "item,from,to,price", prices),
        ("items", "item,unit_cost,price", list(zip(ITEMS, COSTS, PRICES, strict=True))),
    ):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(head.split(","))
            writer.writerows(rows)
    return truth


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "receipts")
    target.mkdir(exist_ok=True)
    known = simulate(target, int(sys.argv[2]) if len(sys.argv) > 2 else 365)
    print(f"Wrote {target}. Stock-outs cost {sum(known.money.values()):,.1f} in all, and by month:")
    for month, lost in known.by_month.items():
        print(f"  {month} {lost:8,.1f}")
