import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from decide_shell import MODEL, TABLE, call, folder
from rankstream import Assortments, ChoiceCounts
from rankstream.cli.items import read_items, word_pairs
from rankstream.decide import best_offer
from rankstream.decide.context import most_frequent_offer, recent_choices
from rankstream.decide.decision import summary
from rankstream.plots.fits import runners_up, value_by_size

__all__ = ["folder"]
MARGINS = {"tea": 1.0, "cream": 3.0, "cake": 2.0, "pie": 2.5}


def answer(folder: Path, *words: object) -> dict[str, Any]:
    done = call(folder, *words, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_command_decides_as_the_function_does(folder: Path) -> None:
    words = ["--at-most", 3, "--must", "tea", "--never", "cake", "--requires", "cream:tea", "--capacity", 4, "--top", 3]
    found = answer(folder, *words)
    costs = {"tea": 0.1, "cake": 0.1, "pie": 0.1}
    wanted = best_offer(
        MODEL, MARGINS, at_most=3, must=["tea"], never=["cake"], requires=[("cream", "tea")], listing_costs=costs,
        space={"tea": 1, "cream": 2, "cake": 1, "pie": 2}, capacity=4, top=3,
    )  # fmt: skip
    assert found["offer"] == list(wanted.offer)
    assert found["value"] == pytest.approx(wanted.value)
    assert found["proven"]
    assert [one["offer"] for one in found["runners_up"]] == [list(one.offer) for one in wanted.runners_up]
    text = call(folder, *words).stdout
    assert "Proven best: by this model, no feasible offer is worth more" in text
    assert "tea is taken by" in text
    assert "without it, the offer earns" in text
    assert "The best offer of each size earns: 1 item " in text
    assert answer(folder, "--excludes", "cream:pie", "--at-least", 3)["offer"] != wanted.offer


def test_prices_and_unit_costs_are_margins_too(folder: Path) -> None:
    lines = ["item,price,unit_cost", *(f"{item},{value + 5},5" for item, value in MARGINS.items()), "nothing,0,0"]
    (folder / "items.csv").write_text("\n".join(lines))
    assert answer(folder)["value"] == pytest.approx(best_offer(MODEL, MARGINS).value)


def test_data_give_intervals_a_safe_offer_and_the_next_one(folder: Path) -> None:
    found = answer(folder, "--data", "DATA", "--at-most", 2)
    assert found["interval"][0] < found["value"] < found["interval"][1]
    assert {"value", "low", "high", "is_noise"} == set(found["lead"])
    safe = answer(folder, "--data", "DATA", "--safe", "--at-most", 2)
    assert safe["low"] >= safe["best_low"] - 1e-6
    tried = answer(folder, "--data", "DATA", "--next", "--at-most", 2, "--strategy", "greedy")
    assert len(tried["offer"]) <= 2
    text = call(folder, "--data", "DATA", "--next", "--at-most", 2, "--strategy", "greedy").stdout
    assert text == f"Offer next: {', '.join(tried['offer'])}\n"


def test_the_picture_is_drawn(folder: Path) -> None:
    assert call(folder, "--top", 3, "--plot", folder / "decision.png").exit_code == 0
    assert (folder / "decision.png").stat().st_size > 10_000
    safe = call(folder, "--data", "DATA", "--safe", "--plot", folder / "safe.svg")
    assert safe.exit_code == 0
    assert "at least" in safe.stdout
    assert "The offer" in (folder / "safe.svg").read_text()


@pytest.mark.parametrize(
    ("table", "words", "message"),
    [
        ("item,margin\ntea,1\ncream,1\ncake,1\n", [], "has no line for 'pie'"),
        (TABLE + "soup,1,,\n", [], "'soup', which is not an item of the model"),
        (TABLE + "tea,1,,\n", [], "lists 'tea' again"),
        (TABLE + "nothing,1,,\n", [], "means buying nothing"),
        (TABLE.replace("2.5", "nan"), [], "has the margin 'nan' for 'pie'"),
        (TABLE.replace("2.5", "lots"), [], "has the margin 'lots' for 'pie'"),
        (TABLE.replace("0.1,2", "0.1,-2"), [], "the space of 'pie' is -2"),
        (TABLE + "pie,1,2,3,4\n", [], "more fields than columns"),
        ("item,price\ntea,1\n", [], "needs the columns item and margin"),
        ("item,margin,item\n", [], "a column twice"),
        ("item,margin\n", [], "has no items"),
        (TABLE, ["--must", "soup"], "--must names 'soup'"),
        (TABLE, ["--requires", "tea"], "give two items as cream:tea"),
        (TABLE, ["--must", "tea", "--never", "tea"], "both must and never"),
        (TABLE, ["--must", "pie", "--capacity", "1"], "fill 2 of a capacity of 1"),
        (TABLE, ["--at-least", "3", "--capacity", "3"], "No offer meets all constraints"),
        ("item,margin\ntea,1\ncream,1\ncake,1\npie,1\n", ["--capacity", "3"], "add a column space"),
        (TABLE, ["--safe"], "add --data"),
        (TABLE, ["--safe", "--next", "--data", "DATA"], "cannot be combined"),
        (TABLE, ["--next", "--strategy", "luck", "--data", "DATA"], "--strategy is 'luck'"),
        (TABLE, ["--plot", "nowhere/x.png"], "The folder nowhere does not exist"),
    ],
)
def test_bad_input_is_one_sentence(folder: Path, table: str, words: list[str], message: str) -> None:
    (folder / "items.csv").write_text(table)
    done = call(folder, *words)
    assert isinstance(done.exception, ValueError)  # main() turns it into a line and exit code 2
    assert message in str(done.exception)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="There is no file"):
        read_items(tmp_path / "nowhere.csv", {}, None)
    (tmp_path / "odd.csv").write_bytes(b"item,margin\n\xff\xfe,1\n")
    with pytest.raises(ValueError, match="not a CSV file in UTF-8"):
        read_items(tmp_path / "odd.csv", {}, None)


