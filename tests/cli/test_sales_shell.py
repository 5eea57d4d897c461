"""Receipts at the shell: fit with a stock log, by store and by category, and commands that read them the same way."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import rankstream as rs
from shell import run

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "receipts"))
import stores

QUICK = ("--method", "mnl", "--no-standard-errors")
SPLIT: tuple[dict[str, Any], ...] = ({"until": "2025-11-06"}, {"since": "2025-11-06"})
TABLES = ("--stock", "stock.csv", "--visits", "door.csv")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    stores.simulate(folder, days=10, visits=60, seed=1)
    return folder


def test_fit_counts_as_read_sales_does_and_prints_the_account(shop: Path) -> None:
    expected = rs.read_sales(shop / "receipts.csv", shop / "stock.csv", visits=shop / "door.csv")
    told = run("fit", "receipts.csv", *TABLES, *QUICK, cwd=shop)
    assert told.returncode == 0, told.stderr
    assert expected.account is not None
    assert expected.account.summary() in told.stdout
    about = rs.load_model(shop / "model.json").about
    assert about["data"]["digest"] == expected.counts.digest()
    assert about["reading"]["stock"] == "stock.csv"
    found = json.loads(run("fit", "receipts.csv", *TABLES, *QUICK, "--json", cwd=shop).stdout)
    assert found["account"] == json.loads(json.dumps(expected.account.to_json()))


def test_a_report_reads_the_receipts_as_the_model_did(shop: Path) -> None:
    run("fit", "receipts.csv", *TABLES, *QUICK, "-o", "reported.json", cwd=shop)
    words = ("--data", "receipts.csv", "--no-intervals", "-o", "page.html")
    told = run("report", "reported.json", *words, cwd=shop)
    assert told.returncode == 0, told.stderr
    assert "ended without a purchase. This share is measured, not assumed." in (shop / "page.html").read_text()


def test_markets_by_store_and_by_category(shop: Path) -> None:
    told = run("fit", "receipts.csv", *TABLES, "--by", "store", *QUICK, "--no-pool", "--jobs", "1", "-o", "s", cwd=shop)
    assert told.returncode == 0, told.stderr
    assert "ended without a purchase" in told.stderr
    each = rs.read_sales(shop / "receipts.csv", shop / "stock.csv", visits=shop / "door.csv", by="store")
    markets = rs.Markets.load(shop / "s")
    assert {key: markets.row(key).choices for key in markets} == {
        (key,): counts.observations for key, counts in each.groups.items()
    }
    with (shop / "receipts.csv").open() as file:
        rows = [row | {"kind": "drink" if row["item"] == "juice" else "food"} for row in csv.DictReader(file)]
    with (shop / "kinds.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    told = run(
        "fit", "kinds.csv", *TABLES, "--category", "kind", *QUICK, "--no-pool", "--jobs", "1", "-o", "k", cwd=shop
    )
    assert told.returncode == 0, told.stderr
    assert set(rs.Markets.load(shop / "k")) == {("drink",), ("food",)}


def test_age_drift_and_the_recent_offer_work_as_for_other_files(shop: Path) -> None:
    tables: dict[str, Any] = {"stock": shop / "stock.csv", "visits": shop / "door.csv"}
    told = run("fit", "receipts.csv", *TABLES, "--half-life", "3d", *QUICK, "-o", "faded.json", cwd=shop)
    assert told.returncode == 0, told.stderr
    faded = rs.read_sales(shop / "receipts.csv", **tables, half_life="3d").counts
    assert rs.load_model(shop / "faded.json").about["choices"] == pytest.approx(faded.observations)
    told = run("drift", "receipts.csv", *TABLES, "--at", "2025-11-06", "--json", cwd=shop)
    assert told.returncode == 0, told.stderr
    early, late = (rs.read_sales(shop / "receipts.csv", **tables, **part).counts for part in SPLIT)
    assert json.loads(told.stdout)["tested"] == rs.drift_report(early, late).tested
    (shop / "margins.csv").write_text("item,margin\n" + "".join(f"{item},1\n" for item in stores.ITEMS))
    words = ("--margins", "margins.csv", "--present", "recent", "--data", "receipts.csv", "--no-intervals", "--json")
    told = run("decide", "faded.json", *words, cwd=shop)
    assert told.returncode == 0, told.stderr
    assert "skyr" in json.loads(told.stdout)["context"]["present"]  # launched in the middle of the time
    told = run("compare", "receipts.csv", *TABLES, "--holdout", "time", "--folds", "2", "--models", "mnl", cwd=shop)
    assert told.returncode == 0, told.stderr
    assert "later periods held out" in told.stdout


def test_lost_sales_are_those_of_the_library_with_intervals(shop: Path) -> None:
    run("fit", "receipts.csv", *TABLES, *QUICK, "-o", "lost.json", cwd=shop)
    words = ("decide", "lost.json", "--margins", "items.csv", "--lost-sales")
    told = run(*words, "--data", "receipts.csv", "--since", "2025-11-06", "--currency", "EUR", cwd=shop)
    assert told.returncode == 0, told.stderr
    tables: dict[str, Any] = {"stock": shop / "stock.csv", "visits": shop / "door.csv"}
    late, whole = (rs.read_sales(shop / "receipts.csv", **tables, since=since) for since in ("2025-11-06", None))
    assert late.account is not None
    earned = {item: price - cost for item, price, cost in zip(stores.ITEMS, stores.PRICES, stores.COSTS, strict=True)}
    expected = rs.lost_sales(rs.load_model(shop / "lost.json"), late.account, earned, counts=whole.counts)
    assert expected.table() in told.stdout
    share = (
        f"({100 * expected.met / expected.customers:.1f} %) were made while an item was out of stock, 6 November 2025"
    )
    assert f"{expected.met:,.0f} of {expected.customers:,.0f} choices {share}" in told.stdout
    assert "Money is in EUR. " in told.stdout.replace("\n", " ")
    told = run(*words, "--data", "receipts.csv", "--no-intervals", "--json", cwd=shop)
    assert whole.account is not None
    alone = rs.lost_sales(rs.load_model(shop / "lost.json"), whole.account, earned)
    assert json.loads(told.stdout)["total"]["money"] == pytest.approx(alone.total.money)
    assert json.loads(told.stdout)["total"]["low"] is None
    assert "interval" not in run(*words, "--data", "receipts.csv", "--no-intervals", cwd=shop).stdout
    for more, message in (
        ((), "--lost-sales needs the receipts: add --data"),
        (("--data", "receipts.csv", "--safe"), "--safe, --next and --lost-sales cannot be combined"),
        (("--data", "receipts.csv", "--since", "soon"), "since is 'soon': write a time such as"),
    ):
        assert message in run(*words, *more, cwd=shop).stderr
    assert "--since needs --lost-sales" in run(*words[:-1], "--since", "2025-11-06", cwd=shop).stderr


def test_what_is_not_for_receipts_is_refused(shop: Path) -> None:
    told = run("fit", "receipts.csv", "--stock", "nowhere.csv", cwd=shop)
    assert "There is no file nowhere.csv" in told.stderr
    told = run("fit", "receipts.csv", *TABLES, "--conflicts", "ignore", cwd=shop)
    assert "--conflicts is 'ignore'" in told.stderr
