"""Reports of change in words: which lines there are, by the numbers of a report alone."""

from pathlib import Path
from typing import Any

import pytest

from rankstream import RankingModel
from rankstream.cli.drift import in_both, text_of_choices, text_of_models
from rankstream.data.drift import LISTED_ITEMS, DriftReport, Movement
from rankstream.data.item_changes import ItemMovement
from shell import run

pytestmark = pytest.mark.quick


def movement(number: int, moved: bool, freedom: int = 2) -> Movement:
    offer = ("tea", f"item {number}")
    return Movement(offer, 50.0, 60.0, 9.0, freedom, 0.001, 0.0123, moved, "tea", 0.125)


def report(*movements: Movement, **more: Any) -> DriftReport:
    plain: dict[str, Any] = {"appeared": (), "vanished": (), "level": 0.05, "control": "fdr"}
    return DriftReport(movements, **(plain | more))


def lines(found: DriftReport, top: int = 2, by_offer: bool = False) -> list[str]:
    """The lines after the verdict."""
    verdict, *others = text_of_choices(found, top, by_offer).splitlines()
    assert verdict == found.verdict
    return others


def test_without_tests_there_is_the_verdict_alone() -> None:
    assert lines(report()) == []
    assert lines(report(movement(1, False, freedom=0))) == []
    assert lines(report(movement(1, False))) == ["0 of 1 offer changed significantly (fdr, 5 % false-alarm rate)."]
    some = report(movement(1, True), movement(2, False), movement(3, False, freedom=0))
    assert lines(some) == [
        "1 of 2 offers changed significantly (fdr, 5 % false-alarm rate).",
        "List the offers with --by-offer.",
    ]


def test_offers_are_listed_where_they_are_asked_for() -> None:
    many = report(
        *(movement(number, True) for number in range(3)), appeared=(("egg", "tea"),) * 3, vanished=(("pie",),)
    )
    assert lines(many, by_offer=True) == [
        "3 of 3 offers changed significantly (fdr, 5 % false-alarm rate).",
        "Offers, with the item that changed most in each:",
        "  tea +12.5 points in tea;item 0: p = 0.012",
        "  tea +12.5 points in tea;item 1: p = 0.012",
        "New: 3 offers",
        "  egg;tea",
        "  egg;tea",
        "No longer seen: 1 offer",
        "  pie",
    ]
    for more in ({"appeared": (("egg",),)}, {"vanished": (("egg",),)}):
        assert lines(report(**more))[-1] == "List the offers with --by-offer."
        assert lines(report(**more), by_offer=True)[-1] == "  egg"


@pytest.mark.parametrize(
    ("numbers", "given_offers", "words"),
    [
        ((1, 0), False, "points in the one offer with it, 0 of which changed significantly alone"),
        ((1, 1), False, "points in the one offer with it"),
        ((4, 4), False, "points in all 4 offers with it"),
        ((4, 1), False, "points on average in all 4 offers with it, 1 of which changed significantly alone"),
        ((4, 1), True, "points on the same offers; -3.0 points overall, the rest because offers and prices differ"),
    ],
)
def test_items_that_changed(numbers: tuple[int, int], given_offers: bool, words: str) -> None:
    item = ItemMovement("tea", 0.0625, 0.0123, *numbers, -0.03)
    assert lines(report(items=(item,), given_offers=given_offers)) == [f"  tea: +6.2 {words} (p = 0.012)"]


def test_the_largest_changes_of_items_come_first_and_others_are_counted() -> None:
    items = tuple(ItemMovement(name, 0.1, 0.01, 2, 2) for name in ("tea", "pie", "egg", "rum"))
    for top, more in ((4, []), (3, ["  and 1 more item"]), (2, ["  and 2 more items"])):
        found = lines(report(items=items), top)
        assert [line.partition(":")[0] for line in found[:top]] == ["  tea", "  pie", "  egg", "  rum"][:top]
        assert found[top:] == [*more, LISTED_ITEMS]
    assert LISTED_ITEMS not in lines(report(items=items[:1]))


def types(**changes: Any) -> dict[str, Any]:
    plain = {
        "types_by": "first two favourites",
        "no_choice": "none",
        "least": 0.02,
        "only_before": [],
        "only_after": [],
    }
    return plain | {word: [] for word in ("appeared", "vanished", "grew", "shrank")} | changes


def test_types_that_changed_between_models() -> None:
    first = "Customer types by their first two favourites, changes of 2 points or more: "
    assert text_of_models(types(), 2) == f"{first}0 appeared, 0 vanished, 0 grew, 0 shrank."
    grew = [{"ranking": names, "before": 0.05, "after": 0.125} for names in (["tea", "pie"], ["tea"], ["egg", "pie"])]
    found = text_of_models(types(grew=grew, only_after=["rum", "gin", "ale"]), 2)
    assert found.splitlines() == [
        f"{first}0 appeared, 0 vanished, 3 grew, 0 shrank.",
        "Grew:",
        "    5.0 % to  12.5 %  tea > pie",
        "    5.0 % to  12.5 %  tea > (none)",
        "Items only after: rum, gin",
    ]
    alone = types(no_choice=None, shrank=grew[1:2], only_before=["rum"])
    assert text_of_models(alone, 2).splitlines()[1:] == [
        "Shrank:",
        "    5.0 % to  12.5 %  tea",
        "Items only before: rum",
    ]


def test_markets_of_one_period_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert in_both({"York": 1, "Bath": 2}, {"Bath": 3, "York": 4}) == {"York": (1, 4), "Bath": (2, 3)}
    assert capsys.readouterr().err == ""
    assert in_both({"York": 1, "Hull": 2, "Bath": 2}, {"York": 4, "Leeds": 5}) == {"York": (1, 4)}
    assert capsys.readouterr().err.splitlines() == [
        "Only in the earlier period, so not compared: Bath, Hull.",
        "Only in the later period, so not compared: Leeds.",
    ]
    with pytest.raises(ValueError, match="No market occurs in both periods"):
        in_both({"York": 1}, {"Leeds": 5})


def test_models_are_of_one_market(tmp_path: Path) -> None:
    for name in ("before.json", "after.json"):
        RankingModel("ab", ["ab"], [1.0]).save(tmp_path / name)
    assert run("drift", "before.json", "after.json", cwd=tmp_path).returncode == 0
    refused = run("drift", "before.json", "after.json", "--by", "store", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--by needs files of choices, not models: leave it out." in refused.stderr
    refused = run("drift", "before.json", "after.json", "--market", "York", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--market needs a folder of markets, or choices with --by: leave it out." in refused.stderr
