"""Simulate half a year of a dairy shelf in three stores, with a known truth, as three tills would export it.

    python examples/shop/simulate.py FOLDER [--visits 40000] [--seed 0]

writes into FOLDER

- ``till.csv``: a row per product on the shelf of each visit, as a German till writes it (semicolons, decimal commas,
  ``02.03.2026 08:03``, a byte order mark, stray spaces in names);
- ``visits.csv``: a row per visit with a 0/1 column and a price column per product;
- ``log.jsonl``: a JSON object per visit, with the price of everything on the shelf;
- ``items.csv``: what each product costs the shop, and its regular price.

Shoppers belong to one of six types with their own tastes and their own sensitivity to prices. Stores differ in their
mix of types. Products go in and out of stock, and each week some are on promotion. ``Shop`` also answers with the
truth: the share, the profit and the best substitute of everything.
"""

import argparse
import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

NOTHING = "nothing"
STORES = {"Old Town": 0.45, "Station": 0.35, "Harbour": 0.20}
BRANDS = ("Alm", "Berg", "Skyr")
PRODUCTS = {  # name: (brand, regular price, cost)
    "Alm Natural 150g": (0, 0.89, 0.42),
    "Alm Natural 500g": (0, 1.99, 0.98),
    "Alm Strawberry": (0, 0.99, 0.50),
    "Alm Vanilla": (0, 0.99, 0.52),
    "Berg Greek 200g": (1, 1.29, 0.66),
    "Berg Greek 500g": (1, 2.49, 1.35),
    "Berg Honey": (1, 1.49, 0.80),
    "Berg Müsli": (1, 1.59, 0.85),
    "Skyr Plain": (2, 1.39, 0.62),
    "Skyr Plain 400g": (2, 2.79, 1.40),
    "Skyr Vanilla": (2, 1.49, 0.70),
    "Skyr Blueberry": (2, 1.49, 0.73),
    "Skyr Drink": (2, 1.79, 0.95),
    "Oat Natural": (2, 1.89, 1.05),
}
NAMES = tuple(PRODUCTS)
REGULAR = np.array([price for _, price, _ in PRODUCTS.values()])
PROMOTION = np.round(0.8 * REGULAR, 2)
COSTS = np.array([cost for _, _, cost in PRODUCTS.values()])
FIRST_DAY, WEEKS = datetime(2026, 3, 2), 26
N_TYPES = 6


class Shelf(NamedTuple):
    """What one store had on offer for a part of a week."""

    store: str
    begins: datetime
    days: int
    prices: dict[str, float]


class Visit(NamedTuple):
    """One shopper: when, where, at which shelf, and what was bought."""

    time: datetime
    shelf: Shelf
    bought: str


