"""Steps, weights and regret bounds of learners by their formulas, with a distance whose numbers are given."""

from dataclasses import replace
from math import inf, sqrt
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rankstream.learners import (
    DualAveraging,
    FollowTheLeader,
    MirrorDescent,
    StronglyConvexMirrorDescent,
    players,
    protocol,
)
from rankstream.learners.players import Averaged, Moved, strong_regret_bound
from rankstream.learners.protocol import power_sum, step_for, whole_grad_bound

pytestmark = pytest.mark.quick


def distance(**given: Any) -> Any:
    """A distance on two coordinates whose proximal step is the identity."""
    own = {
        "smoothing": 0.25, "grad_bound": 3.0, "mirror_bound": 2.0, "width": 0.5, "start": lambda: np.array([0.1, 0.2]),
        "mirror": lambda dual: 10.0 * dual, "prox": lambda slope: -slope, "image": lambda slope, dual: slope + dual,
        "pull": lambda vertex, dual, frequencies: vertex - frequencies + 0.0 * dual,
    }  # fmt: skip
    return SimpleNamespace(**(own | given))


ROUND: Any = SimpleNamespace(
    number=3, weight=3.0, vertex=np.array([1.0, 0.0]), frequencies=np.array([0.25, 0.75]), dual=np.zeros(2),
    sums=SimpleNamespace(total_weight=6.0),
)  # fmt: skip
PULL = np.array([0.75, -0.75])


def test_weights_of_rounds_and_their_sums() -> None:
    assert [MirrorDescent(power=power).round_weight(3) for power in (0.0, 1.0, 2.0, 0.5)] == [1.0, 3.0, 9.0, sqrt(3.0)]
    assert MirrorDescent(power=2.0).total(3) == 14.0
    assert MirrorDescent(power=1.0).squares(3) == 14.0
    own = MirrorDescent(weighting=lambda number: 2.0**number)
    assert (own.total(3), own.squares(3), own.round_weights(3).tolist()) == (14.0, 84.0, [2.0, 4.0, 8.0])
    with pytest.raises(ValueError, match="The weight of round 2"):
        MirrorDescent(weighting=lambda number: 2.0 - number).round_weight(2)
    for power in (-0.1, 30.1):
        with pytest.raises(ValueError, match="averaging power"):
            MirrorDescent(power=power)


