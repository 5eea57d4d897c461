"""What certificates subtract, leave out and forget, by formulas of their own: one wrong sign is noticed."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import brute
import naive
from rankstream import Assortments, Bootstrap, ChoiceCounts, Solver, distances, learners, oracles
from rankstream._core.types import Vec
from rankstream.certificate import certify
from rankstream.certificate.proof import Proof
from rankstream.data.counts import Target
from rankstream.distances import KL, L1, L2, Distance
from rankstream.distances.bilinear import softmax
from rankstream.learners.protocol import Sums, step_for
from rankstream.solver.loop import State
from rankstream.solver.runs import Run

OFFERS = Assortments([("a", "b", "x"), ("b", "c", "x"), ("x", "a"), ("c", "x")])
WEIGHTS = (0.5, 20.0, 1.0, 4.0)


def some_shares(seed: int, offers: Assortments = OFFERS) -> Vec:
    raw = np.random.default_rng(seed).gamma(0.7, size=offers.n_coordinates) + 1e-3
    shares: Vec = raw / np.add.reduceat(raw, offers.indptr[:-1])[offers.owner]
    return shares


def played(distance: Distance, rows: list[Vec]) -> tuple[Solver, State]:
    solver = Solver(OFFERS, distance, learners.DualAveraging(), oracles.auto(OFFERS))
    state = solver.init()
    for row in rows:
        state = solver.step(state, row)
    return solver, state


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_what_rounding_may_add_is_taken_off_and_no_more(weights: Any) -> None:
    """4 eps * N * (1 + the sum of absolute costs + the absolute offset), as the inner products have N terms each."""
    form, at = L1(OFFERS, weights=weights), some_shares(1)
    dual = 0.9 - 0.5 * np.random.default_rng(0).random(OFFERS.n_coordinates)
    costs = form.costs(dual)
    offset, size = float(costs @ at), float(np.abs(costs).sum())
    plain = naive.cheapest_value(OFFERS, costs) - offset
    taken = 4.0 * np.finfo(float).eps * costs.size * (1.0 + size + offset)
    found = certify(Sums(at, at, dual, 1.0, latest=at), form, oracles.auto(OFFERS)).mean_dual_lower
    assert found is not None
    assert plain - found == pytest.approx(taken, rel=0.1, abs=0.0)
    assert 1.0 + size - offset < 0.7 * (1.0 + size + offset)  # each term shows


@pytest.mark.parametrize("moves", [False, True])
def test_regret_of_the_dual_is_known_where_means_say_it(moves: bool) -> None:
    """For a distance that is not affine in the data, means of moving data do not say what the duals earned."""
    rows = [some_shares(2)] * 5 + [some_shares(3 if moves else 2)] * 5
    truth = naive.all_vertices(OFFERS)[:3].mean(axis=0)
    for form, known in ((L2(OFFERS), True), (KL(OFFERS), not moves)):
        solver, state = played(form, rows)
        found = solver.certificate(state, truth=truth)
        assert (found.dual_regret is None) == (not known)
        assert (found.averaging_error is None) == (not known)
        assert (found.regret_sum is None) == (not known)
        assert (found.drift_error is None) == isinstance(form, KL)
        assert form.affine == isinstance(form, L2)


def test_regrets_are_those_of_the_rounds() -> None:
    """R_x and R_y of equation (12), added up round by round."""
    rows = [some_shares(seed) for seed in (4, 5, 6, 7)]
    form = L2(OFFERS, weights=WEIGHTS)
    solver = Solver(OFFERS, form, learners.DualAveraging(power=1.0), oracles.auto(OFFERS))
    state, payoffs, paid, total = solver.init(), 0.0, 0.0, 0.0
    for number, row in enumerate(rows, start=1):
        before = state.sums.vertex.copy()
        dual = solver.learner.play(state.learner)
        state = solver.step(state, row)
        vertex = (state.sums.vertex - before) / number
        payoffs += number * float(form.costs(dual) @ (vertex - row))
        paid += number * float(form.costs(dual) @ row)
        total += number
    best = naive.cheapest_value(OFFERS, form.costs(state.sums.mean_dual)) - paid / total
    found = solver.certificate(state)
    assert found.dual_regret == pytest.approx(found.upper - payoffs / total)
    assert found.oracle_regret == pytest.approx(payoffs / total - best)


def test_compiled_rounds_forget_which_offers_were_not_seen() -> None:
    """After rounds on part of the offers come rounds on all: the certificate is about all of them."""
    counts = ChoiceCounts(OFFERS, [3, 1, 2, 4, 0, 1, 0, 0, 0, 0])
    run = Run(Solver(OFFERS, L2(OFFERS), learners.DualAveraging(), oracles.auto(OFFERS)), tolerance=0.0)
    run.advance(counts)
    first = run.state.seen
    run.advance_many(Target(some_shares(8)), 300)
    assert first is not None
    assert run.state.seen is None
    all_of_it = certify(run.state.sums, run.solver.distance, run.solver.oracle)
    assert run.result().certificate == all_of_it
    assert all_of_it != run.solver.certificate(run.state, counts)


def test_rounds_and_a_target_limit_a_proof() -> None:
    offers = Assortments([("a", "b"), ("b", "c"), ("a", "c")])
    cycle = [0.9, 0.1, 0.9, 0.1, 0.1, 0.9]
    proof = Proof(offers, cycle)
    for rounds in (1, 2):
        proof.advance(rounds=1)
        assert proof.rounds == rounds
    least = naive.least_distance("l2", naive.all_vertices(offers), np.array(cycle))
    early, late = Proof(offers, cycle), Proof(offers, cycle)
    assert 0.5 * least <= early.advance(target=0.5 * least) <= late.advance() <= least + 1e-9
    assert early.rounds < late.rounds


class Answers:
    """A model whose shares are known."""

    def __init__(self, shares: list[float]) -> None:
        self.shares = np.array(shares)

    def probabilities(self, _: Assortments) -> Vec:
        return self.shares


def test_an_interval_knows_spread_and_shift() -> None:
    """Share -+ z * sqrt(variance + shift^2), cut to [0, 1], by hand for three replicates."""
    offers = Assortments([("a", "b", "c")])
    found: Any = Bootstrap(ChoiceCounts(offers, [5, 4, 1]), "mnl", replicates=2)
    found.model = Answers([0.5, 0.48, 0.02])
    found.models = [Answers([0.56, 0.4, 0.04]), Answers([0.58, 0.4, 0.02]), Answers([0.60, 0.4, 0.0])]
    share, error, shift = found.spread(offers)
    assert share.tolist() == [0.5, 0.48, 0.02]
    assert error == pytest.approx([0.02, 0.0, 0.02])
    assert shift == pytest.approx([0.08, -0.08, 0.0])
    z = 1.959963984540054
    reach = z * np.sqrt([0.02**2 + 0.08**2, 0.08**2, 0.02**2])
    _, low, high = found.bounds(offers, 0.95)
    assert low == pytest.approx([0.5 - reach[0], 0.48 - reach[1], 0.0])
    assert high == pytest.approx([0.5 + reach[0], 0.48 + reach[1], 0.02 + reach[2]])
    assert found.bounds(offers, 0.6826894921370859)[2][1] == pytest.approx(0.48 + 0.08)
    assert found.standard_errors(("a", "b", "c")) == pytest.approx({"a": 0.02, "b": 0.0, "c": 0.02})


def test_smoothing_that_is_best_for_a_horizon() -> None:
    """It minimises 2 G^2 / (s (T + 1)) + s * max |potential|, so both parts are the same there; a horizon is >= 1."""
    form = L2(OFFERS, weights=WEIGHTS)
    for horizon in (1, 7, 5000):
        found = distances.optimal_smoothing(form, horizon)
        assert 2.0 * form.grad_bound**2 / (found * (horizon + 1)) == pytest.approx(found * form.largest_potential)
    with pytest.raises(ValueError, match="horizon"):
        distances.optimal_smoothing(form, 0)
    one = Assortments([("a",)])
    assert distances.optimal_smoothing(distances.MaxDifference(one), 10) == 1.0
    assert replace(form, smoothing=2.0).mirror_bound == form.mirror_bound == pytest.approx(1.0)
    assert L1(OFFERS).mirror_bound == pytest.approx(np.sqrt(OFFERS.n_coordinates))  # the corner of a box


def test_shares_of_scores_that_are_far_apart() -> None:
    assert softmax(np.array([2000.0, 0.0, 2000.0])).tolist() == [0.5, 0.0, 0.5]
    assert softmax(np.array([-2000.0, -2000.0 + np.log(3.0)])) == pytest.approx([0.25, 0.75])


@pytest.mark.parametrize("wrong", [learners.MirrorDescent, "nobody", 3])
def test_a_learner_is_a_name_or_an_object(wrong: Any) -> None:
    with pytest.raises(ValueError, match="learner"):
        learners.make(wrong, 10)


def test_where_nothing_is_to_be_learned_any_step_will_do() -> None:
    assert step_for(0.0, 2.0, 3.0) == step_for(2.0, 0.0, 3.0) == 1.0
    assert step_for(2.0, 2.0, 4.0) == pytest.approx(0.5)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("name", ["l1", "l1.5", "l2", "l4", "linf", "max-difference", "squared-l2", "squared-l3"])
def test_distances_between_rankings_that_agree_nowhere(name: str, weights: Any) -> None:
    """A ranking and its reverse are as far apart as any two models can be, where a squared norm's ball ends."""
    corners, form = naive.all_vertices(OFFERS), distances.make(name, OFFERS, weights=weights)
    given = brute.Problem(list(OFFERS.offers), corners[-1], np.array(weights or np.ones(4)), np.ones(4))
    assert not (corners[0] * corners[-1]).any()
    assert form.value(corners[0], corners[-1]) == pytest.approx(brute.value(name, corners[0], given))