def test_the_present_offer_is_of_the_last_four_weeks_or_of_the_last_slice() -> None:
    offers = Assortments([("tea", "no"), ("pie", "no"), ("cake", "no")])
    slices = [ChoiceCounts(offers, np.repeat(totals, 2)) for totals in ([19, 1, 1], [1, 9, 1], [1, 2, 3])]
    for days, expected in ((7, "tea"), (10, "pie"), (30, "cake")):  # the last 3, 2 and 1
        ends = [(86_400.0 * days * number, 86_400.0 * days * (number + 1)) for number in range(3)]
        known: Any = SimpleNamespace(slices=slices, slice_times=ends)
        assert most_frequent_offer(recent_choices(known)) == (expected, "no")


def test_pairs_of_items_with_colons() -> None:
    names: dict[str, Any] = {"a:b": 1, "c": 2}
    assert word_pairs("--requires", ["a:b:c", "c:a:b"], names) == [("a:b", "c"), ("c", "a:b")]


def test_pictures_show_sizes_and_runners_up() -> None:
    found = best_offer(MODEL, MARGINS, top=3)
    left, right = Figure().subplots(1, 2)
    value_by_size(found, left)
    assert left.get_lines()[0].get_xdata().tolist() == [0, 1, 2, 3, 4]
    assert max(left.get_lines()[0].get_ydata()) == pytest.approx(100 * found.value)
    runners_up(found, right)
    assert len(right.get_yticklabels()) == 3
    runners_up(replace(found, interval=(1.25, 2.5)), right)
    labels = [text.get_text() for text in right.get_yticklabels()]
    assert [label.partition(" ")[2] for label in labels] == ["[125.0, 250.0]", "", ""]
    assert labels[0].split()[0] in summary(found)[0]  # the same number as in the sentence
    assert left.get_ylabel() == right.get_ylabel() == "value per 100 customers"
    alone = Figure().subplots()
    runners_up(best_offer(MODEL, MARGINS), alone)
    assert alone.get_title() == "The offer"


def test_a_wrong_answer_is_a_sentence_and_not_an_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_fits(*_: object) -> bool:
        return False

    monkeypatch.setattr("rankstream.decide.problem.offers.OfferProblem.is_feasible", nothing_fits)
    said = call(folder)
    assert said.exit_code == 1
    assert "breaks a constraint" in said.output
    assert "per customer" not in said.output


@pytest.mark.parametrize(
    ("text", "priced", "message"),
    [
        ("item,margin\n", None, "has no items"), ("item,margin\ntea,1,2\n", None, "Line 2 .* more fields"),
        ("item,margin,margin\ntea,1,2\n", None, "a column twice"),
        ("item,price\ntea,1\n", None, "needs the columns item and margin"),
        ("item,space\ntea,1\n", ["tea"], "needs the columns item and unit_cost"),
        ("item,margin\ntea,1\n", ["tea"], "'tea' needs a unit cost"),
        ("item,margin\ntea,1\ntea,2\n", None, "lists 'tea' again"),
    ],
)  # fmt: skip
def test_tables_of_items_that_are_none(text: str, priced: Any, message: str, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_items(tmp_path / "items.csv", {"tea": "tea"}, None, priced)


def test_tables_of_items(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,price,unit_cost,space\ntea,3,1.25,2\n")
    found = read_items(tmp_path / "items.csv", {"tea": "tea"}, None)
    assert (found.margins, found.space, found.listing_costs, found.unit_costs) == (
        {"tea": 1.75},
        {"tea": 2.0},
        None,
        None,
    )
    (tmp_path / "items.csv").write_text("item,unit_cost\ntea,1.25\n")
    assert read_items(tmp_path / "items.csv", {"tea": "tea"}, None, ["tea"]).unit_costs == {"tea": 1.25}
