"""What commands print, and which options they take, function by function: no command is run."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from rankstream import Assortments, ChoiceCounts, PriceLevels, RankingModel
from rankstream._core.terminal import print_plain
from rankstream.cli import markets as market_commands
from rankstream.cli.drift import _item_line, compares_models, in_both, text_of_choices, text_of_models
from rankstream.cli.markets import as_text, refuse, run_each
from rankstream.cli.model_answers import (
    as_rows,
    check_choices,
    demand_lines,
    ends_of,
    levels_line,
    read_offers,
)
from rankstream.cli.options import ReadingOptions, _fits, levels_in, shell_words
from rankstream.data.drift import LISTED_ITEMS, DriftReport, Movement
from rankstream.data.item_changes import ItemMovement
from rankstream.data.prices import price_text
from rankstream.estimation.intervals import Share

pytestmark = pytest.mark.quick


def test_a_file_of_offers(tmp_path: Path) -> None:
    path = tmp_path / "offers.txt"
    path.write_text('offered\n\n tea;pie \n"tea;no"\n')
    assert read_offers(path) == ["tea;pie", "tea;no"]
    path.write_text("tea\noffered\n")
    assert read_offers(path) == ["tea", "offered"]
    path.write_text("offered\n")
    with pytest.raises(ValueError, match="has no offers"):
        read_offers(path)
    with pytest.raises(ValueError, match="There is no file"):
        read_offers(tmp_path / "none")


def test_choices_that_a_model_was_not_fitted_to(capsys: pytest.CaptureFixture[str]) -> None:
    counts = ChoiceCounts(Assortments([("tea", "pie")]), [3, 2])
    model = RankingModel(["tea", "pie"], [("tea", "pie")], [1.0])
    for digest, told in ((None, False), (counts.digest(), False), ("other", True)):
        model.note(data={"digest": digest})
        check_choices(model, counts, Path("a.csv"))
        assert ("is not what the model was fitted to" in capsys.readouterr().err) is told
    with pytest.raises(ValueError, match="never offers 'bun'"):
        check_choices(RankingModel(["tea", "bun"], [("tea", "bun")], [1.0]), counts, Path("a.csv"))


@dataclass
class Found:
    """What a reading of a shop with markets gives."""

    counts: Any
    groups: Any
    uncertain: Any = None


def test_choices_of_a_market_of_a_shop_are_found_by_all_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def read_sales(_: Path, **named: Any) -> Found:
        asked.append(named.get("by"))
        return Found("all", {"York": "of York", ("York", "hot"): "York, hot"})

    monkeypatch.setattr("rankstream.data.readers.read_sales", read_sales)
    for where, counts in ({}, "all"), ({"store": "York"}, "of York"), ({"store": "York", "kind": "hot"}, "York, hot"):
        found: Any = ReadingOptions()._read_sales(Path("receipts.csv"), {"where": where})
        assert found.counts == counts
    assert asked == [None, ["store"], ["store", "kind"]]


def test_prices_and_demand_in_lines() -> None:
    assert [price_text(one) for one in (2.5, 2.125, 3.0)] == ["2.50", "2.125", "3.00"]
    assert levels_line({"tea": [2, 3.5], "pie": [4]}) == "Price levels: tea 2.00, 3.50; pie 4.00."
    assert ends_of({"share": 0.5}) == ""
    assert ends_of({"low": 0.123, "high": 0.5}) == " [12.3, 50.0]"
    rows = as_rows({"tea": {2.0: 0.5, 3.0: Share(0.25, 0.2, 0.3)}})
    assert rows["tea"][0] == {"price": 2.0, "share": 0.5}
    assert rows["tea"][1] == {"price": 3.0, "share": 0.25, "low": 0.2, "high": 0.3}
    lines = demand_lines({"prices": {"tea": [2, 3]}, "demand": rows})
    assert lines[3] == "  tea  2.00: 50.0 %, 3.00: 25.0 % [20.0, 30.0]"
    assert len(demand_lines({"prices": {"tea": [2, 3]}, "demand": {}})) == 2


def report(moved: int, tested: int, items: int = 0, appeared: int = 0) -> DriftReport:
    def movement(number: int) -> Movement:
        return Movement((f"a{number}", "no"), 50.0, 50.0, 4.0, 1, 0.01, 0.02, number < moved, f"a{number}", 0.1)

    found = tuple(ItemMovement(f"a{number}", 0.1, 0.01, 2, 1) for number in range(items))
    offers = tuple((f"b{number}", "no") for number in range(appeared))
    return DriftReport(tuple(map(movement, range(tested))), offers, (), 0.05, "holm", found)


def test_changes_in_lines() -> None:
    lines = text_of_choices(report(2, 3, items=3, appeared=2), 2, by_offer=False).splitlines()
    assert lines[1] == "2 of 3 offers changed significantly (holm, 5 % false-alarm rate)."
    assert lines[2].startswith("  a0: +10.0 points on average in all 2 offers with it, 1 of which")
    assert lines[4:] == ["  and 1 more item", LISTED_ITEMS, "New: 2 offers", "List the offers with --by-offer."]
    whole = text_of_choices(report(2, 3, appeared=1), 1, by_offer=True).splitlines()
    assert whole[2:] == [
        "Offers, with the item that changed most in each:", "  a0 +10.0 points in a0;no: p = 0.02", "New: 1 offer",
        "  b0;no",
    ]  # fmt: skip
    assert "more item" not in text_of_choices(report(0, 1, items=2), 2, by_offer=False)
    assert "--by-offer" not in text_of_choices(report(0, 1, items=1), 2, by_offer=False)


def test_an_item_in_a_line() -> None:
    def line(offers: int, moved: int, given: bool = False) -> str:
        return _item_line(ItemMovement("tea", 0.1, 0.012, offers, moved, 0.3), given)

    assert line(1, 1) == "tea: +10.0 points in the one offer with it (p = 0.012)"
    assert line(2, 2) == "tea: +10.0 points in all 2 offers with it (p = 0.012)"
    assert (
        line(1, 0) == "tea: +10.0 points in the one offer with it, 0 of which changed significantly alone (p = 0.012)"
    )
    assert line(3, 2).startswith("tea: +10.0 points on average in all 3 offers with it, 2 of which")
    assert line(3, 2, given=True).startswith("tea: +10.0 points on the same offers; +30.0 points overall, the rest")


def test_types_that_came_and_went_in_lines() -> None:
    one = {"ranking": ["tea"], "before": 0.1, "after": 0.25}
    two = {"ranking": ["tea", "pie"], "before": 0.0, "after": 0.05}
    content: dict[str, Any] = {
        "types_by": "first two favourites", "least": 0.01, "no_choice": "no", "only_before": ["bun"], "only_after": [],
        "appeared": [two, two], "vanished": [], "grew": [one], "shrank": [],
    }  # fmt: skip
    assert text_of_models(content, 1).splitlines() == [
        "Customer types by their first two favourites, changes of 1 points or more: 2 appeared, 0 vanished, 1 grew, "
        "0 shrank.",
        "Appeared:", "    0.0 % to   5.0 %  tea > pie", "Grew:", "   10.0 % to  25.0 %  tea > (no)",
        "Items only before: bun",
    ]  # fmt: skip


def test_what_can_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RankingModel(["tea", "no"], [("tea", "no")], [1.0]).save(tmp_path / "m.json")
    (tmp_path / "a.csv").write_text("offered,chosen\n")
    model, file = tmp_path / "m.json", tmp_path / "a.csv"
    assert compares_models(model, model, None)
    assert not compares_models(file, file, None)
    assert not compares_models(file, None, "2024")
    for before, after, at, words in (
        (model, None, "2024", "is a model, which has no times"), (file, None, None, "Give two files"),
        (file, file, "2024", "Give two files"), (model, file, None, "is a model and"),
        (file, model, None, "is a model and"), (model, tmp_path / "none", None, "There is no file"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            compares_models(before, after, at)
    assert in_both({"York": 1, "Bath": 2}, {"York": 3, "Ely": 4}) == {"York": (1, 3)}
    told = capsys.readouterr().err
    assert "Only in the earlier period, so not compared: Bath." in told
    assert "Only in the later period, so not compared: Ely." in told
    with pytest.raises(ValueError, match="No market occurs in both periods"):
        in_both({"York": 1}, {"Ely": 4})


def test_what_became_of_markets_in_lines() -> None:
    failed = [{"market": f"m{number}", "error": "no"} for number in range(12)]
    content = {"choices": 1.0, "fitted": 2, "by": ["store"], "methods": {"mnl": 2}, "failed": failed, "models": "out"}
    lines = as_text(content).splitlines()
    assert lines[0] == "1 choice; 2 markets by store; method: mnl for 2."
    assert sum(line.startswith("Failed:") for line in lines) == market_commands.MOST_SHOWN == 10
    assert lines[-2:] == ["2 more failed: see the column error of index.parquet.", "Saved 2 models in out."]
    none = as_text(content | {"fitted": 0, "methods": {}, "failed": failed[:10]}).splitlines()
    assert none[0] == "1 choice; 0 markets by store; method: none."
    assert none[-1] == "Failed: m9: no"
    priced = as_text(content | {"prices_in_common": 0.456, "price_levels": "for all"})
    assert "Price levels: for all (46 % of the offered prices occur in several markets)." in priced
    refuse("markets", {"--a": None, "--b": False})
    with pytest.raises(ValueError, match="--b does not work with markets"):
        refuse("markets", {"--a": None, "--b": 0.5})


def test_a_market_that_fails_is_told_and_others_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def run(name: str, _: Any) -> None:
        if name == "Bath":
            raise ValueError("set no_choice='no'")
        print_plain(f"about {name}")

    with pytest.raises(typer.Exit) as ended:
        run_each({"York": 1, "Bath": 2}, run, as_json=False)
    assert ended.value.exit_code == 1
    shown = capsys.readouterr()
    assert "about York" in shown.out
    assert "Bath: set --no-choice no" in shown.err
    with pytest.raises(ValueError, match="Bath: set --no-choice no"):
        run_each({"Bath": 2}, run, as_json=False)
    run_each({"York": 1}, run, as_json=False)


def test_levels_that_an_option_says() -> None:
    assert (levels_in(None), levels_in("occurring"), levels_in(" 3 ")) == ("occurring", "occurring", 3)
    assert levels_in('{"tea": [3, 2]}') == PriceLevels({"tea": [2, 3]})
    for words in ("0", "-1", "[1]", "tea", "[" * 2000):
        with pytest.raises(ValueError, match="--price-levels is"):
            levels_in(words)


def test_what_a_model_remembers_of_its_reading() -> None:
    assert [_fits("outside_share", one) for one in (0, 0.999, 1.0, -0.1, True, "0.5")] == [True, True] + [False] * 4
    assert [_fits("format", one) for one in ("long", "other", None)] == [True, False, False]
    assert _fits("columns", "a=b")
    noted = {"format": "long", "columns": "item=alt", "no_choice": "no", "outside_share": 0.2, "stock": 7}
    model: Any = SimpleNamespace(about={"reading": noted, "market": {"store": "York"}}, price_levels=None)
    found = ReadingOptions().as_fitted(model)
    assert (found.format, found.columns, found.no_choice, found.outside_share) == ("long", "item=alt", "no", 0.2)
    assert (found.stock, found._market) == (None, {"store": "York"})
    assert "--outside-share 0.2" in found._source
    own = ReadingOptions(format="wide", no_choice="none").as_fitted(model)
    assert (own.format, own.columns, own.no_choice, own.outside_share) == ("wide", None, "none", None)
    odd: Any = SimpleNamespace(about={"reading": "x", "market": {}}, price_levels=None)
    plain = ReadingOptions().as_fitted(odd)
    assert (plain._source, plain._market) == ("", None)
    levels = PriceLevels({"tea": [2]})
    priced: Any = SimpleNamespace(about={"reading": {"price_columns": "offered"}}, price_levels=levels)
    assert ReadingOptions().as_fitted(priced)._levels == levels
    assert ReadingOptions(price_levels="3").as_fitted(priced)._levels is None
    assert ReadingOptions(price_levels="3").arguments()["price_levels"] == 3
    assert ReadingOptions(partitions="a, b").arguments()["partitions"] == ["a", "b"]


def test_arguments_of_receipts() -> None:
    found = ReadingOptions(stock="s.csv", visits="v.csv", price_list="paid", category="kind", format="long").arguments()
    assert found == {
        "price_levels": "occurring", "on_error": "stop", "category": "kind", "stock": "s.csv", "visits": "v.csv",
        "prices": "paid",
    }  # fmt: skip


def test_arguments_are_options_at_the_shell() -> None:
    assert shell_words("set prices='a b', by=['x', 'y'] and half_life=5") == (
        "set --price-columns 'a b', --by x,y and --half-life 5"
    )
    assert shell_words("turn it off with pool=False") == "turn it off with --no-pool"
    assert shell_words("other='x'") == "other='x'"
