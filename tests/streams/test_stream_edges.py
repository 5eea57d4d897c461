"""When a stream does what: limits, growth and times at their edges, without fits that take long."""

import gzip
import os
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rankstream import Assortments, ChoiceCounts, Live, Record
from rankstream.data.counts import MAX_OBSERVATIONS
from rankstream.data.prices import PriceLevels
from rankstream.oracles import QuickOracle
from rankstream.streams import background, entropy_follower, pace, record
from rankstream.streams.background import BackgroundLive
from rankstream.streams.detector import ChangeDetector
from rankstream.streams.entropy_follower import EntropyFollower, can_follow
from rankstream.streams.live_settings import DetectorSettings, LiveSettings, RecordRules
from rankstream.streams.pace import StreamPace, is_small, may_serve
from rankstream.streams.proofs import StreamProof
from rankstream.streams.record import MAX_DETECTED_COUNT, RecordLevels, can_wait, check_record
from rankstream.streams.sources import rotation
from rankstream.streams.sources.parser import MAX_COUNT, LineReader, moment_of
from rankstream.streams.sources.rotation import LostSourceError, Place, digest_of, is_written_anew, newer, where_is

pytestmark = pytest.mark.quick
TEA = Record(("tea", "pie"), "tea")


def sized(offers: int = 1, items: int = 2, coordinates: int = 2) -> Any:
    """Offers of which only the sizes are asked."""
    return SimpleNamespace(n_offers=offers, n_items=items, n_coordinates=coordinates)


def test_programs_are_built_where_they_are_small_or_paid_for() -> None:
    assert is_small(sized(1, 16, 1_000))
    assert not is_small(sized(1, 17, 1_000))
    assert not is_small(sized(1, 16, 1_001))
    assert StreamPace(choices=0).affords(sized(1, 16, 1_000))
    assert StreamPace(choices=2_500, built=500).affords(sized(1, 40, 2_000))
    assert not StreamPace(choices=2_499, built=500).affords(sized(1, 40, 2_000))
    assert StreamPace(choices=10_000).affords(sized(1, 40, 10_000))
    assert not StreamPace(choices=20_000).affords(sized(1, 40, 10_001))


def test_offers_leave_beyond_a_million_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not StreamPace().is_crowded(sized(coordinates=1_000_000))
    assert StreamPace().is_crowded(sized(coordinates=1_000_001))
    monkeypatch.setattr(pace, "MAX_COORDINATES", 8)
    counts = ChoiceCounts(
        Assortments([("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")]), [1, 0, 2, 2, 3, 3, 4, 4, 4]
    )
    own = StreamPace()
    (left,) = own.make_room([], [counts])
    assert left.assortments.n_coordinates <= 6  # three quarters
    assert own.left == counts.assortments.n_offers - left.assortments.n_offers > 0
    assert ("a", "b") not in left.assortments.offers  # which has the fewest choices


def test_an_outgrown_market_learns_from_blocks() -> None:
    offers = Assortments([range(k, k + 40) for k in range(50)])  # 2,000 coordinates
    quick: Any = SimpleNamespace(solver=SimpleNamespace(oracle=QuickOracle(offers, seed=0), assortments=offers))
    exact: Any = SimpleNamespace(solver=SimpleNamespace(oracle=object(), assortments=offers))
    assert StreamPace().block(quick) == 10
    assert StreamPace().block(exact) == StreamPace().block(None) == 1
    assert "until 2,000 more choices arrive" in StreamPace().remark(quick)
    assert StreamPace().remark(exact) == StreamPace().remark(None) == ""
    assert StreamPace(left=5).remark(None).startswith("The 5 offers with the fewest choices were dropped")


