import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankstream import Assortments, ChoiceCounts, RankingModel
from rankstream._core.types import Codes, Vec
from rankstream.data import simulate
from rankstream.models.parametric.mnl import fit_mnl
from rankstream.streams import detector as detection
from rankstream.streams.detector import ChangeDetector, DetectorSettings

MARKET = simulate.market(1, n_items=6, n_offers=8, n_test=5)
OFFERS = MARKET.assortments
OTHER = simulate.market(2, n_items=6, n_offers=8, n_test=5).truth.probabilities(OFFERS)


def draw(shares: Vec, size: int, seed: int = 0) -> Codes:
    return simulate.draw_choices(OFFERS, shares, size, np.random.default_rng(seed))


def resumed(detector: ChangeDetector) -> ChangeDetector:
    """The detector as a file would restore it."""
    content = json.loads(json.dumps(detector.to_content()))
    return ChangeDetector.from_content(content, detector.settings, detector.counts.copy(), detector.recent.copy())


@pytest.mark.parametrize("seed", range(3))
def test_it_reacts_to_a_switch_and_to_nothing_else(seed: int) -> None:
    detector = ChangeDetector(OFFERS)
    assert not detector.observe_coordinates(draw(MARKET.frequencies(), 10_000, seed))
    alarms = detector.observe_coordinates(draw(OTHER, 5_000, seed + 50))
    assert alarms == detector.alarms
    assert 10_000 < alarms[0].record < 11_000
    assert 9_500 < alarms[0].since <= alarms[0].record
    assert alarms[0].statistic > 15.0
    assert np.abs(detector.counts.frequencies() - OTHER).mean() < np.abs(MARKET.frequencies() - OTHER).mean() / 4
    assert detector.counts.observations < 7_500


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


def test_an_alarm_says_when_evidence_began_to_grow_fast() -> None:
    """Evidence that was a little above 0 for long is not when the market changed."""
    detector = ChangeDetector(Assortments([("a", "b")]), threshold=6.0)
    detector._log_ratio = np.array([0.0075, 1.0])
    detector._score(np.zeros(200, dtype=np.int64))
    detector = resumed(detector)
    detector._log_ratio = np.array([0.0075, 1.0])
    detector._score(np.ones(9, dtype=np.int64))
    detector._restart()
    assert (detector.records, detector.alarms[0].since) == (205, 197)


def test_records_are_scored_before_they_are_seen() -> None:
    detector = ChangeDetector(OFFERS, block=10, half_life=5.0)
    assert (detector._log_ratio == 0.0).all()
    detector.observe_coordinates(draw(OTHER, 9))
    assert (detector._log_ratio == 0.0).all()
    assert (detector.counts.observations, detector.recent.observations) == (9, 0)
    detector.observe(OFFERS.offers[0], OFFERS.offers[0][0])
    assert (detector._log_ratio != 0.0).any()
    assert detector.counts.observations == detector.records == 10


def test_the_evidence_is_the_ratio_of_two_shrunk_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logits by Newton's method, from the shares of either in the offers of the copy."""
    monkeypatch.setattr(detection, "LOGIT_STEPS", 300)
    monkeypatch.setattr(detection, "IMAGINARY_CHOICES", 1e-6)
    detector = ChangeDetector(OFFERS, half_life=100.0)
    detector.observe_coordinates(draw(MARKET.frequencies(), 2_000))
    made, predicted = detector.recent.totals[OFFERS.owner], []
    for counts in (detector.recent, detector.counts):
        lately = ChoiceCounts(OFFERS, made * counts.frequencies())
        logit = fit_mnl(lately, smoothing=1e-6).probabilities(OFFERS)
        predicted.append((counts.tallies + 100.0 * logit) / (counts.totals[OFFERS.owner] + 100.0))
    np.testing.assert_allclose(detector._log_ratio, np.log(predicted[0] / predicted[1]), atol=1e-4)
    assert np.abs(detector._log_ratio).max() > 0.1


def test_offers_without_choices_give_no_evidence() -> None:
    offers = Assortments([*OFFERS.offers, ("item 1", "item 6")])
    detector = ChangeDetector(offers)
    detector.observe_coordinates(draw(MARKET.frequencies(), 500))
    assert (detector._log_ratio[: OFFERS.n_coordinates] != 0.0).all()
    assert (detector._log_ratio[OFFERS.n_coordinates :] == 0.0).all()


def test_counts_that_restart_are_sums_that_rounding_cannot_change() -> None:
    detector = ChangeDetector(OFFERS, half_life=100.0)
    detector.observe_coordinates(np.concatenate([draw(MARKET.frequencies(), 1_000), draw(OTHER, 1_000)]))
    assert detector.restarted is not None
    parts = detector.counts.tallies * 2**20
    assert (parts == np.rint(parts)).all()
    assert (detector.counts.tallies != np.rint(detector.counts.tallies)).any()


