"""A small market, and runs of a learner on its choices."""

from typing import Any

from rankstream import Solver, oracles
from rankstream._core.types import Vec
from rankstream.data import simulate
from rankstream.distances import Distance
from rankstream.learners import Learner
from rankstream.solver.loop import State

MARKET = simulate.market(1, n_items=4, n_offers=6, n_test=1)
OFFERS = MARKET.assortments


def play(distance: Distance, learner: Learner[Any], data: list[Vec], seed: int = 0) -> tuple[Solver, State, list[Vec]]:
    solver = Solver(OFFERS, distance, learner, oracles.auto(OFFERS, seed=seed))
    state, duals = solver.init(), []
    for p in data:
        duals.append(learner.play(state.learner))
        state = solver.step(state, p)
    return solver, state, duals


def streamed(rounds: int, per_round: int = 30) -> list[Vec]:
    return [counts.frequencies() for counts, _ in zip(MARKET.stream(per_round, first=300), range(rounds), strict=False)]
