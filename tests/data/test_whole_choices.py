"""Inference needs whole choices, each counted once; and distances need weights whose squares are numbers."""

from typing import Any

import numpy as np
import pytest

from rankstream import Assortments, ChoiceCounts, Solver, distances, learners, oracles
from rankstream.certificate import confidence_radii, confident_gap
from rankstream.data.decay import DecayingCounts, WindowCounts
from rankstream.distances import KL, L2, HighNorm, MaxDifference

OFFERS = Assortments([("tea", "cake", "nothing"), ("pie", "nothing")])
X, P = OFFERS.vertex([0, 1, 2, 3]), OFFERS.vertex([2, 1, 3, 0])


def forgetting(kind: Any) -> ChoiceCounts:
    counts: ChoiceCounts = kind(OFFERS, 100)
    counts.observe_coordinates([0, 0, 1, 3])
    return counts


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (ChoiceCounts(OFFERS, [2, 1, 0.5, 3, 1]), "but a tally is 0.5: count without weights"),
        (ChoiceCounts(OFFERS, [20.25, 10, 5, 30, 10]), "but a tally is 20.25: count without weights"),
        (forgetting(DecayingCounts), "but DecayingCounts forget: use ChoiceCounts"),
        (forgetting(WindowCounts), "but WindowCounts forget: use ChoiceCounts"),
    ],
)
def test_weighted_choices_have_no_confidence(counts: ChoiceCounts, message: str) -> None:
    solver = Solver(OFFERS, L2(OFFERS), learners.DualAveraging(), oracles.auto(OFFERS))
    state = solver.step(solver.init(), counts)
    proven = solver.certificate(state, counts)
    needs = "A bound on the sampling error needs whole choices, each counted once, "
    for infer in (
        lambda: confidence_radii(counts),
        lambda: confident_gap(proven, solver.distance, counts),
        lambda: solver.confident_gap(state, counts),
    ):
        with pytest.raises(ValueError, match=needs + message):
            infer()
    with pytest.raises(ValueError, match=f"An interval needs whole choices, each counted once, {message}"):
        counts.require_whole("An interval")


def test_whole_choices_may_come_as_floats_and_in_any_number() -> None:
    counts = ChoiceCounts(OFFERS, np.array([2.0, 0.0, 2.0**52, 1.0, 3.0]))
    counts.require_whole("An interval")
    assert (confidence_radii(counts) > 0.0).all()
    ChoiceCounts(OFFERS).require_whole("An interval")


@pytest.mark.parametrize("weight", [1e155, 1e-155, 1e300, 5e-324, 1.1e100, 0.9e-100, np.inf, np.nan])
def test_weights_whose_squares_are_no_numbers_are_refused(weight: float) -> None:
    """Their l2 distance came out as 0 or infinite."""
    for make in (L2, distances.L1, distances.LInf, MaxDifference, KL, HighNorm):
        with pytest.raises(ValueError, match="A weight is"):
            make(OFFERS, weights=(1.0, weight))
    if np.isfinite(weight):
        with pytest.raises(ValueError, match=r"must be 0 or between 1e-100 and 1e\+100, so that its square"):
            L2(OFFERS, weights=(1.0, weight))
        with pytest.raises(ValueError, match=r"smoothing is .*must be 0 or between 1e-100 and 1e\+100"):
            L2(OFFERS, weight)
    with pytest.raises(ValueError, match="floor is"):
        KL(OFFERS, floor=min(weight, 1e-155) if weight == weight else weight)


@pytest.mark.parametrize("weight", [1e-100, 1e-50, 1.0, 1e50, 1e100])
@pytest.mark.parametrize("name", ["l1", "l1.5", "l2", "l3", "l10", "l200", "linf", "max-difference", "kl"])
def test_distances_follow_weights_of_any_allowed_size(name: str, weight: float) -> None:
    plain, form = distances.make(name, OFFERS), distances.make(name, OFFERS, weights=(weight, weight))
    assert form.value(X, P) == pytest.approx(weight * plain.value(X, P), rel=1e-9, abs=0.0)
    scaled = form.grad_bound / weight if name != "kl" else form.grad_bound
    assert scaled == pytest.approx(plain.grad_bound, rel=1e-9)
    assert form.lipschitz == pytest.approx(weight * plain.lipschitz, rel=1e-9, abs=0.0)
    solver = Solver(OFFERS, form, learners.DualAveraging(), oracles.auto(OFFERS))
    state = solver.init()
    for _ in range(5):
        state = solver.step(state, P)
    assert np.isfinite([solver.certificate(state).upper, solver.certificate(state).lower]).all()


def test_choices_that_have_all_but_faded_still_have_a_weight() -> None:
    counts = DecayingCounts(OFFERS, 1.0, by="time")
    counts.observe_coordinates([0], time=0.0)
    counts.observe_coordinates([3], 2.0**40, time=520.0)
    assert 0.0 < counts.totals[0] < 1e-150
    root, share = distances.observation_weights(counts), distances.observation_weights(counts, "share")
    assert 1e-100 < root[0] < 1e-80
    assert share[0] == 1e-100  # by its own share it would be 1e-168
    L2(OFFERS, weights=root)
    KL(OFFERS, weights=share)
    counts.observe_coordinates([3], time=700.0)
    assert distances.observation_weights(counts)[0] == 0.0  # forgotten for good
