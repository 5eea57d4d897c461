"""Compiled chunks play what the solver's own steps play."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import rankstream as rs
from rankstream import Solver, distances, learners, oracles, simulate
from rankstream.chunks import chunk
from rankstream.counts import Target
from rankstream.distances import Distance
from rankstream.estimation import Run
from rankstream.learners import (
    DualAveraging,
    FollowTheLeader,
    Learner,
    MirrorDescent,
    NaiveFrankWolfe,
    StronglyConvexMirrorDescent,
)

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


PAIRS = [(one, other) for one, other in product(DISTANCES, LEARNERS) if fits(DISTANCES[one], LEARNERS[other])]


@pytest.mark.parametrize(("distance", "learner"), PAIRS)
def test_chunks_and_steps_play_the_same(distance: str, learner: str) -> None:
    p = MARKET.frequencies()
    solver = Solver(OFFERS, DISTANCES[distance], LEARNERS[learner], oracles.auto(OFFERS, seed=3))
    compiled = chunk(solver)
    assert compiled is not None
    stepped, chunked = solver.init(), solver.init()
    rows = np.vstack([compiled.play(chunked, p, rounds, -1.0) for rounds in (1, 60, 89)])
    for row in rows:
        stepped = solver.step(stepped, p)
        assert row[0] == pytest.approx(stepped.mae, rel=1e-9, abs=1e-12)
        value = solver.distance.value(stepped.sums.mean_vertex, stepped.sums.mean_frequencies)
        assert row[1] == pytest.approx(value, rel=1e-7, abs=1e-10)
        assert row[2] == len(stepped.weights)
    assert chunked.round == stepped.round == 150
    assert chunked.weights.keys() == stepped.weights.keys()
    for name in ("vertex", "frequencies", "dual", "total_weight", "answer", "offset", "potential"):
        mine, its = getattr(chunked.sums, name), getattr(stepped.sums, name)
        assert mine == pytest.approx(its, rel=1e-9, abs=1e-9), name
    assert solver.certificate(chunked).gap == pytest.approx(solver.certificate(stepped).gap, rel=1e-6, abs=1e-9)
    assert solver.learner.play(chunked.learner) == pytest.approx(solver.learner.play(stepped.learner), abs=1e-9)


def test_a_chunk_stops_at_the_tolerance() -> None:
    solver = Solver(OFFERS, distances.L2(OFFERS), DualAveraging(), oracles.auto(OFFERS))
    compiled, state = chunk(solver), solver.init()
    assert compiled is not None
    history = compiled.play(state, MARKET.frequencies(), 5000, 0.01)
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


def test_estimates_are_the_same_either_way() -> None:
    p = MARKET.frequencies()
    quick = rs.estimate(OFFERS, p, tolerance=2e-3, certify_every=30)
    slow = rs.estimate(OFFERS, p, tolerance=2e-3, certify_every=30, oracle=oracles.CountingOracle(oracles.auto(OFFERS)))
    assert quick.rounds == slow.rounds
    assert quick.model.orders.tolist() == slow.model.orders.tolist()
    assert quick.history.mae == pytest.approx(slow.history.mae)
    assert np.isfinite(quick.history.gap).tolist() == np.isfinite(slow.history.gap).tolist()
    by_gap = rs.estimate(OFFERS, p, stop="gap", tolerance=0.05)
    assert by_gap.converged
    assert by_gap.rounds % 10 == 0


def test_a_run_whose_data_moved_goes_on_step_by_step() -> None:
    solver = Solver(OFFERS, distances.L2(OFFERS), learners.DualAveraging(), oracles.auto(OFFERS))
    run = Run(solver, tolerance=0.0)
    uniform = 1.0 / np.diff(OFFERS.indptr)[OFFERS.owner]
    for frequencies in (MARKET.frequencies(), uniform):
        run.advance_many(Target(frequencies), 40)
    history = run.result().history
    assert history.latest_mae[:40].tolist() == history.mae[:40].tolist()
    assert history.latest_mae[-1] != history.mae[-1]
