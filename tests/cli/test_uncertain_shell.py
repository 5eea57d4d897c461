"""Snapshots at the shell: fits by EM, when items sold out, ranges, and what is refused."""

import csv
import json
import sys
from pathlib import Path

import pytest

import rankstream as rs
from rankstream.data.readers import Reading
from shell import run

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "receipts"))
import stores

TABLES = ("--stock", "snapshots.csv", "--visits", "door.csv")
UNCERTAIN = (*TABLES, "--between", "uncertain")


def write_snapshots(folder: Path) -> None:
    """What is on the shelves at half past eight, before the first customer, by the log of each change."""
    with (folder / "stock.csv").open() as file:
        changes = sorted(csv.DictReader(file), key=lambda row: row["time"])
    shelf: dict[tuple[str, str], bool] = {}
    with (folder / "snapshots.csv").open("w") as file:
        file.write("time,store,item\n")
        for day in sorted({row["time"][:10] for row in changes}):
            shelf |= {(row["store"], row["item"]): row["on_hand"] != "0" for row in changes if row["time"][:10] < day}
            filled = [row for row in changes if f"{day} 00" < row["time"] < f"{day} 08:30"]
            shelf |= {(row["store"], row["item"]): row["on_hand"] != "0" for row in filled}
            file.writelines(f"{day} 08:30:00,{store},{item}\n" for (store, item), is_there in shelf.items() if is_there)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    stores.simulate(folder, days=21, visits=60, seed=3)
    write_snapshots(folder)
    told = run("fit", "receipts.csv", *UNCERTAIN, "--method", "mnl", cwd=folder)
    assert told.returncode == 0, told.stderr
    (folder / "told.txt").write_text(told.stdout)
    return folder


@pytest.fixture(scope="module")
def found(shop: Path) -> Reading:
    return rs.read_sales(shop / "receipts.csv", shop / "snapshots.csv", visits=shop / "door.csv", between="uncertain")


def test_fit_weighs_the_possible_offers_and_says_so(shop: Path, found: Reading) -> None:
    assert found.account is not None
    assert found.uncertain is not None
    told = (shop / "told.txt").read_text()
    assert found.account.summary() in told
    assert f"{found.account.uncertain:g} of the choices are from offers that are known in part" in told
    assert f"{found.uncertain.observations:,} choices" in told
    model, expected = rs.load_model(shop / "model.json"), rs.estimate(found.uncertain, method="mnl").model
    naive = rs.estimate(found.counts, method="mnl").model
    share = model.predict(stores.ITEMS)["yoghurt"]
    assert share == pytest.approx(expected.predict(stores.ITEMS)["yoghurt"], abs=1e-6)
    assert abs(share - naive.predict(stores.ITEMS)["yoghurt"]) > 1e-4
    shown = run("show", "model.json", cwd=shop)
    assert "are from offers that are known in part" in shown.stdout
    assert f"{found.uncertain.observations:,} choices in receipts.csv" in shown.stdout


def test_sell_outs_are_a_table_of_the_estimated_times(shop: Path, found: Reading) -> None:
    assert found.uncertain is not None
    words = ("show", "model.json", "--data", "receipts.csv", "--sell-outs")
    rows = json.loads(run(*words, "--json", cwd=shop).stdout)["sell_outs"]
    expected = rs.availability(found.uncertain, rs.load_model(shop / "model.json"))
    assert sorted((row["store"], row["item"]) for row in rows) == sorted((one.place, one.item) for one in expected)
    assert [row["earliest"] for row in rows] == sorted(row["earliest"] for row in rows)
    assert all(row["earliest"] <= row["expected"] <= row["latest"] for row in rows)
    told = run(*words, cwd=shop)
    assert told.stdout.splitlines()[0].split() == ["store", "item", "expected", "earliest", "latest"]
    assert len(told.stdout.splitlines()) == len(rows) + 2


