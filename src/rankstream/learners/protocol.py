"""What a learner is: an online player of the dual, and the averaging weights that go with it."""

from dataclasses import dataclass, field
from math import sqrt
from typing import Protocol, TypeVar

import numpy as np

from rankstream._types import Vec
from rankstream.distances.protocol import Distance
from rankstream.rounds import Round

S = TypeVar("S")


class Learner(Protocol[S]):
    """A dual player (paper, Section 4.2): frozen settings, and a state of its own that only it understands."""

    @property
    def needs_smoothing(self) -> bool:
        """Whether its guarantee needs a distance with smoothing."""

    def init(self, distance: Distance) -> S:
        """The state before the first round, or a ValueError where the learner does not fit the distance."""

    def play(self, state: S) -> Vec:
        """The dual y_t of the coming round."""

    def update(self, distance: Distance, state: S, played: Round) -> S:
        """The state after a round; y_{t+1} uses p_t."""

    def round_weight(self, number: int) -> float:
        """The averaging weight of round t = 1, 2, ..."""

    def regret_bound(self, distance: Distance, rounds: int) -> float:
        """A bound on the dual regret R_y after so many rounds; infinite where none is known."""


@dataclass(frozen=True)
class PowerWeights:
    """Averaging weights t^power: 0 counts every round the same, 1 gives late rounds more."""

    power: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        if not 0.0 <= self.power < np.inf:
            raise ValueError(f"The averaging power {self.power} must be a finite number >= 0.")

    def round_weight(self, number: int) -> float:
        """The weight t^power."""
        if self.power == 0.0:
            return 1.0
        return float(number) if self.power == 1.0 else float(number) ** self.power

    def total(self, rounds: int) -> float:
        """The sum of the weights."""
        return power_sum(self.power, rounds)

    def squares(self, rounds: int) -> float:
        """The sum of their squares."""
        return power_sum(2.0 * self.power, rounds)


def power_sum(power: float, rounds: int) -> float:
    """1^power + 2^power + ... + rounds^power."""
    n = float(rounds)
    if power == 0.0:
        return n
    if power == 1.0:
        return n * (n + 1.0) / 2.0
    if power == 2.0:
        return n * (n + 1.0) * (2.0 * n + 1.0) / 6.0
    return float(
        sum((np.arange(start, min(start + 2**20, rounds + 1)) ** power).sum() for start in range(1, rounds + 1, 2**20))
    )


def whole_grad_bound(distance: Distance) -> float:
    """A bound on the payoff's whole gradient in the dual, the potential's part included (errata to Theorem s-OMD)."""
    if not distance.smoothing:
        return distance.grad_bound
    return distance.grad_bound + distance.smoothing * distance.mirror_bound


def require_smoothing(learner: object, distance: Distance) -> None:
    """Refuse a distance without smoothing where the learner's guarantee needs it."""
    if not distance.smoothing > 0.0:
        raise ValueError(
            f"{type(learner).__name__} needs a smoothed distance and {type(distance).__name__} has smoothing 0: "
            "give it some (distances.optimal_smoothing), square it ('squared-l2'), or use 'mirror-descent'."
        )


def step_for(width: float, bound: float, squares: float) -> float:
    """The step sqrt(2 * width / (bound^2 * squares)) that balances the two terms of Theorem "OMD"."""
    return sqrt(2.0 * width / (bound**2 * squares))
