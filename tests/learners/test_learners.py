from itertools import product
from typing import Any

import numpy as np
import pytest

from experiments.methods import paper_method
from experiments.settings import PAPER_METHODS
from learner_runs import MARKET, OFFERS, play, streamed
from rankstream import Assortments, Solver, checks, distances, learners, oracles
from rankstream.distances import Distance
from rankstream.learners import (
    DualAveraging,
    FollowTheLeader,
    Learner,
    MirrorDescent,
    NaiveFrankWolfe,
    StronglyConvexMirrorDescent,
)
from rankstream.learners.protocol import power_sum, whole_grad_bound

LEARNERS: dict[str, Learner[Any]] = {
    "md": MirrorDescent(horizon=60),
    "md weighted": MirrorDescent(horizon=60, power=1.0),
    "s-md": StronglyConvexMirrorDescent(),
    "s-md equal": StronglyConvexMirrorDescent(power=0.0),
    "ftl": FollowTheLeader(),
    "ftl cubic": FollowTheLeader(power=3.0),
    "naive": NaiveFrankWolfe(),
    "da": DualAveraging(),
    "da weighted": DualAveraging(power=1.5, scale=0.5),
}
DISTANCES: dict[str, Distance] = {
    f"{name} {smoothing}": distances.make(name, OFFERS, smoothing)
    for name, smoothing in product(["l1", "l1.5", "l2", "l4", "linf", "max-difference"], [0.0, 0.1])
} | {name: distances.make(name, OFFERS) for name in ("squared-l2", "squared-l3", "kl")}


def fits(learner: Learner[Any], distance: Distance) -> bool:
    if learner.needs_smoothing:
        return distance.smoothing > 0.0
    return not (isinstance(learner, MirrorDescent) and np.isinf(whole_grad_bound(distance)))


PAIRS = [(one, other) for one, other in product(DISTANCES, LEARNERS) if fits(LEARNERS[other], DISTANCES[one])]


@pytest.mark.parametrize(("distance", "learner"), PAIRS)
def test_every_pair_conforms(distance: str, learner: str) -> None:
    checks.check_learner(LEARNERS[learner], DISTANCES[distance], OFFERS)


@pytest.mark.parametrize("kind", ["static", "dynamic"])
@pytest.mark.parametrize(("distance", "learner"), PAIRS)
def test_theorem_1_lemma_1_and_corollary_1(distance: str, learner: str, kind: str) -> None:
    truth = MARKET.frequencies()
    form = DISTANCES[distance]
    solver, state, _ = play(form, LEARNERS[learner], [truth] * 80 if kind == "static" else streamed(80))
    certificate = solver.certificate(state, truth=truth)
    assert certificate.oracle_regret <= 1e-9  # Lemma 1
    assert certificate.true_gap is not None
    if form.affine or kind == "static":
        assert certificate.regret_sum is not None
        assert certificate.averaging_error is not None
        assert certificate.dual_regret is not None
        if certificate.drift_error is not None:  # Theorem 1 and Corollary 1
            errors = certificate.averaging_error + certificate.drift_error
            assert certificate.true_gap <= certificate.regret_sum + errors + 1e-9
            suboptimality = form.value(state.sums.mean_vertex, truth) - form.value(truth, truth)
            assert suboptimality <= certificate.dual_regret + errors + 1e-9
        weights = [LEARNERS[learner].round_weight(t) for t in range(1, 81)]
        data = [truth] * 80 if kind == "static" else streamed(80)
        bound = 2 * form.lipschitz * np.average([form.data_norm(p - truth) for p in data], weights=weights)
        if certificate.drift_error is not None:
            assert certificate.averaging_error + certificate.drift_error <= bound + 1e-9  # Theorem 2
    else:
        assert certificate.dual_regret is None
        assert certificate.regret_sum is None
    assert certificate.lower <= form.value(truth, state.sums.mean_frequencies) + 1e-9


def test_dual_averaging_needs_no_horizon_and_keeps_its_bound_at_every_round() -> None:
    for name in ("l1", "l2", "linf", "max-difference"):
        distance, learner = distances.make(name, OFFERS), DualAveraging()
        solver = Solver(OFFERS, distance, learner, oracles.auto(OFFERS))
        state = solver.init()
        for t, p in enumerate(streamed(300), start=1):
            state = solver.step(state, p)
            if t % 20 == 0:
                regret = solver.certificate(state).dual_regret
                assert regret is not None
                assert regret <= learner.regret_bound(distance, t) + 1e-9


def test_regret_of_mirror_descent_before_the_horizon() -> None:
    """Errata: at t < T the bound is width / (step * t) + step * G^2 / 2."""
    distance, learner = distances.make("l2", OFFERS), MirrorDescent(horizon=1000)
    solver = Solver(OFFERS, distance, learner, oracles.auto(OFFERS))
    state = solver.init()
    for t, p in enumerate(streamed(200), start=1):
        state = solver.step(state, p)
        if t % 20 == 0:
            regret = solver.certificate(state).dual_regret
            step = learner.step_size(distance)
            assert regret is not None
            assert regret <= 0.5 / (step * t) + step * distance.grad_bound**2 / 2 + 1e-9
            expected = 0.5 / (step * t) + step * distance.grad_bound**2 / 2
            assert learner.regret_bound(distance, t) == pytest.approx(expected)


