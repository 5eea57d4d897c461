"""Streams that keep meeting new things: quick work, wide but valid certificates, and memory that follows the size."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import naive
import strategies
from rankstream import Assortments, ChoiceCounts, Live, Record
from rankstream._core.types import Vec
from rankstream.data import simulate
from rankstream.oracles import QuickOracle, SearchOracle
from rankstream.streams import pace
from rankstream.streams.pace import StreamPace
from rankstream.streams.runs.growth import offers_to_keep

KINDS: dict[str, dict[str, Any]] = {
    "all": {},
    "half-life": {"half_life": 60.0},
    "window": {"window": 70},
    "detector": {"detect": True, "threshold": 4.0, "rounds": 8},
}


@pytest.fixture
def outgrown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every market, however small, has outgrown its programs; a choice pays for three coordinates."""
    for name, value in {"SMALL_COORDINATES": 0, "MAX_PROGRAM_COORDINATES": 0, "COORDINATES_PER_CHOICE": 3}.items():
        monkeypatch.setattr(pace, name, value)


def new_offers(number: int, seed: int, items: int = 5, least: int = 2) -> list[Record]:
    """Records whose offers are drawn anew each time."""
    random = np.random.default_rng(seed)
    records = []
    for size in random.integers(least, items, number, endpoint=True).tolist():
        offer = tuple(f"item {code}" for code in random.permutation(items)[:size].tolist())
        records.append(Record(offer, offer[int(random.integers(size))]))
    return records


def batches(records: list[Record], size: int) -> Iterator[list[Record]]:
    for start in range(0, len(records), size):
        yield records[start : start + size]


def followed(records: list[Record], size: int, **settings: Any) -> Live:
    live = Live(publish="sparse", **settings)
    for batch in batches(records, size):
        live.observe(batch)
    return live


def least(live: Live) -> float:
    """The distance of the nearest model of all, by least squares over all rankings."""
    assert live.run is not None
    assert live.counts is not None
    distance: Any = live.run.solver.distance
    target = live.counts.target()
    seen = np.ones(target.frequencies.size, dtype=bool) if target.seen is None else target.seen
    scale: Vec = distance.lift(np.ones(seen.size))
    corners = naive.all_vertices(live.counts.assortments)
    return naive.least_distance("l2", (corners * scale)[:, seen], (target.frequencies * scale)[seen])


def state_of(live: Live) -> list[Any]:
    assert live.run is not None
    assert live.counts is not None
    state = live.run.state
    arrays = (state.sums.vertex, state.sums.dual, state.learner.dual, live.counts.tallies)
    numbers = (live.records, live.waiting, live.rankings, live.certificate, live.alarms, live.remark)
    return [*(array.tobytes() for array in arrays), *numbers, list(state.weights.items())]