@pytest.mark.parametrize("power", [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("rounds", [1, 2, 9_999, 10_000, 10_001, 30_000])
def test_power_sums_are_sums(power: float, rounds: int) -> None:
    exact = float((np.arange(1.0, rounds + 1.0) ** power).sum())
    assert power_sum(power, rounds) == pytest.approx(exact, rel=1e-12)


def test_steps_balance_both_terms() -> None:
    assert step_for(2.0, 3.0, 5.0) == pytest.approx(sqrt(4.0 / 45.0))
    assert step_for(0.0, 3.0, 5.0) == step_for(2.0, 0.0, 5.0) == 1.0
    assert whole_grad_bound(distance()) == 3.5
    assert whole_grad_bound(distance(smoothing=0.0)) == 3.0
    plain = MirrorDescent(horizon=4, power=1.0)
    assert plain.step_size(distance()) == pytest.approx(sqrt(1.0 / (3.5**2 * 30.0)))
    assert replace(plain, step=0.7).step_size(distance()) == 0.7
    with pytest.raises(ValueError, match="has no bounded gradient"):
        plain.step_size(distance(mirror_bound=inf))
    for wrong in (0.0, -1.0, inf):
        with pytest.raises(ValueError, match="step"):
            MirrorDescent(step=wrong)


def test_mirror_descent_step_by_step() -> None:
    learner = MirrorDescent(step=0.2, horizon=4)
    state = learner.init(distance())
    assert (state.dual.tolist(), state.image.tolist(), state.step) == ([0.1, 0.2], [1.0, 2.0], 0.2)
    moved = learner.update(distance(), state, ROUND)
    step = 0.2 * 3.0
    slope = -step * PULL - np.array([1.0, 2.0]) * (1.0 - step * 0.25)
    assert moved.dual == pytest.approx(-slope)
    assert moved.image == pytest.approx(np.zeros(2), abs=1e-12)
    assert moved.step == 0.2
    assert learner.play(moved) is moved.dual
    total, squares = 5.0, 5.0
    expected = 0.5 / (0.2 * total) + 0.2 * 3.5**2 * squares / (2.0 * total)
    assert learner.regret_bound(distance(), 5) == pytest.approx(expected)


def test_strongly_convex_steps_fall_with_the_total_weight() -> None:
    learner = StronglyConvexMirrorDescent()
    state = learner.init(distance())
    moved = learner.update(distance(), state, ROUND)
    step = 3.0 / (0.25 * 6.0)
    assert moved.dual == pytest.approx(step * PULL + np.array([1.0, 2.0]) * (1.0 - step * 0.25))
    assert isinstance(moved, Moved)
    assert learner.regret_bound(distance(), 9) == pytest.approx(2.0 * 3.5**2 / (0.25 * 10.0))
    for call in (learner.init, lambda flat: learner.regret_bound(flat, 3)):
        with pytest.raises(ValueError, match="needs a smoothed distance"):
            call(distance(smoothing=0.0))


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_the_strong_bound_is_a_sum_over_rounds(power: float, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.arange(1.0, 8.0) ** power
    expected = (weights**2 / np.cumsum(weights)).sum() * 9.0 / (2.0 * 0.5) / weights.sum()
    by_power, by_call = FollowTheLeader(power=power), FollowTheLeader(weighting=lambda number: float(number) ** power)
    assert strong_regret_bound(by_call, 3.0, 0.5, 7) == pytest.approx(expected)
    if power == 1.0:
        assert strong_regret_bound(by_power, 3.0, 0.5, 7) == pytest.approx(2.0 * 9.0 / (0.5 * 8.0))
        return
    assert strong_regret_bound(by_power, 3.0, 0.5, 7) == pytest.approx(expected)
    monkeypatch.setattr(players, "MAX_SUMMED_ROUNDS", 7)
    assert strong_regret_bound(by_power, 3.0, 0.5, 7) == pytest.approx(expected)
    monkeypatch.setattr(players, "MAX_SUMMED_ROUNDS", 6)
    ratios = (power + 1.0) * protocol.power_sum(power - 1.0, 7)
    assert strong_regret_bound(by_power, 3.0, 0.5, 7) == pytest.approx(9.0 * ratios / weights.sum())
    assert strong_regret_bound(by_call, 3.0, 0.5, 7) == pytest.approx(expected)  # a weighting is always summed


def test_dual_averaging_step_by_step() -> None:
    learner = DualAveraging(power=1.0, scale=2.0)
    state = learner.init(distance())
    assert (state.dual.tolist(), state.pulls.tolist(), state.squares) == ([0.1, 0.2], [0.0, 0.0], 1.0)
    before = Averaged(np.zeros(2), np.array([1.0, -2.0]), 14.0)
    after = learner.update(distance(), before, ROUND)
    pulls = np.array([1.0, -2.0]) + 3.0 * PULL
    firmness = 0.25 * 6.0 + 2.0 * 3.0 / sqrt(0.5) * sqrt(14.0 + 16.0)
    assert after.pulls == pytest.approx(pulls)
    assert after.squares == 30.0
    assert after.dual == pytest.approx(pulls / firmness)
    assert learner.firmness(distance(width=0.0)) == learner.firmness(distance(grad_bound=0.0)) == 1.0
    bound = (2.0 + 0.5) * 3.0 * sqrt(0.5 * 14.0) / 6.0
    assert learner.regret_bound(distance(), 3) == pytest.approx(bound)
    for wrong in (0.0, inf):
        with pytest.raises(ValueError, match="scale"):
            DualAveraging(scale=wrong)
