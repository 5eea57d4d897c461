"""Columns that a reading ignores: what it says of them, how often it warns for nothing, and who repeats the warning."""

import json
import re
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rankstream as rs
from rankstream import read
from rankstream.cli.options import shell_words
from rankstream.data.item_changes import group_p_value, logit_price_p_value, price_p_value
from rankstream.data.readers import UnusedColumn, unused_columns
from rankstream.models.files import load_model
from rankstream.models.fit_warnings import fit_warnings, interval_words
from shell import run
from till import ITEMS, visits, write


def found_in(table: pd.DataFrame, **options: Any) -> dict[str, UnusedColumn]:
    return {column.name: column for column in read(table, no_choice="nothing", **options).unused}


def test_the_variance_is_that_over_all_ways_to_shuffle() -> None:
    rng = np.random.default_rng(1)
    prices, chosen = rng.uniform(1, 3, (6, 3)), np.array([0, 0, 1, 2, 2, 0])
    apart = prices - prices.mean(axis=0)
    sums = [sum(apart[i, chosen[k]] for i, k in enumerate(order)) for order in permutations(range(6))]
    z = apart[np.arange(6), chosen].sum() / np.std(sums)
    from scipy.stats import norm

    assert price_p_value([(np.ones(6), chosen, prices)]) == pytest.approx(2 * norm.sf(abs(z)))
    halves = (np.full(6, 0.5), chosen, prices)  # a record of weight 2 is two records
    twice = (np.ones(12), np.tile(chosen, 2), np.tile(prices, (2, 1)))
    assert price_p_value([(np.full(6, 2.0), chosen, prices)]) == pytest.approx(price_p_value([twice]))
    assert not np.isnan(price_p_value([halves]))
    assert np.isnan(price_p_value([(np.ones(1), chosen[:1], prices[:1])]))


def test_two_groups_and_items_are_the_usual_mantel_haenszel() -> None:
    tables = [np.array([[12.0, 5.0], [9.0, 14.0]]), np.array([[3.0, 8.0], [7.0, 2.0]])]
    more = sum(t[0, 0] - t[0].sum() * t[:, 0].sum() / t.sum() for t in tables)
    spread = sum(
        t[0].sum() * t[1].sum() * t[:, 0].sum() * t[:, 1].sum() / (t.sum() ** 2 * (t.sum() - 1)) for t in tables
    )
    from scipy.stats import chi2

    p_value, points = group_p_value(tables)
    assert p_value == pytest.approx(chi2.sf(more**2 / spread, 1))
    assert points[0, 0] == pytest.approx(100 * more / 28)
    assert np.isnan(group_p_value([np.array([[3.0, 2.0], [0.0, 0.0]])])[0])


def test_a_column_of_times_is_used_where_counts_depend_on_it() -> None:
    table = visits(300)
    assert "date" in found_in(table)
    when = {"columns": {"time": "date"}}
    assert "date" not in found_in(table, **when, half_life="30d")
    assert "date" not in found_in(table, **when, since=str(table["date"].min()))
    assert "date" in found_in(table, **when, time_slices=3)  # which do not change the counts


def test_p_values_without_an_effect_are_uniform() -> None:
    rng = np.random.default_rng(0)
    prices, groups = [], []
    for _ in range(400):
        strata, tables = [], []
        for size in (40, 15, 6, 2):
            chosen = rng.choice(3, size, p=[0.6, 0.3, 0.1])
            strata.append((np.ones(size), chosen, rng.choice([1.0, 0.8], (size, 3))))
            tables.append(np.histogram2d(rng.integers(3, size=size), chosen, [range(4), range(4)])[0])
        prices.append(price_p_value(strata))
        groups.append(group_p_value(tables)[0])
    for found in (prices, groups):
        assert 0.02 < np.mean(np.array(found) < 0.05) < 0.085  # 0.05 +- 3.2 standard errors
        assert 0.42 < np.median(found) < 0.58


