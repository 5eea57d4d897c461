from datetime import UTC, datetime, timedelta, timezone
from time import tzset
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream import Assortments, ChoiceCounts, estimate
from rankstream.certificate import confidence_radii
from rankstream.data.decay import DecayingCounts, ForgettingCounts, WindowCounts, as_seconds
from rankstream.estimation.methods import PrimalDual

OFFERS = Assortments([("tea", "cake", "nothing"), ("pie", "nothing")])
records = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 50)), max_size=25)
sizes = st.lists(st.integers(1, 5), max_size=8)
Records = list[tuple[int, int, int]]


def feed(counts: ForgettingCounts, rows: Records, cuts: list[int]) -> None:
    """Hand the records over in batches of the given sizes, the rest at once."""
    start = 0
    for size in [*cuts, len(rows)]:
        part = rows[start : start + size]
        start += size
        where, amounts, times = (np.array([row[k] for row in part], dtype=np.int64) for k in range(3))
        counts.observe_coordinates(where, amounts, times if counts.by == "time" else None)


def one_by_one(rows: Records) -> list[int]:
    return [where for where, amount, _ in rows for _ in range(amount)]


@given(records, sizes, st.floats(0.5, 100))
def test_decay_by_observations_is_a_weighted_count(rows: Records, cuts: list[int], half_life: float) -> None:
    counts = DecayingCounts(OFFERS, half_life)
    feed(counts, rows, cuts)
    tallies, squares, choices = np.zeros(5), np.zeros(2), one_by_one(rows)
    for age, where in enumerate(reversed(choices)):
        tallies[where] += 0.5 ** (age / half_life)
        squares[OFFERS.owner[where]] += 0.25 ** (age / half_life)
    assert counts.tallies == pytest.approx(tallies)
    assert counts.totals == pytest.approx(np.add.reduceat(tallies, OFFERS.indptr[:-1]))
    seen = squares > 0
    assert counts.effective_totals[seen] == pytest.approx(counts.totals[seen] ** 2 / squares[seen])
    assert (counts.effective_totals[~seen] == 0).all()


@given(records, sizes, st.floats(5, 100))
def test_decay_by_time_takes_records_in_any_order(rows: Records, cuts: list[int], half_life: float) -> None:
    counts = DecayingCounts(OFFERS, half_life, by="time")
    feed(counts, rows, cuts)
    tallies, now = np.zeros(5), max((time for *_, time in rows), default=0)
    for where, amount, time in rows:
        tallies[where] += amount * 0.5 ** ((now - time) / half_life)
    assert counts.tallies == pytest.approx(tallies)


@given(records, sizes, st.integers(1, 30), st.sampled_from(["observations", "time"]))
def test_windows_hold_the_latest(rows: Records, cuts: list[int], size: int, by: Any) -> None:
    counts = WindowCounts(OFFERS, size, by)
    feed(counts, rows, cuts)
    now = max((time for *_, time in rows), default=0)
    recent = [row for row in rows if now - row[2] < size]
    kept = one_by_one(recent) if by == "time" else one_by_one(rows)[-size:]
    assert counts.tallies.tolist() == np.bincount(np.array(kept, dtype=np.int64), minlength=5).tolist()
    assert counts.effective_totals.tolist() == counts.totals.tolist()
    assert counts.observations == len(kept)


def test_a_window_of_time_is_open_at_its_old_end() -> None:
    """A choice that is exactly as old as the window has left it, whenever it came; one a little younger has not."""
    counts = WindowCounts(OFFERS, 10, "time")
    counts.observe_coordinates([0, 1], time=[0.0, 1e-9])
    assert counts.tallies.tolist() == [1, 1, 0, 0, 0]
    counts.observe_coordinates([2], time=10.0)
    assert counts.tallies.tolist() == [0, 1, 1, 0, 0]
    counts.observe_coordinates([3, 4], time=[0.0, 0.5])  # late records
    assert counts.tallies.tolist() == [0, 1, 1, 0, 1]
    day = WindowCounts(OFFERS, timedelta(days=1))
    day.observe_coordinates([0, 1, 2], time=[datetime(2024, 1, 1), datetime(2024, 1, 1, 1), datetime(2024, 1, 2)])
    assert day.tallies.tolist() == [0, 1, 1, 0, 0]


