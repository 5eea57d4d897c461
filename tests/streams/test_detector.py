from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankstream import Assortments
from rankstream._core.types import Codes, Vec
from rankstream.data import simulate
from rankstream.streams.detector import ChangeDetector, DetectorSettings
from rankstream.streams.files import checkpoint
from strategies import compiled_only

MARKET = simulate.market(1, n_items=6, n_offers=8, n_test=5)
OFFERS = MARKET.assortments
OTHER = simulate.market(2, n_items=6, n_offers=8, n_test=5).truth.probabilities(OFFERS)


def draw(shares: Vec, size: int, seed: int = 0) -> Codes:
    return simulate.draw_choices(OFFERS, shares, size, np.random.default_rng(seed))


def runs_of(detector: ChangeDetector) -> Any:
    """Its two runs and their counts."""
    return (detector.published, detector.counts), (detector.fast, detector._recent)


def error(detector: ChangeDetector, shares: Vec) -> float:
    return float(np.abs(detector.model.probabilities(detector.assortments)[: shares.size] - shares).mean())


@compiled_only
@pytest.mark.parametrize("seed", range(3))
def test_it_reacts_to_a_switch_and_to_nothing_else(seed: int) -> None:
    detector = ChangeDetector(OFFERS)
    assert not detector.observe_coordinates(draw(MARKET.frequencies(), 10_000, seed))
    quiet = error(detector, MARKET.frequencies())
    alarms = detector.observe_coordinates(draw(OTHER, 5_000, seed + 50))
    assert alarms == detector.alarms
    assert 10_000 < alarms[0].record < 11_000
    assert 9_500 < alarms[0].since <= alarms[0].record
    assert alarms[0].statistic > 15.0
    assert error(detector, OTHER) < 3 * quiet
    assert detector.counts.observations < 7_500
    assert detector.certificate.gap < 0.3


EXACT = st.integers(-192, 192).map(lambda k: k / 64)  # sums of these are exact in any order


@settings(max_examples=50)
@given(st.lists(EXACT, min_size=1, max_size=40), st.integers(1, 40), st.integers(0, 320).map(lambda k: k / 64))
def test_evidence_is_added_up_record_by_record(ratios: list[float], cut: int, begin: float) -> None:
    offers = Assortments([range(len(ratios))])
    detector = ChangeDetector(offers, threshold=6.0)
    detector._log_ratio = np.array(ratios)
    detector.statistic = begin
    used = detector._score(np.arange(min(cut, len(ratios))))
    evidence, since, steps = begin, 0, 0
    for steps, ratio in enumerate(ratios[:cut], start=1):
        evidence = max(0.0, evidence + ratio)
        since = steps if evidence == 0.0 else since
        if evidence > 6.0:
            break
    assert used == detector.records == steps
    assert detector.statistic == evidence
    if evidence:
        assert detector.since == since


def test_an_alarm_says_when_evidence_began_to_grow_fast(tmp_path: Path) -> None:
    """Evidence that was a little above 0 for long is not when the market changed."""
    detector = ChangeDetector(Assortments([("a", "b")]), threshold=6.0)
    detector._log_ratio = np.array([0.0075, 1.0])
    detector._score(np.zeros(200, dtype=np.int64))
    detector.save(tmp_path / "detector.npz")
    detector = ChangeDetector.load(tmp_path / "detector.npz")
    detector._log_ratio = np.array([0.0075, 1.0])
    detector._score(np.ones(9, dtype=np.int64))
    detector._restart()
    assert (detector.records, detector.alarms[0].since) == (205, 197)


def test_records_are_scored_before_they_are_seen() -> None:
    detector = ChangeDetector(OFFERS, block=10, rounds=5)
    before = detector._log_ratio.copy()
    assert (before == 0.0).all()
    detector.observe_coordinates(draw(OTHER, 9))
    assert detector.published.state.round == 0
    detector.observe(OFFERS.offers[0], OFFERS.offers[0][0])
    assert detector.published.state.round == detector.fast.state.round == 5
    assert detector.counts.observations == detector.records == 10


@compiled_only
def test_how_records_are_batched_makes_no_difference() -> None:
    one, other = ChangeDetector(OFFERS), ChangeDetector(OFFERS)
    records = np.concatenate([draw(MARKET.frequencies(), 3000), draw(OTHER, 2000)])
    one.observe_coordinates(records)
    for part in np.array_split(records, 37):
        other.observe_coordinates(part)
    assert [alarm.record for alarm in one.alarms] == [alarm.record for alarm in other.alarms]
    assert one.model == other.model


