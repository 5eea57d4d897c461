"""Prices in many markets: read as each market alone would be, levels shared or not, and pools across price levels."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankstream as rs
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import PriceLevels
from rankstream.decide import best_offer
from rankstream.estimation.many import pooling
from rankstream.estimation.many.pooling import NodePool, Pools
from rankstream.models.entropy import ensemble
from rankstream.models.entropy import guides as guide_module
from rankstream.models.entropy.guides import LOGIT, PRICED, UNIFORM, Guide
from rankstream.models.entropy.pool import law_at_prices
from rankstream.models.entropy.ranking_laws import RankingLaw, markov_chain, mix, plackett_luce
from rankstream.models.lifts import chains_of
from shell import run

WORTH = {"tea": 1.5, "pie": 1.0, "cake": 0.8}
READ: dict[str, Any] = {"prices": "offered", "no_choice": "none"}


def shares(offer: dict[str, float]) -> dict[str, float]:
    """The truth in every store: a logit with a price coefficient."""
    worth = {item: np.exp(WORTH[item] - 0.9 * (price - 3.0)) for item, price in offer.items()} | {"none": np.exp(0.5)}
    return {item: float(value / sum(worth.values())) for item, value in worth.items()}


def priced_rows(sizes: dict[str, int], prices: dict[str, list[float]], seed: int = 0) -> pd.DataFrame:
    """Choices of stores, each with prices of its own."""
    rng, rows = np.random.default_rng(seed), []
    for store, size in sizes.items():
        for _ in range(size):
            items = [item for item in WORTH if rng.random() < 0.8] or ["tea"]
            offer = {item: float(rng.choice(prices[store])) for item in items}
            chances = shares(offer)
            text = ";".join([*(f"{item}@{price:.2f}" for item, price in offer.items()), "none"])
            rows.append((store, text, rng.choice(list(chances), p=list(chances.values()))))
    return pd.DataFrame(rows, columns=["store", "offered", "chosen"])


def fitted(rows: pd.DataFrame, folder: Path, **options: Any) -> rs.Markets:
    given: dict[str, Any] = {"method": "nearest", "pool": False} | READ | options
    return rs.estimate_many(rows, by="store", n_jobs=1, out=folder / "models", **given)


def test_markets_with_prices_are_read_as_each_alone(tmp_path: Path) -> None:
    rows = priced_rows({"York": 80, "Bath": 60}, {"York": [2.0, 3.0], "Bath": [2.0, 2.5, 3.0]})
    markets = fitted(rows, tmp_path)
    for store in ("York", "Bath"):
        alone = rs.read(rows[rows["store"] == store].drop(columns="store"), **READ)
        assert markets.counts(store).digest() == alone.counts.digest()
        assert markets.model(store).about["data"]["digest"] == alone.counts.digest()
        assert markets.model(store).price_levels == alone.prices
        assert markets.predict(store, {"tea": 2.5, "none": None}).keys() == {"tea", "none"}
    assert rs.read(rows, where={"store": "York"}, **READ).counts.digest() == markets.counts("York").digest()


def test_a_long_table_has_its_prices_in_a_column(tmp_path: Path) -> None:
    rows = [
        (store, visit, item, price, item == "tea")
        for store in ("York", "Bath")
        for visit, tea in enumerate((2.0, 3.0, 3.0))
        for item, price in (("tea", tea), ("pie", 4.0))
    ]
    table = pd.DataFrame(rows, columns=["store", "observation", "item", "price", "chosen"])
    table["observation"] = table["store"] + table["observation"].astype(str)
    markets = fitted(table, tmp_path, prices="price", no_choice=None)
    assert markets.model("Bath").price_levels == PriceLevels({"pie": [4.0], "tea": [2.0, 3.0]})


def test_a_missing_price_fails_its_market_alone(tmp_path: Path) -> None:
    rows = priced_rows({"York": 40, "Bath": 40}, {"York": [2.0, 3.0], "Bath": [2.0, 3.0]})
    rows.loc[45, ["offered", "chosen"]] = ["tea;none", "tea"]
    markets = fitted(rows, tmp_path)
    assert list(markets) == [("York",)]
    assert "the price of 'tea' is missing" in markets.failed["Bath",]
    assert fitted(rows, tmp_path / "skip", on_error="skip").counts("Bath").observations == 39


def test_a_number_of_levels_is_shared_where_prices_coincide(tmp_path: Path) -> None:
    same, other = [2.0, 2.2, 3.0, 3.2], [6.0, 6.2, 7.0, 7.2]
    rows = priced_rows({"York": 90, "Bath": 60}, {"York": same, "Bath": same})
    markets = fitted(rows, tmp_path / "same", price_levels=2)
    assert markets.tallies.in_common == 1.0
    assert markets.model("York").price_levels == markets.model("Bath").price_levels == markets.tallies.shared_levels
    rows = priced_rows({"York": 90, "Bath": 60}, {"York": same, "Bath": other})
    markets = fitted(rows, tmp_path / "other", price_levels=2)
    assert (markets.tallies.in_common, markets.tallies.shared_levels) == (0.0, None)
    for store in ("York", "Bath"):
        alone = rs.read(rows[rows["store"] == store].drop(columns="store"), price_levels=2, **READ)
        assert markets.model(store).price_levels == alone.prices


def test_prices_in_common_are_counted_by_how_often_they_were_offered(tmp_path: Path) -> None:
    table = pd.DataFrame(
        [("York", "tea@2.00;none", 30), ("York", "tea@3.00;none", 50), ("Bath", "tea@2.00;none", 20)],
        columns=["store", "offered", "count"],
    ).assign(chosen="tea")
    assert fitted(table, tmp_path).tallies.in_common == pytest.approx(0.5)  # 50 of 100 at 2.00


def random_law(offers: Assortments, seed: int) -> RankingLaw:
    rng = np.random.default_rng(seed)
    return plackett_luce(offers.items, rng.gamma(1.0, size=(3, offers.n_items)), [0.5, 0.3, 0.2], chains_of(offers))


@pytest.mark.parametrize("seed", range(5))
def test_a_law_at_fewer_levels_predicts_the_same(seed: int) -> None:
    levels = PriceLevels({"tea": [2.0, 3.0, 4.0], "pie": [1.0, 1.5]})
    law = random_law(Assortments([(*levels.labels, "none")], order=levels.order), seed)
    few = PriceLevels({"tea": [2.0, 4.0], "pie": [1.5]})
    offered = [("tea @ 2.00", "pie @ 1.50", "none"), ("tea @ 4.00", "none"), ("tea @ 4.00", "pie @ 1.50")]
    offers = Assortments(offered, order=few.order)
    own = law_at_prices(law, ChoiceCounts(offers, np.ones(offers.n_coordinates)))
    assert np.allclose(own.probabilities(offers), law.probabilities(Assortments(offered)))


def test_the_classes_alone_of_a_mixed_law_are_carried_over() -> None:
    levels = PriceLevels({"tea": [2.0, 4.0]})
    classes = random_law(Assortments([(*levels.labels, "none")], order=levels.order), 1)
    chain = replace(markov_chain(classes.items, [0.2, 0.3, 0.5], (1.0 - np.eye(3)) / 2.0), order=classes.order)
    offers = Assortments([("tea @ 2.00", "none"), ("tea @ 4.00", "none")], order=levels.order)
    counts = ChoiceCounts(offers, np.ones(offers.n_coordinates))
    one, other = (law_at_prices(law, counts) for law in (classes, mix([classes, chain], [0.3, 0.7])))
    assert other.class_weights.sum() == pytest.approx(1.0)
    assert np.allclose(other.probabilities(offers), one.probabilities(offers))


def test_a_law_at_other_levels_lies_between_and_falls() -> None:
    levels = PriceLevels({"tea": [2.0, 4.0]})
    law = plackett_luce(["tea @ 2.00", "tea @ 4.00", "none"], [0.4, 0.2, 0.4], order=((0, 1),))
    assert levels.order == (("tea @ 2.00", "tea @ 4.00"),)
    offered = [("tea @ 1.00", "none"), ("tea @ 2.50", "none"), ("tea @ 5.00", "none")]
    own = PriceLevels({"tea": [1.0, 2.5, 5.0]})
    offers = Assortments(offered, order=own.order)
    found = law_at_prices(law, ChoiceCounts(offers, np.ones(offers.n_coordinates)))
    got = found.probabilities(offers)[::2]
    assert np.allclose(got, [0.6 / 1.0, 0.5 / 0.9, 0.2 / 0.6])  # 0.6 up to 2.00, 0.2 from 4.00, a line between


def test_a_law_is_extended_by_items_that_it_does_not_know() -> None:
    law = plackett_luce(["tea @ 2.00", "none"], [0.5, 0.5])
    offers = Assortments([("tea @ 2.00", "gin @ 3.00", "none"), ("tea @ 2.00", "gin @ 4.00", "none")],
                         order=[("gin @ 3.00", "gin @ 4.00")])  # fmt: skip
    counts = ChoiceCounts(offers, np.array([40.0, 80.0, 40.0, 60.0, 30.0, 60.0]))
    found = law_at_prices(law, counts)
    low, high = found.probabilities(offers).reshape(2, 3)
    assert np.allclose(low[0], low[2])  # as the law has it
    assert low[1] / low[0] == pytest.approx(2.0, rel=0.05)
    assert high[1] / high[0] == pytest.approx(0.5, rel=0.1)


@pytest.mark.slow
def test_a_small_store_borrows_how_demand_falls_with_the_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few guides: those of many classes would take ten times as long, and the truth has one."""
    few = {*PRICED[:2], LOGIT, UNIFORM}

    def guides_for(offers: Assortments, guides: Sequence[Guide]) -> list[Guide]:
        return [one for one in guide_module.guides_for(offers, guides) if one in few or one.family == ensemble.POOL]

    for module in (ensemble, pooling):
        monkeypatch.setattr(module, "guides_for", guides_for)
    prices = {"York": [2.0, 4.0], "Bath": [2.0, 4.0], "Ely": [2.5, 3.5]}
    rows = priced_rows({"York": 300, "Bath": 300, "Ely": 40}, prices, seed=1)
    offers = [{"tea": a, "pie": b, "cake": 2.5} for a in (2.5, 3.5) for b in (2.5, 3.5)]

    def error(markets: rs.Markets) -> float:
        found = [markets.predict("Ely", offer | {"none": None}) for offer in offers]
        true = [shares(offer) for offer in offers]
        gaps = [abs(one[item] - truth[item]) for one, truth in zip(found, true, strict=True) for item in truth]
        return float(np.mean(gaps))

    pooled = fitted(rows, tmp_path / "pool", method="max-entropy", pool=True)
    own = fitted(rows[rows["store"] == "Ely"], tmp_path / "own", method="max-entropy")
    assert not pooled.failed
    assert (pooled.row("Ely").pooled or 0.0) > 0.3
    assert error(pooled) < 0.75 * error(own)


