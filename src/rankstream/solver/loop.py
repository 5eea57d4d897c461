"""Solver: the primal-oracle loop of the paper's Section 4.1, one round at a time; ``make_solver`` for names."""

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankstream import learners, oracles
from rankstream._core.arguments import whole_number
from rankstream._core.old_names import old_keywords
from rankstream._core.types import Mask, Vec
from rankstream.certificate import Certificate, certify, confident_gap
from rankstream.data.assortments import Assortments, Space
from rankstream.data.counts import ChoiceCounts, Target, as_target
from rankstream.distances import Distance
from rankstream.learners import Learner
from rankstream.learners.rounds import Round, Sums
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Oracle, Ties


class Snapshot(NamedTuple):
    """The model after some rounds, and what is proven about it."""

    model: RankingModel
    certificate: Certificate


@dataclass
class State:
    """Everything a run remembers: O(N) numbers and the rankings so far. ``step`` updates it in place."""

    learner: Any
    sums: Sums
    round: int = 0
    seen: Mask | None = None
    observations: float = np.nan
    weights: dict[bytes, float] = field(default_factory=dict)

    def copy(self) -> "State":
        """A state that can go its own way."""
        other = copy.copy(self)
        other.learner, other.sums = copy.deepcopy(self.learner), copy.deepcopy(self.sums)
        other.seen = None if self.seen is None else self.seen.copy()
        other.weights = self.weights.copy()  # keys are bytes: nothing below them needs a copy
        return other

    def forget(self, most: float) -> None:
        """Let the rounds so far count for at most ``most`` together: the means stay, new rounds move them faster.

        Certified gaps hold as before; regret bounds are for runs that forget nothing.
        """
        factor = most / self.sums.total_weight if self.sums.total_weight > most else 1.0
        self.sums.scale(factor)
        self.weights = {key: weight * factor for key, weight in self.weights.items()}

    @property
    def mae(self) -> float:
        """The mean absolute error of x_bar against p_bar, over the offers seen so far."""
        error = np.abs(self.sums.vertex - self.sums.frequencies)
        error *= 1.0 / self.sums.total_weight
        return self._mean(error)

    @property
    def latest_mae(self) -> float:
        """The mean absolute error of x_bar against the latest frequencies p_t: the stopping rule's other reading."""
        return self._mean(np.abs(self.sums.mean_vertex - self.sums.latest)) if self.round else float("nan")

    def _mean(self, error: Vec) -> float:
        if self.seen is None:
            return float(np.add.reduce(error)) / error.size
        return float(error[self.seen].mean()) if self.seen.any() else float("nan")


@dataclass(frozen=True)
class Solver:
    """Counts define a target; a dual player prices the mismatch; an oracle answers with the cheapest ranking.

    A solver and its states belong to one thread, because oracles keep tables between calls and ``step`` changes the
    state in place. Give every thread a solver with an oracle of its own.

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
        """Play one round against the data as they are now; the state is updated and returned."""
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
        """Return the weighted average of the answers so far, heaviest ranking first."""
        if not state.round:
            raise ValueError("There is no model before the first round: call step first.")
        if not isinstance(self.assortments, Assortments):
            raise ValueError(f"{type(self.assortments).__name__} has no rankings for a model: read state.sums.")
        found = sorted(state.weights.items(), key=lambda pair: (-pair[1], pair[0]))
        codes, items = np.frombuffer(b"".join(key for key, _ in found), dtype=np.int64), self.assortments.items
        weights = np.array([weight for _, weight in found]) / state.sums.total_weight
        orders = codes.reshape(len(found), len(items))
        return RankingModel.from_codes(items, orders, weights, self.assortments.no_choice_code)

    def certificate(
        self, state: State, data: ChoiceCounts | Target | ArrayLike | None = None, truth: ArrayLike | None = None
    ) -> Certificate:
        """What is proven: at p_bar, or at other frequencies on request.

        It does not disturb the run, unless the oracle itself learns from being asked, as ``SearchOracle`` does.
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

    @old_keywords(level="confidence")
    def confident_gap(self, state: State, counts: ChoiceCounts, confidence: float = 0.95) -> float:
        """With this confidence, how far the model can be from the best one for the true probabilities."""
        return confident_gap(self.certificate(state, counts), self.distance, counts, confidence)

    def snapshot(
        self, state: State, data: ChoiceCounts | Target | ArrayLike | None = None, truth: ArrayLike | None = None
    ) -> Snapshot:
        """Return the model and its certificate."""
        return Snapshot(self.model(state), self.certificate(state, data, truth))


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
    """A solver from names or objects."""
    if not isinstance(assortments, Assortments):
        raise ValueError(f"The assortments must be an Assortments, not {type(assortments).__name__}.")
    if learner == "fully-corrective":
        raise ValueError(f"The learner {learner!r} does not work round by round: use it with estimate.")
    if oracle is None:
        oracle = oracles.auto(assortments, ties, whole_number("seed", seed))
    if not hasattr(oracle, "cheapest"):
        raise ValueError(f"The oracle {oracle!r} has no method cheapest: leave it out, or see oracles.Oracle.")
    form, player = learners.match(distance, learner, assortments, horizon, smoothing, weights)
    return Solver(assortments, form, player, oracle)