@pytest.mark.parametrize("seed", range(3))
def test_other_offers_alone_are_no_change(seed: int) -> None:
    """Ten types of customers, who follow no logit, see small offers of few items first, and then larger ones."""
    random, offers = np.random.default_rng(seed), list[tuple[int, ...]]()
    for number, low, high, items in ((60, 2, 3, 8), (200, 4, 8, 12)):
        for _ in range(number):
            size = int(random.integers(low, high + 1))
            offers.append((*sorted(random.permutation(items)[:size].tolist()), 12))
    market = Assortments(dict.fromkeys(offers), range(13))
    types = RankingModel(range(13), [random.permutation(13).tolist() for _ in range(10)], np.full(10, 0.1))
    shares, detector = types.probabilities(market), ChangeDetector(market)
    early = np.diff(market.indptr)[market.owner] <= 4
    for part in (early, ~early):
        weights = np.where(part, shares, 0.0)
        detector.observe_coordinates(random.choice(shares.size, 4_000, p=weights / weights.sum()))
    assert not detector.alarms


def test_how_records_are_batched_makes_no_difference() -> None:
    one, other = ChangeDetector(OFFERS), ChangeDetector(OFFERS)
    records = np.concatenate([draw(MARKET.frequencies(), 3000), draw(OTHER, 2000)])
    one.observe_coordinates(records)
    for part in np.array_split(records, 37):
        other.observe_coordinates(part)
    assert one.alarms == other.alarms
    assert len(one.alarms) == 1
    assert one.counts.tallies.tolist() == other.counts.tallies.tolist()


def test_it_grows() -> None:
    detector = ChangeDetector(OFFERS)
    detector.observe_coordinates(draw(MARKET.frequencies(), 3000))
    detector.extend([OFFERS.offers[0]])
    assert detector.assortments == OFFERS
    detector.extend([("item 1", "item 7", "nothing"), OFFERS.offers[1]])
    assert detector.assortments.n_offers == OFFERS.n_offers + 1
    assert not detector._log_ratio[OFFERS.n_coordinates :].any()
    detector.observe_coordinates(draw(MARKET.frequencies(), 1000))
    detector.observe([("item 1", "item 7", "nothing")] * 500, ["item 7"] * 500)
    detector.observe_coordinates(draw(MARKET.frequencies(), 1000))
    assert detector.counts.tallies[detector.assortments.coordinate(("item 1", "item 7", "nothing"), "item 7")] == 500
    assert not detector.alarms


@pytest.mark.parametrize("stop", [3333, 4444])  # before the counts restart, and when they have weights
def test_a_resumed_detector_equals_an_uninterrupted_one(stop: int) -> None:
    detector = ChangeDetector(OFFERS, threshold=14.0)
    records = np.concatenate([draw(MARKET.frequencies(), 3000), draw(OTHER, 2000)])
    detector.observe_coordinates(records[:stop])
    again = resumed(detector)
    assert np.array_equal(again._log_ratio, detector._log_ratio)
    for one in (detector, again):
        one.observe_coordinates(records[stop:])
    assert again.alarms == detector.alarms
    assert len(again.alarms) > 0
    assert again.statistic == detector.statistic
    assert again.counts.tallies.tolist() == detector.counts.tallies.tolist()


@pytest.mark.parametrize("place", [0, 1])
def test_a_detector_without_one_of_its_counts_is_refused(place: int) -> None:
    detector = ChangeDetector(OFFERS)
    counts = [None if number == place else detector.counts for number in range(2)]
    with pytest.raises(ValueError, match="without its counts"):
        ChangeDetector.from_content(detector.to_content(), detector.settings, *counts)


def test_a_block_grows_with_the_market() -> None:
    assert ChangeDetector(OFFERS).block == 50
    large = Assortments([(number, *range(1_000, 1_039)) for number in range(100)])
    assert ChangeDetector(large).block == 4_000 // 20


@pytest.mark.parametrize("wrong", [{"half_life": 0}, {"threshold": -1}, {"block": 0}, {"block": 1.5}])
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"half_life|threshold|block"):
        ChangeDetector(OFFERS, DetectorSettings(), **wrong)
    assert DetectorSettings(half_life=0.5).half_life == 0.5


def test_impossible_records_are_refused() -> None:
    detector = ChangeDetector(OFFERS)
    with pytest.raises(ValueError, match="Coordinates must lie between"):
        detector.observe_coordinates([0, 999])
    assert detector.records == 0


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


def test_evidence_that_began_after_a_restart_belongs_to_it() -> None:
    detector = ChangeDetector(OFFERS, half_life=100.0)
    for records, since, alarms in ((50, 10, 1), (160, 150, 1), (300, 260, 1), (500, 401, 2)):
        detector.records, detector.since, detector.statistic = records, since, 20.0
        detector._restart()
        assert (len(detector.alarms), detector.restarted) == (alarms, records)
        detector = resumed(detector)
        assert detector.restarted == records