def test_the_file_of_a_pool_keeps_the_order_of_prices(tmp_path: Path) -> None:
    offers = Assortments([("tea @ 2.00", "none"), ("tea @ 3.00", "none")], order=[("tea @ 2.00", "tea @ 3.00")])
    law = random_law(offers, 0)
    before = Pools({(): NodePool((law,), {"York": 0})}, (5.0,), "data")
    before.save(tmp_path / "pool.json")
    after = Pools.load(tmp_path / "pool.json").nodes[()].laws[0]
    assert after.order == law.order
    assert len(law.order) == 1
    assert np.array_equal(law.probabilities(offers), after.probabilities(offers))


def test_a_pool_has_fewer_levels_than_its_markets_have_prices(tmp_path: Path) -> None:
    prices = {"York": [2.0 + 0.1 * step for step in range(8)], "Bath": [2.05 + 0.1 * step for step in range(8)]}
    tallies = fitted(priced_rows({"York": 150, "Bath": 150}, prices, seed=2), tmp_path).tallies
    levels = PriceLevels.from_labels(tallies.count(tallies.together()).assortments.items)
    assert levels is not None
    assert {item: len(found) for item, found in levels.levels.items()} == dict.fromkeys(WORTH, 12)
    rows = priced_rows({"York": 300}, {"York": [2.0 + 0.1 * step for step in range(13)]})
    (reason,) = fitted(rows, tmp_path / "one").failed.values()
    assert "group them into fewer, such as price_levels=3" in reason