@dataclass(frozen=True)
class Shop:
    """Three stores with known shoppers.

    Parameters
    ----------
    seed : int
        Decides tastes, shelves and visits.

    """

    seed: int = 0

    @cached_property
    def tastes(self) -> tuple[Array, Array, dict[str, Array]]:
        """Each type's worth of every product, its price sensitivity, and each store's mix of types."""
        random = np.random.default_rng([self.seed, 1])
        brand = random.normal(0.0, 1.1, (N_TYPES, len(BRANDS)))
        worths = 1.4 * REGULAR - 0.1 + random.normal(0.0, 0.8, (N_TYPES, len(NAMES)))
        worths += brand[:, [owner for owner, _, _ in PRODUCTS.values()]]
        sensitivity = random.uniform(1.0, 3.2, N_TYPES)
        mixes = {store: random.dirichlet(np.full(N_TYPES, 4.0)) for store in STORES}
        return worths, sensitivity, mixes

    def mix(self, store: str | None = None) -> Array:
        """The mix of types of one store, or of all visits."""
        mixes = self.tastes[2]
        return mixes[store] if store else np.array(list(STORES.values())) @ np.stack([mixes[name] for name in STORES])

    def shares(self, prices: Mapping[str, float], store: str | None = None) -> dict[str, float]:
        """Return the true share of every product at these prices, and of buying nothing."""
        codes = [NAMES.index(name) for name in prices]
        worths, sensitivity, _ = self.tastes
        pull = np.exp(worths[:, codes] - sensitivity[:, None] * np.array(list(prices.values())))
        shares = self.mix(store) @ (pull / (1.0 + pull.sum(axis=1, keepdims=True)))
        return {**dict(zip(prices, shares.tolist(), strict=True)), NOTHING: 1.0 - float(shares.sum())}

    def profit(self, prices: Mapping[str, float], store: str | None = None) -> float:
        """Return the true profit per visit of a shelf."""
        shares = self.shares(prices, store)
        return sum(shares[name] * (price - PRODUCTS[name][2]) for name, price in prices.items())

    def best(self, at_most: int, store: str | None = None) -> tuple[dict[str, float], float]:
        """Return the most profitable shelf of at most ``at_most`` products at regular or promotion prices.

        A search by single additions, removals, swaps and price changes from several starts; with types of logit
        shoppers its answer is the best of all shelves in every case that was compared with all of them.
        """
        random = np.random.default_rng([self.seed, 4])
        return max((self._climb(at_most, store, random) for _ in range(12)), key=lambda pair: pair[1])

    def _climb(self, at_most: int, store: str | None, random: np.random.Generator) -> tuple[dict[str, float], float]:
        worths, sensitivity, _ = self.tastes
        levels = np.stack([REGULAR, PROMOTION])
        pull = np.exp(worths[:, None, :] - sensitivity[:, None, None] * levels)
        gain, mix = levels - COSTS, self.mix(store)
        state = np.zeros(len(NAMES), dtype=int)  # 0: not offered, 1: regular price, 2: promotion
        state[random.choice(len(NAMES), at_most // 2, replace=False)] = 1
        value = _worth(state, pull, gain, mix)
        while True:
            better = [(_worth(after, pull, gain, mix), after) for after in _neighbours(state, at_most)]
            best, after = max(better, key=lambda pair: pair[0])
            if best <= value + 1e-12:
                prices = {NAMES[k]: float(levels[state[k] - 1, k]) for k in np.flatnonzero(state)}
                return prices, value
            value, state = best, after

    def substitute(self, item: str, prices: Mapping[str, float], store: str | None = None) -> str:
        """Return what most buyers of an item buy instead where it is missing."""
        with_it, without = self.shares(prices, store), dict(prices)
        without.pop(item)
        less = self.shares(without, store)
        return max((name for name in less if name != NOTHING), key=lambda name: less[name] - with_it[name])

    def shelves(self) -> Iterator[Shelf]:
        """Yield the shelves of all stores, week by week; in the middle of some weeks, something runs out of stock."""
        random = np.random.default_rng([self.seed, 2])
        for week in range(WEEKS):
            promoted = set(random.choice(len(NAMES), 3, replace=False).tolist())
            prices = {name: float((PROMOTION if k in promoted else REGULAR)[k]) for k, name in enumerate(NAMES)}
            for store in STORES:
                listed = sorted(random.choice(len(NAMES), int(random.integers(9, 13)), replace=False).tolist())
                begins = FIRST_DAY + timedelta(weeks=week)
                days = int(random.integers(3, 6)) if random.random() < 0.6 else 6
                shelf = {NAMES[k]: prices[NAMES[k]] for k in listed}
                yield Shelf(store, begins, days, shelf)
                if days < 6:
                    gone = NAMES[int(random.choice(listed))]
                    rest = {name: price for name, price in shelf.items() if name != gone}
                    yield Shelf(store, begins + timedelta(days=days), 6 - days, rest)

    def visits(self, number: int) -> list[Visit]:
        """Simulate visits, in the order of time."""
        random = np.random.default_rng([self.seed, 3])
        shelves = list(self.shelves())
        weights = np.array([STORES[shelf.store] * shelf.days for shelf in shelves])
        visits = []
        for shelf, count in zip(shelves, random.multinomial(number, weights / weights.sum()), strict=True):
            shares = self.shares(shelf.prices, shelf.store)
            bought = random.choice(len(shares), count, p=np.array(list(shares.values())))
            minutes = random.integers(0, 12 * 60, count) + 24 * 60 * random.integers(0, shelf.days, count)
            names = list(shares)
            visits += [
                Visit(shelf.begins + timedelta(hours=8, minutes=int(minute)), shelf, names[code])
                for minute, code in zip(minutes, bought, strict=True)
            ]
        return sorted(visits, key=lambda visit: visit.time)

    def today(self, store: str | None = None) -> dict[str, float]:
        """Return the shelf of the last week: of one store, or of the largest."""
        last = [shelf for shelf in self.shelves() if shelf.store == (store or next(iter(STORES)))]
        return [shelf for shelf in last if shelf.begins.weekday() == 0][-1].prices


def _worth(state: npt.NDArray[np.int64], pull: Array, gain: Array, mix: Array) -> float:
    """Return the profit per visit of a shelf that is given by a state per product."""
    codes = np.flatnonzero(state)
    levels = state[codes] - 1
    chosen = pull[:, levels, codes]
    return float(mix @ ((chosen @ gain[levels, codes]) / (1.0 + chosen.sum(axis=1))))


def _neighbours(state: npt.NDArray[np.int64], at_most: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield every shelf that differs in one product, or by a swap."""
    for code in range(len(state)):
        for new in (0, 1, 2):
            if new == state[code]:
                continue
            after = state.copy()
            after[code] = new
            if np.count_nonzero(after) <= at_most:
                yield after
            if new and not state[code]:
                for gone in np.flatnonzero(state):
                    swapped = after.copy()
                    swapped[gone] = 0
                    yield swapped


def write_till(path: Path, visits: list[Visit]) -> None:
    """Write a row per product on the shelf of each visit, as a German till does."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        rows = csv.writer(file, delimiter=";")
        rows.writerow(["Receipt_ID", "Timestamp", "Store", "Product", "Price", "Bought"])
        for number, visit in enumerate(visits):
            for name, price in visit.shelf.prices.items():
                shown = f" {name}" if (number + len(name)) % 7 == 0 else f"{name} " if number % 5 == 0 else name
                cost = f"{price:.2f}".replace(".", ",")
                time = visit.time.strftime("%d.%m.%Y %H:%M")
                rows.writerow([100_000 + number, time, visit.shelf.store, shown, cost, int(visit.bought == name)])


def write_visits(path: Path, visits: list[Visit]) -> None:
    """Write a row per visit, with what was there and what it cost in columns of their own."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["date", "shop", *NAMES, *(f"price_{name}" for name in NAMES), "purchased"])
        for visit in visits:
            prices = visit.shelf.prices
            there = [int(name in prices) for name in NAMES]
            costs = [f"{prices[name]:.2f}" if name in prices else "" for name in NAMES]
            bought = "" if visit.bought == NOTHING else visit.bought
            rows.writerow(
                [visit.time.isoformat(sep=" ", timespec="minutes"), visit.shelf.store, *there, *costs, bought]
            )


def write_log(path: Path, visits: list[Visit]) -> None:
    """Write a JSON object per visit."""
    with path.open("w", encoding="utf-8") as file:
        for visit in visits:
            offered: dict[str, Any] = {**visit.shelf.prices, NOTHING: None}
            record = {"time": visit.time.isoformat(), "store": visit.shelf.store, "offered": offered}
            file.write(json.dumps({**record, "chosen": visit.bought}, ensure_ascii=False) + "\n")


def write_items(path: Path) -> None:
    """Write what each product costs the shop, and its regular price."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["item", "unit_cost", "price"])
        rows.writerows((name, f"{cost:.2f}", f"{price:.2f}") for name, (_, price, cost) in PRODUCTS.items())


def write_exports(folder: Path, shop: Shop, number: int) -> None:
    """Write the three exports and the table of products."""
    folder.mkdir(parents=True, exist_ok=True)
    visits = shop.visits(number)
    write_till(folder / "till.csv", visits)
    write_visits(folder / "visits.csv", visits)
    write_log(folder / "log.jsonl", visits)
    write_items(folder / "items.csv")


def main() -> None:
    """Write the exports, and print the truth about today's offer."""
    parser = argparse.ArgumentParser(description="Simulate half a year of a dairy shelf in three stores.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--visits", type=int, default=40_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    shop = Shop(given.seed)
    write_exports(given.folder, shop, given.visits)
    today = shop.today()
    print(f"Wrote till.csv, visits.csv, log.jsonl and items.csv to {given.folder}.")
    best, worth = shop.best(len(today))
    print(f"Today's offer in Old Town earns {100 * shop.profit(today):.1f} per 100 visits;")
    print(
        f"the best {len(best)} products earn {100 * worth:.1f}: {', '.join(f'{k} @ {v:.2f}' for k, v in best.items())}."
    )


if __name__ == "__main__":
    main()
