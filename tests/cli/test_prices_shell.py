"""Prices at the shell: fit, predict, show and plot, with sentences for what is wrong."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import rankstream as rs
from shell import run

NOTHING, QUICK = "nothing", ("--method", "nearest")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with choices at prices, as lists, as a wide table and as JSON lines, and a model of them."""
    folder, random = tmp_path_factory.mktemp("shop"), np.random.default_rng(0)
    lists, wide, lines = [], [], []
    for _ in range(600):
        prices = {"tea": float(random.choice([3, 3.5, 4])), "cake": float(random.choice([4, 5]))}
        worth = {"tea": random.uniform(2, 5), "cake": random.uniform(3, 6)}
        gains = {item: worth[item] - prices[item] for item in prices} | {NOTHING: 0.0}
        chosen = max(gains, key=lambda item: gains[item])
        lists.append((f"tea@{prices['tea']:.2f};cake@{prices['cake']:.2f};{NOTHING}", chosen))
        wide.append((1, prices["tea"], prices["cake"], chosen))
        lines.append(json.dumps({"offered": {**prices, NOTHING: None}, "chosen": chosen}))
    for name, heads, rows in (
        ("shop.csv", ("offered", "chosen"), lists),
        ("wide.csv", (NOTHING, "price_tea", "price_cake", "chosen"), wide),
    ):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows([heads, *rows])
    (folder / "shop.jsonl").write_text("\n".join(lines) + "\n")
    made = run("fit", "shop.csv", *QUICK, "--price-columns", "offered", "-o", "model.json", cwd=folder)
    assert made.returncode == 0, made.stderr
    return folder


def test_fit_reads_prices_and_the_model_remembers_how(shop: Path) -> None:
    ways = {"shop.csv": "offered", "wide.csv": "price_tea,price_cake", "shop.jsonl": "offered"}
    digests = set()
    for name, columns in ways.items():
        found = run("fit", name, *QUICK, "--price-columns", columns, "-o", "other.json", "--json", cwd=shop)
        content = json.loads(found.stdout)
        assert content["prices"] == {"cake": [4.0, 5.0], "tea": [3.0, 3.5, 4.0]}
        about = rs.load_model(shop / "other.json").about
        assert about["reading"]["price_columns"] == columns
        digests.add(about["data"]["digest"])
    assert len(digests) == 1
    found = run(
        "fit", "shop.csv", *QUICK, "--price-columns", "offered", "--price-levels", "2", "-o", "two.json", cwd=shop
    )
    assert "Price levels: cake 4.00, 5.00; tea " in found.stdout
    two = rs.load_model(shop / "two.json")
    assert len(two.price_levels.levels["tea"]) == 2
    assert two.price_levels.bins["tea"][0] == 3.0
    given = '{"tea": [3, 4], "cake": [4, 5]}'
    run("fit", "shop.csv", *QUICK, "--price-columns", "offered", "--price-levels", given, "-o", "given.json", cwd=shop)
    assert rs.load_model(shop / "given.json").price_levels == rs.PriceLevels(json.loads(given))


def test_predict_takes_prices(shop: Path) -> None:
    model = rs.load_model(shop / "model.json")
    (shop / "offers.txt").write_text('tea@3.50;cake@4.00;nothing\n{"tea": 3.25, "nothing": null}\n')
    found = json.loads(run("predict", "model.json", "--offers", "offers.txt", "--json", cwd=shop).stdout)
    assert found[0]["shares"] == pytest.approx(model.predict({"tea": 3.5, "cake": 4.0, NOTHING: None}))
    assert found[0]["between_levels"] == []
    assert found[1]["shares"] == pytest.approx(model.predict({"tea": 3.25, NOTHING: None}))
    assert found[1]["between_levels"] == ["tea"]
    words = ("predict", "model.json", "--offer")
    said = run(*words, "tea@3.25;cake@4.5;nothing", cwd=shop).stdout
    assert "(tea, cake are between two price levels each: shares are interpolated linearly between them.)" in said
    labels = run(*words, "tea @ 3.50;nothing", "--json", cwd=shop)
    assert json.loads(labels.stdout)[0]["shares"] == pytest.approx(model.predict({"tea": 3.5, NOTHING: None}))
    listed = run(*words, '["tea@3.50", "nothing"]', "--json", cwd=shop)
    assert json.loads(listed.stdout)[0]["shares"] == json.loads(labels.stdout)[0]["shares"]
    commas = run(*words, "tea@3,50;nothing", "--json", cwd=shop)
    assert json.loads(commas.stdout)[0]["shares"] == json.loads(labels.stdout)[0]["shares"]
    refits = ("--interval", "0.9", "--data", "shop.csv", "--replicates", "3", "--json")
    (row,) = json.loads(run(*words, "tea@3.25;nothing", *refits, cwd=shop).stdout)
    low, high = row["intervals"]["tea"]
    assert low < row["shares"]["tea"] < high


BAD = {
    "tea@9;nothing": "The price 9 of 'tea' is outside its levels, which cover 3 to 4",
    "tea;nothing": "The offer 'tea;nothing' lacks the price of 'tea': write tea@",
    "tea@cheap;nothing": "the price of 'tea' is 'cheap', which is not a number",
    "tea@-1": "the price of 'tea' is -1.0",
    "tea@3;tea@4": "lists 'tea' twice: give each item one price",
    "rum@3;nothing": "names 'rum', which is not an item of the model",
    "tee@3;nothing": "did you mean 'tea'?",
    "tea@3;nothing@1": "The item 'nothing' has a price, but no levels",
}


