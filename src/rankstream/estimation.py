"""estimate: run the solver on data until the model is good enough, and keep the history."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankstream import distances, learners, oracles
from rankstream._types import Vec
from rankstream.assortments import Assortments
from rankstream.certificate import Certificate
from rankstream.counts import ChoiceCounts, Target, as_target
from rankstream.distances import Distance
from rankstream.learners import Learner
from rankstream.model import RankingModel
from rankstream.oracles import Oracle, Ties
from rankstream.solver import Solver, State

Stop = Literal["mae", "gap"]


@dataclass(frozen=True)
class History:
    """One entry per round; ``gap`` is NaN where it was not certified, ``observations`` where they are not known."""

    observations: Vec
    mae: Vec
    distance: Vec
    rankings: Vec
    gap: Vec


@dataclass(frozen=True)
class Estimate:
    """What an estimation found: the model, what is proven about it, and how it got there."""

    model: RankingModel
    certificate: Certificate
    rounds: int
    converged: bool
    history: History


@dataclass
class Run:
    """A solver at work: one ``advance`` per round, and a ``result`` at any time."""

    solver: Solver
    tolerance: float = 1e-3
    stop: Stop = "mae"
    certify_every: int | None = None
    state: State = field(init=False)
    converged: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if not self.tolerance >= 0.0:
            raise ValueError(f"The tolerance {self.tolerance} must be a number >= 0.")
        if self.stop not in ("mae", "gap"):
            raise ValueError(f"There is no stopping rule {self.stop!r}: choose 'mae' or 'gap'.")
        if self.certify_every is not None and self.certify_every < 1:
            raise ValueError(f"certify_every is {self.certify_every}: it must be at least 1 round.")
        if self.certify_every is None and self.stop == "gap":
            self.certify_every = 10
        self.state = self.solver.init()
        self._rows: list[tuple[float, float, float, float, float]] = []

    def advance(self, data: ChoiceCounts | Target | ArrayLike) -> bool:
        """Play one round; True once the tolerance is met."""
        state = self.solver.step(self.state, data)
        mae = state.mae
        distance = self.solver.distance.value(state.residual)
        gap = np.nan
        if self.certify_every is not None and state.round % self.certify_every == 0:
            gap = self.solver.certificate(state).gap
        self._rows.append((state.observations, mae, distance, len(state.weights), gap))
        self.converged = (mae if self.stop == "mae" else gap) <= self.tolerance
        return self.converged

    @property
    def last(self) -> tuple[float, float, float, float, float]:
        """The last round's observations, mae, distance, number of rankings, and gap."""
        return self._rows[-1]

    def result(self) -> Estimate:
        """The model so far, certified."""
        model, certificate = self.solver.snapshot(self.state)
        columns = np.array(self._rows).T.copy()
        columns[4, -1] = certificate.gap
        return Estimate(model, certificate, self.state.round, self.converged, History(*columns))


def estimate(
    assortments: Assortments,
    data: ChoiceCounts | ArrayLike | Iterable[ChoiceCounts | ArrayLike],
    *,
    distance: str | Distance = "l2",
    learner: str | Learner[Any] = "mirror-descent",
    oracle: Oracle | None = None,
    ties: Ties = "random",
    tolerance: float = 1e-3,
    stop: Stop = "mae",
    max_rounds: int = 10_000,
    certify_every: int | None = None,
    seed: int = 0,
) -> Estimate:
    """Estimate a ranking model from frequencies, from counts, or from an iterable that yields either once a round.

    It stops when MAE(x_bar, p_bar) <= ``tolerance`` (``stop="gap"``: when the certified gap is), after ``max_rounds``,
    which is also the horizon T where the learner needs one, or when the data end. Counts leave offers that nobody
    has seen out of distance, error and certificate until their first observation.

    >>> offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    >>> fit = estimate(offers, [0.5, 0.5, 0.25, 0.75])
    >>> fit.converged, round(fit.model.predict(("tea", "nothing"))["tea"], 2)
    (True, 0.5)
    """
    if max_rounds < 1:
        raise ValueError(f"max_rounds is {max_rounds}: it must be at least 1.")
    solver = make_solver(assortments, distance, learner, oracle, ties, max_rounds, seed)
    run = Run(solver, tolerance, stop, certify_every)
    for target, _ in zip(_targets(assortments, data), range(max_rounds), strict=False):
        if run.advance(target):
            break
    if not run.state.round:
        raise ValueError("The data ended before the first round: give at least one frequency vector or ChoiceCounts.")
    return run.result()


def make_solver(
    assortments: Assortments,
    distance: str | Distance,
    learner: str | Learner[Any],
    oracle: Oracle | None,
    ties: Ties,
    horizon: int,
    seed: int,
) -> Solver:
    """A solver from names or objects."""
    if not isinstance(assortments, Assortments):
        raise ValueError(f"The assortments must be an Assortments, not {type(assortments).__name__}.")
    if oracle is None:
        oracle = oracles.auto(assortments, ties, seed)
    return Solver(assortments, distances.make(distance, assortments), learners.make(learner, horizon), oracle)


def _targets(assortments: Assortments, data: Any) -> Iterator[ChoiceCounts | Target | ArrayLike]:
    """The same target for ever, or one per round as they come."""
    if isinstance(data, ChoiceCounts) or _is_vector(data):
        return repeat(as_target(assortments, data))
    if not isinstance(data, Iterable):
        raise ValueError(
            f"The data must be frequencies, ChoiceCounts, or an iterable of them, not {type(data).__name__}."
        )
    return iter(data)


def _is_vector(data: Any) -> bool:
    if isinstance(data, np.ndarray):
        return data.ndim < 2
    return isinstance(data, list | tuple) and all(isinstance(value, float | int | np.number) for value in data)