def priced_offers(seed: int, effect: float, n_offers: int = 40) -> dict[Any, tuple[Any, Any, Any]]:
    """Offers in two markets that never come back at other prices, chosen from by two kinds of customers."""
    rng = np.random.default_rng(seed)
    worths, strata = rng.normal(0.0, 1.5, (2, 8)), dict[Any, tuple[Any, Any, Any]]()
    while len(strata) < n_offers:
        offer = tuple(np.flatnonzero(rng.random(8) < 0.7).tolist())
        prices = rng.choice([1.0, 0.8], len(offer))
        pull = np.exp(worths[:, offer] - effect * prices)
        if len(offer) > 1:
            tallies = rng.multinomial(60, (pull / pull.sum(axis=1, keepdims=True)).mean(axis=0)).astype(float)
            strata[len(strata) % 2, offer] = (tallies, np.arange(len(offer)), np.tile(prices, (len(offer), 1)))
    return strata


def test_prices_that_change_with_the_offers_are_tested_through_a_logit() -> None:
    strata = priced_offers(1, 4.0)
    assert np.isnan(price_p_value(strata.values()))
    assert logit_price_p_value(strata) < 1e-4
    none = np.array([logit_price_p_value(priced_offers(seed, 0.0)) for seed in range(200)])
    assert np.mean(none < 0.05) < 0.1  # 0.05 + 3.2 standard errors
    assert 0.35 < np.nanmedian(none) < 0.65
    assert np.isnan(none).sum() < 10  # a few offers have all of the evidence
    assert np.isnan(logit_price_p_value(dict(list(strata.items())[:3])))


def test_prices_times_and_groups_are_told_with_what_to_do() -> None:
    told = found_in(visits(600))
    assert {name: column.kind for name, column in told.items()} == {"Price": "price", "store": "group", "date": "time"}
    assert told["Price"].sentence == "Price varies for 4 of 4 items: use it with prices='Price'."
    assert "'date', 2 March 2026 to 15 August 2026" in told["date"].sentence
    assert "half_life='30d'" in told["date"].sentence
    assert "drift_report" in told["date"].sentence
    assert not any(column.warning for column in told.values())


def test_a_price_that_matters_is_a_warning() -> None:
    told = found_in(visits(1500, price_effect=2.0))
    assert "Price is ignored, but choices depend on it (p" in told["Price"].warning
    assert "prices='Price'" in told["Price"].warning
    assert told["store"].warning == ""
    assert "Price" not in found_in(visits(600, price_effect=2.0), prices="Price")


def test_stores_that_differ_are_a_warning() -> None:
    told = found_in(visits(1500, store_effect=1.5))
    assert "'Skyr Plain' +" in told["store"].warning
    assert "by='store'" in told["store"].warning
    assert "that differ: fit one model for each with by='store'" in told["store"].sentence
    assert told["Price"].warning == ""
    assert "store" not in found_in(visits(300), by="store")


def test_warnings_for_nothing_are_rare() -> None:
    told = [found_in(visits(100, seed=seed)) for seed in range(50)]
    assert sum(any(column.warning for column in one.values()) for one in told) <= 3  # 1 % of 50; P(> 3) is 0.0016
    p_values = [one[name].p_value for one in told for name in ("Price", "store")]
    assert all(p is not None and p > 0.0 for p in p_values)


def test_p_values_allow_for_the_number_of_tests() -> None:
    table = visits(300, seed=1, price_effect=1.0)
    alone = found_in(table.drop(columns="store"))["Price"].p_value
    assert alone is not None
    assert 0.0 < alone < 0.5
    assert found_in(table)["Price"].p_value == pytest.approx(2 * alone)


def test_identifiers_and_constants_are_no_groups() -> None:
    table = visits(200).assign(
        line=lambda rows: range(len(rows)), till="3", note=None, obs=lambda rows: rows.obs_id * 7
    )
    told = found_in(table.rename(columns={"obs": "session"}))
    kinds = [told[name].kind for name in ("line", "session", "till", "note")]
    assert kinds == ["identifier", "identifier", "other", "other"]
    assert all(told[name].p_value is None for name in ("line", "session", "till", "note"))