@pytest.mark.parametrize(
    ("size", "choices", "fitted", "knows", "fit", "serves"),
    [
        (250, 0.0, 0.0, False, True, True), (251, 250.0, 0.0, False, True, False), (251, 251.0, 0.0, False, True, True),
        (251, 251.0, 1.0, False, True, False), (251, 0.0, 0.0, True, True, True), (251, 0.0, 0.0, False, False, True),
    ],
)  # fmt: skip
def test_new_items_wait_for_as_many_choices_as_there_are_coordinates(
    size: int, choices: float, fitted: float, knows: bool, fit: bool, serves: bool
) -> None:
    run: Any = SimpleNamespace(solver=SimpleNamespace(oracle=object()))
    counts: Any = SimpleNamespace(assortments=sized(coordinates=size))
    dense: Any = SimpleNamespace(choices=choices, fitted=(fitted, 0.0), knows=lambda _: knows, fit=fit or None)
    assert may_serve(run, counts, dense) is serves
    quick: Any = SimpleNamespace(solver=SimpleNamespace(oracle=QuickOracle(Assortments([("a", "b")]), seed=0)))
    assert not may_serve(quick, counts, dense)


def test_markets_that_are_followed() -> None:
    assert can_follow(sized(400, 64, 4_000))
    for sizes in ((401, 64, 4_000), (400, 65, 4_000), (400, 64, 4_001)):
        assert not can_follow(sized(*sizes))


def follower(weighed: float, fitted: float, choices: float | None = None) -> EntropyFollower:
    """A follower of tea and pie that was weighed and fitted at so many choices, half of them tea; nothing has faded."""
    made, offers = EntropyFollower(0), Assortments([("tea", "pie")])
    made.fit = SimpleNamespace(model=SimpleNamespace(items=("tea", "pie")), assortments=offers)  # type: ignore[assignment]
    made.weighed, made.fitted, made.tallies = (weighed, weighed), (fitted, fitted), np.full(2, fitted / 2)
    made.choices = fitted if choices is None else choices
    return made


def counted(number: float, tea: float | None = None) -> ChoiceCounts:
    """So many choices, half of them tea unless it is said how many."""
    tea = number / 2 if tea is None else tea
    return ChoiceCounts(Assortments([("tea", "pie")]), [tea, number - tea])


def test_a_model_is_weighed_when_choices_have_doubled_and_fitted_when_shares_have_moved() -> None:
    assert EntropyFollower(0).due(counted(49), 49) is None
    assert EntropyFollower(0).due(counted(50), 50) == "anew"
    assert follower(1000, 1900).due(counted(1_999), 99) is None
    assert follower(1000, 1900).due(counted(2_000), 100) == "anew"
    assert follower(1000, 1000).due(counted(1_100), 100) is None  # the shares are the same
    assert follower(1000, 1000).due(counted(1_050, tea=500), 50) == "again"
    assert follower(1000, 1000).due(counted(1_049, tea=500), 49) is None  # not yet fifty choices more
    assert follower(1000, 1000).due(counted(1_001), 1, changed=True) == "anew"
    other = ChoiceCounts(Assortments([("tea", "pie", "bun")]), [500, 501, 10])
    assert follower(1000, 1000).due(other, 1) == "again"  # an item that the model does not know
    counts = follower(1000, 1000)
    counts.due(counted(1_001), 1)
    assert counts.choices == 1001.0


def test_where_choices_fade_a_model_is_weighed_by_those_that_came() -> None:
    def due(arrived: float, count: int = 100, tea: float | None = None) -> str | None:
        own = follower(100, 100)
        own.choices = 100.0
        return own.due(counted(count, tea), arrived)

    # two coordinates: weighed anew after as many choices as count, as that is more than 30 for each
    assert [due(99), due(100), due(59, 51), due(60, 51)] == [None, "anew", None, "anew"]
    # and fitted again after a tenth of what counts, if the shares have moved
    assert [due(9, tea=90), due(11, tea=90), due(11, tea=50)] == [None, "again", None]


def test_an_old_model_is_stale_after_the_root_of_its_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    learning = BackgroundLive({})
    learning.observe([TEA._replace(times=60.0), TEA._replace(chosen="pie", times=40.0)], 2, 1000.0)
    learning.dense, learning._known, learning._due = follower(100, 100), (2, 1000.0), None

    def is_stale() -> bool:
        return learning.is_stale

    assert (learning.serves, learning.known, learning.known_since) == ("max-entropy", 2, 1000.0)
    learning.dense.choices = 110.0
    assert not is_stale()
    now[0] = 1000.0 + background.FRESH_SECONDS - 0.01
    assert not is_stale()
    now[0] = 1000.0 + background.FRESH_SECONDS
    assert is_stale()
    assert (learning.needs_refit, learning.due) == (True, "again")
    learning.dense.choices = 109.9
    assert not is_stale()
    learning.dense.choices, learning._failed = 110.0, learning.position
    assert learning.due is None  # it failed with these very records
    learning._failed, learning._pending = None, (2, 1000.0)
    assert learning.due is None  # one is under way


