"""Solver: the primal-oracle loop of the paper's Section 4.1, one round at a time."""

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankstream import learners, oracles
from rankstream._core import Mask, Vec, whole_number
from rankstream.certificate import Certificate, certify, confident_gap
from rankstream.data.assortments import Assortments, Space
from rankstream.data.counts import ChoiceCounts, Target, as_target
from rankstream.distances import Distance
from rankstream.learners import Learner
from rankstream.learners.protocol import Round, Sums
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Oracle, Ties


class Snapshot(NamedTuple):
    """The model after some rounds, and its certificate."""

    model: RankingModel
    certificate: Certificate


@dataclass
class State:
    """The whole state of a run: O(N) numbers and the rankings so far. ``step`` updates it in place."""

    learner: Any
    sums: Sums
    round: int = 0
    seen: Mask | None = None
    observations: float = np.nan
    weights: dict[bytes, float] = field(default_factory=dict)

    def copy(self) -> "State":
        """Return an independent copy."""
        twin = copy.copy(self)
        twin.learner, twin.sums = copy.deepcopy(self.learner), copy.deepcopy(self.sums)
        twin.seen = None if self.seen is None else self.seen.copy()
        twin.weights = self.weights.copy()  # shallow is enough: keys are bytes, values are floats
        return twin

    def forget(self, max_weight: float) -> None:
        """Scale the weights of all rounds so far to a total of at most ``max_weight``.

        The means stay as they are, and new rounds move them faster. Certified gaps still hold; regret bounds hold only
        for runs that forget nothing.
        """
        factor = min(1.0, max_weight / self.sums.total_weight) if self.sums.total_weight else 1.0
        self.sums.scale(factor)
        self.weights = {key: weight * factor for key, weight in self.weights.items()}

    @property
    def mae(self) -> float:
        """The mean absolute error of x_bar against p_bar, over the observed offers."""
        error = np.abs(self.sums.vertex - self.sums.frequencies)
        error *= 1.0 / self.sums.total_weight
        return self._mean(error)

    @property
    def latest_mae(self) -> float:
        """The mean absolute error of x_bar against the latest frequencies p_t."""
        return self._mean(np.abs(self.sums.mean_vertex - self.sums.latest)) if self.round else float("nan")

    def _mean(self, error: Vec) -> float:
        if self.seen is None:
            return float(np.add.reduce(error)) / error.size
        return float(error[self.seen].mean()) if self.seen.any() else float("nan")