@pytest.mark.parametrize("offer", BAD)
def test_a_bad_offer_is_one_sentence(offer: str, shop: Path) -> None:
    found = run("predict", "model.json", "--offer", offer, cwd=shop)
    assert (found.returncode, found.stdout) == (2, "")
    assert BAD[offer] in found.stderr
    assert found.stderr.count("\n") == 1


def test_show_prints_levels_and_demand(shop: Path) -> None:
    said = run("show", "model.json", "--top", "2", cwd=shop).stdout
    assert "A model of 2 items at price levels: " in said
    assert "Read with --price-columns offered." in said
    assert "Price levels: cake 4.00, 5.00; tea 3.00, 3.50, 4.00." in said
    model = rs.load_model(shop / "model.json")
    usual = dict(model.about["usual_prices"])
    curve = model.demand("tea", {"cake": usual["cake"], NOTHING: None})
    shares = ", ".join(f"{price:.2f}: {100 * share:.1f} %" for price, share in curve.items())
    assert f"  tea  {shares}\n" in said
    words = ("show", "model.json", "--data", "shop.csv", "--replicates", "3", "--json")
    content = json.loads(run(*words, cwd=shop).stdout)
    assert content["usual_offer"] == {**usual, "nothing": None}
    assert [row["item"] for row in content["items"]] == [
        f"cake @ {usual['cake']:.2f}",
        "nothing",
        f"tea @ {usual['tea']:.2f}",
    ]
    for row in content["demand"]["tea"]:
        assert row["share"] == pytest.approx(curve[row["price"]])
        assert row["low"] <= row["share"] <= row["high"]


def test_other_choices_are_read_at_the_levels_of_the_model(shop: Path) -> None:
    rows = [("tea@3.10;cake@4.2;nothing", "tea"), ("tea@3.9;cake@5;nothing", NOTHING)]
    with (shop / "later.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("offered", "chosen"), *rows])
    words = ("plot", "model.json", "-o", "fit.png", "--kind", "fit", "--data")
    assert run(*words, "later.csv", cwd=shop).returncode == 0
    with (shop / "later.csv").open("a", newline="") as file:
        csv.writer(file).writerow(("tea@8;cake@5;nothing", NOTHING))
    found = run(*words, "later.csv", cwd=shop)
    assert found.returncode == 2
    assert "the price 8 of 'tea' is outside its levels" in found.stderr
    assert "read with the options of the fit, --price-columns offered" in found.stderr


def test_plot_draws_demand(shop: Path) -> None:
    model = rs.load_model(shop / "model.json")
    words = ("plot", "model.json", "-o", "demand.svg", "--kind", "demand")
    found = run(*words, "--item", "tea", "--offer", "cake@4.5;nothing", "--json", cwd=shop)
    rows = json.loads(found.stdout)["demand"]["tea"]
    curve = model.demand("tea", {"cake": 4.5, NOTHING: None})
    assert {row["price"]: row["share"] for row in rows} == pytest.approx(curve)
    assert b"<svg" in (shop / "demand.svg").read_bytes()
    found = run(*words, "--data", "shop.csv", "--replicates", "3", "--json", cwd=shop)
    content = json.loads(found.stdout)["demand"]
    assert list(content) == ["cake", "tea"]
    assert all(row["low"] <= row["share"] <= row["high"] for row in content["tea"])
    gains = ("plot", "model.json", "-o", "gains.png", "--kind", "substitution", "--offer", "tea@3.5;cake@4;nothing")
    assert run(*gains, cwd=shop).returncode == 0


def test_options_that_do_not_fit_are_refused(shop: Path) -> None:
    rs.RankingModel(["tea", "pie"], [("tea", "pie")], [1.0]).save(shop / "plain.json")
    demand = ("plot", "model.json", "-o", "x.png", "--kind", "demand")
    fit = ("fit", "shop.csv", "-o", "x.json")
    for words, said in (
        ((*demand, "--item", "rum"), "--item names 'rum', which is not an item of the model"),
        ((*demand, "--item", NOTHING), "The item 'nothing' has no price levels"),
        ((*demand, "--offer", NOTHING), "A demand curve needs an item with two price levels"),
        ((*demand, "--offer", "cake@9;nothing", "--item", "tea"), "The price 9 of 'cake' is outside its levels"),
        (("plot", "model.json", "-o", "x.png", "--item", "tea"), "--item does not work with --kind segments"),
        (("plot", "plain.json", "-o", "x.png", "--kind", "demand"), "The model has no prices"),
        ((*fit, "--price-levels", "3"), "price_levels needs prices"),
        ((*fit, "--price-columns", "cost"), "has no price column 'cost' (it has 'offered', 'chosen'"),
        ((*fit, "--price-columns", "offered", "--price-levels", "some"), "--price-levels is 'some': give a number"),
        ((*fit, "--price-columns", "offered", "--price-levels", "9"), "too few for 9 levels"),
        ((*fit, "--price-columns", "offered", "--by", "shop"), "has no column 'shop'"),
    ):
        found = run(*words, cwd=shop)
        assert found.returncode == 2, words
        assert said in found.stderr
        assert not (shop / "x.png").exists()
        assert not (shop / "x.json").exists()