def test_a_model_of_fewer_records_than_one_that_was_given_out_is_not_served() -> None:
    learning = BackgroundLive({})
    learning.observe([TEA._replace(times=60.0), TEA._replace(chosen="pie", times=40.0)], 2, 5.0)
    learning.dense, learning._known = follower(100, 100), (1, 4.0)
    assert learning.serves == "max-entropy"
    learning._published = 2
    assert (learning.serves, learning.known, learning.known_since) == ("sparse", 2, 5.0)
    assert learning.needs_refit
    assert not learning.is_catching_up
    learning._known = (2, 5.0)
    assert (learning.serves, learning.needs_refit) == ("max-entropy", False)
    learning._now_due()  # which counts what came, and nothing came
    assert learning.dense.choices == 100.0


@pytest.mark.parametrize("count", [0, 1, MAX_DETECTED_COUNT])
def test_whole_counts_up_to_a_limit_can_be_watched(count: int) -> None:
    check_record(TEA._replace(times=float(count)), timed=False, detect=True)


@pytest.mark.parametrize("count", [-1.0, 0.5, MAX_DETECTED_COUNT + 1.0])
def test_other_counts_cannot_be_watched(count: float) -> None:
    check_record(TEA._replace(times=count), timed=False, detect=False)
    with pytest.raises(ValueError, match="is not a whole number up to 100,000"):
        check_record(TEA._replace(times=count), timed=False, detect=True)


def test_what_can_wait() -> None:
    for times in (0.0, 2, 2.5, MAX_OBSERVATIONS - 1):
        assert can_wait(TEA._replace(times=times), whole=False)
    for odd in (-1.0, nan, inf, True, "2", MAX_OBSERVATIONS):
        assert not can_wait(TEA._replace(times=odd), whole=False)  # type: ignore[arg-type]
    assert not can_wait(TEA._replace(times=2.5), whole=True)
    assert can_wait(TEA._replace(times=2.0), whole=True)
    for moment in (nan, inf, "now", True):
        assert not can_wait(TEA._replace(time=moment), whole=False)  # type: ignore[arg-type]
    assert can_wait(TEA._replace(time=5), whole=False)


def test_a_record_may_be_a_day_ahead_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1000.0)
    rules = RecordRules(LiveSettings.of(half_life="7d"))
    rules.check_amount(TEA._replace(time=87_400.0))
    with pytest.raises(ValueError, match="more than a day ahead"):
        rules.check_amount(TEA._replace(time=87_400.1))
    with pytest.raises(ValueError, match='no readable "time"'):
        rules.check_amount(TEA)
    RecordRules(LiveSettings.of(half_life=50)).check_amount(TEA._replace(time=87_400.1))


