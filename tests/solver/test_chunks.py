"""Compiled chunks play what the solver's own steps play."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankstream as rs
import strategies
from experiments.counting_oracle import CountingOracle
from rankstream import Solver, distances, learners, oracles
from rankstream._core.types import Vec
from rankstream.data import simulate
from rankstream.data.counts import Target
from rankstream.distances import Distance
from rankstream.estimation.methods import PrimalDual
from rankstream.learners import (
    DualAveraging,
    FollowTheLeader,
    Learner,
    MirrorDescent,
    NaiveFrankWolfe,
    StronglyConvexMirrorDescent,
)
from rankstream.solver.loop import State
from rankstream.solver.runs import History, Run, chunk

MARKET = simulate.market(1, n_items=5, n_offers=8, n_test=1)
OFFERS = MARKET.assortments
WEIGHTS = tuple(np.linspace(0.5, 2.0, 8).tolist())
DISTANCES: dict[str, Distance] = {
    f"{name} {smoothing} {'weighted' if weights else ''}": distances.make(name, OFFERS, smoothing, weights)
    for name, smoothing, weights in product(["l1", "l2", "linf"], [0.0, 0.1], [None, WEIGHTS])
} | {"squared-l2": distances.make("squared-l2", OFFERS)}
LEARNERS: dict[str, Learner[Any]] = {
    "md": MirrorDescent(150),
    "md power": MirrorDescent(150, power=1.5),
    "s-md": StronglyConvexMirrorDescent(),
    "ftl": FollowTheLeader(),
    "naive": NaiveFrankWolfe(power=2.0),
    "da": DualAveraging(),
    "da power": DualAveraging(power=1.0, scale=2.0),
}


def fits(distance: Distance, learner: Learner[Any]) -> bool:
    try:
        learner.init(distance)
    except ValueError:
        return False
    return True


ROUNDS = (1, 60, 89) if strategies.IS_COMPILED else (1, 20, 29)  # of three chunks; uncompiled ones take long
PAIRS = [(one, other) for one, other in product(DISTANCES, LEARNERS) if fits(DISTANCES[one], LEARNERS[other])]


def assert_same(solver: Solver, chunked: State, stepped: State) -> None:
    assert chunked.round == stepped.round
    assert chunked.weights.keys() == stepped.weights.keys()
    assert list(chunked.weights.values()) == pytest.approx(list(stepped.weights.values()))
    for name in ("vertex", "frequencies", "dual", "total_weight", "answer", "offset", "potential"):
        mine, its = getattr(chunked.sums, name), getattr(stepped.sums, name)
        assert mine == pytest.approx(its, rel=1e-9, abs=1e-9), name
    assert chunked.sums.moved == stepped.sums.moved
    assert np.array_equal(chunked.sums.latest, stepped.sums.latest)
    one, other = solver.certificate(chunked), solver.certificate(stepped)
    assert one.gap == pytest.approx(other.gap, rel=1e-6, abs=1e-9)
    assert one.dual_regret == pytest.approx(other.dual_regret, rel=1e-6, abs=1e-9)
    assert solver.learner.play(chunked.learner) == pytest.approx(solver.learner.play(stepped.learner), abs=1e-9)


def moving(rounds: int, at_rest: int = 0) -> Vec:
    """Frequencies that settle, without any ties that rounding would break, after some rounds without change."""
    tallies = 5.0 + np.cumsum(np.random.default_rng(4).gamma(3.0, size=(rounds, OFFERS.n_coordinates)), axis=0)
    tallies[:at_rest] = tallies[0]
    shares: Vec = tallies / np.add.reduceat(tallies, OFFERS.indptr[:-1], axis=1)[:, OFFERS.owner]
    return shares


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize(("distance", "learner"), PAIRS)
def test_chunks_and_steps_play_the_same(distance: str, learner: str, moves: bool) -> None:
    rows = moving(sum(ROUNDS), at_rest=7) if moves else moving(1)
    solver = Solver(OFFERS, DISTANCES[distance], LEARNERS[learner], oracles.auto(OFFERS, seed=3))
    compiled = chunk(solver)
    assert compiled is not None
    stepped, chunked = solver.init(), solver.init()
    parts = np.split(rows, np.cumsum(ROUNDS[:2])) if moves else [rows] * 3
    history = [compiled.play(chunked, part, size, -1.0) for part, size in zip(parts, ROUNDS, strict=True)]
    for number, row in enumerate(np.vstack(history)):
        stepped = solver.step(stepped, rows[number % len(rows)])
        value = solver.distance.value(stepped.sums.mean_vertex, stepped.sums.mean_frequencies)
        assert row[:2] == pytest.approx([stepped.mae, stepped.latest_mae], rel=1e-9, abs=1e-12)
        assert row[2] == pytest.approx(value, rel=1e-7, abs=1e-10)
        assert row[3] == len(stepped.weights)
        assert (row[0] == row[1]) or stepped.sums.moved
    assert chunked.round == sum(ROUNDS)
    assert chunked.sums.moved == moves
    assert_same(solver, chunked, stepped)


def test_a_chunk_stops_at_the_tolerance() -> None:
    solver = Solver(OFFERS, distances.L2(OFFERS), DualAveraging(), oracles.auto(OFFERS))
    compiled, state = chunk(solver), solver.init()
    assert compiled is not None
    history = compiled.play(state, MARKET.frequencies()[np.newaxis], 5000, 0.01)
    assert history[-1, 0] <= 0.01 < history[:-1, 0].min()
    assert state.round == len(history)


def test_parts_of_ones_own_are_played_step_by_step() -> None:
    class Own(distances.L2):
        pass

    plain = Solver(OFFERS, distances.L2(OFFERS), DualAveraging(), oracles.auto(OFFERS))
    assert chunk(plain) is not None
    assert chunk(replace(plain, oracle=oracles.DenseOracle(OFFERS))) is None
    assert chunk(replace(plain, distance=distances.KL(OFFERS))) is None
    assert chunk(replace(plain, distance=Own(OFFERS))) is None
    assert chunk(replace(plain, learner=DualAveraging(weighting=float))) is None

    class OwnOracle(oracles.LatticeOracle):
        pass

    assert chunk(replace(plain, oracle=OwnOracle(OFFERS))) is None


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_costs_that_overflow_are_refused_as_in_a_step() -> None:
    distance = distances.L2(OFFERS, weights=(1e100,) * 8)
    for oracle in (oracles.auto(OFFERS), CountingOracle(oracles.auto(OFFERS))):
        run = Run(Solver(OFFERS, distance, MirrorDescent(step=1e300), oracle))
        with pytest.raises(ValueError, match="costs contain NaN or infinity"):
            run.advance_many(Target(MARKET.frequencies()), 20)


def test_estimates_are_the_same_either_way() -> None:
    p = MARKET.frequencies()
    slow_oracle = CountingOracle(oracles.auto(OFFERS))
    quick = rs.estimate(OFFERS, p, method=PrimalDual(tolerance_mae=2e-3, certify_every=30))
    slow = rs.estimate(OFFERS, p, method=PrimalDual(tolerance_mae=2e-3, certify_every=30, oracle=slow_oracle))
    assert quick.rounds == slow.rounds
    assert quick.model.orders.tolist() == slow.model.orders.tolist()
    assert quick.history.mae == pytest.approx(slow.history.mae)
    assert np.isfinite(quick.history.gap).tolist() == np.isfinite(slow.history.gap).tolist()
    by_gap = rs.estimate(OFFERS, p, method=PrimalDual(gap=0.05))
    assert by_gap.converged
    assert by_gap.rounds % 10 == 0


@given(st.data())
def test_blocks_constant_rounds_and_single_ones_follow_each_other(data: st.DataObject) -> None:
    """Whatever the order, a compiled run and one on objects have the same state and history."""
    oracle, distance = oracles.auto(OFFERS), distances.L2(OFFERS, 0.05)
    players: list[Learner[Any]] = [DualAveraging(), FollowTheLeader(), NaiveFrankWolfe()]
    learner = data.draw(st.sampled_from(players))
    every = data.draw(st.sampled_from([None, 1, 4]))
    quick = Run(Solver(OFFERS, distance, learner, oracle), 0.0, certify_every=every)
    slow = Run(Solver(OFFERS, distance, learner, CountingOracle(oracle)), 0.0, certify_every=every)
    rows, buffer = moving(60), np.empty((9, OFFERS.n_coordinates))
    for kind in data.draw(st.lists(st.sampled_from(["block", "constant", "one"]), min_size=1, max_size=6)):
        start, size = data.draw(st.integers(0, 50)), data.draw(st.integers(1, 9))
        for run in (quick, slow):
            if kind == "block":
                buffer[:size] = rows[start : start + size]
                run.advance_block(buffer[:size], np.arange(float(size)))
            elif kind == "constant":
                run.advance_many(Target(rows[start], None, float(start)), size)
            else:
                run.advance(rows[start])
    assert_same(quick.solver, quick.state, slow.state)
    assert_same_history(quick.result().history, slow.result().history)


def assert_same_history(one: History, other: History) -> None:
    for name in ("observations", "mae", "latest_mae", "distance", "rankings", "gap"):
        mine, its = getattr(one, name), getattr(other, name)
        assert mine == pytest.approx(its, rel=1e-7, abs=1e-9, nan_ok=True), name


@pytest.mark.parametrize("options", [{}, {"certify_every": 30}, {"gap": 0.3}])
def test_a_stream_known_in_advance_is_estimated_as_its_rows(options: dict[str, Any]) -> None:
    rows = moving(700)
    options = {"tolerance_mae": 0.02, **options}
    whole = rs.estimate(OFFERS, rows, method=PrimalDual(**options))
    slow_oracle = CountingOracle(oracles.auto(OFFERS))
    by_objects = rs.estimate(OFFERS, rows, method=PrimalDual(oracle=slow_oracle, **options))
    one_by_one = rs.estimate(OFFERS, iter(rows), method=PrimalDual(**options))
    assert whole.converged
    assert 1 < whole.rounds < 700
    for other in (by_objects, one_by_one):
        assert whole.rounds == other.rounds
        assert whole.model.orders.tolist() == other.model.orders.tolist()
        assert_same_history(whole.history, other.history)


def test_a_run_stops_in_the_middle_of_a_block_and_can_be_resumed() -> None:
    rows = moving(600)
    solver = Solver(OFFERS, distances.L2(OFFERS), DualAveraging(), oracles.auto(OFFERS))
    run, whole = Run(solver, tolerance=0.02), Run(solver, tolerance=0.0)
    assert run.advance_block(rows, np.arange(600.0))
    stopped = run.state.round
    assert 0 < stopped < 600
    assert run.last["observations"] == run.state.observations == stopped - 1
    while run.state.round < 600:
        run.advance_block(rows[run.state.round :])
    assert not whole.advance_block(rows)
    assert_same(solver, run.state, whole.state)
    assert not whole.advance_block(rows[:0])
    with pytest.raises(ValueError, match="give one per row"):
        run.advance_block(rows, np.zeros(3))


@pytest.mark.parametrize(
    ("row", "value", "message"),
    [(5, np.nan, "^Row 5: Frequency nan at coordinate 2"), (7, 0.0, "^Row 7: The frequencies of offer 0 .* sum to")],
)
def test_a_wrong_row_is_named(row: int, value: float, message: str) -> None:
    rows = moving(9)
    rows[row, 2] = value
    with pytest.raises(ValueError, match=message):
        rs.estimate(OFFERS, rows)
    with pytest.raises(ValueError, match=r"must have shape \(rounds, \d+\), one column per coordinate; got \(9, 3\)"):
        rs.estimate(OFFERS, rows[:, :3])
    with pytest.raises(ValueError, match="ended before the first round"):
        rs.estimate(OFFERS, rows[:0])


def test_constant_rounds_may_follow_other_data() -> None:
    solver = Solver(OFFERS, distances.L2(OFFERS), learners.DualAveraging(), oracles.auto(OFFERS))
    run = Run(solver, tolerance=0.0)
    uniform = 1.0 / np.diff(OFFERS.indptr)[OFFERS.owner]
    for frequencies in (MARKET.frequencies(), uniform):
        run.advance_many(Target(frequencies), 40)
    history = run.result().history
    assert history.latest_mae[:40].tolist() == history.mae[:40].tolist()
    assert history.latest_mae[-1] != history.mae[-1]