@compiled_only
def test_it_grows() -> None:
    detector = ChangeDetector(OFFERS)
    detector.observe_coordinates(draw(MARKET.frequencies(), 3000))
    rounds = detector.published.state.round
    detector.extend([OFFERS.offers[0]])
    assert detector.assortments == OFFERS
    detector.extend([("item 1", "item 7", "nothing"), OFFERS.offers[1]])
    assert detector.assortments.n_offers == OFFERS.n_offers + 1
    assert detector.published.state.round == rounds
    assert not detector._log_ratio[OFFERS.n_coordinates :].any()
    detector.observe_coordinates(draw(MARKET.frequencies(), 1000))
    detector.observe([("item 1", "item 7", "nothing")] * 500, ["item 7"] * 500)
    detector.observe_coordinates(draw(MARKET.frequencies(), 1000))
    assert detector.model.predict(("item 1", "item 7", "nothing"))["item 7"] > 0.8
    assert not detector.alarms


@compiled_only
def test_a_resumed_detector_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    path = tmp_path / "detector.npz"
    detector = ChangeDetector(OFFERS, seed=4)
    records = np.concatenate([draw(MARKET.frequencies(), 3000), draw(OTHER, 2000)])
    detector.observe_coordinates(records[:3333])
    detector.save(path)
    again = ChangeDetector.load(path)
    assert again.settings == detector.settings
    for one in (detector, again):
        one.observe_coordinates(records[3333:])
    assert again.alarms == detector.alarms
    assert len(again.alarms) > 0
    assert again.statistic == detector.statistic
    assert again.model == detector.model
    assert again.counts.tallies.tolist() == detector.counts.tallies.tolist()
    checkpoint.save(path, detector.published.solver, detector.published.state)
    with pytest.raises(ValueError, match="without a change detector"):
        ChangeDetector.load(path)


@pytest.mark.parametrize("place", [0, 1])
def test_a_detector_without_one_of_its_counts_is_refused(place: int) -> None:
    detector = ChangeDetector(OFFERS)
    detector.observe_coordinates(draw(MARKET.frequencies(), 100))
    packed, more = detector.packed()
    runs = [checkpoint.Checkpoint(run.solver, run.state, counts) for run, counts in runs_of(detector)]
    assert len(packed) == 2
    runs[place] = runs[place]._replace(counts=None)
    with pytest.raises(ValueError, match="without its counts"):
        ChangeDetector.unpacked(runs, more)


@pytest.mark.parametrize(
    "wrong", [{"half_life": 0}, {"threshold": -1}, {"epsilon": 0.0}, {"epsilon": 1.0}, {"block": 0}, {"memory": 1.5}]
)
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"half_life|threshold|epsilon|block|memory"):
        ChangeDetector(OFFERS, DetectorSettings(), **wrong)
    assert DetectorSettings(half_life=0.5).half_life == 0.5


def test_impossible_records_are_refused() -> None:
    detector = ChangeDetector(OFFERS)
    with pytest.raises(ValueError, match="Coordinates must lie between"):
        detector.observe_coordinates([0, 999])
    assert detector.records == 0


@compiled_only
@pytest.mark.parametrize("seed", range(6))
def test_one_change_is_one_alarm(seed: int) -> None:
    market, other = simulate.market(seed), simulate.market(1000 + seed)
    offers, random = market.assortments, np.random.default_rng(seed)
    detector, after = ChangeDetector(offers), other.truth.probabilities(offers)
    detector.observe_coordinates(simulate.draw_choices(offers, market.frequencies(), 6_000, random))
    early = len(detector.alarms)
    detector.observe_coordinates(simulate.draw_choices(offers, after, 6_000, random))
    later = detector.alarms[early:]
    assert [6_000 < alarm.record < 7_000 for alarm in later] == [True]
    assert detector.restarted is not None
    assert detector.restarted >= later[0].record  # where the copy completed the change, without another alarm
    detector.observe_coordinates(simulate.draw_choices(offers, market.frequencies(), 3_000, random))
    assert len(detector.alarms) == early + 2  # the way back is a change of its own


def test_evidence_that_began_after_a_restart_belongs_to_it(tmp_path: Path) -> None:
    detector = ChangeDetector(OFFERS, half_life=100.0)
    for records, since, alarms in ((50, 10, 1), (160, 150, 1), (300, 260, 1), (500, 401, 2)):
        detector.records, detector.since, detector.statistic = records, since, 20.0
        detector._restart()
        assert (len(detector.alarms), detector.restarted) == (alarms, records)
        detector.save(tmp_path / "detector.npz")
        detector = ChangeDetector.load(tmp_path / "detector.npz")
        assert detector.restarted == records