@dataclass(frozen=True)
class Solver:
    """Estimate a ranking model round by round (paper, Section 4.1).

    In every round the learner plays a dual that prices the mismatch between model and data, and the oracle answers
    with the cheapest ranking. The weighted average of all answers is the model.

    A solver and its states belong to one thread, because oracles keep tables between calls and ``step`` changes the
    state in place. Give every thread its own solver and oracle.

    Examples
    --------
    >>> from rankstream import distances, learners, oracles
    >>> offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    >>> solver = Solver(offers, distances.L2(offers), learners.MirrorDescent(100), oracles.auto(offers))
    >>> state = solver.init()
    >>> for _ in range(100):
    ...     state = solver.step(state, [0.5, 0.5, 0.25, 0.75])
    >>> model, certificate = solver.snapshot(state)
    >>> round(model.predict(("pie", "nothing"))["pie"], 2), certificate.gap < 0.2
    (0.25, True)
    """

    assortments: Assortments | Space
    distance: Distance
    learner: Learner[Any]
    oracle: Oracle

    def __post_init__(self) -> None:
        for part in (self.distance, self.oracle):
            if getattr(part, "assortments", self.assortments) != self.assortments:
                raise ValueError(f"The {type(part).__name__} was created for other assortments: create it for these.")

    def init(self) -> State:
        """Return the state before the first round."""
        size = self.assortments.n_coordinates
        sums = Sums(np.zeros(size), np.zeros(size), np.zeros_like(self.distance.start()))
        return State(self.learner.init(self.distance), sums)

    def step(self, state: State, data: ChoiceCounts | Target | ArrayLike) -> State:
        """Play one round against the current data. Updates the state in place and returns it."""
        target = as_target(self.assortments, data)
        dual = self.learner.play(state.learner)
        if target.seen is not None:
            dual = self.distance.silence(dual, target.seen)
        answer = self.oracle.cheapest(self.distance.costs(dual))
        vertex = self.assortments.vertex(answer.ranking)
        frequencies = target.frequencies
        if target.seen is not None:
            frequencies = np.where(target.seen, frequencies, vertex)

        state.round += 1
        state.seen = target.seen
        state.observations = target.observations
        weight = self.learner.round_weight(state.round)
        state.sums.add(weight, vertex, frequencies, dual)
        state.sums.answer += weight * answer.value
        state.sums.offset += weight * self.distance.offset(dual, frequencies)
        if self.distance.smoothing:
            state.sums.potential += weight * self.distance.potential(dual)
        key = answer.ranking.tobytes()
        state.weights[key] = state.weights.get(key, 0.0) + weight

        played = Round(state.round, weight, dual, vertex, frequencies, state.sums)
        state.learner = self.learner.update(self.distance, state.learner, played)
        return state

    def model(self, state: State) -> RankingModel:
        """Return the weighted average of the answers so far, largest weight first."""
        if not state.round:
            raise ValueError("There is no model before the first round: call step first.")
        if not isinstance(self.assortments, Assortments):
            raise ValueError(f"{type(self.assortments).__name__} has no rankings for a model: read state.sums.")
        pairs = sorted(state.weights.items(), key=lambda pair: (-pair[1], pair[0]))
        items = self.assortments.items
        orders = np.frombuffer(b"".join(key for key, _ in pairs), dtype=np.int64).reshape(len(pairs), len(items))
        weights = np.array([weight for _, weight in pairs]) / state.sums.total_weight
        return RankingModel.from_codes(items, orders, weights, self.assortments.no_choice_code)

    def certificate(
        self, state: State, data: ChoiceCounts | Target | ArrayLike | None = None, truth: ArrayLike | None = None
    ) -> Certificate:
        """Return a certificate at the mean frequencies p_bar, or at ``data``.

        The run goes on as if it had not been called, unless the oracle itself learns from queries (``SearchOracle``).
        """
        if not state.round:
            raise ValueError("There is no certificate before the first round: call step first.")
        at, seen = None, state.seen
        if data is not None:
            target = as_target(self.assortments, data)
            at, seen = target.frequencies, target.seen
            if seen is not None:
                at = np.where(seen, at, state.sums.mean_vertex)
        known = None if truth is None else self.assortments.check_frequencies(truth)
        return certify(state.sums, self.distance, self.oracle, at, known, seen)

    def confident_gap(self, state: State, counts: ChoiceCounts, confidence: float = 0.95) -> float:
        """Bound, with this confidence, how far the model is from the best one for the true probabilities."""
        return confident_gap(self.certificate(state, counts), self.distance, counts, confidence)

    def snapshot(self, state: State) -> Snapshot:
        """Return the model and its certificate."""
        return Snapshot(self.model(state), self.certificate(state))


def make_solver(
    assortments: Assortments,
    distance: str | Distance,
    learner: str | Learner[Any],
    oracle: Oracle | None,
    ties: Ties,
    horizon: int,
    seed: int,
    smoothing: float | None = None,
    weights: tuple[float, ...] | None = None,
) -> Solver:
    """Create a solver from names or objects."""
    if not isinstance(assortments, Assortments):
        raise ValueError(f"The assortments must be an Assortments, not {type(assortments).__name__}.")
    if oracle is None:
        oracle = oracles.auto(assortments, ties, whole_number("seed", seed))
    if not hasattr(oracle, "cheapest"):
        raise ValueError(f"The oracle {oracle!r} has no method cheapest: leave it out, or see oracles.Oracle.")
    form, player = learners.match(distance, learner, assortments, horizon, smoothing, weights)
    return Solver(assortments, form, player, oracle)