@pytest.mark.parametrize("kind", [DecayingCounts, WindowCounts])
@pytest.mark.parametrize("by", ["observations", "time"])
def test_copies_and_extensions_remember_and_go_their_own_way(kind: Any, by: Any) -> None:
    counts, rows = kind(OFFERS, 3, by), [(0, 1, 1), (3, 2, 2), (4, 1, 3)]
    feed(counts, rows[:2], [])
    twin, larger = counts.copy(), counts.extend([("tea", "pie")], items=["rum"])
    assert larger.assortments.items == ("tea", "cake", "nothing", "pie", "rum")
    for other in (twin, larger):
        feed(other, rows[2:], [])
    assert larger.tallies.tolist() == [*twin.tallies.tolist(), 0, 0]
    assert larger.effective_totals.tolist() == [*twin.effective_totals.tolist(), 0]
    assert twin.tallies.tolist() != counts.tallies.tolist()
    feed(counts, rows[2:], [])
    assert twin.tallies.tolist() == counts.tallies.tolist()


def test_their_reach_has_its_own_name() -> None:
    assert DecayingCounts(OFFERS, timedelta(minutes=1)).half_life == 60.0
    assert WindowCounts(OFFERS, 7).size == 7.0
    assert repr(WindowCounts(OFFERS, 7)) == "WindowCounts(7 by observations, 0 choices)"


def test_what_has_faded_counts_as_never_seen() -> None:
    counts = DecayingCounts(OFFERS, timedelta(hours=1))
    counts.observe(("pie", "nothing"), "pie", time=datetime(2024, 1, 1))
    counts.observe(("tea", "cake", "nothing"), "tea", time=datetime(2024, 1, 1, 12))
    assert counts.frequencies() == pytest.approx([1, 0, 0, 1, 0])
    counts.observe(("tea", "cake", "nothing"), "tea", time=np.datetime64("2024-03-01T12:00"))
    assert np.isnan(counts.frequencies()[3:]).all()
    assert counts.totals[1] == counts.effective_totals[1] == 0.0


def test_times_are_numbers_or_datetimes() -> None:
    assert as_seconds(datetime(1970, 1, 1, 1, tzinfo=UTC)) == 3600
    assert as_seconds(np.array(["1970-01-02"], dtype="datetime64[D]")).tolist() == [86400.0]
    for bad in ("noon", np.datetime64("NaT"), [np.nan], None, ["a", 1]):
        with pytest.raises(ValueError, match="is not a number or a datetime"):
            as_seconds(bad)


def test_forgetting_counts_can_be_estimated_from_but_not_merged() -> None:
    counts = DecayingCounts(OFFERS, 10)
    counts.observe([("pie", "nothing")] * 40, ["pie"] * 20 + ["nothing"] * 20)
    fit = estimate(counts, method=PrimalDual(tolerance_mae=0.02))
    assert fit.model.predict(("pie", "nothing"))["pie"] == pytest.approx(counts.frequencies()[3], abs=0.03)
    for left, right in ((counts, counts), (ChoiceCounts(OFFERS), counts)):
        with pytest.raises(ValueError, match="forget cannot be added"):
            left + right
    with pytest.raises(ValueError, match="DecayingCounts forget"):
        confidence_radii(counts)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DecayingCounts(OFFERS, 0), "half_life is 0"),
        (lambda: DecayingCounts(OFFERS, 3, by="days"), "by is 'days'"),  # type: ignore[arg-type]
        (lambda: DecayingCounts(OFFERS, timedelta(1), by="observations"), "which a timedelta needs"),
        (lambda: WindowCounts(OFFERS, 2.5), "a whole number of them"),
        (lambda: WindowCounts(OFFERS, 2).observe_coordinates([1], 0.5), "whole choices"),
        (lambda: WindowCounts(OFFERS, 2).observe_coordinates([1], time=3), "forgets by observations"),
        (lambda: WindowCounts(OFFERS, 2, "time").observe_coordinates([1]), "give the time of every record"),
        (lambda: WindowCounts(OFFERS, 2, "time").observe_coordinates([1], time=[1, 2]), "1 records but times"),
    ],
)
def test_mistakes_are_explained(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_times_without_a_zone_are_utc_wherever_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        tzset()
        east = timezone(timedelta(hours=2))
        moments = [datetime(1970, 1, 2), datetime(1970, 1, 2, tzinfo=UTC), datetime(1970, 1, 2, 2, tzinfo=east)]
        assert as_seconds(moments).tolist() == [86400.0] * 3
    tzset()
