"""The simulated shop of the examples: three exports of the same visits, and a truth that holds."""

import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankstream as rs

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "shop"))

import simulate as shops

EXPORTS: dict[str, dict[str, Any]] = {
    "till.csv": {"no_choice": "nothing", "prices": "Price"},
    "visits.csv": {"no_choice": "nothing", "prices": [f"price_{name}" for name in shops.NAMES]},
    "log.jsonl": {"prices": "offered"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shop")
    shops.write_exports(made, shops.Shop(5), 1500)
    return made


def tallies(folder: Path, name: str, **options: Any) -> dict[tuple[frozenset[Any], Any], float]:
    counts = rs.read_counts(folder / name, **options)
    offers = counts.assortments
    pairs = zip(offers.owner.tolist(), offers.members.tolist(), counts.tallies.tolist(), strict=True)
    return {(frozenset(offers.offers[j]), offers.items[k]): number for j, k, number in pairs if number}


def test_every_export_has_the_same_choices_at_the_same_prices(folder: Path) -> None:
    found = [tallies(folder, name, **options) for name, options in EXPORTS.items()]
    assert found[0] == found[1] == found[2]
    assert sum(found[0].values()) == 1500


def test_reading_says_that_prices_were_not_used(folder: Path) -> None:
    reading = rs.read(folder / "till.csv", no_choice="nothing")
    kinds = {column.name: column.kind for column in reading.unused}
    assert kinds["Price"] == "price"
    (warning,) = [column.warning for column in reading.unused if column.warning]  # few offers come at several prices
    assert warning.startswith("Price is ignored, but choices depend on it")
    assert kinds["Timestamp"] == "time"
    assert kinds["Store"] == "group"
    wide = {column.name: column.kind for column in rs.read(folder / "visits.csv", no_choice="nothing").unused}
    assert (wide["date"], wide["shop"]) == ("time", "group")


def test_the_best_shelf_is_the_best_of_all_small_ones() -> None:
    shop = shops.Shop(3)
    best, worth = shop.best(2)
    levels = {name: (price, round(0.8 * price, 2)) for name, (_, price, _) in shops.PRODUCTS.items()}
    every = [
        {first: one, second: two}
        for first, second in product(shops.NAMES, repeat=2)
        if first != second
        for one, two in product(levels[first], levels[second])
    ]
    assert worth == pytest.approx(max(shop.profit(shelf) for shelf in every))
    assert shop.profit(best) == pytest.approx(worth)


def test_shares_are_those_of_the_visits() -> None:
    shop = shops.Shop(1)
    visits = shop.visits(30_000)
    total, expected = 0, 0.0
    for visit in visits:
        total += visit.bought == shops.NOTHING
        expected += shop.shares(visit.shelf.prices, visit.shelf.store)[shops.NOTHING]
    assert abs(total - expected) < 4.0 * np.sqrt(expected)