def test_settings_of_a_live_model() -> None:
    found = LiveSettings.of(detect=True, half_life=200, threshold=8.0, seed=4)
    assert found.detector == DetectorSettings(half_life=200, threshold=8.0)
    assert (found.half_life, found.window, found.seed, found.detect, found.timed) == (200, None, 4, True, False)
    assert not found.automatic
    own = LiveSettings.of(detect=DetectorSettings(block=7), rounds=3)
    assert (own.detector, own.rounds) == (DetectorSettings(block=7), 3)
    alone = LiveSettings.of(threshold=8.0)
    assert (alone.detector, alone.automatic, alone.half_life) == (DetectorSettings(threshold=8.0), True, None)
    for words, is_on in (({"detect": False}, False), ({"half_life": 9}, False), ({}, True)):
        assert LiveSettings.of(**words).detect is is_on
    assert (LiveSettings.of(window="2h").timed, LiveSettings.of(window=20).timed) == (True, False)
    assert (LiveSettings.of(window=20.0).window, LiveSettings.of().rounds, LiveSettings.of().seed) == (20, 20, 0)
    wrong: dict[str, Any]
    for wrong in ({"half_life": 0.0}, {"threshold": -1.0}, {"block": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            DetectorSettings(**wrong)
    assert DetectorSettings(threshold=0.0).threshold == 0.0


def test_prices_of_few_offers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "MAX_KNOWN_OFFERS", 2)
    levels = RecordLevels(PriceLevels({"tea": [2.0, 3.0]}))
    for price in (2.0, 2.1, 3.0):
        levels.of(Record({"tea": price, "no": None}, "tea"))
        assert len(levels._known) <= 2
    assert len(levels._known) == 1
    assert levels.of(Record({"tea": 2.9, "no": None}, "no")).offered == ("tea @ 3.00", "no")
    assert (levels.own("tea @ 2.00"), levels.own("no"), RecordLevels(None).own("tea @ 2.00")) == (
        "tea",
        "no",
        "tea @ 2.00",
    )


def test_evidence_starts_again_from_the_copy_after_a_change() -> None:
    detector = ChangeDetector(Assortments([("tea", "pie")]), block=10, half_life=20.0)
    detector.observe([("tea", "pie")] * 20, ["tea"] * 20)
    detector.records, detector.since, detector.halfway, detector.statistic = 100, 60, 90, 16.0
    detector._restart()
    (alarm,) = detector.alarms
    assert (alarm.record, alarm.since, alarm.statistic) == (100, 80, 16.0)  # as fast as from 90 to 100
    assert (detector.statistic, detector.since, detector.restarted) == (0.0, 100, 100)
    assert detector.counts.tallies == pytest.approx(detector.recent.tallies, abs=1e-6)
    for since, alarms in ((120, 1), (121, 2)):  # within a half-life of the restart it is the same change
        detector.restarted, detector.since, detector.records, detector.statistic = 100, since, 200, 16.0
        detector._restart()
        assert len(detector.alarms) == alarms
    detector.since, detector.halfway, detector.records, detector.restarted = 190, 192, 200, None
    detector._restart()
    assert detector.alarms[-1].since == 190  # not before evidence was above 0


def test_a_proof_is_looked_for_when_there_are_enough_records_more() -> None:
    live = Live(publish="sparse", rounds=1)
    live.observe([TEA._replace(times=3.0), Record(("tea", "bun"), "bun", 2.0), Record(("pie", "bun"), "pie", 2.0)])
    run, counts = live.run, live.counts
    assert run is not None
    assert counts is not None
    weak = replace(live.certificate, lower=0.0, upper=1.0)
    proof = StreamProof(1.2)
    proof.sharpen(weak, run, counts, 100)
    assert proof._records == 100
    for records, last in ((119, 100), (120, 120), (120, 120)):
        proof.sharpen(weak, run, counts, records)
        assert proof._records == last
    proof.is_paused = True
    proof.sharpen(weak, run, counts, 200)
    assert (proof._records, proof.is_owed) == (120, True)
    proof.sharpen(replace(weak, lower=0.9), run, counts, 300)  # enough is proven
    assert proof._records == 120
    proof.is_paused = False
    proof.sharpen(replace(weak, lower=0.9 - 1e-9), run, counts, 300)
    assert (proof._records, proof.is_owed) == (300, False)


def test_a_place_is_found_again_by_its_last_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotation, "WINDOW_BYTES", 4)
    source = tmp_path / "choices.jsonl"
    source.write_bytes(b"0123456789")
    about = source.stat()
    at = Place(8, 1, about.st_dev, about.st_ino, digest_of(b"4567"))
    assert where_is(source, at) == source
    (tmp_path / "choices.jsonl.1").write_bytes(b"xxxx4567")
    source.write_bytes(b"other")
    assert where_is(source, at) == tmp_path / "choices.jsonl.1"
    (tmp_path / "choices.jsonl.2").write_bytes(b"yyyy4567")
    with pytest.raises(LostSourceError, match="both"):
        where_is(source, at)
    for name in ("choices.jsonl.1", "choices.jsonl.2"):
        (tmp_path / name).write_bytes(b"yyyy456")  # a byte too short
    with pytest.raises(LostSourceError, match="no file beside it is"):
        where_is(source, at)
    old = Place(5, 1)  # of version 0.2, without a digest
    assert where_is(source, old) == source
    with pytest.raises(LostSourceError):
        where_is(source, old._replace(end=6))
    assert where_is(tmp_path / "none", Place()) == tmp_path / "none"


