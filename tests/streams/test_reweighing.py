"""Offers that come to count for more or less: what was proven stays proven, and old offers fade."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import strategies
from rankstream import Assortments, Solver, distances, learners, oracles
from rankstream.data.counts import Target
from rankstream.streams.live import Live, Record
from rankstream.streams.runs.endless import reweigh

LEARNERS: dict[str, Any] = {
    "dual-averaging": learners.DualAveraging(),
    "mirror-descent": learners.MirrorDescent(horizon=60),
}


@settings(max_examples=25)
@given(strategies.assortments(5, 4), st.sampled_from(["l1", "l2"]), st.sampled_from(sorted(LEARNERS)), st.data())
def test_bounds_hold_under_every_weighting(
    offers: Assortments, distance: str, learner: str, data: st.DataObject
) -> None:
    solver = Solver(offers, distances.make(distance, offers), LEARNERS[learner], oracles.auto(offers))
    state = solver.init()
    for _ in range(3):
        shares = data.draw(strategies.frequencies(offers))
        for _ in range(10):
            state = solver.step(state, shares)
        weights = data.draw(st.lists(st.sampled_from([0.0, 0.1, 1.0, 5.0]), min_size=offers.n_offers))
        weights = [*weights[: offers.n_offers - 1], 2.0]
        solver, state = reweigh(solver, state, weights)
        form: Any = solver.distance
        assert not np.any(np.abs(form.prox(-state.sums.mean_dual) - state.sums.mean_dual) > 1e-9)  # still allowed
        certificate = solver.certificate(state, shares)
        each = form.offer_weights[offers.owner]
        best = naive.least_distance(distance, naive.all_vertices(offers) * each, shares * each)
        assert certificate.lower <= best + 1e-7 <= certificate.upper + 2e-7
        assert certificate.oracle_regret <= 1e-7  # best answers never regret


def test_an_offer_that_never_had_a_price_takes_nothing_from_what_is_proven() -> None:
    offers = Assortments([("a", "b"), ("b", "c"), ("a", "c"), ("a", "b", "c")])
    target = Target(np.array([0.9, 0.1, 0.9, 0.1, 0.1, 0.9, *[np.nan] * 3]), np.arange(9) < 6)
    solver = Solver(offers, distances.L2(offers), learners.DualAveraging(), oracles.auto(offers))
    state = solver.init()
    for _ in range(200):
        state = solver.step(state, target)
    proven = solver.certificate(state, target).lower
    assert proven > 0.1
    solver, state = reweigh(solver, state, [1.0, 1.0, 1.0, 1e-3])
    assert solver.certificate(state, target).lower == pytest.approx(proven)


@pytest.mark.parametrize("learner", sorted(LEARNERS))
def test_a_reweighed_run_finds_the_nearest_under_the_new_weights(learner: str) -> None:
    offers = Assortments([("a", "b"), ("b", "c"), ("a", "c")])
    shares = np.array([0.9, 0.1, 0.9, 0.1, 0.1, 0.9])  # a cycle: no distribution over rankings fits
    player = learners.MirrorDescent(horizon=4000) if learner == "mirror-descent" else LEARNERS[learner]
    solver = Solver(offers, distances.L2(offers), player, oracles.auto(offers))
    state = solver.init()
    for _ in range(200):
        state = solver.step(state, shares)
    weights = np.array([1.0, 1.0, 10.0])
    solver, state = reweigh(solver, state, weights)
    for _ in range(4000):
        state = solver.step(state, shares)
    each = weights[offers.owner]
    best = naive.least_distance("l2", naive.all_vertices(offers) * each, shares * each)
    assert solver.certificate(state, shares).upper < 1.05 * best
    assert np.abs(state.sums.mean_vertex - shares)[4:].max() < 0.02  # the heavy offer is met


@pytest.mark.parametrize("distance", ["l1", "l2"])
@pytest.mark.parametrize("learner", sorted(LEARNERS))
def test_what_was_played_is_measured_in_the_new_weights(learner: str, distance: str) -> None:
    """Weights all doubled double everything; whatever they are, on constant data the regrets add up to the gap."""
    offers = Assortments([("a", "b"), ("b", "c"), ("a", "c")])
    shares = np.array([0.9, 0.1, 0.9, 0.1, 0.1, 0.9])
    solver = Solver(offers, distances.make(distance, offers), LEARNERS[learner], oracles.auto(offers))
    state = solver.init()
    for _ in range(40):
        state = solver.step(state, shares)
    before = solver.certificate(state)
    doubled, twice = reweigh(solver, state, [2.0, 2.0, 2.0])
    after = doubled.certificate(twice)
    for name in ("upper", "lower", "gap", "oracle_regret", "dual_regret", "regret_sum"):
        assert getattr(after, name) == pytest.approx(2.0 * getattr(before, name), abs=1e-12), name
    for weights in ([0.5, 2.0, 3.0], [1.0, 0.1, 0.1]):
        other, moved = reweigh(solver, state, weights)
        found = other.certificate(moved)
        assert found.mean_dual_lower is not None
        assert found.regret_sum == pytest.approx(found.upper - found.mean_dual_lower, abs=1e-9)


def test_the_old_run_is_left_alone_and_odd_ones_are_refused() -> None:
    offers = Assortments([("a", "b"), ("b", "c")])
    solver = Solver(offers, distances.L2(offers), learners.DualAveraging(), oracles.auto(offers))
    state = solver.step(solver.init(), [1.0, 0.0, 1.0, 0.0])
    before = state.copy()
    reweigh(solver, state, [2.0, 1.0])
    assert state.sums.dual.tolist() == before.sums.dual.tolist()
    with pytest.raises(ValueError, match="There are 1 weights for 2 offers"):
        reweigh(solver, state, [1.0])
    smoothed = Solver(offers, distances.L2(offers, 0.1), learners.DualAveraging(), solver.oracle)
    with pytest.raises(ValueError, match="L2 with DualAveraging cannot be reweighted: 'l1' and 'l2'"):
        reweigh(smoothed, smoothed.init(), [1.0, 1.0])
    silent = Solver(offers, distances.L2(offers, weights=(0.0, 1.0)), learners.DualAveraging(), solver.oracle)
    with pytest.raises(ValueError, match="An offer has weight 0 so far"):
        reweigh(silent, silent.step(silent.init(), [1.0, 0.0, 1.0, 0.0]), [1.0, 1.0])


@pytest.mark.parametrize(("forgetting", "least", "most"), [({}, 0.3, 0.7), ({"half_life": 30}, 0.0, 0.1)])
def test_old_offers_fade_even_where_every_period_has_its_own(
    forgetting: dict[str, Any], least: float, most: float
) -> None:
    """First a is preferred to b, then b to a, and no offer comes twice: only weights can tell old from new."""
    live = Live(publish="sparse", rounds=60, seed=1, **forgetting)
    for period in range(12):
        chosen = "a" if period < 6 else "b"
        live.observe([Record(("a", "b", f"extra {period}"), chosen, 40)])
    for _ in range(10):
        live.observe([Record(("a", "b", "extra 11"), "b", 4)])
    share = live.model.predict(("a", "b"))["a"]
    assert least <= share <= most


def test_where_nothing_counts_the_model_stays(tmp_path: Path) -> None:
    live = Live(publish="sparse", half_life="1s", rounds=50)
    live.observe([Record(("a", "b"), "a", 0, 0.0)])
    assert not live.ready
    with pytest.raises(ValueError, match="no model before the first choice"):
        _ = live.model
    live.save(tmp_path / "state.npz", {})
    live = Live.load(tmp_path / "state.npz")
    live.observe([Record(("a", "b"), "b", 2, 1.0), Record(("b", "c"), "c", 1, 1.0)])
    assert live.counts is not None
    assert live.counts.assortments.n_offers == 2
    before = live.model
    live.observe([Record(("a", "b"), "a", 0, 1e6)])
    assert live.counts.observations == 0
    assert live.model == before
    assert live.certificate.gap >= 0.0
