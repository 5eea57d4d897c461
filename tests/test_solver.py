from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import strategies
from rankstream import Assortments, ChoiceCounts, Solver, distances, learners, oracles
from rankstream._types import Vec
from rankstream.solver import State


def make(offers: Assortments, horizon: int = 200, smoothing: float = 0.0, seed: int = 0) -> Solver:
    return Solver(
        offers, distances.L2(offers, smoothing), learners.MirrorDescent(horizon), oracles.auto(offers, seed=seed)
    )


def play(solver: Solver, stream: Callable[[int], Vec], rounds: int) -> State:
    state = solver.init()
    for t in range(rounds):
        state = solver.step(state, stream(t))
    return state


def blend(share: float, one: Vec, other: Vec) -> Vec:
    mixed: Vec = (1.0 - share) * one + share * other
    return mixed


STREAMS: dict[str, Callable[[Vec, Vec], Callable[[int], Vec]]] = {
    "constant": lambda p, _: lambda t: p,  # noqa: ARG005
    "converging": lambda p, q: lambda t: blend(1.0 / (1.0 + t), p, q),
    "drifting": lambda p, q: lambda t: blend(t / 60.0, p, q),
    "switching": lambda p, q: lambda t: p if t < 30 else q,
}


@settings(max_examples=40)
@given(strategies.assortments(most_items=5), st.sampled_from(sorted(STREAMS)), st.sampled_from([0.0, 0.1]), st.data())
def test_certificate_holds_on_any_data(offers: Assortments, stream: str, smoothing: float, data: st.DataObject) -> None:
    p, q = data.draw(strategies.frequencies(offers)), data.draw(strategies.frequencies(offers))
    solver = make(offers, horizon=60, smoothing=smoothing)
    state = play(solver, STREAMS[stream](p, q), 60)
    for at in (None, p, q):
        certificate = solver.certificate(state, at)
        here = state.sums.mean_frequencies if at is None else at
        best = solver.distance.value(naive.nearest_l2(offers, here) - here)
        suboptimality = solver.distance.value(state.sums.mean_vertex - here) - best
        assert certificate.gap >= suboptimality - 1e-9
        assert certificate.gap >= 0.0
        assert certificate.lower <= best + 1e-9
        assert certificate.upper == pytest.approx(solver.distance.value(state.sums.mean_vertex - here))


@settings(max_examples=40)
@given(strategies.assortments(most_items=5), st.sampled_from(sorted(STREAMS)), st.sampled_from([0.0, 0.1]), st.data())
def test_theorem_1_and_the_regret_bound(
    offers: Assortments, stream: str, smoothing: float, data: st.DataObject
) -> None:
    p, q = data.draw(strategies.frequencies(offers)), data.draw(strategies.frequencies(offers))
    solver = make(offers, horizon=60, smoothing=smoothing)
    state = play(solver, STREAMS[stream](p, q), 60)
    truth = p if stream == "constant" else q
    certificate = solver.certificate(state, truth, truth=truth)
    assert certificate.averaging_error is not None
    assert certificate.drift_error is not None
    bound = certificate.regret_sum + certificate.averaging_error + certificate.drift_error
    assert certificate.gap <= bound + 1e-9
    assert certificate.oracle_regret <= 1e-9  # Lemma 1
    rate = np.sqrt(2 * solver.distance.width * solver.distance.grad_bound**2 / 60)
    assert certificate.dual_regret <= rate + 1e-9  # Theorem OMD
    if stream == "constant":
        assert certificate.averaging_error == pytest.approx(0.0, abs=1e-12)
        if smoothing == 0.0:
            assert certificate.regret_sum == pytest.approx(certificate.gap, abs=1e-9)


@given(strategies.assortments(most_items=5), st.data())
def test_running_means_equal_plain_averages(offers: Assortments, data: st.DataObject) -> None:
    frequencies = data.draw(strategies.frequencies(offers))
    solver = make(offers, horizon=20)
    state = play(solver, lambda _: frequencies, 20)
    model = solver.model(state)
    assert model.probabilities(offers) == pytest.approx(state.sums.mean_vertex)
    assert state.sums.mean_frequencies == pytest.approx(frequencies)
    assert state.mae == pytest.approx(np.abs(state.sums.mean_vertex - frequencies).mean())


def test_mirror_descent_is_what_the_theorem_says() -> None:
    offers = Assortments([("a", "b", "x"), ("b", "c", "x")])
    p = np.array([0.2, 0.3, 0.5, 0.6, 0.1, 0.3])
    solver = make(offers, horizon=50)
    state = solver.init()
    dual, total = np.zeros(6), np.zeros(6)
    step = np.sqrt(2 * 0.5 / (4.0 * 50))
    for _ in range(50):
        assert solver.learner.play(state.learner) == pytest.approx(dual)
        x = offers.vertex(solver.oracle.cheapest(dual).ranking)
        total += x
        dual = dual + step * (x - p)
        dual = dual / max(1.0, np.linalg.norm(dual))
        state = solver.step(state, p)
    assert state.sums.vertex == pytest.approx(total)


