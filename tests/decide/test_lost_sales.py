"""Lost sales: by hand for two types of customers, with prices, with intervals, and what is refused."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import rankstream as rs
from rankstream.data.readers import Account
from rankstream.data.readers.account import Exposure

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "receipts"))
import stores

ITEMS = ("tea", "pie", "cake", "nothing")
MODEL = rs.RankingModel(
    ITEMS,
    [("tea", "pie", "nothing", "cake"), ("tea", "nothing", "pie", "cake"), ("cake", "nothing", "tea", "pie")],
    [0.5, 0.3, 0.2],
    no_choice_code=3,
)
MARGINS = {"tea": 2.0, "pie": 1.0, "cake": 5.0}


def account(*exposures: Exposure) -> Account:
    return Account("events", 1, 1, 1, 0, 0, 0.0, "extend", {}, 1, 0, 0.0, exposures=exposures)


FULL = Exposure("York", ITEMS, (), 40)
NO_TEA = Exposure("York", ("pie", "cake", "nothing"), ("tea",), 100)
NEITHER = Exposure("Bath", ("pie", "nothing"), ("tea", "cake"), 10)


def test_what_was_bought_instead_is_taken_off() -> None:
    found = rs.lost_sales(MODEL, account(FULL, NO_TEA), MARGINS)
    assert found.items["tea"].units == pytest.approx(80)  # would have bought tea
    assert found.items["tea"].money == pytest.approx(80 * 2.0 - 50 * 1.0)  # 50 took pie
    assert found.total.units == pytest.approx(30)  # left without anything
    assert found.total.money == pytest.approx(110)
    assert (found.met, found.customers) == (100, 140)
    assert "71.4% of customers met a stock-out" in repr(found)


def test_several_missing_items_are_judged_one_by_one_and_together() -> None:
    found = rs.lost_sales(MODEL, account(NEITHER), MARGINS)
    assert found.items["tea"].money == pytest.approx(8 * 2.0 - 5 * 1.0)
    assert found.items["cake"].money == pytest.approx(2 * 5.0)
    assert found.total.money == pytest.approx(16 - 5 + 10)
    assert list(found.items) == ["tea", "cake"]
    lines = found.table().splitlines()
    assert lines[1].split() == ["tea", "8", "11"]
    assert lines[-1].split() == ["total", "5", "21"]
    assert json.loads(json.dumps(found.to_json()))["total"]["money"] == pytest.approx(21)


def test_one_market_of_the_account() -> None:
    both = account(FULL, NO_TEA, NEITHER)
    assert rs.lost_sales(MODEL, both, MARGINS, market="Bath").customers == 10
    assert rs.lost_sales(MODEL, both, MARGINS).total.money == pytest.approx(110 + 21)
    with pytest.raises(ValueError, match="no customers of the market 'Leeds'"):
        rs.lost_sales(MODEL, both, MARGINS, market="Leeds")


def test_nothing_is_lost_where_nothing_was_missing() -> None:
    found = rs.lost_sales(MODEL, account(FULL), MARGINS)
    assert (found.total.money, found.items, found.met) == (0.0, {}, 0)


def test_an_assumed_share_counts_customers_whom_nobody_saw(tmp_path: Path) -> None:
    stores.simulate(tmp_path, days=10, visits=60, seed=4)
    found = rs.read_sales(tmp_path / "receipts.csv", tmp_path / "stock.csv", outside_share=0.5)
    assert found.account is not None
    lost = rs.lost_sales(rs.estimate(found.counts, method="mnl").model, found.account, 1.0)
    assert lost.customers == pytest.approx(found.counts.observations)
    assert lost.total.units > 0


def test_what_is_refused() -> None:
    forced = rs.RankingModel(("tea", "pie"), [("tea", "pie")], [1.0])
    with pytest.raises(ValueError, match="need customers who bought nothing"):
        rs.lost_sales(forced, account(FULL), {"tea": 1, "pie": 1})
    with pytest.raises(ValueError, match="'cake' has no margin"):
        rs.lost_sales(MODEL, account(NO_TEA), {"tea": 1, "pie": 1})
    with pytest.raises(ValueError, match="The model has no prices, so costs cannot be used: give margins"):
        rs.lost_sales(MODEL, account(NO_TEA), costs=MARGINS)


def test_simulated_stores_lose_about_what_is_estimated_and_intervals_say_how_sure_that_is(tmp_path: Path) -> None:
    truth = stores.simulate(tmp_path, days=60, visits=100, seed=3)
    tables: dict[str, Any] = {name: tmp_path / f"{name}.csv" for name in ("receipts", "stock")}
    found = rs.read_sales(**tables, visits=tmp_path / "door.csv")
    margins = {item: price - cost for item, price, cost in zip(stores.ITEMS, stores.PRICES, stores.COSTS, strict=True)}
    model = rs.estimate(found.counts, method="latent-class").model
    assert found.account is not None
    lost = rs.lost_sales(model, found.account, margins, counts=found.counts)
    true = sum(truth.money.values())
    logit = rs.lost_sales(rs.estimate(found.counts, method="mnl").model, found.account, margins)
    assert abs(logit.total.money - true) > 2 * abs(lost.total.money - true)  # it takes all items for equally similar
    assert lost.total.money == pytest.approx(true, rel=0.3)
    assert lost.total.low is not None
    assert lost.total.high is not None
    assert 0.0 < lost.total.high - lost.total.low < true
    assert sum(loss.units for loss in lost.items.values()) == pytest.approx(sum(truth.units.values()), rel=0.15)


def test_a_model_with_prices_takes_costs(tmp_path: Path) -> None:
    stores.simulate(tmp_path, days=40, visits=60, seed=4)
    tables: dict[str, Any] = {name: tmp_path / f"{name}.csv" for name in ("receipts", "stock", "prices")}
    found = rs.read_sales(**tables, visits=tmp_path / "door.csv")
    model = rs.estimate(found.counts, method="mnl-price").model
    assert found.account is not None
    lost = rs.lost_sales(model, found.account, costs=dict(zip(stores.ITEMS, stores.COSTS, strict=True)))
    assert any("granola @ " in str(item) for item in lost.items)
    assert lost.total.units > 0
    with pytest.raises(ValueError, match="has no cost"):
        rs.lost_sales(model, found.account, costs={"skyr": 1.0})
