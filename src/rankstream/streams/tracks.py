"""Tracks: a solver that follows counts as they change, a few rounds at a time, for as long as choices come."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rankstream._core.types import Label, Vec
from rankstream.data.counts import ChoiceCounts
from rankstream.solver.chunks import chunk
from rankstream.solver.loop import Solver, State
from rankstream.solver.make import make_solver
from rankstream.streams.growth import grow

NEGLIGIBLE = 1e-17  # a ranking whose share of the model is below this changes no probability in floating point


@dataclass
class Track:
    """A solver, its state, and the counts it follows."""

    solver: Solver
    state: State
    counts: ChoiceCounts

    def play(self, rounds: int, memory: int) -> None:
        """Play so many rounds on the counts as they are, with all earlier ones counting for at most ``memory``."""
        state, target = self.state, self.counts.target()
        state.forget(memory * self.solver.learner.round_weight(state.round + 1))
        least = NEGLIGIBLE * state.sums.total_weight
        state.weights = {key: weight for key, weight in state.weights.items() if weight >= least}
        compiled = chunk(self.solver) if target.seen is None else None
        if compiled is None:
            for _ in range(rounds):
                self.solver.step(state, target)
        else:
            compiled.play(state, target.frequencies[np.newaxis], rounds, -1.0)
            state.seen, state.observations = None, target.observations

    def log_probabilities(self, epsilon: float) -> Vec:
        """The logarithm of every choice probability, with ``epsilon`` of the uniform choice mixed in.

        Before the first round the uniform choice is all there is.
        """
        offers = self.counts.assortments
        uniform = (1.0 / np.diff(offers.indptr))[offers.owner]
        shares = self.state.sums.mean_vertex if self.state.round else uniform
        return np.log((1.0 - epsilon) * shares + epsilon * uniform)

    def extend(self, offers: Iterable[Iterable[Label]]) -> "Track":
        """The track over more offers."""
        counts = self.counts.extend(offers)
        return Track(*grow(self.solver, self.state, counts.assortments), counts)


def start_track(counts: ChoiceCounts, distance: str, learner: str, memory: int, seed: int) -> Track:
    """A track that begins; its learner's horizon is twice the memory, so that its steps fit what is remembered."""
    solver = make_solver(counts.assortments, distance, learner, None, "random", 2 * memory, seed)
    return Track(solver, solver.init(), counts)