def test_offers_not_seen_yet_are_left_out() -> None:
    offers = Assortments([("a", "b"), ("b", "c"), ("a", "c")])
    counts = ChoiceCounts(offers)
    counts.observe(("a", "b"), "a", count=3)
    counts.observe(("a", "b"), "b", count=1)
    solver, small = make(offers), make(Assortments([("a", "b")], items="abc"))
    state, alone = solver.init(), small.init()
    for _ in range(100):
        state = solver.step(state, counts)
        alone = small.step(alone, [0.75, 0.25])
    assert not state.sums.dual[2:].any()
    assert solver.distance.value(state.residual) == pytest.approx(np.linalg.norm(state.residual[:2]))
    assert state.mae == pytest.approx(np.abs(state.residual[:2]).mean())
    certificate = solver.certificate(state)
    assert certificate.gap < 0.2
    assert solver.certificate(state, counts).upper == pytest.approx(certificate.upper, abs=1e-12)
    counts.observe(("b", "c"), "c")
    state = solver.step(state, counts)
    assert state.seen is not None
    assert state.seen.tolist() == [True] * 4 + [False] * 2


def test_counts_without_any_observation_have_no_error_to_report() -> None:
    offers = Assortments([("a", "b")])
    solver = make(offers)
    state = solver.step(solver.init(), ChoiceCounts(offers))
    assert np.isnan(state.mae)


def test_certifying_does_not_disturb_the_run() -> None:
    offers = Assortments([("a", "b", "x"), ("b", "c", "x")])
    p = [0.2, 0.3, 0.5, 0.6, 0.1, 0.3]
    solver = make(offers)
    quiet, asked = solver.init(), solver.init()
    for _ in range(30):
        quiet = solver.step(quiet, p)
        asked = solver.step(asked, p)
        solver.snapshot(asked)
    fork = asked.copy()
    solver.step(fork, p)
    assert quiet.sums.vertex.tolist() == asked.sums.vertex.tolist()
    assert quiet.weights == asked.weights
    assert fork.round == asked.round + 1


def test_renaming_items_renames_the_model() -> None:
    names: dict[object, str] = {"a": "tea", "b": "pie", "x": "nothing"}
    offers = Assortments([("a", "b", "x"), ("b", "x")])
    renamed = Assortments([tuple(names[item] for item in offer) for offer in offers.offers])
    p = [0.2, 0.3, 0.5, 0.6, 0.4]
    one, other = make(offers), make(renamed)
    first, second = one.model(play(one, lambda _: np.array(p), 40)), other.model(play(other, lambda _: np.array(p), 40))
    assert [tuple(names[item] for item in ranking) for ranking in first.rankings] == second.rankings
    assert first.weights.tolist() == second.weights.tolist()


def test_reordering_items_keeps_the_fit() -> None:
    offers = Assortments([("a", "b", "x"), ("b", "c", "x")])
    reordered = Assortments(offers.offers, items=["x", "c", "b", "a"])
    p = np.array([0.2, 0.3, 0.5, 0.6, 0.1, 0.3])
    fits = []
    for assortments in (offers, reordered):
        solver = make(assortments, horizon=2000)
        state = play(solver, lambda _: p, 2000)
        fits.append(solver.model(state).probabilities(offers))
    assert fits[0] == pytest.approx(fits[1], abs=0.01)


def test_nothing_comes_before_the_first_round() -> None:
    solver = make(Assortments([("a", "b")]))
    with pytest.raises(ValueError, match="no model before the first round"):
        solver.model(solver.init())
    with pytest.raises(ValueError, match="nothing to certify before"):
        solver.certificate(solver.init())


def test_bad_data_are_refused() -> None:
    solver = make(Assortments([("a", "b")]))
    with pytest.raises(ValueError, match="Frequency nan"):
        solver.step(solver.init(), [np.nan, 1.0])
    with pytest.raises(ValueError, match="other assortments"):
        solver.step(solver.init(), ChoiceCounts(Assortments([("a", "c")])))


def test_learners_by_name_and_bad_settings() -> None:
    assert learners.make("mirror-descent", 7) == learners.MirrorDescent(7)
    assert learners.make(learners.MirrorDescent(3), 7) == learners.MirrorDescent(3)
    offers = Assortments([("a", "b")])
    assert learners.MirrorDescent(7, step=0.25).step_size(distances.L2(offers)) == 0.25
    with pytest.raises(ValueError, match="no learner 'guess'"):
        learners.make("guess", 7)
    with pytest.raises(ValueError, match="horizon 0"):
        learners.MirrorDescent(0)
    with pytest.raises(ValueError, match="step size -1"):
        learners.MirrorDescent(5, step=-1.0)