def test_prices_by_their_values_alone() -> None:
    assert found_in(visits(400, price_effect=2.0).rename(columns={"Price": "eur"}))["eur"].kind == "price"
    weights = visits(400).assign(Price=lambda rows: np.random.default_rng(0).uniform(0, 5, len(rows)))
    assert found_in(weights.rename(columns={"Price": "kg"}))["kg"].kind != "price"


def wide(long: pd.DataFrame) -> pd.DataFrame:
    offered = long.pivot_table(index="obs_id", columns="item", values="chosen", aggfunc="size", fill_value=0)
    prices = long.pivot_table(index="obs_id", columns="item", values="Price").add_prefix("price_")
    chosen = long[long.chosen == 1].set_index("obs_id")["item"].reindex(offered.index).fillna("")
    return offered.join(prices).assign(chosen=chosen).reset_index(drop=True)


def test_the_price_columns_of_a_wide_table_are_one_finding() -> None:
    (told,) = read(wide(visits(1500, price_effect=2.0)), columns={"items": list(ITEMS)}, no_choice="nothing").unused
    assert told.kind == "price"
    assert told.evidence == {"varying": 4, "items": 4}
    columns = ",".join(f"price_{item}" for item in sorted(ITEMS))
    assert told.warning.startswith("Price in 4 columns is ignored, but choices depend on it (p ")
    assert told.warning.endswith(f"fit again with prices='{columns}'.")
    assert told.sentence == f"Price in 4 columns varies for 4 of 4 items: use it with prices='{columns}'."
    assert interval_words({"unused": [told.to_content()]}) == "intervals (they ignore prices, so they are too narrow)"
    long = found_in(visits(1500, price_effect=2.0)[["obs_id", "item", "chosen", "Price"]])["Price"]
    assert told.p_value == pytest.approx(long.p_value)


def test_a_price_beside_transactions_belongs_into_the_offers() -> None:
    table = pd.DataFrame({"offered": ["a;b"] * 40, "chosen": ["a", "b"] * 20, "price": [1.5, 2.5, 1.25, 2.5] * 10})
    (told,) = read(table).unused
    assert told.kind == "price"
    assert told.p_value is None
    assert told.sentence.startswith("price varies for 1 of 2 items chosen: write prices into the offers")


def test_a_long_table_is_sampled_over_its_whole_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = visits(1000, price_effect=2.0)
    whole = read(write(table, tmp_path / "all.csv"), no_choice="nothing").unused
    monkeypatch.setattr(unused_columns, "MAX_SAMPLED_ROWS", 700)
    some = read(tmp_path / "all.csv", no_choice="nothing").unused
    first, last = (pd.Timestamp(some[2].evidence[end], unit="s") for end in ("first", "last"))
    assert (last - first).days > 150
    assert [column.kind for column in some] == [column.kind for column in whole]
    assert some[0].p_value is not None
    assert whole[0].p_value is not None
    assert whole[0].p_value < some[0].p_value < 1.0


def test_counts_alone_need_no_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError

    table = visits(60)
    whole = read(table, no_choice="nothing")
    monkeypatch.setattr("rankstream.data.readers.reading.find_unused", fail)
    assert rs.read_counts(table, no_choice="nothing").digest() == whole.counts.digest()
    assert read(table, no_choice="nothing", look=False).unused == ()
    assert len(whole.unused) == 3


