"""What is proven of the least distance, by half-spaces: here, later, and in streams."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brute
import rankstream as rs
from rankstream import Assortments, ChoiceCounts, Live, Record, oracles
from rankstream._core.types import Vec
from rankstream._core.watch import Deadline
from rankstream.columns import corrective
from rankstream.columns import lower_bound as least
from rankstream.columns.lower_bound import HalfSpace, prove_lower_bound
from rankstream.data.counts import Target
from rankstream.distances import L2
from rankstream.estimation.methods import MaxEntropy, PrimalDual
from rankstream.estimation.task import Task
from rankstream.oracles import ComponentsOracle, DenseOracle, Oracle, SearchOracle
from rankstream.streams import proofs
from rankstream.streams.background import BackgroundLive
from rankstream.streams.proofs import StreamProof

ITEMS = "abcde"
OFFERS = Assortments([("a", "b", "c", "e"), ("b", "c", "d", "e"), ("a", "d", "e"), ("c", "a", "e"), ("d", "b", "e")])
VERTICES = brute.corners(list(OFFERS.offers), list(OFFERS.items))


def shares(seed: int) -> Vec:
    raw = np.random.default_rng(seed).gamma(0.5, size=OFFERS.n_coordinates) + 1e-3
    found: Vec = raw / np.add.reduceat(raw, OFFERS.indptr[:-1])[OFFERS.owner]
    return found


def true_least(data: Vec, weights: Vec) -> float:
    """By least squares over all rankings."""
    given = brute.Problem(list(OFFERS.offers), data, weights, np.ones(OFFERS.n_offers))
    return brute.least(lambda point: brute.value("l2", point, given), "l2", given, VERTICES)


ORACLES: dict[str, Oracle] = {
    "table": DenseOracle(OFFERS),
    "search": SearchOracle(OFFERS),
    "parts": ComponentsOracle(OFFERS, lambda offers, ties, seed: SearchOracle(offers, ties, seed)),
}


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from(sorted(ORACLES)), st.booleans())
def test_half_spaces_hold_every_ranking_and_prove_no_more_than_is_true(seed: int, name: str, weighed: bool) -> None:
    random = np.random.default_rng(seed)
    weights = random.uniform(0.2, 3.0, OFFERS.n_offers) if weighed else np.ones(OFFERS.n_offers)
    norm = L2(OFFERS, weights=tuple(weights.tolist()))
    data = Target(shares(seed))
    space = prove_lower_bound(norm, data, ORACLES[name], 1e-6)
    best = true_least(data.frequencies, weights)
    assert space is not None or best < 1e-3
    if space is None:
        return
    assert (VERTICES @ space.normal >= space.least - 1e-12 * np.abs(space.normal).sum()).all()
    assert space.lower(norm, data) <= best + 1e-9
    assert space.lower(norm, data) >= (0.999 if name == "table" else 0.5) * best - 1e-5
    # of other data, and in another norm
    other, later = random.uniform(0.2, 3.0, OFFERS.n_offers), Target(shares(seed + 1))
    assert space.lower(L2(OFFERS, weights=tuple(other.tolist())), later) <= true_least(later.frequencies, other) + 1e-9


def test_what_an_offer_without_weight_would_have_to_prove_is_not_proven() -> None:
    space = HalfSpace(np.where(OFFERS.owner == 0, -1.0, 0.0), -1.0)
    norm = L2(OFFERS, weights=(0.0, 1.0, 1.0, 1.0, 1.0))
    assert space.lower(norm, Target(np.full(OFFERS.n_coordinates, 0.9))) == 0.0
    assert HalfSpace(np.zeros(OFFERS.n_coordinates), 1.0).lower(L2(OFFERS), Target(shares(0))) == 0.0


def test_half_spaces_go_on_to_more_offers() -> None:
    larger = Assortments([*OFFERS.offers, ("a", "e")])
    data = Target(shares(3))
    space = prove_lower_bound(L2(OFFERS), data, DenseOracle(OFFERS), 1e-9)
    assert space is not None
    assert space.over(OFFERS) is space
    grown = Target(np.append(data.frequencies, [0.5, 0.5]))
    assert space.over(larger).lower(L2(larger), grown) == pytest.approx(space.lower(L2(OFFERS), data), rel=1e-12)


def test_without_a_clock_no_certificate_takes_a_slow_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object, **__: object) -> None:
        raise AssertionError("nobody asked for that")

    monkeypatch.setattr(least, "search_and_prove", slow)
    data, oracle = Target(shares(4)), ORACLES["search"]
    assert prove_lower_bound(L2(OFFERS), data, oracle, 1e-6) is not None
    with pytest.raises(AssertionError, match="nobody asked"):
        prove_lower_bound(L2(OFFERS), data, oracle, 1e-6, Deadline(60.0))
    monkeypatch.setattr(least, "proving_table", lambda *_: None)
    assert prove_lower_bound(L2(OFFERS), data, oracle, 1e-6, Deadline(60.0)) is not None


@pytest.mark.parametrize("method", [MaxEntropy(), PrimalDual(max_rounds=30)])
@pytest.mark.parametrize("watched", [False, True])
def test_methods_prove_where_the_oracle_is_a_search(method: MaxEntropy | PrimalDual, watched: bool) -> None:
    counts = ChoiceCounts(OFFERS, np.round(40.0 * shares(5)))
    task = Task(OFFERS, counts, 0, Deadline(60.0), Deadline(60.0)) if watched else Task(OFFERS, counts)
    task.__dict__["oracle"] = SearchOracle(OFFERS)
    found = method.fit(task).certificate
    exact = corrective.fit_nearest(OFFERS, counts, L2(OFFERS, weights=rs.distances.observation_weights(counts)))
    assert 0.5 * exact.certificate.lower <= found.lower <= exact.certificate.upper + 1e-9
    assert found.gap == pytest.approx(found.upper - found.lower)


def some_choices(number: int) -> list[Record]:
    """From shares that no model meets."""
    random = np.random.default_rng(1)
    parts = np.split(shares(5), OFFERS.indptr[1:-1].tolist())
    drawn = []
    for _ in range(number):
        which = int(random.integers(OFFERS.n_offers))
        offer, part = OFFERS.offers[which], parts[which]
        drawn.append(Record(offer, offer[int(random.choice(len(offer), p=part))]))
    return drawn


@pytest.mark.parametrize("searching", [False, True])
def test_a_stream_proves_what_its_rounds_do_not(
    searching: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, asked = some_choices(600), list[int]()
    if searching:
        monkeypatch.setattr(oracles, "auto", lambda offers, *_, **__: SearchOracle(offers))

    def counted(*given: Any, **more: Any) -> HalfSpace | None:
        asked.append(1)
        return prove_lower_bound(*given, **more)

    monkeypatch.setattr(proofs, "prove_lower_bound", counted)
    live = Live(rounds=1, publish="sparse")
    live.proof = StreamProof(seldom=1.2)
    live.observe(records[:400])
    assert live.run is not None
    assert live.counts is not None
    rounds = live.run.solver.certificate(live.run.state, live.counts)
    assert rounds.lower < proofs.MIN_PROVEN_SHARE * rounds.upper
    assert isinstance(live.run.solver.oracle, SearchOracle) == searching
    live.save(tmp_path / "before.npz")
    found = live.certificate
    live.save(tmp_path / "after.npz")
    assert (tmp_path / "before.npz").read_bytes() == (tmp_path / "after.npz").read_bytes()
    exact = DenseOracle(live.counts.assortments)
    nearest = corrective.fit_nearest(live.counts.assortments, live.counts, live.run.solver.distance, exact).certificate
    assert (0.6 if searching else 0.95) * nearest.lower <= found.lower <= nearest.upper + 1e-9
    assert len(asked) == 1
    live.observe(records[400:450])
    later = corrective.fit_nearest(live.counts.assortments, live.counts, live.run.solver.distance, exact).certificate
    assert 0.0 < live.certificate.lower <= later.upper + 1e-9
    assert len(asked) == 1  # the same half-space, at other counts
    live.observe([Record(("a", "b", "z"), "z")])
    assert live.certificate.lower > 0.0
    assert len(asked) == 1  # a market that has grown has it still
    live.observe(records[450:])
    assert live.certificate.lower > 0.0
    assert len(asked) == 2


def test_by_default_what_a_stream_proves_depends_on_its_counts_alone(tmp_path: Path) -> None:
    records = some_choices(300)
    asked, silent = Live(rounds=1, publish="sparse"), Live(rounds=1, publish="sparse")
    for start in range(0, 300, 50):
        for live in (asked, silent):
            live.observe(records[start : start + 50])
        _ = asked.certificate
    silent.save(tmp_path / "state.npz")
    assert asked.certificate == silent.certificate == Live.load(tmp_path / "state.npz").certificate


def test_the_service_proves_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    records, asked = some_choices(300), list[int]()

    def counted(*given: Any, **more: Any) -> HalfSpace | None:
        asked.append(1)
        return prove_lower_bound(*given, **more)

    monkeypatch.setattr(proofs, "prove_lower_bound", counted)
    learning = BackgroundLive({"served": "sparse", "rounds": 1})
    for start in range(0, 300, 10):
        learning.observe(records[start : start + 10], start + 10)
        assert learning.certificate.lower <= learning.certificate.upper
    assert 5 <= len(asked) <= 21  # log(30) / log(1.2) = 18.7
    learning.publish()
    again = BackgroundLive.from_bytes(learning.to_bytes())
    assert again.live.proof._seldom == proofs.SERVICE_GROWTH
    kept = "position", "made", "settings", "_known", "_published", "known", "known_since", "serves"
    assert [getattr(again, name) for name in kept] == [getattr(learning, name) for name in kept]
    assert learning._published > 0


def test_nothing_is_proven_where_nothing_counts() -> None:
    live = Live(rounds=5, publish="sparse", half_life="1s")
    live.observe([Record(("a", "b"), "a", 3, 0.0), Record(("b", "a"), "b", 3, 0.0)])
    live.observe([Record(("a", "b"), "a", 0, 1e6)])
    assert live.certificate.gap >= 0.0
