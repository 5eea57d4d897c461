"""Records at price levels, and which of them can be counted later."""

from math import inf, nan
from typing import Any

import pytest

from rankstream.data.counts import MAX_OBSERVATIONS
from rankstream.data.prices import PriceLevels
from rankstream.streams import record
from rankstream.streams.record import MAX_DETECTED_COUNT, Record, RecordLevels, can_wait, check_record

pytestmark = pytest.mark.quick
LEVELS: dict[Any, Any] = {"tea": [3, 3.5], "pie": [4]}


def test_prices_become_levels_and_other_items_stay() -> None:
    levels = RecordLevels(LEVELS)
    found = levels.of(Record({"tea": 3.4, "pie": 4.0, "no": None}, "tea", 2.0, 7.0))
    assert found == Record(("tea @ 3.50", "pie @ 4.00", "no"), "tea @ 3.50", 2.0, 7.0)
    assert levels.of(Record(("tea @ 3.00", "no"), "no")).offered == ("tea @ 3.00", "no")
    assert levels.of(Record({"tea @ 3.00": None, "new": None}, "new")).offered == ("tea @ 3.00", "new")
    assert levels.of(Record({"tea": 3.0}, "tea @ 3.00")).chosen == "tea @ 3.00"
    odd: Any = ["tea"]
    assert levels.of(Record({"tea": 3.0}, odd)).chosen is odd
    assert RecordLevels(PriceLevels(LEVELS)).levels == levels.levels


@pytest.mark.parametrize(
    ("offered", "message"),
    [
        ({"tea": 9.0}, "the price 9 of 'tea' is outside"), ({"tea": None}, "the price of 'tea' is missing"),
        ({"rum": 3.0}, "the item 'rum' has a price, but no levels"), ({"tea": True}, "the price of 'tea' is True"),
        (("tea @ 9.00",), "the item 'tea @ 9.00' looks like an item at a price that is not a level"),
        (("tea @ 3.00", "tea @ 3.50"), "the offer has two prices of 'tea'"),
    ],
)  # fmt: skip
def test_offers_without_a_level_are_explained(offered: Any, message: str) -> None:
    levels = RecordLevels(LEVELS)
    levels.of(Record({"tea": 3.0}, "tea"))
    with pytest.raises(ValueError, match=f"^{message}"):
        levels.of(Record(offered, "tea"))


def test_truth_is_no_price_although_it_equals_one() -> None:
    levels = RecordLevels({"tea": [1]})
    levels.of(Record({"tea": 1}, "tea"))
    with pytest.raises(ValueError, match="is True"):
        levels.of(Record({"tea": True}, "tea"))


def test_without_levels_records_pass_and_prices_are_refused() -> None:
    plain = RecordLevels(None)
    given = Record(("tea", "pie"), "tea")
    assert plain.of(given) is given
    with pytest.raises(ValueError, match="has prices, but no price levels"):
        plain.of(Record({"tea": 3}, "tea"))
    assert plain.assortments([("b", "a")]).items == ("b", "a")
    assert plain.own("tea @ 3.00") == "tea @ 3.00"


def test_a_market_has_all_levels_in_their_order() -> None:
    levels = RecordLevels(LEVELS)
    offers = levels.assortments([("pie @ 4.00", "no"), ("tea @ 3.50", "no")])
    assert offers.items == ("tea @ 3.00", "tea @ 3.50", "pie @ 4.00", "no")
    assert offers.order == (("tea @ 3.00", "tea @ 3.50"),)
    assert (levels.own("tea @ 3.50"), levels.own("no")) == ("tea", "no")


def test_offers_are_remembered_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MAX_KNOWN_OFFERS", 2)
    levels, asked = RecordLevels(LEVELS), list[Any]()
    find = levels._find_labels

    def noted(known: Any, offered: Any) -> Any:
        asked.append(offered)
        return find(known, offered)

    monkeypatch.setattr(levels, "_find_labels", noted)
    for price in (3.0, 3.5, 3.0, 3.5):
        levels.of(Record({"tea": price}, "tea"))
    assert len(asked) == 2
    levels.of(Record({"pie": 4.0}, "pie"))  # forgets the others
    levels.of(Record({"tea": 3.0}, "tea"))
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("times", "time", "whole", "waits"),
    [
        (1, None, True, True), (0, 5.0, True, True), (2.5, None, False, True), (2.5, None, True, False),
        (-1, None, False, False), (True, None, False, False), ("1", None, False, False), (1.0, inf, False, False),
        (1.0, nan, False, False), (1.0, True, False, False), (nan, None, False, False), (1.0, 3, True, True),
        (float(MAX_OBSERVATIONS), None, False, False), (MAX_OBSERVATIONS - 1, None, True, True),
    ],
)  # fmt: skip
def test_what_can_be_counted_later(times: Any, time: Any, whole: bool, waits: bool) -> None:
    assert can_wait(Record(("tea",), "tea", times, time), whole) == waits


@pytest.mark.parametrize(
    ("given", "timed", "detect", "message"),
    [
        (Record(("tea",), "pie"), False, False, "its choice 'pie' is not in its offer"),
        (Record(("tea",), "tea"), True, False, 'no readable "time"'),
        (Record(("tea",), "tea", 0.5), False, True, "its count 0.5 is not a whole number"),
        (Record(("tea",), "tea", -1.0), False, True, "its count -1 is not a whole number"),
        (Record(("tea",), "tea", MAX_DETECTED_COUNT + 1.0), False, True, "up to 100,000"),
    ],
)
def test_records_that_cannot_be_counted(given: Record, timed: bool, detect: bool, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_record(given, timed, detect)
    good = Record(("tea",), "tea", float(MAX_DETECTED_COUNT), 0.0)
    check_record(good, timed, detect)
    check_record(good._replace(times=0.0), True, True)
    check_record(Record(("tea",), "tea", 0.5), timed=False, detect=False)
