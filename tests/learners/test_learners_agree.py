"""Where two learners are one: equal plays, and what moving data change."""

from itertools import pairwise

import numpy as np
import pytest

import naive
from learner_runs import MARKET, OFFERS, play, streamed
from rankstream import Solver, distances, oracles
from rankstream.data import simulate
from rankstream.learners import (
    DualAveraging,
    FollowTheLeader,
    MirrorDescent,
    NaiveFrankWolfe,
    StronglyConvexMirrorDescent,
)

pytestmark = pytest.mark.quick


def test_follow_the_leader_is_frank_wolfe_on_constant_data() -> None:
    """Appendix E: step by step the same points, and so is the naive variant."""
    p = MARKET.frequencies()
    for name in ("l1", "l2", "l4", "linf"):
        distance = distances.make(name, OFFERS, 0.1)
        oracle = oracles.auto(OFFERS)
        x = OFFERS.vertex(oracle.cheapest(distance.costs(distance.start())).ranking)
        points = [x]
        for t in range(1, 40):
            gradient = distance.costs(distance.respond(x, p))
            step = 2.0 / (t + 2.0)
            x = (1.0 - step) * x + step * OFFERS.vertex(oracle.cheapest(gradient).ranking)
            points.append(x)
        for learner in (FollowTheLeader(), NaiveFrankWolfe()):
            solver = Solver(OFFERS, distance, learner, oracle)
            state = solver.init()
            for point in points:
                state = solver.step(state, p)
                assert state.sums.mean_vertex == pytest.approx(point, abs=1e-9)


def test_mirror_descent_climbs_the_dual_function() -> None:
    """Appendix E: with constant data its steps are supergradient steps on g(y) = min over x of the payoff."""
    p = MARKET.frequencies()
    corners = naive.all_vertices(OFFERS)
    distance, learner = distances.make("l2", OFFERS), MirrorDescent(horizon=40)
    _, state, duals = play(distance, learner, [p] * 40)
    for before, after in pairwise(duals):
        move = (after - before) / learner.step_size(distance)
        if np.linalg.norm(after) < 1.0 - 1e-9:
            here = min((corners - p) @ before)
            for other in duals:  # concave: the supergradient lies above
                assert min((corners - p) @ other) <= here + move @ (other - before) + 1e-9
    assert state.round == 40


@pytest.mark.parametrize("name", ["squared-l2", "squared-l3"])
@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_on_squared_norms_mirror_descent_is_follow_the_leader(name: str, power: float) -> None:
    """The mirror image of the dual averages the residuals, as the leader's does; the ball is never left."""
    data = streamed(60)
    distance = distances.make(name, OFFERS)
    one = play(distance, StronglyConvexMirrorDescent(power=power), data)[2]
    other = play(distance, FollowTheLeader(power=power), data)[2]
    for a, b in zip(one, other, strict=True):
        assert a == pytest.approx(b, abs=1e-9)


def test_on_smoothed_linf_mirror_descent_is_follow_the_leader() -> None:
    """On a simplex with entropy a prox step only normalises, so lazy and eager steps agree: MD_smth is FW_dyn."""
    data = streamed(60)
    for name in ("linf", "max-difference"):
        distance = distances.make(name, OFFERS, 0.05)
        one = play(distance, StronglyConvexMirrorDescent(), data)[2]
        other = play(distance, FollowTheLeader(), data)[2]
        for a, b in zip(one, other, strict=True):
            assert a == pytest.approx(b, abs=1e-9)


def test_on_plain_linf_mirror_descent_is_dual_averaging_with_a_constant_rate() -> None:
    data = streamed(60)
    distance, learner = distances.make("linf", OFFERS), MirrorDescent(horizon=60)
    duals = play(distance, learner, data)[2]
    total, step = np.zeros(2 * OFFERS.n_coordinates), learner.step_size(distance)
    oracle = oracles.auto(OFFERS)
    for dual, p in zip(duals, data, strict=True):
        assert dual == pytest.approx(distance.prox(-step * total), abs=1e-9)
        x = OFFERS.vertex(oracle.cheapest(distance.costs(dual)).ranking)
        total += distance.pull(x, dual, p)


def test_on_l2_mirror_descent_and_dual_averaging_agree_until_the_ball_is_full() -> None:
    p = MARKET.frequencies()
    distance = distances.make("l2", OFFERS)
    eager = play(distance, MirrorDescent(horizon=60, step=0.02), [p] * 60)[2]
    total = np.zeros(OFFERS.n_coordinates)
    oracle = oracles.auto(OFFERS)
    for dual in eager:
        if np.linalg.norm(0.02 * total) > 1.0:
            break
        assert dual == pytest.approx(0.02 * total, abs=1e-12)
        total += OFFERS.vertex(oracle.cheapest(dual).ranking) - p


@pytest.mark.parametrize("norm", ["l2", "squared-l2"])
def test_the_step_does_not_matter_while_the_oracle_only_sees_a_direction(norm: str) -> None:
    """MD_ns on l2 chooses the rankings of follow-the-leader with equal weights on the square or the smoothed norm."""
    truth, other = MARKET.frequencies(), simulate.market(3).truth.mixture
    data = [truth + (np.resize(other, truth.size) - truth) / (t + 50.0) for t in range(60)]  # no two sums tie
    data = [p / np.add.reduceat(p, OFFERS.indptr[:-1])[OFFERS.owner] for p in data]
    plain = distances.make("l2", OFFERS)
    leader = FollowTheLeader(power=0.0)
    form = distances.make(norm, OFFERS, 0.3 if norm == "l2" else 0.0)
    expected = play(form, leader, data)[1].weights
    for learner in (MirrorDescent(horizon=10_000), MirrorDescent(step=1e-6), DualAveraging(scale=100.0)):
        _, state, duals = play(plain, learner, data)
        assert np.linalg.norm(duals[-1]) < 1.0
        assert state.weights == expected


def test_naive_frank_wolfe_differs_on_moving_data() -> None:
    data = streamed(30)
    distance = distances.make("l2", OFFERS, 0.1)
    leader, naive_one = (play(distance, learner, data)[2] for learner in (FollowTheLeader(), NaiveFrankWolfe()))
    assert not np.allclose(leader[-1], naive_one[-1])