def test_ranges_hold_whatever_was_on_offer(shop: Path, found: Reading) -> None:
    words = ("--offer", "granola;fruit", "--data", "receipts.csv", "--range", "0.9")
    told = run("predict", "model.json", *words, "--json", cwd=shop)
    assert told.returncode == 0, told.stderr
    [content] = json.loads(told.stdout)
    assert found.uncertain is not None
    offer = ("granola", "fruit", "no choice")
    bounds = rs.probability_range(found.uncertain, offer, "fruit", region="confidence", confidence=0.9)
    assert content["intervals"]["fruit"] == pytest.approx([bounds.low, bounds.high], abs=3e-3)
    assert "[" in run("predict", "model.json", *words, cwd=shop).stdout


def test_answers_read_the_choices_as_the_fit_did(shop: Path) -> None:
    (shop / "margins.csv").write_text("item,margin\n" + "".join(f"{item},1\n" for item in stores.ITEMS))
    told = run("decide", "model.json", "--margins", "margins.csv", "--budget", "5", cwd=shop)
    assert told.returncode == 0, told.stderr
    assert "Today's offer" in told.stdout  # the file beside the model is that of the fit
    assert "budget" not in told.stderr
    told = run("decide", "model.json", "--margins", "margins.csv", "--safe", "--budget", "5", cwd=shop)
    assert told.returncode == 0, told.stderr
    told = run("report", "model.json", "--data", "receipts.csv", "-o", "page.html", cwd=shop)
    assert told.returncode == 0, told.stderr
    assert "is not what the model was fitted to" not in told.stderr
    page = (shop / "page.html").read_text()
    assert "are from offers that are known in part" in page
    assert "There are no intervals where offers are known in part" in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fit", "receipts.csv", *UNCERTAIN, "--outside-share", "0.3"), "--outside-share"),
        (("fit", "receipts.csv", *UNCERTAIN, "--by", "store"), "--between uncertain does not work with many markets"),
        (("fit", "receipts.csv", "--stock", "stock.csv", "--between", "uncertain"), "--between uncertain needs snap"),
        (("fit", "receipts.csv", *TABLES, "--between", "perhaps"), "--between is 'perhaps'"),
        (("fit", "receipts.csv", *UNCERTAIN, "--half-life", "3d"), "half_life"),
        (("show", "model.json", "--sell-outs"), "--sell-outs needs --data"),
        (("show", "model.json", "--data", "receipts.csv"), "Refits have no intervals where offers are known in part"),
        (
            ("decide", "model.json", "--margins", "items.csv", "--lost-sales", "--data", "receipts.csv"),
            "Lost sales need known times of stock-outs: read with --between 'last sale' or 'present'",
        ),
        (("predict", "model.json", "--offer", "juice", "--range", "0.9"), "add --data FILE"),
    ],
)
def test_what_does_not_work_is_named(shop: Path, words: tuple[str, ...], message: str) -> None:
    told = run(*words, *(("-o", "refused.json") if words[0] == "fit" else ()), cwd=shop)
    assert told.returncode == 2
    assert message in told.stderr
    assert not (shop / "refused.json").exists()


def test_the_last_sale_dates_a_sell_out(shop: Path) -> None:
    words = ("--between", "last sale", "--method", "mnl", "-o", "last.json")
    told = run("fit", "receipts.csv", *TABLES, *words, cwd=shop)
    assert told.returncode == 0, told.stderr
    assert "counts as sold out at its last sale" in told.stdout
    read = rs.read_sales(shop / "receipts.csv", shop / "snapshots.csv", visits=shop / "door.csv", between="last sale")
    assert rs.load_model(shop / "last.json").about["data"]["digest"] == read.counts.digest()
    told = run("show", "last.json", "--data", "receipts.csv", "--sell-outs", cwd=shop)
    assert "--sell-outs needs --data with receipts, and a model of 'fit --between uncertain'" in told.stderr