def test_the_shell_fits_asks_and_decides_markets_with_prices(tmp_path: Path) -> None:
    rows = priced_rows({"Old Town": 120, "Bath": 90}, {"Old Town": [2.0, 3.0], "Bath": [2.0, 3.0]})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "items.csv").write_text("item,unit_cost\ntea,1\npie,1\ncake,1.5\n")
    words = ("--price-columns", "offered", "--no-choice", "none", "--method", "nearest", "--no-pool", "--jobs", "1")
    done = run("fit", "rows.csv", "--by", "store", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    line = "Price levels: one for each price (100 % of the offered prices occur in several markets)."
    assert line in done.stdout
    ask = ("predict", "models", "--market", "Old Town", "--offer", "tea@2.50;none", "--json")
    interval = run(*ask, "--interval", "0.9", "--replicates", "4", "--data", "rows.csv", cwd=tmp_path)
    assert (interval.returncode, interval.stderr) == (0, "")
    model = rs.Markets.load(tmp_path / "models").model("Old Town")
    assert json.loads(interval.stdout)[0]["shares"] == model.predict({"tea": 2.5, "none": None})
    found = json.loads(run("decide", "models", "--margins", "items.csv", "--json", cwd=tmp_path).stdout)["markets"]
    best = best_offer(model, {}, costs={"tea": 1.0, "pie": 1.0, "cake": 1.5}, no_choice="none")
    assert (found["Old Town"]["offer"], found["Old Town"]["value"]) == (list(best.offer), best.value)
    assert found["Old Town"]["prices"] == best.prices
    alone = run("decide", "models", "--margins", "items.csv", "--market", "Old Town", "--json", cwd=tmp_path)
    assert json.loads(alone.stdout)["offer"] == list(best.offer)
    assert run("show", "models", cwd=tmp_path).stdout.count("Price levels: cake 2.00, 3.00;") == 2