@pytest.mark.parametrize("name", PAPER_METHODS)
@pytest.mark.parametrize("norm", ["l1", "l2", "l3", "linf"])
def test_the_papers_methods(name: str, norm: str) -> None:
    if name in ("MD_sq", "FW_sq") and norm in ("l1", "linf"):
        with pytest.raises(ValueError, match="only l_q norms with 2 <= q < infinity can be squared"):
            paper_method(name, OFFERS, norm)
        return
    distance, learner = paper_method(name, OFFERS, norm, horizon=500)
    if name in ("MD_smth", "FW_dyn", "FW_naive", "F-W"):
        plain = distances.make(norm, OFFERS)
        assert distance.smoothing == pytest.approx(distances.optimal_smoothing(plain, 500))
    if name == "MD_ns":
        assert learner == MirrorDescent(horizon=500)
        assert distance.smoothing == 0.0
    _, state, _ = play(distance, learner, [MARKET.frequencies()] * 500)
    _, start, _ = play(distance, learner, [MARKET.frequencies()] * 5)
    assert state.mae < 0.5 * start.mae


def test_any_weights_will_do() -> None:
    """Theorem OMD with weights 1.1^t, on data that flip between corners."""
    learner = MirrorDescent(horizon=60, weighting=lambda t: 1.1**t)
    distance = distances.make("l2", OFFERS)
    corners = OFFERS.vertex(range(5)), OFFERS.vertex([4, 3, 2, 1, 0])
    solver, state, _ = play(distance, learner, [corners[t % 2] for t in range(60)])
    regret = solver.certificate(state).dual_regret
    assert regret is not None
    assert regret <= learner.regret_bound(distance, 60) + 1e-9
    assert state.sums.total_weight == pytest.approx(sum(1.1**t for t in range(1, 61)))


def test_follow_the_leader_pays_more_when_the_data_move() -> None:
    """The theorem's G bounds constant data; against data that flip with every answer it would not hold."""
    offers = Assortments([("a", "b")])
    distance, learner = distances.make("squared-l2", offers), FollowTheLeader()
    solver = Solver(offers, distance, learner, oracles.auto(offers))
    state = solver.init()
    for t in range(1, 61):
        x = offers.vertex(solver.oracle.cheapest(distance.costs(learner.play(state.learner))).ranking)
        state = solver.step(state, 1.0 - x)
        regret = solver.certificate(state).dual_regret or 0.0
        assert regret <= learner.regret_bound(distance, t) + 1e-9
    assert regret > learner.regret_bound(distance, 60, constant=True)


@pytest.mark.parametrize("q", [100.0, 1000.0])
def test_mirror_descent_keeps_its_memory_on_norms_of_high_power(q: float) -> None:
    distance = distances.norm(q, OFFERS)
    p = MARKET.frequencies()
    _, state, _ = play(distance, MirrorDescent(horizon=1000), [p] * 1000)
    assert distance.value(state.sums.mean_vertex, p) < 0.05


def test_kl_takes_frank_wolfe_because_it_is_smooth() -> None:
    p = MARKET.frequencies()
    _, state, _ = play(distances.KL(OFFERS, floor=1e-3), FollowTheLeader(), [p] * 1000)
    assert state.mae < 0.01


def test_learners_by_name() -> None:
    for name, kind in {
        "mirror-descent": MirrorDescent,
        "strongly-convex-mirror-descent": StronglyConvexMirrorDescent,
        "follow-the-leader": FollowTheLeader,
        "naive-frank-wolfe": NaiveFrankWolfe,
        "dual-averaging": DualAveraging,
    }.items():
        assert isinstance(learners.make(name, 7), kind)
    assert learners.make("mirror-descent", 7) == MirrorDescent(horizon=7)
    assert learners.make("dual-averaging", 7) == DualAveraging(scale=1.0)  # whose bound is the least
    assert learners.make(MirrorDescent(horizon=3), 7) == MirrorDescent(horizon=3)
    assert MirrorDescent(step=0.25).step_size(distances.L2(OFFERS)) == 0.25


def test_learners_that_do_not_fit_a_distance_say_so() -> None:
    plain = distances.L2(OFFERS)
    for learner in (StronglyConvexMirrorDescent(), FollowTheLeader(), NaiveFrankWolfe()):
        with pytest.raises(
            ValueError, match=f"{type(learner).__name__} needs a smoothed distance and L2 has smoothing 0"
        ):
            learner.init(plain)
    assert FollowTheLeader(nonsmooth=True).init(plain).tolist() == plain.start().tolist()
    with pytest.raises(ValueError, match="LInf with smoothing has no bounded gradient"):
        MirrorDescent().init(distances.LInf(OFFERS, 0.1))
    assert MirrorDescent(step=0.1).init(distances.LInf(OFFERS, 0.1)).step == 0.1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: learners.make("guess", 7), "Unknown learner 'guess'"),
        (lambda: paper_method("MD_best", OFFERS), "Unknown method 'MD_best' of the paper"),
        (lambda: MirrorDescent(horizon=0), "horizon is 0"),
        (lambda: MirrorDescent(step=-1.0), "step is -1"),
        (lambda: DualAveraging(scale=0.0), "scale is 0"),
        (lambda: FollowTheLeader(power=-1.0), "averaging power is -1"),
        (lambda: FollowTheLeader(power=100.0), "averaging power is 100"),
        (lambda: MirrorDescent(5, weighting=lambda _: 0.0).round_weight(3), "weight of round 3 is 0"),
        (lambda: MirrorDescent(5, weighting=lambda _: -1.0).squares(5), "weight of round 1 is -1"),
    ],
)
def test_bad_settings_are_refused(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0, 3.0])
def test_power_sums(power: float) -> None:
    assert power_sum(power, 50) == pytest.approx(sum(t**power for t in range(1, 51)))
