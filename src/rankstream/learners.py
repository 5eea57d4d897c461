"""The dual players: online learners that price the mismatch between model and data (paper, Section 4.2)."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol, TypeVar

from rankstream._types import Vec
from rankstream.distances import Distance
from rankstream.rounds import Round

S = TypeVar("S")


class Learner(Protocol[S]):
    """A dual player: frozen settings, and a state of its own that only it understands."""

    def init(self, distance: Distance) -> S:
        """The state before the first round, or a ValueError where the learner does not fit the distance."""

    def play(self, state: S) -> Vec:
        """The dual y_t of the coming round."""

    def update(self, distance: Distance, state: S, played: Round) -> S:
        """The state after a round; y_{t+1} uses p_t."""

    def round_weight(self, number: int) -> float:
        """The averaging weight of round t = 1, 2, ..."""


@dataclass(frozen=True)
class MirrorDescent:
    """Online mirror descent with the textbook constant step for a horizon T (Theorem "OMD").

    After t <= T rounds the dual regret is at most
    width / (step * total_weight) + step * grad_bound^2 * sum of squared weights / (2 * total_weight),
    which is sqrt(2 * width * grad_bound^2 / T) at t = T with equal weights.
    """

    horizon: int = 10_000
    step: float | None = None

    def __post_init__(self) -> None:
        if self.horizon < 1:
            raise ValueError(f"The horizon {self.horizon} must be at least 1 round.")
        if self.step is not None and not self.step > 0.0:
            raise ValueError(f"The step size {self.step} must be positive.")

    def step_size(self, distance: Distance) -> float:
        """sqrt(2 * width / (grad_bound^2 * sum of squared weights)), unless a step was given."""
        if self.step is not None:
            return self.step
        return sqrt(2.0 * distance.width / (distance.grad_bound**2 * self.horizon))

    def init(self, distance: Distance) -> tuple[Vec, float]:
        """The dual of least potential, and the step size."""
        return distance.start(), self.step_size(distance)

    def play(self, state: tuple[Vec, float]) -> Vec:
        """The current dual."""
        return state[0]

    def update(self, distance: Distance, state: tuple[Vec, float], played: Round) -> tuple[Vec, float]:
        """One prox step along the payoff's gradient."""
        dual, step = state
        slope = distance.lift(played.frequencies - played.vertex)
        slope = slope * (step * played.weight)
        if distance.smoothing:
            slope += step * played.weight * distance.smoothing * distance.mirror(dual)
        slope -= distance.mirror(dual)
        return distance.prox(slope), step

    def round_weight(self, number: int) -> float:  # noqa: ARG002
        """Every round counts the same."""
        return 1.0


def make(name: str | Learner[Any], horizon: int) -> Learner[Any]:
    """A learner by its name with the horizon set, or the object itself.

    >>> make("mirror-descent", 500)
    MirrorDescent(horizon=500, step=None)
    """
    if not isinstance(name, str):
        return name
    if name not in BY_NAME:
        raise ValueError(f"There is no learner {name!r}: choose one of {', '.join(map(repr, BY_NAME))}.")
    return BY_NAME[name](horizon)


BY_NAME = {"mirror-descent": MirrorDescent}