def test_a_source_is_written_anew_where_the_file_that_was_read_is_gone(tmp_path: Path) -> None:
    source, beside = tmp_path / "choices.jsonl", tmp_path / "choices.jsonl.1"
    source.write_bytes(b"01234567")
    about = source.stat()
    at = Place(8, 1, about.st_dev, about.st_ino, digest_of(b"01234567"))
    source.rename(beside)
    source.write_bytes(b"0123456789")
    assert not is_written_anew(source, at)  # it is beside the source
    beside.unlink()
    assert is_written_anew(source, at)
    source.write_bytes(b"012345x789")
    assert not is_written_anew(source, at)


def test_files_that_were_rotated_since_come_in_their_order(tmp_path: Path) -> None:
    source = tmp_path / "choices.jsonl"
    for place, name in enumerate(("choices.jsonl.2", "choices.jsonl.1", "choices.jsonl")):
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (100 + place, 100 + place))
    (tmp_path / "choices.jsonl.0").write_text("")  # nothing is in it
    read = tmp_path / "choices.jsonl.9"
    read.write_text("read")
    os.utime(read, (99, 99))
    assert newer(source, read.stat()) == [tmp_path / "choices.jsonl.2", tmp_path / "choices.jsonl.1"]
    os.utime(read, (100, 100))
    assert newer(source, read.stat()) == [tmp_path / "choices.jsonl.1"]
    with gzip.open(tmp_path / "choices.jsonl.3.gz", "wb") as file:
        file.write(b"read")  # as long as the file that is read: most likely the same
    assert newer(source, read.stat()) == [tmp_path / "choices.jsonl.1"]
    with gzip.open(tmp_path / "choices.jsonl.3.gz", "wb") as file:
        file.write(b"others")
    with pytest.raises(LostSourceError, match="the next file is compressed"):
        newer(source, read.stat())


def test_counts_and_times_of_lines() -> None:
    reader = LineReader("choices.csv")
    reader.begin(b"offered,chosen,count", "choices.csv")
    found = reader.record(b"tea;pie,tea,2.5")
    assert found is not None
    assert (found.times, found.time) == (2.5, None)
    big = reader.record(b"tea;pie,tea,999999999999999")
    assert big is not None
    assert big.times == 1e15 - 1
    with pytest.raises(ValueError, match="is not a number below"):
        reader.record(f"tea;pie,tea,{MAX_COUNT:.0f}".encode())
    assert reader.record(b"tea;pie,tea,1,") is not None  # an empty cell behind the last one
    with pytest.raises(ValueError, match=r"columns|cells|fields"):
        reader.record(b"tea;pie,tea,1,,")
    assert reader.record(b"  ") is None
    assert (reader.is_whole(b'"a'), reader.is_whole(b'"a"')) == (False, True)
    assert not reader.is_complete(b"tea;pie,tea,1")
    lines = LineReader("choices.jsonl")
    assert [lines.is_complete(words) for words in (b"{}", b"{", b" ")] == [True, False, False]
    assert moment_of("1970-01-01T00:01:00+00:00") == 60.0
    odd: list[Any] = [True, None, [], "soon", 10**400]
    assert [moment_of(value) for value in odd] == [None] * 5
    assert moment_of(7) == 7.0


def test_a_follower_without_a_model_says_so() -> None:
    with pytest.raises(ValueError, match=f"before {entropy_follower.MIN_CHOICES} choices"):
        _ = EntropyFollower(0).model
    assert not EntropyFollower(0).knows(counted(1).assortments)
    assert np.isclose(EntropyFollower(0).choices, 0.0)


def test_before_the_first_record_there_is_no_item() -> None:
    live = Live(publish="sparse", rounds=1)
    assert (live.n_items, live.records) == (0, 0)
    live.observe([Record(("a", "b"), "a", 1)])
    assert (live.n_items, live.records) == (2, 1)
