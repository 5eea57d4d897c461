from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import strategies
from rankstream import Assortments, ChoiceCounts, Solver, distances, learners, oracles
from rankstream._core.types import Vec
from rankstream.solver.loop import State
from rankstream.solver.runs import Run

pytestmark = pytest.mark.quick


def make(offers: Assortments, horizon: int = 200, smoothing: float = 0.0, seed: int = 0) -> Solver:
    return Solver(
        offers,
        distances.L2(offers, smoothing),
        learners.MirrorDescent(horizon=horizon),
        oracles.auto(offers, seed=seed),
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
    "constant": lambda p, _: lambda _: p,
    "converging": lambda p, q: lambda t: blend(1.0 / (1.0 + t), p, q),
    "drifting": lambda p, q: lambda t: blend(t / 60.0, p, q),
    "switching": lambda p, q: lambda t: p if t < 30 else q,
}


@strategies.examples(40)
@given(strategies.assortments(most_items=5), st.sampled_from(sorted(STREAMS)), st.sampled_from([0.0, 0.1]), st.data())
def test_certificate_holds_on_any_data(offers: Assortments, stream: str, smoothing: float, data: st.DataObject) -> None:
    p, q = data.draw(strategies.frequencies(offers)), data.draw(strategies.frequencies(offers))
    solver = make(offers, horizon=60, smoothing=smoothing)
    state = play(solver, STREAMS[stream](p, q), 60)
    for at in (None, p, q):
        certificate = solver.certificate(state, at)
        here = state.sums.mean_frequencies if at is None else at
        best = solver.distance.value(naive.nearest_l2(offers, here), here)
        suboptimality = solver.distance.value(state.sums.mean_vertex, here) - best
        assert certificate.gap >= suboptimality - 1e-9
        assert certificate.gap >= 0.0
        assert certificate.lower <= best + 1e-9
        assert certificate.upper == pytest.approx(solver.distance.value(state.sums.mean_vertex, here))


@strategies.examples(40)
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
    assert certificate.regret_sum is not None
    bound = certificate.regret_sum + certificate.averaging_error + certificate.drift_error
    assert certificate.gap <= bound + 1e-9
    assert certificate.oracle_regret <= 1e-9  # Lemma 1
    assert certificate.dual_regret is not None
    assert certificate.dual_regret <= solver.learner.regret_bound(solver.distance, 60) + 1e-9  # Theorem OMD
    if stream == "constant":
        assert certificate.averaging_error == pytest.approx(0.0, abs=1e-12)
        if smoothing == 0.0:
            assert certificate.mean_dual_lower is not None
            mean_gap = certificate.upper - certificate.mean_dual_lower
            assert certificate.regret_sum == pytest.approx(mean_gap, abs=1e-9)


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
    solver, small = make(offers), make(Assortments([("a", "b")], items=list("abc")))
    state, alone = solver.init(), small.init()
    for _ in range(100):
        state = solver.step(state, counts)
        alone = small.step(alone, [0.75, 0.25])
    assert not state.sums.dual[2:].any()
    residual = state.sums.mean_vertex - state.sums.mean_frequencies
    assert not residual[2:].any()
    assert state.mae == pytest.approx(np.abs(residual[:2]).mean())
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
    with pytest.raises(ValueError, match="no certificate before"):
        solver.certificate(solver.init())


def test_bad_data_are_refused() -> None:
    solver = make(Assortments([("a", "b")]))
    with pytest.raises(ValueError, match="Frequency nan"):
        solver.step(solver.init(), [np.nan, 1.0])
    with pytest.raises(ValueError, match="other assortments"):
        solver.step(solver.init(), ChoiceCounts(Assortments([("a", "c")])))


def test_a_certificate_without_some_offers_is_about_the_others() -> None:
    offers = Assortments([("a", "b"), ("a", "b", "c")])
    solver = make(offers, horizon=5000)
    state = play(solver, lambda _: np.array([0.0, 1.0, 1.0, 0.0, 0.0]), 5000)
    counts = ChoiceCounts(offers)
    counts.observe(("a", "b"), "b", 10)
    certificate = solver.certificate(state, counts)
    assert certificate.upper == pytest.approx(np.linalg.norm((state.sums.mean_vertex - [0, 1, 1, 0, 0])[:2]))
    assert certificate.gap >= certificate.upper - 1e-9  # on the seen offer alone the best model is exact


@strategies.examples(20)
@given(strategies.assortments(most_items=4), st.integers(0, 2**32 - 1))
def test_certificates_hold_when_offers_are_seen_one_by_one(offers: Assortments, seed: int) -> None:
    random = np.random.default_rng(seed)
    solver, counts = make(offers, horizon=60), ChoiceCounts(offers)
    state = solver.init()
    for _ in range(60):
        counts.observe_coordinates(random.integers(offers.n_coordinates, size=1))
        state = solver.step(state, counts)
    seen = np.flatnonzero(np.isfinite(counts.frequencies()))
    part = Assortments([offer for k, offer in enumerate(offers.offers) if counts.totals[k]], offers.items)
    p = counts.frequencies()[seen]
    best = np.linalg.norm(naive.nearest_l2(part, p) - p)
    certificate = solver.certificate(state, counts)
    assert certificate.upper == pytest.approx(np.linalg.norm(state.sums.mean_vertex[seen] - p))
    assert certificate.gap >= certificate.upper - best - 1e-9


def test_forgetting_keeps_the_means_and_lets_new_rounds_count_more() -> None:
    offers = Assortments([("a", "b")])
    solver = make(offers)
    state = play(solver, lambda _: np.array([1.0, 0.0]), 100)
    before, certificate = state.sums.mean_vertex, solver.certificate(state)
    state.forget(10.0)
    assert state.sums.mean_vertex == pytest.approx(before)
    assert state.sums.total_weight == pytest.approx(10.0)
    assert sum(state.weights.values()) == pytest.approx(10.0)
    assert solver.certificate(state).gap == pytest.approx(certificate.gap)


def test_parts_made_for_other_assortments_are_refused() -> None:
    one, other = Assortments([("a", "b")]), Assortments([("b", "a")])
    with pytest.raises(ValueError, match="LatticeOracle was created for other assortments"):
        Solver(one, distances.L2(one), learners.MirrorDescent(), oracles.auto(other))
    with pytest.raises(ValueError, match="L2 was created for other assortments"):
        Solver(one, distances.L2(other), learners.MirrorDescent(), oracles.auto(one))


def test_latest_error_differs_from_the_averaged_one_while_data_move() -> None:
    offers = Assortments([("a", "b")])
    solver = make(offers)
    state = play(solver, lambda t: np.array([1.0, 0.0]) if t < 50 else np.array([0.0, 1.0]), 100)
    assert state.latest_mae == pytest.approx(np.abs(state.sums.mean_vertex - [0.0, 1.0]).mean())
    assert state.latest_mae > state.mae + 0.1


def test_runs_that_stop_by_their_gap_are_certified_every_ten_rounds() -> None:
    offers = Assortments([("tea", "pie")])
    solver = Solver(offers, distances.L2(offers), learners.MirrorDescent(), oracles.auto(offers))
    assert Run(solver).certify_every is None
    assert Run(solver).converged is False
    assert Run(solver, stop="gap").certify_every == 10
    assert Run(solver, stop="gap", certify_every=3).certify_every == 3
    assert Run(solver, certify_every=3).certify_every == 3