def test_every_answer_repeats_the_warning(tmp_path: Path) -> None:
    write(visits(900, price_effect=2.0), tmp_path / "till.csv")
    done = run("fit", "till.csv", "--no-choice", "nothing", "--method", "mnl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    warning = fit_warnings(load_model(tmp_path / "model.json").about)
    assert len(warning) == 1
    assert done.stdout.startswith(f"Warning: {warning[0]}"[:60])
    assert "Price varies for 4 of 4 items: use it with --price-columns Price." in done.stderr
    assert "--half-life 30d, or look for changes with 'rankstream drift'" in done.stderr
    assert "fit again with --price-columns Price" in warning[0]
    shown = run("show", "model.json", "--data", "till.csv", "--replicates", "3", cwd=tmp_path)
    assert "Warning: Price is ignored" in shown.stdout
    assert "intervals (they ignore Price, so they are too narrow)" in shown.stdout
    assert "95 %" not in shown.stdout
    predicted = run("predict", "model.json", "--offer", ITEMS[0], cwd=tmp_path).stdout
    assert predicted.startswith(f"Warning: {warning[0]}\n{ITEMS[0]}\n")
    (tmp_path / "margins.csv").write_text("item,margin\n" + "".join(f"{item},1\n" for item in ITEMS))
    decided = run("decide", "model.json", "--margins", "margins.csv", cwd=tmp_path)
    assert decided.stdout.startswith("Warning: Price is ignored")
    assert "In brackets: intervals (they ignore Price, so they are too narrow)." in decided.stdout
    assert "95 %" not in decided.stdout
    content = json.loads(run("decide", "model.json", "--margins", "margins.csv", "--json", cwd=tmp_path).stdout)
    assert content["warnings"] == warning
    options = ("--data", "till.csv", "--replicates", "3")
    assert run("report", "model.json", *options, cwd=tmp_path).returncode == 0
    page = (tmp_path / "report.html").read_text()
    assert page.count("Price is ignored, but choices depend on it") >= 2
    assert "with intervals (they ignore Price" in page
    assert "Price varies for 4 of 4 items: use it with --price-columns Price." in page  # as the model remembers
    assert "with 95 % intervals from" not in page


@pytest.mark.parametrize("more", [(), ("--by", "store")])
def test_drift_warns_of_prices_that_may_look_like_tastes(more: tuple[str, ...], tmp_path: Path) -> None:
    table = visits(900, price_effect=2.0)
    write(table, tmp_path / "till.csv")
    for name, rows in (("old", table[table.obs_id % 2 == 0]), ("new", table[table.obs_id % 2 == 1])):
        write(rows, tmp_path / f"{name}.csv")
    for words in (("till.csv", "--at", "2026-05"), ("old.csv", "new.csv")):
        done = run("drift", *words, *more, "--no-choice", "nothing", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert re.search(r"Warning: Price is ignored, .* compare again with --price-columns Price\.", done.stderr)
        assert "half-life" not in done.stderr
        priced = run("drift", *words, *more, "--no-choice", "nothing", "--price-columns", "Price", cwd=tmp_path)
        assert (priced.returncode, priced.stderr) == (0, "")


@pytest.mark.parametrize("by", [(), ("store",), ("store", "till")])
def test_prices_that_change_between_days_alone_are_noticed(by: tuple[str, ...]) -> None:
    """Within a day no price varies, so a look at days one by one sees nothing."""
    random, rows = np.random.default_rng(5), list[tuple[Any, ...]]()
    for number in range(1200):
        day = number // 60
        price = 1.0 + 0.1 * (day % 2)
        chosen = "tea" if random.random() < 0.7 - 2.0 * (price - 1.0) else "pie"
        for item, cost in (("tea", price), ("pie", 1.5)):
            rows.append((number, f"2026-05-{day + 1:02}", "x", "y", item, cost, int(item == chosen)))
    table = pd.DataFrame(rows, columns=["obs_id", "time", "store", "till", "item", "Price", "chosen"])
    found = {column.name: column for column in read(table, by=list(by), period="day").unused}
    assert found["Price"].warning.startswith("Price is ignored, but choices depend on it")


def test_drift_names_stores_that_differ(tmp_path: Path) -> None:
    write(visits(1500, store_effect=1.5), tmp_path / "till.csv")
    words = ("drift", "till.csv", "--at", "2026-05", "--no-choice", "nothing")
    assert "compare each with --by store." in run(*words, cwd=tmp_path).stderr
    assert "Warning" not in run(*words, "--by", "store", cwd=tmp_path).stderr


def test_markets_list_the_columns_that_they_do_not_use(tmp_path: Path) -> None:
    write(visits(900, price_effect=2.0), tmp_path / "till.csv")
    options = ("--no-choice", "nothing", "--method", "mnl", "--no-pool", "--jobs", "1")
    done = run("fit", "till.csv", "--by", "store", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Price varies for 4 of 4 items: use it with --price-columns Price." in done.stderr
    assert "The model ignores when a choice was made ('date', 2 March 2026" in done.stderr
    assert done.stdout.startswith("Warning: Price is ignored, but choices depend on it (p ")
    assert "Warning: Price is ignored" in run("show", "models", "--market", "West", cwd=tmp_path).stdout
    content = json.loads(run("fit", "till.csv", "--by", "store", *options, "--json", cwd=tmp_path).stdout)
    assert [column["name"] for column in content["unused"]] == ["Price", "date"]
    again = run("fit", "till.csv", "--by", "store", *options, "--price-columns", "Price", "--out", "at", cwd=tmp_path)
    assert "Price" not in again.stderr


def test_markets_in_folders_are_looked_at_together(tmp_path: Path) -> None:
    table = visits(900, price_effect=2.0)
    for store, rows in table.groupby("store"):
        (tmp_path / "till" / f"store={store}").mkdir(parents=True)
        write(rows.drop(columns="store"), tmp_path / "till" / f"store={store}" / "choices.csv")
    (tmp_path / "till" / "older.csv").mkdir()  # a folder is no file, whatever its name
    options: dict[str, Any] = {"method": "mnl", "n_jobs": 1, "pool": False, "no_choice": "nothing"}
    apart = rs.estimate_many(tmp_path / "till", "store", out=tmp_path / "apart", **options)
    whole = rs.estimate_many(table, "store", out=tmp_path / "whole", **options)
    assert [column.name for column in apart.tallies.unused] == ["Price", "date"]
    for one, other in zip(apart.tallies.unused, whole.tallies.unused, strict=True):
        assert (one.sentence, one.warning, one.evidence) == (other.sentence, other.warning, other.evidence)


def test_markets_are_compared_with_themselves_alone() -> None:
    """One store is dear and its customers differ; within each store neither price nor day matters."""
    table = visits(1500, store_effect=2.5)
    table["Price"] = np.where(table.store == "West", 9.5, 7.25) + 0.25 * (table.obs_id % 2)
    table["till"] = table.store + " " + (table.obs_id % 2).astype(str)
    mixed, apart = found_in(table.drop(columns="store")), found_in(table, by="store")
    assert mixed["till"].warning
    assert not apart["till"].warning
    assert not apart["Price"].warning
    differing = table.assign(chosen=table.chosen.where(table.obs_id % 2 == 1, 0))
    warning = found_in(differing, by="store")["till"].warning
    assert "fit one model for each with by=['store', 'till']" in warning
    assert shell_words(warning).endswith("with --by store,till.")


def test_without_an_effect_intervals_keep_their_level(tmp_path: Path) -> None:
    write(visits(300), tmp_path / "till.csv")
    run("fit", "till.csv", "--no-choice", "nothing", "--method", "mnl", cwd=tmp_path)
    about = load_model(tmp_path / "model.json").about
    assert [column["name"] for column in about["unused"]] == ["Price", "store", "date"]
    assert fit_warnings(about) == []
    assert interval_words(about) == "95 % intervals"


@pytest.mark.parametrize("said", [None, 3, "Price", [1, "x"], [{}], [{"warning": 3}], {"warning": "x"}])
def test_a_file_may_say_anything(said: object) -> None:
    assert fit_warnings({"unused": said}) == []
    assert not any(column.warning for column in unused_columns.unused_in({"unused": said}))
    assert interval_words({"unused": said}, 0.9) == "90 % intervals"


def test_columns_beside_rankings_are_not_looked_at() -> None:
    rows = pd.DataFrame({"ranking": ["tea>pie", "pie>tea"] * 60, "shop": ["a", "b"] * 60})
    (shop,) = read(rows, format="rankings").unused
    assert (shop.kind, shop.sentence, shop.p_value) == ("other", "The column 'shop' is not used: not checked.", None)
