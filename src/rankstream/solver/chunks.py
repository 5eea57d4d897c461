"""Rounds in compiled chunks: what the built-in parts can do without coming back to Python between rounds."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.distances import L1, L2, HighNorm, LInf
from rankstream.distances import domain_kernels as domains
from rankstream.learners import (
    DualAveraging,
    FollowTheLeader,
    MirrorDescent,
    NaiveFrankWolfe,
    StronglyConvexMirrorDescent,
)
from rankstream.learners.mirror_descent import Averaged, Moved
from rankstream.oracles import LatticeOracle
from rankstream.oracles.tables.lattice import NOT_FINITE, UNFORCED
from rankstream.solver import chunk_kernels as kernels
from rankstream.solver.loop import Solver, State

LEARNERS = {
    MirrorDescent: kernels.CONSTANT_STEP,
    StronglyConvexMirrorDescent: kernels.FALLING_STEP,
    FollowTheLeader: kernels.LEADER,
    NaiveFrankWolfe: kernels.NAIVE,
    DualAveraging: kernels.AVERAGING,
}


@dataclass(frozen=True)
class Chunk:
    """A solver whose parts are all built in, ready to play many rounds in one compiled call.

    It plays what ``Solver.step`` plays, with the same oracle kernels; sums are added up in another order, so that
    results agree to rounding.
    """

    solver: Solver
    oracle: LatticeOracle
    domain: int
    learner: int
    settings: Vec
    scale: Vec

    def play(self, state: State, frequencies: Vec, rounds: int, tolerance: float) -> Vec:
        """Play up to ``rounds`` rounds, until the error is at most ``tolerance``.

        ``frequencies`` is a matrix: a row for each round, or a single one for all of them. Returns one row per round
        played: error against p_bar, error against p_t, distance, and rankings so far.
        """
        sums, before = state.sums, state.round
        dual, memory, squares = _read(self.learner, state)
        settings = self.settings.copy()
        if self.learner == kernels.CONSTANT_STEP:
            settings[kernels.STEP] = state.learner.step
        totals = np.array([before, sums.total_weight, sums.answer, sums.offset, sums.potential, squares])
        rankings = np.empty((rounds, self.oracle.assortments.n_items), dtype=np.int64)
        history = np.empty((rounds, 4))
        at_rest = sums.rounds_at_rest(frequencies[:rounds])
        if at_rest and len(frequencies) == 1:
            at_rest = rounds
        data: Any = (frequencies, at_rest, tolerance)
        problem: Any = (self.domain, self.learner, settings, self.scale, *data, *self.oracle.tables, UNFORCED)
        space: Any = (np.empty((3, frequencies.shape[1])), np.empty((2, dual.size)))
        running: Any = (totals, sums.vertex, sums.frequencies, sums.dual, dual, memory, *space, rankings, history)
        played = kernels.play_rounds(*problem, *running)
        if not played:
            raise ValueError(NOT_FINITE)
        state.round = int(totals[kernels.ROUND])
        sums.total_weight, sums.answer, sums.offset, sums.potential = totals[1:5].tolist()
        sums.moved = played > at_rest
        sums.latest = frequencies[min(played, len(frequencies)) - 1].copy()
        history[:played, kernels.RANKINGS] = self._collect(state, rankings[:played])
        _write(self.learner, state, dual, memory, float(totals[kernels.SQUARES]))
        return history[:played]

    def _collect(self, state: State, rankings: Codes) -> list[int]:
        """Add the latest rounds' rankings to the state, and count after each how many different ones there are."""
        found, counts, first = state.weights, [], state.round - len(rankings) + 1
        keys: Any = rankings.view(np.dtype((np.void, rankings[0].nbytes))).ravel().tolist()
        for number, key in enumerate(keys, start=first):
            found[key] = found.get(key, 0.0) + self.solver.learner.round_weight(number)
            counts.append(len(found))
        return counts


def chunk(solver: Solver) -> Chunk | None:
    """The solver in compiled form, or None where one of its parts is not built in."""
    distance: Any = solver.distance
    learner: Any = solver.learner
    oracle = solver.oracle
    if type(learner) not in LEARNERS or type(oracle) is not LatticeOracle or type(solver) is not Solver:
        return None
    radius = 1.0
    if type(distance) in (HighNorm, L2) and distance.q == 2.0:
        domain, radius = domains.BALL, distance.radius
    elif type(distance) in (L1, LInf):
        domain = domains.BOX if isinstance(distance, L1) else domains.SIMPLEX
    else:
        return None
    if learner.weighting is not None:
        return None
    firmness = learner.firmness(distance) if isinstance(learner, DualAveraging) else 0.0
    settings = np.array([distance.smoothing, radius, 0.0, learner.power, firmness])
    scale = np.ones(oracle.assortments.n_coordinates) if distance.scale is None else distance.scale
    return Chunk(solver, oracle, domain, LEARNERS[type(learner)], settings, scale)


def _read(learner: int, state: State) -> tuple[Vec, Vec, float]:
    """Copies of the learner's next dual and memory, and its sum of squared weights."""
    if learner == kernels.AVERAGING:
        return state.learner.dual.copy(), state.learner.pulls.copy(), state.learner.squares
    if learner in (kernels.CONSTANT_STEP, kernels.FALLING_STEP):
        return state.learner.dual.copy(), state.learner.image.copy(), 0.0
    return state.learner.copy(), np.zeros(0), 0.0


def _write(learner: int, state: State, dual: Vec, memory: Vec, squares: float) -> None:
    if learner == kernels.AVERAGING:
        state.learner = Averaged(dual, memory, squares)
    elif learner in (kernels.CONSTANT_STEP, kernels.FALLING_STEP):
        state.learner = Moved(dual, memory, state.learner.step)
    else:
        state.learner = dual
