"""A model that follows records, with a change detector and without: bounded, certified, and resumed to the last bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import naive
from experiments.counting_oracle import CountingOracle
from rankstream import Assortments, Solver, distances, learners, oracles
from rankstream.data import simulate
from rankstream.distances import observation_weights
from rankstream.solver.runs import Run
from rankstream.streams.detector import DetectorSettings
from rankstream.streams.files import checkpoint
from rankstream.streams.live import Live, Record
from rankstream.streams.live_settings import LiveSettings, RecordRules
from rankstream.streams.runs import endless as playing
from strategies import compiled_only

pytestmark = pytest.mark.quick

MARKET = simulate.market(3, n_items=5, n_offers=6, n_test=5)
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"rounds": 40, "seed": 2},
    "half-life": {"half_life": 300},
    "window": {"window": 200},
    "detector": {"detect": True, "threshold": 4.0, "half_life": 60, "rounds": 40},
    "own settings": {"detect": DetectorSettings(block=20), "seed": 3},
}


def some_records(size: int, seed: int = 0) -> list[Record]:
    """Choices from a market whose offers are not made alike often; in the second half tastes are turned round."""
    offers, random = MARKET.assortments, np.random.default_rng(seed)
    shares = MARKET.frequencies()
    often = np.arange(1.0, offers.n_offers + 1.0)
    found = []
    for number in range(size):
        offer = int(random.choice(offers.n_offers, p=often / often.sum()))
        part = slice(int(offers.indptr[offer]), int(offers.indptr[offer + 1]))
        law = shares[part] if number < size // 2 else shares[part][::-1]
        item = int(random.choice(law.size, p=law / law.sum()))
        found.append(Record(offers.offers[offer], offers.offers[offer][item]))
    return found


def feed(live: Live, records: list[Record], size: int = 30) -> None:
    for start in range(0, len(records), size):
        live.observe(records[start : start + size])


def contents(live: Live, path: Path) -> dict[str, bytes]:
    live.save(path)
    with np.load(path) as archive:
        return {name: archive[name].tobytes() for name in archive.files}


def check_certificate(live: Live) -> None:
    """What is told is about the model that is given out, and it encloses the least distance there is."""
    assert live.run is not None
    assert live.counts is not None
    offers, state, distance = live.counts.assortments, live.run.state, live.run.solver.distance
    certificate, shares, target = live.certificate, live.model.probabilities(offers), live.counts.target()
    at = target.frequencies if target.seen is None else np.where(target.seen, target.frequencies, shares)
    assert certificate.upper == pytest.approx(distance.value(shares, at), abs=1e-12)
    np.testing.assert_allclose(state.sums.mean_vertex, shares, rtol=0.0, atol=1e-12)
    assert sum(state.weights.values()) == pytest.approx(state.sums.total_weight, rel=1e-12)
    weights = distance.offer_weights  # type: ignore[attr-defined]
    each = weights[offers.owner] * (1.0 if target.seen is None else target.seen)
    best = naive.least_distance("l2", naive.all_vertices(offers) * each, at * each)
    assert certificate.lower <= best + 1e-7 <= certificate.upper + 2e-7


@pytest.mark.slow
@compiled_only
@pytest.mark.parametrize("share", [1e-9, 2e-2])
@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_is_that_of_the_rankings_that_are_left(
    kind: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playing, "MIN_RANKING_SHARE", share)
    live = Live(publish="sparse", **KINDS[kind])
    records = some_records(900)
    for part in range(3):
        feed(live, records[300 * part : 300 * (part + 1)])
        check_certificate(live)
    if share > 1e-9:
        whole = Live(publish="sparse", **KINDS[kind])
        monkeypatch.setattr(playing, "MIN_RANKING_SHARE", 0.0)
        feed(whole, records)
        assert live.rankings < whole.rankings


def test_what_is_dropped_is_shared_out() -> None:
    offers = Assortments([("a", "b"), ("b", "c")])
    run = playing.endless(Solver(offers, distances.L2(offers), learners.DualAveraging(), oracles.auto(offers)))
    orders = {name: np.array(order) for name, order in (("a", [0, 1, 2]), ("b", [1, 2, 0]), ("c", [2, 0, 1]))}
    run.state.weights = {orders["a"].tobytes(): 3.0, orders["b"].tobytes(): 1e-9, orders["c"].tobytes(): 1.0}
    for order in orders.values():
        run.state.sums.vertex += offers.vertex(order) * run.state.weights[order.tobytes()]
    run.state.sums.vertex[1] = np.nextafter(1e-9, 0.0)  # rounding of its own
    run.state.sums.total_weight, run.state.round = 4.0 + 1e-9, 4
    run.state.sums.dual[:] = dual = np.arange(4.0)
    playing.prune(run)
    assert run.state.sums.total_weight == 4.0 + 1e-9
    assert list(run.state.weights) == [orders["a"].tobytes(), orders["c"].tobytes()]
    np.testing.assert_allclose(run.state.sums.mean_vertex, [1.0, 0.0, 0.75, 0.25], rtol=1e-15)
    assert run.solver.model(run.state).weights.tolist() == pytest.approx([0.75, 0.25], rel=1e-15)
    assert run.state.sums.vertex[1] == 0.0
    assert run.state.sums.dual.tolist() == dual.tolist()


@compiled_only
def test_rankings_and_history_stay_bounded() -> None:
    live = Live(publish="sparse", rounds=200)
    found: set[bytes] = set()
    most = []
    for _ in range(60):
        live.observe(Record(("a", "b", "c"), "a", 1))
        live.observe(Record(("c", "b", "d"), "d", 1))
        assert live.run is not None
        assert live.run.history.mae.size == 1
        found |= live.run.state.weights.keys()
        most.append(live.rankings)
    assert most[-1] < len(found)
    assert max(most[30:]) <= max(most[:30])


def test_an_endless_run_ends_like_any_other_and_keeps_its_last_entry() -> None:
    offers = MARKET.assortments
    target = MARKET.frequencies()
    for oracle in (oracles.auto(offers), CountingOracle(oracles.auto(offers))):  # in chunks, and one by one
        runs = [
            Run(Solver(offers, distances.L2(offers), learners.DualAveraging(), oracle), 0.0, keep_history=keep)
            for keep in (True, False)
        ]
        for run in runs:
            run.advance_block(np.tile(target, (300, 1)))
        assert runs[0].history.mae.size == 300
        assert runs[1].history.mae.tolist() == runs[0].history.mae[-1:].tolist()
        assert runs[1].last == pytest.approx(runs[0].last, rel=0.0, abs=0.0, nan_ok=True)
        assert runs[0].result().model == runs[1].result().model


@compiled_only
@pytest.mark.parametrize("share", [pytest.param(1e-9, marks=pytest.mark.slow), 1e-2])
@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_model_equals_an_uninterrupted_one(
    kind: str, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playing, "MIN_RANKING_SHARE", share)
    whole, begun = Live(publish="sparse", **KINDS[kind]), Live(publish="sparse", **KINDS[kind])
    records = [*some_records(600), *(Record(("item 1", "new"), "new") for _ in range(60))]
    feed(whole, records)
    for stop in range(0, 660, 330):
        feed(begun, records[stop : stop + 330])
        begun.save(tmp_path / "state.npz")
        begun = Live.load(tmp_path / "state.npz")
    for name in ("half_life", "window", "detect", "settings", "threshold", "rounds", "seed", "records", "waiting"):
        assert getattr(begun, name) == getattr(whole, name), name
    assert begun.model == whole.model
    assert begun.alarms == whole.alarms
    assert contents(begun, tmp_path / "a.npz") == contents(whole, tmp_path / "b.npz")


@pytest.mark.parametrize("stop", [0, 333])  # what is saved in the middle of a block goes on as it would have
def test_batches_make_no_difference_to_alarms_and_counts(stop: int, tmp_path: Path) -> None:
    found = []
    for size in (1, 7, 50, 1000):
        live = Live(publish="sparse", **KINDS["detector"] | {"rounds": 1})
        feed(live, some_records(700)[:stop], size)
        if stop:
            live.save(tmp_path / "state.npz")
            live = Live.load(tmp_path / "state.npz")
        feed(live, some_records(700)[stop:], size)
        assert live.alarms
        assert live.detector is not None
        assert live.counts is live.detector.counts
        arrays = live.counts.tallies, live.detector.recent.tallies, live.detector._log_ratio
        found.append((live.detector.to_content(), *(array.tobytes() for array in arrays)))
    assert found[1:] == found[:-1]


def test_changes_are_looked_for_by_default_where_nothing_fades(tmp_path: Path) -> None:
    market, other = simulate.market(1), simulate.market(2)
    offers, random = market.assortments, np.random.default_rng(3)
    found = []
    for settings in ({}, {"detect": True}, {"detect": False}, {"half_life": 500}, {"window": 500}):
        live, random = Live(publish="sparse", rounds=1, **settings), np.random.default_rng(3)
        for shares in (market.frequencies(), other.truth.probabilities(offers)):
            drawn = simulate.draw_choices(offers, shares, 2_000, random).tolist()
            owners, members = offers.owner.tolist(), offers.members.tolist()
            live.observe([Record(offers.offers[owners[at]], offers.items[members[at]]) for at in drawn])
        live.save(tmp_path / "state.npz")
        assert Live.load(tmp_path / "state.npz").detect == live.detect
        found.append(live.alarms)
    assert found[0] == found[1]
    assert [2_000 < alarm.record < 2_500 for alarm in found[0]] == [True]
    assert found[2:] == [[], [], []]


def test_the_published_model_is_weighed_anew_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    live, told = Live(rounds=1, threshold=5.0), list[bool]()
    monkeypatch.setattr(live.dense, "follow", lambda *words: told.append(words[-1]))
    for batch in range(12):
        live.observe([Record(("tea", "pie"), "tea" if batch < 6 else "pie")] * 60)
    assert told.index(True) == (live.alarms[0].record - 1) // 60
    assert not any(told[:6])


def test_there_is_a_model_from_the_first_choice_on() -> None:
    for detect in (None, True):
        live = Live(detect=detect)
        live.observe(Record(("tea", "pie"), "tea"))
        assert live.counts is not None
        assert (live.waiting, live.counts.observations) == (0, 1)
        assert live.model.predict(("tea", "pie"))["tea"] > 0.5


@pytest.mark.parametrize("times", [0.5, 2.0, 0.0])
def test_a_count_other_than_one_ends_detection_unless_it_was_asked_for(times: float, tmp_path: Path) -> None:
    live = Live(publish="sparse", rounds=1)
    live.observe([Record(("tea", "pie"), "tea")] * 60)
    assert live.detector is not None
    assert live.detector.stopped is None
    live.observe([Record(("tea", "pie"), "pie", times)])
    live.save(tmp_path / "state.npz")
    for one in (live, Live.load(tmp_path / "state.npz")):
        one.observe([Record(("pie", "bun"), "bun")] + [Record(("tea", "pie"), "pie")] * 600)
        assert one.detector is not None
        assert (one.detector.stopped, one.alarms) == (60, [])
        assert one.counts is not None
        assert one.counts.observations == 661 + times
        with pytest.raises(ValueError, match="not a finite number"):
            one.observe([Record(("rum", "bun"), "bun", -1.0)])
        assert one.counts.observations == 661 + times
        assert one.detector.assortments.number(("rum", "bun")) is None
    asked = Live(publish="sparse", rounds=1, detect=True)
    asked.observe([Record(("tea", "pie"), "tea", 60.0), Record(("tea", "pie"), "pie", 0.0)])
    assert asked.detector is not None
    assert (asked.detector.records, asked.detector.stopped) == (60, None)


@pytest.mark.parametrize("kind", ["plain", "detector", "own settings"])
def test_offers_weigh_by_their_observations(kind: str) -> None:
    live = Live(publish="sparse", **KINDS[kind])
    for _ in range(5):
        live.observe([Record(("a", "b"), "a", 30), Record(("b", "c"), "b", 10), Record(("a", "c"), "c", 10)])
    assert live.run is not None
    assert live.counts is not None
    weights = live.run.solver.distance.offer_weights  # type: ignore[attr-defined]
    assert not live.alarms
    assert live.counts.observations + live.waiting == 250
    assert weights == pytest.approx(observation_weights(live.counts), rel=1e-12)


def test_after_a_change_the_model_follows_the_copy() -> None:
    live = Live(publish="sparse", detect=DetectorSettings(half_life=10.0, threshold=2.0, block=20))
    live.observe([Record(("a", "b"), "a", 150), Record(("b", "c"), "b", 50)])
    before = 0
    while not live.alarms:
        live.observe([Record(("a", "b"), "b", 1), Record(("b", "c"), "c", 9)])
        before += 1
        assert before < 50
    assert live.run is not None
    assert live.counts is not None
    assert live.counts.totals[1] > live.counts.totals[0]
    weights = live.run.solver.distance.offer_weights  # type: ignore[attr-defined]
    assert weights[1] > weights[0]
    latest = live.run.solver.learner.round_weight(live.run.state.round)
    assert live.run.state.sums.total_weight <= 101 * latest  # 100 rounds of the copy, and old ones weigh as much as one
    assert live.model.probabilities(live.counts.assortments) == pytest.approx(live.counts.frequencies(), abs=0.1)
    check_certificate(live)


def test_notes_are_kept_and_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, load = [], np.load

    def counted(*words: Any, **named: Any) -> Any:
        reads.append(words)
        return load(*words, **named)

    monkeypatch.setattr(np, "load", counted)
    for number, kind in enumerate(KINDS, start=1):
        path = tmp_path / f"{number}.npz"
        Live(publish="sparse", **KINDS[kind]).save(
            path, {"colour": "blue", "live": "not this"} if number == 1 else {"colour": "blue"}
        )
        again = Live.load(path)
        assert again.notes == {"colour": "blue"}
        again.save(path)
        assert Live.load(path).notes == {"colour": "blue"}
        assert len(reads) == 2 * number
        assert not again.ready
        assert again.rankings == 0
        with pytest.raises(ValueError, match="There is no model before the first"):
            _ = again.certificate


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 3.0, "window": 9}, "set detect as well, or leave it out"),
        ({"threshold": 3.0, "detect": False}, "set detect as well, or leave it out"),
        ({"detect": True, "window": 5}, "leave out window"),
        ({"detect": True, "half_life": "7d"}, "in choices: give a number"),
        ({"detect": True, "rounds": 0}, "rounds"),
        ({"rounds": 0}, "rounds"),
        ({"window": 5, "half_life": 5}, "set one of them"),
    ],
)
def test_settings_that_do_not_fit_are_explained(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Live(publish="sparse", **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_a_batch_is_counted_if_a_record_is_wrong(kind: str) -> None:
    live = Live(publish="sparse", **KINDS[kind])
    with pytest.raises(ValueError, match=r"Record 1 of the batch is wrong: its choice 'c' is not in its offer"):
        live.observe([Record(("a", "b"), "a", 100), Record(("a", "b"), "c")])
    if live.detect and not live.rules.automatic:
        with pytest.raises(ValueError, match=r"Record 0 of the batch is wrong: its count 1.5 is not a whole number"):
            live.observe(Record(("a", "b"), "a", 1.5))
    odd: list[Any] = [("a", "b", "a"), ["a", ["b"]], "abc"]
    for offer in odd:
        with pytest.raises(ValueError, match="An offer"):
            live.observe([Record(("a", "b"), "a", 100), Record(offer, "a")])
    live.observe([])
    assert (live.records, live.waiting, live.counts) == (0, 0, None)
    live.observe([Record(["a", "b"], "a", 100)] * 2)
    assert live.model.predict(["a", "b"])["a"] > 0.9


def test_files_of_other_kinds_are_explained(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    checkpoint.write(path, [], {})
    with pytest.raises(ValueError, match="another kind of checkpoint"):
        Live.load(path)
    damaged: dict[str, Any]
    for damaged in ({"live": {"rounds": 3}}, {"watched": {"settings": {"records": 0, "odd": 1}}}, {"live": {}}):
        checkpoint.write(path, [], damaged)
        with pytest.raises(ValueError, match="is a damaged checkpoint"):
            Live.load(path)


def test_a_window_counts_whole_choices() -> None:
    assert RecordRules(LiveSettings.of()).checked(Record(("tea", "pie"), "tea", 0.5)).times == 0.5
    rules = RecordRules(LiveSettings.of(window=10))
    assert rules.checked(Record(("tea", "pie"), "tea", 2.0)).times == 2.0
    with pytest.raises(ValueError, match=r"its count 0.5 is not a whole number: a window counts whole choices"):
        rules.checked(Record(("tea", "pie"), "tea", 0.5))
