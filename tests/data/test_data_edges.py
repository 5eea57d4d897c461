"""Sums, limits and times of choices at their edges, by hand: counts that forget, drift, prices, and bad records."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from rankstream import Assortments, ChoiceCounts, PriceLevels
from rankstream._core.types import Vec
from rankstream.data import item_changes
from rankstream.data.counts import with_outside
from rankstream.data.decay import DecayingCounts, WindowCounts, as_reach, as_seconds, make_counts
from rankstream.data.drift import DriftReport, Movement, _homogeneity, adjust, drift_report, shortage
from rankstream.data.item_changes import ItemMovement
from rankstream.data.prices import _parts, check_price, split_label
from rankstream.data.readers.problems import MAX_MESSAGE_LENGTH, BadRecordError, Problems, shown
from rankstream.data.readers.times import MAX_SECONDS, Clock, clock_of, seconds_of, slice_numbers, spans_of

pytestmark = pytest.mark.quick
OFFERS = Assortments([("tea", "no"), ("tea", "pie", "no")])


def test_choices_fade_by_how_many_came_after_them() -> None:
    counts = DecayingCounts(OFFERS, half_life=2.0)
    counts.observe_coordinates([0, 1, 3], [1, 2, 1])  # the second record is two choices in a row
    ages = np.array([3.0, 2.0, 1.0, 0.0])
    weights = 0.5 ** (ages / 2.0)
    assert counts.tallies == pytest.approx([weights[0], weights[1] + weights[2], 0.0, weights[3], 0.0])
    totals = np.array([weights[:3].sum(), weights[3]])
    squares = np.array([(weights[:3] ** 2).sum(), weights[3] ** 2])
    assert counts.totals == pytest.approx(totals)
    assert counts.effective_totals == pytest.approx(totals**2 / squares)
    assert DecayingCounts(OFFERS, 2.0).effective_totals.tolist() == [0.0, 0.0]


def test_late_records_weigh_what_their_age_leaves() -> None:
    counts = DecayingCounts(OFFERS, timedelta(seconds=10))
    counts.observe_coordinates([0], 4, time=100.0)
    counts.observe_coordinates([0, 1], 2, time=[110.0, 90.0])
    assert counts.now == 110.0
    assert counts.tallies[:2] == pytest.approx([4 * 0.5 + 2, 2 * 0.25])
    counts.observe_coordinates([1], 1, time=100.0)  # time never goes back
    assert (counts.now, counts.tallies[1]) == (110.0, pytest.approx(2 * 0.25 + 0.5))
    squares = 4 * 0.25 + 2 + 2 * 0.0625 + 0.25
    assert counts.effective_totals[0] == pytest.approx(counts.totals[0] ** 2 / squares)
    counts.observe_coordinates([2], 1, time=110.0 + 10 * 700)  # 0.5**700 is less than anything that counts
    assert counts.totals.tolist() == [0.0, 1.0]
    assert counts.tallies[:2].tolist() == [0.0, 0.0]


def test_a_window_has_the_latest_choices_and_an_open_end() -> None:
    counts = WindowCounts(OFFERS, 5)
    counts.observe_coordinates([0, 1], [4, 3])
    assert counts.tallies[:2].tolist() == [2.0, 3.0]
    counts.observe_coordinates([2], 5)
    assert counts.tallies.tolist() == [0.0, 0.0, 5.0, 0.0, 0.0]
    timed = WindowCounts(OFFERS, timedelta(seconds=10))
    timed.observe_coordinates([0, 1, 2], 1, time=[100.0, 90.0, 90.5])
    assert timed.tallies.tolist() == [1.0, 0.0, 1.0, 0.0, 0.0]  # 90 is 10 seconds old, and out
    timed.observe_coordinates([3], 1, time=95.0)
    assert (timed.now, timed.totals.tolist()) == (100.0, [1.0, 2.0])
    again = WindowCounts(OFFERS, timedelta(seconds=10))
    again.remember(timed.memory())
    again.observe_coordinates([4], 1, time=100.6)
    assert again.tallies.tolist() == [1.0, 0.0, 0.0, 1.0, 1.0]
    for size in (0.5, 1.5, 0):
        with pytest.raises(ValueError, match="size"):
            WindowCounts(OFFERS, size)
    assert WindowCounts(OFFERS, 1).size == 1.0
    assert type(make_counts(OFFERS, None, None)) is ChoiceCounts
    assert isinstance(make_counts(OFFERS, 5, None), DecayingCounts)
    assert isinstance(make_counts(OFFERS, None, 5), WindowCounts)


@pytest.mark.parametrize("text", ["0", "-1", "7y", "d", "1e13", "", "1e12 w", "0s"])
def test_reaches_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="neither a number of choices nor a time"):
        as_reach(text)


def test_reaches_and_times() -> None:
    assert (as_reach("1e12"), as_reach("90 min"), as_reach(".5h")) == (
        1e12,
        timedelta(hours=1.5),
        timedelta(minutes=30),
    )
    assert as_seconds(datetime(1970, 1, 1, 1, tzinfo=UTC)) == 3600.0
    assert as_seconds(np.array(["1970-01-01T00:00:01.5"], dtype="datetime64[ms]")).tolist() == [1.5]
    for wrong in ("now", [np.nan], np.array(["NaT"], dtype="datetime64[s]"), [None], [np.inf]):
        with pytest.raises(ValueError, match="is not a number or a datetime"):
            as_seconds(wrong)


def test_p_values_allow_for_how_many_there_are() -> None:
    p_values = np.array([0.02, 0.005, 0.4, 0.3])
    assert adjust(p_values, "holm") == pytest.approx([0.06, 0.02, 0.6, 0.6])
    assert adjust(p_values, "fdr") == pytest.approx([0.04, 0.02, 0.4, 0.4])
    assert adjust(np.array([0.5, 0.6]), "holm").tolist() == [1.0, 1.0]


def test_rare_columns_are_pooled_until_every_period_expects_five() -> None:
    statistic, freedom, p_value = _homogeneity(np.array([[30.0, 20.0], [20.0, 30.0]]))
    assert statistic == pytest.approx(4.0)
    assert freedom == 1
    assert p_value == pytest.approx(0.0455, abs=1e-4)
    assert _homogeneity(np.array([[45.0, 5.0], [45.0, 5.0]]))[1] == 1  # five are expected in each
    assert _homogeneity(np.array([[46.0, 4.0], [45.0, 5.0]]))[1:] == (0, 1.0)
    # 3 + 4 are pooled first, and are enough then
    pooled = _homogeneity(np.array([[3.0, 4.0, 43.0], [4.0, 5.0, 41.0]]))
    assert pooled[0] == pytest.approx((7 - 8) ** 2 / 8 * 2 + (43 - 42) ** 2 / 42 * 2)
    assert pooled[1] == 1
    # a short period needs more choices of both together
    assert _homogeneity(np.array([[90.0, 10.0], [9.0, 1.0]]))[1] == 0


def test_thirty_choices_in_each_period() -> None:
    assert shortage(30, 30) == ""
    assert shortage(29.9, 100).startswith("Not enough choices yet: 29.9 before and 100 after")
    assert "2 after" in shortage(40, 2)


def moved(adjusted: float, level: float = 0.05) -> Movement:
    return Movement(("tea", "no"), 50.0, 50.0, 4.0, 1, adjusted, adjusted, adjusted <= level, "tea", 0.1)


def verdict(*movements: Movement, appeared: int = 0, items: Any = (), **more: Any) -> str:
    offers = tuple((f"a{number}", "no") for number in range(appeared))
    return DriftReport(movements, offers, (), 0.05, "holm", items, **more).verdict


def test_verdicts() -> None:
    quiet, tea = moved(0.5), ItemMovement("tea", 0.1, 0.01, 1, 1)
    assert verdict(quiet) == "No evidence that tastes changed: one model explains all of these choices."
    assert verdict(quiet, appeared=1).startswith("No evidence")  # one of two could be compared
    assert verdict(quiet, appeared=2) == "No change found, but only 1 of 3 offers could be compared."
    assert verdict(moved(0.01)) == "Choices changed in 1 of 1 offer, but no item changed across offers."
    assert verdict(quiet, items=(tea,)) == "Tastes changed: tea +10.0 points."
    five = [ItemMovement(f"i{number}", 0.1, 0.01, 1, 1) for number in range(5)]
    assert verdict(quiet, items=tuple(five)).endswith("i2 +10.0 points and 2 more.")
    assert verdict(quiet, items=tuple(five[:4])).endswith("i3 +10.0 points.")
    small = ItemMovement("pie", 0.0004, 0.01, 1, 1)
    assert verdict(quiet, items=(small, tea)) == "Tastes changed: tea +10.0 points."
    assert verdict(quiet, items=(small,)) == "Tastes changed: pie +0.0 points."
    assert verdict(quiet, items=(tea,), given_offers=True).endswith("points on the same offers.")
    assert verdict(quiet, tested_items=1, given_offers=True).startswith("No change found in 1 item on the same offers")
    assert verdict(quiet, tested_items=2, given_offers=True).startswith("No change found in 2 items")
    assert verdict(shortage="few") == "few"
    assert verdict(appeared=2) == "No offer occurs in both periods, so nothing could be compared."
    alone = Movement(("tea", "no"), 5.0, 5.0, 0.0, 0, 1.0, 1.0, False, "tea", 0.1)
    assert verdict(alone) == "No offer has enough choices in both periods, so nothing could be compared."
    report = DriftReport((moved(0.2),), (), (), 0.05, "holm", (tea,))
    assert (report.p_value, report.changed, report.tested) == (0.01, True, 1)
    assert not DriftReport((quiet,), (), (), 0.05, "holm").changed


def test_periods_are_compared_offer_by_offer() -> None:
    offers = Assortments([("tea", "no"), ("pie", "no"), ("bun", "no")])
    before, after = ChoiceCounts(offers, [50, 50, 40, 60, 9, 1]), ChoiceCounts(offers, [50, 50, 80, 20, 0, 0])
    found = drift_report(before, after)
    assert [one.offer for one in found.movements] == [("pie", "no"), ("tea", "no")]
    assert found.movements[0].change == pytest.approx(0.4)
    assert (found.movements[0].item, found.movements[0].before, found.movements[0].after) == ("pie", 100.0, 100.0)
    assert found.vanished == (("bun", "no"),)
    assert found.appeared == ()
    assert found.movements[0].adjusted == pytest.approx(4.0 * found.movements[0].p_value)  # two offers, and items
    assert not found.given_offers
    whole = ChoiceCounts(offers, (before.tallies + after.tallies).tolist())
    assert drift_report(before, whole, cumulative=True).movements == found.movements
    with pytest.raises(ValueError, match="has fewer choices after than before"):
        drift_report(before, after, cumulative=True)
    few = drift_report(before, ChoiceCounts(offers, [5, 5, 5, 5, 5, 4]))
    assert few.shortage.startswith("Not enough choices yet")
    assert {one.p_value for one in few.movements} == {1.0}
    for level in (0.0, 1.0):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            drift_report(before, after, level=level)


def test_prices_belong_to_the_level_whose_bin_they_lie_in() -> None:
    levels = PriceLevels({"tea": [2, 3, 5]})
    assert [levels.level("tea", price) for price in (2, 2.5, 2.51, 3, 4, 4.01, 5)] == [2, 2, 3, 3, 3, 5, 5]
    for price in (1.99, 5.01):
        with pytest.raises(ValueError, match="is outside its levels, which cover 2 to 5"):
            levels.level("tea", price)
    assert levels.level("tea", 5 + 1e-9) == 5.0  # rounding
    binned = PriceLevels({"tea": [2, 3]}, {"tea": [1.5, 2.2, 4.0]})
    assert [binned.level("tea", price) for price in (1.5, 2.2, 2.3, 4.0)] == [2, 2, 3, 3]
    for bins in ([1.5, 4.0], [2.1, 2.2, 4.0], [1.5, 3.1, 4.0], []):
        with pytest.raises(ValueError, match="do not enclose its levels"):
            PriceLevels({"tea": [2, 3]}, {"tea": bins})
    assert PriceLevels({"tea": [2, 2.125]}).labels == ("tea @ 2.000", "tea @ 2.125")
    assert split_label("tea @ 3.5") == ("tea @ 3.5", None)  # two decimals at least
    assert split_label("tea @ @ 3.500") == ("tea @", 3.5)
    assert PriceLevels.occurring({"tea": [1, 2, 2]}, most=2).levels["tea"] == (1.0, 2.0)
    with pytest.raises(ValueError, match="occurs at 3 prices, more than 2 levels"):
        PriceLevels.occurring({"tea": [1, 2, 3]}, most=2)
    assert check_price("tea", 0) == 0.0
    for wrong in (-0.01, np.inf, True, "3", None, ""):
        with pytest.raises(ValueError, match="The price of 'tea' is"):
            check_price("tea", wrong)


def test_quantiles_cut_prices_into_parts_of_one_size() -> None:
    assert _parts([1.0, 2.0, 3.0, 4.0], 2) == [[1.0, 2.0], [3.0, 4.0]]
    assert _parts([1.0, 1.0, 1.0, 4.0], 2) == [[1.0, 1.0, 1.0], [4.0]]
    assert _parts([1.0, 2.0, 3.0, 3.0, 3.0, 3.0], 3) == [[1.0], [2.0], [3.0] * 4]
    found = PriceLevels.quantiles({"tea": [1, 2, 3, 4, 5, 6], "pie": [4, 4]}, 2)
    assert found.levels == {"tea": (2.0, 5.0), "pie": (4.0,)}
    assert found.bins["tea"] == (1.0, 3.5, 6.0)
    assert PriceLevels.quantiles({"tea": [1, 2]}, 2).levels["tea"] == (1.0, 2.0)
    with pytest.raises(ValueError, match="occurs at 2 prices, too few for 3 levels"):
        PriceLevels.quantiles({"tea": [1, 2, 2]}, 3)


def test_people_who_left_are_added_where_they_were_not_recorded() -> None:
    counts = ChoiceCounts(Assortments([("tea", "pie"), ("tea", "no")]), [6, 3, 5, 5])
    found = with_outside(counts, 0.25, "no")
    assert found.assortments.offers == (("tea", "pie", "no"), ("tea", "no"))
    assert found.tallies.tolist() == [6.0, 3.0, 3.0, 5.0, 5.0]
    each = with_outside(counts, {("pie", "tea"): 0.5, ("tea", "no"): 0.9}, "no")
    assert each.tallies.tolist() == [6.0, 3.0, 9.0, 5.0, 5.0]
    for share in (-0.1, 0.9991):
        with pytest.raises(ValueError, match="The share"):
            with_outside(counts, share)
    assert with_outside(counts, 0.0).tallies.tolist() == [6.0, 3.0, 0.0, 5.0, 5.0, 0.0]
    with pytest.raises(ValueError, match="There is no share for the offer"):
        with_outside(counts, {("pie", "tea"): 0.5})


def test_times_of_records() -> None:
    assert seconds_of(MAX_SECONDS) == MAX_SECONDS
    for wrong in (MAX_SECONDS * 1.01, -MAX_SECONDS * 1.01):
        with pytest.raises(BadRecordError, match="seconds, not milliseconds"):
            seconds_of(wrong)
    for text in ("true", "16.5.2024", ""):
        with pytest.raises(BadRecordError):
            seconds_of(text)
    assert spans_of(np.array([3.0, 1.0, 2.0, 4.0]), np.array([1.0, 5.0, 1.0, 1.0]), 2) == [(1.0, 1.0), (2.0, 4.0)]
    assert spans_of(np.array([1.0, 2.0]), np.zeros(2), 2) == [(1.0, 2.0)]
    assert slice_numbers(np.array([1.0, 1.5, 2.0, 9.0]), [(1.0, 1.5), (2.0, 4.0)]).tolist() == [0, 0, 1, 1]


def test_what_is_asked_about_times() -> None:
    assert clock_of("f", "time", None, None, None) is None
    assert clock_of("f", None, 5, None, None) is None
    assert clock_of("f", "time", 1000, None, None) == Clock("time", 1000)
    with pytest.raises(ValueError, match="must be at most 1000"):
        clock_of("f", "time", 1001, None, None)
    timed = clock_of("f", "time", None, "1970-01-02", "7d")
    assert timed == Clock("time", None, 86_400.0, 604_800.0, True)
    assert timed.strict
    assert clock_of("f", "time", None, None, 5) == Clock("time", None, None, 5.0, False)
    assert not Clock("time", 5).strict
    for what, since, half_life in (("since", 5, None), ("half_life", None, 5), ("since", 5, 5)):
        with pytest.raises(ValueError, match=f"which {what} needs"):
            clock_of("f", None, None, since, half_life)
    for span in ((1900.0, 2100.0), (19e6, 21.2e6)):
        with pytest.raises(ValueError, match="look like dates without dashes"):
            Clock("time", in_units=True, half_life=5.0).check(span)
        Clock("time", half_life=5.0).check(span)
    for span in ((1899.0, 2100.0), (1900.0, 2101.0)):
        Clock("time", in_units=True, half_life=5.0).check(span)
    with pytest.raises(ValueError, match="but the times are dates"):
        Clock("time", since=2024.0).check((1e8 + 1, 2e9))
    Clock("time", since=2024.0).check((1e8, 2e9))
    Clock("time", since=1e8).check((1e8 + 1, 2e9))


def test_bad_records_are_counted_and_three_of_a_kind_are_shown() -> None:
    problems = Problems("skip")
    for line in range(1, 6):
        problems.add(f"f, line {line}", BadRecordError("empty", "the offer is empty."), [], lines=2)
    problems.add("f, line 9", BadRecordError("count", "no count."), [])
    assert (problems.total, problems.by_kind["empty"], len(problems.first)) == (11, 10, 4)
    lines = problems.summary().splitlines()
    assert lines[0] == "11 records were skipped."
    assert lines[1] == "  10 records, such as f, line 1: the offer is empty."
    assert lines[2:] == ["    f, line 2: the same", "    f, line 3: the same", "  1 record: f, line 9: no count."]
    assert Problems("skip").summary() == ""
    assert not problems.writes
    assert str(BadRecordError("count", "x" * MAX_MESSAGE_LENGTH)) == "x" * 600
    assert len(str(BadRecordError("count", "x" * 601))) == 405
    assert (shown("a" * 78), shown("a" * 79)) == (repr("a" * 78), repr("a" * 79)[:80] + "...")


def test_an_item_that_was_chosen_once_is_part_of_the_logit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    fit = item_changes.fit_logit

    def noted(inside: Vec, counts: Vec) -> Vec:
        seen.append(int(inside.sum()))
        return fit(inside, counts)

    monkeypatch.setattr(item_changes, "fit_logit", noted)
    offers: list[Any] = [("tea", "pie"), ("tea", "bun"), ("pie", "bun"), ("tea", "cake")]
    tallies = np.array([[30, 30, 25, 1, 20, 0, 20, 0], [28, 30, 25, 0, 20, 0, 20, 0]], dtype=float)
    cells = item_changes.ItemCells.of(offers, tallies)
    item_changes.by_logit(cells, np.ones(8))
    assert seen[0] == 7  # all but cake, which nobody chose; bun was chosen once
