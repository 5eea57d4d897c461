"""The solver beyond choice: matrix games, whose values a linear program knows."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from rankstream import Solver, learners
from rankstream._core.types import Vec
from rankstream.oracles import Answer


class Game:
    smoothing, smooth, affine, lipschitz, mirror_bound = 0.0, False, True, 0.0, np.inf

    def __init__(self, matrix: Vec) -> None:
        self.matrix = matrix
        self.width = self.largest_potential = float(np.log(matrix.shape[1]))
        self.grad_bound = float(np.abs(matrix).max())

    def start(self) -> Vec:
        return np.full(self.matrix.shape[1], 1.0 / self.matrix.shape[1])

    def potential(self, dual: Vec) -> float:
        return float(dual @ np.log(np.maximum(dual, 1e-300)))

    def mirror(self, dual: Vec) -> Vec:
        return np.asarray(1.0 + np.log(np.maximum(dual, 1e-300)))

    def image(self, slope: Vec, _: Vec) -> Vec:
        return -slope

    def prox(self, slope: Vec) -> Vec:
        weights = np.exp(slope.min() - slope)
        return np.asarray(weights / weights.sum())

    def costs(self, dual: Vec) -> Vec:
        return np.asarray(self.matrix @ dual)

    def offset(self, *_: Any) -> float:
        return 0.0

    def pull(self, point: Vec, *_: Any) -> Vec:
        return np.asarray(self.matrix.T @ point)

    def respond(self, point: Vec, _: Any) -> Vec:
        return np.asarray(np.eye(self.matrix.shape[1])[np.argmax(self.matrix.T @ point)])

    def value(self, point: Vec, _: Any) -> float:
        return float((self.matrix.T @ point).max())


class Rows:
    """The simplex of row strategies, and the oracle over it."""

    def __init__(self, size: int) -> None:
        self.n_coordinates = size

    def vertex(self, ranking: Any) -> Vec:
        return np.asarray(np.eye(self.n_coordinates)[int(ranking[0])])

    def check_frequencies(self, _: Any) -> Vec:
        return np.zeros(self.n_coordinates)

    def cheapest(self, costs: Vec) -> Answer:
        row = int(np.argmin(costs))
        return Answer(np.array([row]), float(costs[row]), float(costs[row]))


def value_of(matrix: Vec) -> float:
    """The value of the game by a linear program."""
    rows, columns = matrix.shape
    objective = np.append(np.zeros(rows), 1.0)
    below = np.hstack([matrix.T, -np.ones((columns, 1))])
    total = np.append(np.ones(rows), 0.0)[None]
    bounds = [(0, None)] * rows + [(None, None)]
    return float(linprog(objective, below, np.zeros(columns), total, [1.0], bounds).fun)


@pytest.mark.parametrize("learner", [learners.MirrorDescent(2000), learners.DualAveraging()])
@pytest.mark.parametrize("seed", range(5))
def test_matrix_games_are_solved_and_certified(learner: Any, seed: int) -> None:
    matrix = np.random.default_rng(seed).normal(size=(4, 3))
    rows = Rows(4)
    solver: Solver = Solver(rows, Game(matrix), learner, rows)  # type: ignore[arg-type]
    state = solver.init()
    for _ in range(2000):
        state = solver.step(state, 0.0)
    certificate = solver.certificate(state)
    assert certificate.lower <= value_of(matrix) <= certificate.upper
    assert certificate.gap <= learner.regret_bound(solver.distance, 2000) + 1e-9
    with pytest.raises(ValueError, match="Rows has no rankings for a model"):
        solver.model(state)


def test_rock_paper_scissors_is_worth_nothing() -> None:
    assert value_of(np.array([[0.0, 1, -1], [-1, 0, 1], [1, -1, 0]])) == pytest.approx(0.0, abs=1e-9)