@pytest.mark.usefixtures("outgrown")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [10_000, 30])
def test_the_certificate_of_an_outgrown_market_is_valid(kind: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MAX_COORDINATES", most)
    for seed in range(3):
        live = followed(new_offers(160, seed), 20, **KINDS[kind])
        assert live.run is not None
        assert isinstance(live.run.solver.oracle, QuickOracle)
        proven, best = live.certificate, least(live)
        assert proven.lower <= best + 1e-9
        assert best <= proven.upper + 1e-9
        assert proven.upper == pytest.approx(_distance(live), abs=1e-9)
        assert live.counts is not None
        assert live.counts.assortments.n_coordinates <= most
        assert (most < 100) == ("were dropped" in live.remark)


def _distance(live: Live) -> float:
    """The distance of the model as it is given out, from its rankings."""
    assert live.run is not None
    assert live.counts is not None
    target, fitted = live.counts.target(), live.sparse.probabilities(live.counts.assortments)
    data = target.frequencies if target.seen is None else np.where(target.seen, target.frequencies, fitted)
    return live.run.solver.distance.value(fitted, data)


@pytest.mark.usefixtures("outgrown")
@pytest.mark.parametrize("kind", KINDS)
def test_an_outgrown_market_is_resumed_bit_for_bit(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MAX_COORDINATES", 60)
    monkeypatch.setattr(pace, "COORDINATES_PER_CHOICE", 1)
    records = new_offers(420, 5)
    whole = followed(records, 7, **KINDS[kind])
    live = followed(records[:203], 7, **KINDS[kind])
    waiting = live.waiting
    live.save(tmp_path / "state.npz")
    live = Live.load(tmp_path / "state.npz")
    assert live.waiting == waiting > 0
    for batch in batches(records[203:], 7):
        live.observe(batch)
    assert "offers with the fewest choices were dropped" in live.remark
    assert state_of(live) == state_of(whole)


@pytest.mark.usefixtures("outgrown")
def test_asking_an_outgrown_market_changes_nothing() -> None:
    records = new_offers(300, 6)
    quiet, asked = Live(), Live()
    for batch in batches(records, 30):
        quiet.observe(batch)
        asked.observe(batch)
        _ = asked.certificate, asked.model, asked.remark
    assert state_of(quiet) == state_of(asked)


@pytest.mark.parametrize("size", [1, 40])
def test_the_order_in_which_offers_join_changes_neither_counts_nor_what_holds(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = new_offers(120, 3)
    order = np.random.default_rng(1).permutation(len(records)).tolist()
    for outgrown in (False, True):
        monkeypatch.setattr(pace, "SMALL_COORDINATES", 0 if outgrown else 1_000)
        one, other = (followed(list(some), size, rounds=50) for some in (records, [records[k] for k in order]))
        for live in (one, other):
            live.observe([Record(("item 0", "item 1"), "item 0", 0.0)] * 1_000)  # whatever waits is counted
        assert one.counts is not None
        assert other.counts is not None
        assert one.counts.digest() == other.counts.digest()
        there = other.counts.frequencies()
        for offer in one.counts.assortments.offers:
            for item in offer:
                here = one.counts.frequencies()[one.counts.assortments.coordinate(offer, item)]
                assert here == there[other.counts.assortments.coordinate(offer, item)]
        best = [least(live) for live in (one, other)]
        assert best[0] == pytest.approx(best[1], abs=1e-6)
        for live in (one, other):
            assert live.certificate.lower <= best[0] + 1e-6
            assert live.certificate.upper >= best[0] - 1e-6


@strategies.compiled_only
def test_memory_follows_the_coordinates() -> None:
    records = new_offers(6_000, 2, items=40, least=5)
    live = followed(records[:500], 500)
    tracemalloc.start()
    sizes, used = [], []
    try:
        live = Live(publish="sparse")
        for number, batch in enumerate(batches(records, 500), start=1):
            live.observe([Record(tuple(f"{item}" for item in one.offered), f"{one.chosen}") for one in batch])
            if number in (3, 6, 12):
                assert live.counts is not None
                sizes.append(live.counts.assortments.n_coordinates)
                used.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    for k in range(2):
        added, coordinates = used[k + 1] - used[k], sizes[k + 1] - sizes[k]
        assert 0 < added < 400 * coordinates
    assert used[2] / sizes[2] < 1.2 * used[0] / sizes[0]


@strategies.compiled_only
def test_a_market_that_outgrows_its_programs_says_so_until_choices_have_paid_for_them() -> None:
    records = new_offers(300, 4, items=18)
    live = Live(publish="sparse", rounds=2)
    live.observe(records[:20] * 20)
    assert live.remark == ""
    live.observe(records)
    assert live.counts is not None
    size = live.counts.assortments.n_coordinates
    assert live.remark.startswith(f"The market has grown to {size:,} coordinates: a quick search")
    assert f"until {size:,} more choices arrive" in live.remark
    before = live.certificate
    for _ in range(size // 300 + 1):
        live.observe(records)
    assert live.remark == ""
    assert live.run is not None
    assert not isinstance(live.run.solver.oracle, QuickOracle)
    assert live.certificate.exact
    assert live.certificate.lower >= before.lower - 1e-9


@strategies.compiled_only
def test_a_steady_market_is_never_followed_quickly() -> None:
    market = simulate.market(0)
    offers = market.assortments
    drawn = simulate.draw_choices(offers, market.frequencies(), 3_000, np.random.default_rng(0)).tolist()
    each = [Record(offers.offers[j], offers.items[k]) for j, k in zip(offers.owner, offers.members, strict=True)]
    for settings in ({}, {"detect": False}):
        live = followed([each[k] for k in drawn], 1_000, **settings)
        assert live.run is not None
        assert (live.remark, live.waiting) == ("", 0)
        assert type(live.run.solver.oracle).__name__ == "LatticeOracle"


@pytest.mark.usefixtures("outgrown")
def test_what_cannot_be_counted_does_not_wait() -> None:
    live = followed(new_offers(40, 1), 20, window=30)
    held = live.waiting
    with pytest.raises(ValueError, match="A window counts whole choices"):
        live.observe(Record(("item 0", "item 1"), "item 0", 1.5))
    assert live.waiting == held


def test_the_least_informative_offers_leave_first_and_items_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = Assortments([("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f")])
    counts = ChoiceCounts(offers, [1, 0, 2, 1, 1, 0, 0, 1, 1, 1])
    assert offers_to_keep(counts, 6).tolist() == [1, 3, 4]
    assert offers_to_keep(counts, 1).tolist() == [1]
    monkeypatch.setattr(pace, "MAX_COORDINATES", 9)
    live = Live(publish="sparse", rounds=5)
    live.observe(Record(offer, offer[0], times) for offer, times in zip(offers.offers[:4], (3, 2, 1, 1), strict=True))
    live.observe([Record(("e", "f"), "f")])
    assert live.counts is not None
    assert live.counts.assortments.offers == (("a", "b"), ("b", "c"), ("e", "f"))
    assert live.counts.assortments.items == ("a", "b", "c", "e", "f")
    assert live.counts.tallies.tolist() == [3.0, 0.0, 2.0, 0.0, 0.0, 1.0]
    assert live.remark.endswith("use a half-life, a window, or fewer different offers.")
    assert live.model.predict(("a", "b"))["a"] > 0.5
    live.observe([Record(("c", "d"), "d", 4)])
    assert live.model.items[-1] == "d"


@strategies.compiled_only
def test_a_stream_has_no_table_that_leaves_no_memory_to_others() -> None:
    random = np.random.default_rng(1)
    items = [str(code) for code in range(24)]  # whose table of all sets takes 134 MB
    offers = [[items[code] for code in random.choice(24, 4, replace=False)] for _ in range(60)]
    records = [Record(tuple(offer), offer[0]) for offer in offers * 5]
    live = Live(publish="sparse", rounds=1)
    live.observe(records[:200])
    assert live.run is not None
    assert isinstance(live.run.solver.oracle, SearchOracle)
    live.observe([Record((*items[:3], "new"), "new")] * 300)
    assert isinstance(live.run.solver.oracle, SearchOracle)


def test_a_market_of_new_offers_begins_with_a_quick_oracle() -> None:
    """If most of its choices came from new offers, more of them will come."""
    offers = Assortments([range(start, start + 5) for start in range(20)])
    oracles = [StreamPace().first_oracle(offers, 0, choices) for choices in (39, 40)]
    assert [isinstance(oracle, QuickOracle) for oracle in oracles] == [True, False]
    few = Assortments([("tea", "pie"), ("tea", "cake")])
    assert not isinstance(StreamPace().first_oracle(few, 0, 2), QuickOracle)
