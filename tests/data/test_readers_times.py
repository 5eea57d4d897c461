"""Records and their time: slices of as many choices each, what counts since a time, and what fades with a half-life."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.data.counts import ChoiceCounts
from rankstream.data.decay import DecayingCounts, as_seconds
from rankstream.data.readers import read
from rankstream.data.readers.job import Job
from rankstream.data.readers.reading import coarser
from rankstream.data.readers.times import seconds_of, slice_numbers, spans_of

RNG = np.random.default_rng(0)
SIZE = 300
FRAME = pd.DataFrame(
    {
        "offered": RNG.choice(["a;b", "b;c", "a;b;c"], SIZE),
        "chosen": "b",
        "count": RNG.integers(1, 5, SIZE),
        "time": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 100, SIZE) * 3600, unit="s"),
        "store": RNG.choice(["north", "south"], SIZE),
    }
)
SECONDS = as_seconds(FRAME["time"].dt.to_pydatetime().tolist())
WAYS = ["pandas", "csv", "jsonl", "parquet", "slow"]


def given_as(frame: pd.DataFrame, way: str, folder: Path) -> Any:
    path = folder / f"data.{way}"
    if way in ("pandas", "slow"):
        return frame
    if way == "parquet":
        frame.to_parquet(path)
    elif way == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.assign(time=frame["time"].astype(str)).to_json(path, orient="records", lines=True)
    return path


def read_by(way: str, frame: pd.DataFrame, folder: Path, **options: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "quickly", lambda *_: None) if way == "slow" else patch.delattr(Job, "slowly")
        return read(given_as(frame, way, folder), **options)


def counted(frame: pd.DataFrame, like: ChoiceCounts) -> list[float]:
    counts = ChoiceCounts(like.assortments)
    for offered, chosen, count in zip(frame["offered"], frame["chosen"], frame["count"], strict=True):
        counts.observe(tuple(offered.split(";")), chosen, count)
    return [float(tally) for tally in counts.tallies]


@pytest.mark.parametrize("way", WAYS)
def test_slices_hold_as_many_choices_each(way: str, tmp_path: Path) -> None:
    found = read_by(way, FRAME, tmp_path, time_slices=4, by="store")
    assert found.times == (SECONDS.min(), SECONDS.max())
    assert len(found.slices) == len(found.slice_times) == 4
    largest = FRAME.groupby("time")["count"].sum().max()
    for part, (first, last) in zip(found.slices, found.slice_times, strict=True):
        within = FRAME[(first <= SECONDS) & (last >= SECONDS)]
        assert part.assortments == found.counts.assortments
        assert part.tallies.tolist() == counted(within, part)
        assert abs(part.observations - FRAME["count"].sum() / 4) <= largest
    assert np.sum([part.tallies for part in found.slices], axis=0).tolist() == found.counts.tallies.tolist()
    assert all(one[1] < two[0] for one, two in zip(found.slice_times, found.slice_times[1:], strict=False))
    for store, counts in found.groups.items():
        assert counts.tallies.tolist() == counted(FRAME[FRAME["store"] == store], counts)


@pytest.mark.parametrize(("most", "ends"), [(7, [1, 2, 3, 4, 5]), (5, [1, 2, 3, 4, 5]), (4, [2, 4, 5]), (1, [5])])
def test_slices_are_put_together(most: int, ends: list[int]) -> None:
    frame = pd.DataFrame({"offered": ["a;b"] * 5, "chosen": list("abbab"), "time": range(1, 6)})
    found = read(frame, time_slices=5)
    fewer = coarser(found, most)
    assert [last for _, last in fewer.slice_times or []] == ends
    assert np.sum([part.tallies for part in fewer.slices or []], axis=0).tolist() == found.counts.tallies.tolist()
    assert coarser(read(frame), most).slices is None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "since", ["2024-01-03", "2024-01-03 00:00:00", "2024-01-03T01:00:00+01:00", datetime(2024, 1, 3), 1704240000]
)
def test_only_what_came_since(since: Any, way: str, tmp_path: Path) -> None:
    found = read_by(way, FRAME, tmp_path, since=since, time_slices=2)
    late = FRAME[FRAME["time"] >= pd.Timestamp("2024-01-03")]
    assert 0 < len(late) < SIZE
    assert (found.rows, found.counts.tallies.tolist()) == (len(late), counted(late, found.counts))
    assert found.times[0] == as_seconds(late["time"].min().to_pydatetime())
    assert sum(part.observations for part in found.slices) == late["count"].sum()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("half_life", ["12h", timedelta(hours=12), 43200, "43200"])
def test_choices_fade(half_life: Any, way: str, tmp_path: Path) -> None:
    found = read_by(way, FRAME, tmp_path, half_life=half_life, time_slices=2)
    wanted = DecayingCounts(found.counts.assortments, 43200.0, by="time")
    wanted.observe([tuple(offer.split(";")) for offer in FRAME["offered"]], FRAME["chosen"], FRAME["count"], SECONDS)
    assert isinstance(found.counts, DecayingCounts)
    assert found.counts.tallies == pytest.approx(wanted.tallies, rel=1e-12)
    assert found.counts.effective_totals == pytest.approx(wanted.effective_totals, rel=1e-12)
    assert (found.counts.now, found.counts.reach) == (wanted.now, wanted.reach)
    assert sum(part.observations for part in found.slices) == FRAME["count"].sum()  # as they were
    found.counts.observe(("a", "b"), "a", time=wanted.now + 43200)
    wanted.observe(("a", "b"), "a", time=wanted.now + 43200)
    assert found.counts.effective_totals == pytest.approx(wanted.effective_totals, rel=1e-12)


def test_what_is_long_forgotten_was_never_seen() -> None:
    frame = pd.DataFrame({"offered": ["a;b", "b;c"], "chosen": ["a", "b"], "time": ["2024-01-01", "2024-02-06"]})
    counts = read(frame, half_life="1h").counts
    assert counts.totals.tolist() == [0, 1]
    assert counts.target().seen is not None
    counts = read(frame, half_life="1s").counts  # 2 to the power of -3,110,400 is 0
    assert counts.totals.tolist() == counts.effective_totals.tolist() == [0, 1]


def test_fading_ballots_and_outside_shares() -> None:
    frame = pd.DataFrame({"ranking": ["a>b", "b>a"], "time": ["2024-01-01", "2024-01-02"]})
    assert read(frame, half_life="1d").counts.tallies == pytest.approx([0.5, 1.0])
    assert [one.tallies.tolist() for one in read(frame, time_slices=2).slices or []] == [[1, 0], [0, 1]]
    sales = pd.DataFrame({"offered": "a;b", "chosen": ["a", "b"], "time": ["2024-01-01", "2024-01-02"]})
    reading = read(sales, half_life="1d", outside_share=0.5, time_slices=2)
    assert reading.counts.tallies == pytest.approx([0.5, 1.0, 1.5])
    assert [one.tallies.tolist() for one in reading.slices or []] == [[1, 0, 1], [0, 1, 1]]


@pytest.mark.parametrize("bad", ["noon", "", None, "2024-02-30", "1700000000000", "2024-05-16T10"])
@pytest.mark.parametrize("slow", [False, True])
def test_times_that_are_none(bad: Any, slow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if slow:
        monkeypatch.setattr(Job, "quickly", lambda *_: None)
    frame = pd.DataFrame({"offered": "a;b", "chosen": ["a", "b"], "time": ["2024-01-01", bad]})
    found = read(frame, time_slices=2)
    assert found.counts.observations == 2
    if bad == "2024-05-16T10":
        assert len(found.slices or []) == 2
        return
    assert (found.slices, found.times, found.slice_times) == (None, None, None)
    for options in ({"since": "2024-01-01"}, {"half_life": "1d"}):
        with pytest.raises(ValueError, match=r"row 1: the time .* (is not of the form|is too large)"):
            read(frame, **options)  # type: ignore[arg-type]
        assert read(frame, on_error="skip", **options).problems.by_kind == {"time": 1}  # type: ignore[arg-type]


def test_an_observation_has_one_time() -> None:
    frame = pd.DataFrame({"id": [1, 1, 2, 2], "item": list("abab"), "chosen": [1, 0, 0, 1], "time": "2024-01-01"})
    assert len(read(frame, time_slices=3).slices or []) == 1
    frame.loc[1, "time"] = "2024-01-01T00:00:00Z"  # the same
    assert len(read(frame, time_slices=3).slices or []) == 1
    frame.loc[1, "time"] = "2024-01-02"
    assert read(frame, time_slices=3).slices is None
    with pytest.raises(ValueError, match="row 0: one observation has different values of 'time'"):
        read(frame, since="2024-01-01")


def test_what_is_older_is_not_looked_at() -> None:
    frame = pd.DataFrame({"offered": "a;b", "chosen": ["x", "b"], "time": ["2024-01-01", "2024-01-02"]})
    assert (read(frame, since="2024-01-02").rows, read(frame, since="2024-01-02").problems.total) == (1, 0)
    with pytest.raises(ValueError, match="has 0 records since 2025-01-01: give a file with choices"):
        read(frame, since="2025-01-01")


def test_a_record_of_the_very_moment_counts_where_rows_are_read_one_by_one() -> None:
    times = ["2024-01-01", "2024-01-02", "2024-01-03"]
    frame = pd.DataFrame({"offered": "a;b", "chosen": ["a", "b", "x"], "time": times})
    found = read(frame, since="2024-01-02", on_error="skip")  # whose last row cannot be used
    assert (found.counts.tallies.tolist(), found.problems.total) == ([0.0, 1.0], 1)


def test_what_faded_altogether_was_never_seen() -> None:
    frame = pd.DataFrame({"offered": ["a;b", "a;c"], "chosen": "a", "time": [1e6, 2e6]})
    found = read(frame, half_life=10.0).counts
    assert dict(zip(found.assortments.offers, found.totals.tolist(), strict=True)) == {("a", "b"): 0.0, ("a", "c"): 1.0}
    assert found.tallies.tolist() == [0.0, 0.0, 1.0, 0.0]


def test_numbers_as_times() -> None:
    frame = pd.DataFrame({"offered": "a;b", "chosen": ["a", "b", "b"], "time": [10, 11, 12.5]})
    assert read(frame, since=11).counts.tallies.tolist() == [0, 2]
    assert read(frame.astype({"time": str}), half_life="2.5").counts.tallies[0] == pytest.approx(0.5)
    assert read(frame, time_slices=3).slice_times == [(10, 10), (11, 11), (12.5, 12.5)]
    days = frame.assign(time=[20240101, 20240102, 20240201])
    assert read(days, time_slices=3).times == (20240101, 20240201)
    with pytest.raises(
        ValueError, match="The times 20240101 to 20240201 look like dates without dashes: write them as"
    ):
        read(days, half_life="7d")
    dates = frame.assign(time=["2024-01-01", "2024-01-02", "2024-02-01"])
    with pytest.raises(ValueError, match="since is 2024, but the times are dates: write '2024-05-16'"):
        read(dates, since="2024")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"since": "noon"}, "since is 'noon': write a time such as '2024-05-16'"),
        ({"half_life": "soon"}, "'soon' is neither a number of choices nor a time"),
        ({"half_life": -1}, "half_life is -1: it must be between"),
        ({"time_slices": 0}, "time_slices is 0: it must be at least 1"),
        ({"time_slices": 10_000}, "time_slices is 10000: it must be at most 1000"),
        ({"since": "2024-01-01", "columns": {}}, "has no column 'time', which since needs: map it with columns"),
        ({"half_life": "1d", "columns": {}}, "has no column 'time', which half_life needs: map it with columns"),
    ],
)
def test_wrong_options_about_time(options: Any, words: str) -> None:
    frame = FRAME if "columns" not in options else FRAME.drop(columns="time")
    with pytest.raises(ValueError, match=words):
        read(frame, **options)
    assert read(FRAME.drop(columns="time"), time_slices=3).slices is None


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3)), min_size=1), st.integers(1, 6))
def test_slices_divide_the_times(records: list[tuple[int, int]], slices: int) -> None:
    times, weights = (np.array(column, dtype=np.float64) for column in zip(*records, strict=True))
    spans = spans_of(times, weights, slices)
    assert 1 <= len(spans) <= slices
    number = slice_numbers(times, spans)
    assert all(spans[at][0] <= time <= spans[at][1] for at, time in zip(number, times, strict=True))
    if len(set(times)) == len(times) and weights.min() == weights.max() > 0:
        sizes = np.bincount(number, minlength=len(spans))
        assert len(spans) == min(slices, len(times))
        assert sizes.max() - sizes.min() <= 1


def test_seconds() -> None:
    assert seconds_of(datetime(1970, 1, 2, tzinfo=UTC)) == seconds_of("1970-01-02") == 86400.0
    assert seconds_of("1970-01-01 02:00:00+02:00") == seconds_of(0) == seconds_of(pd.Timestamp(0)) == 0.0
