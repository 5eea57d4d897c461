"""What a learner is: an online player of the dual, and the averaging weights that go with it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import sqrt
from typing import Protocol, TypeVar

import numpy as np

from rankstream._core.arguments import number_between
from rankstream._core.types import Vec
from rankstream.distances.protocol import Distance
from rankstream.learners.rounds import Round

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

    def regret_bound(self, distance: Distance, rounds: int, constant: bool = False) -> float:
        """A bound on the dual regret R_y after ``rounds`` rounds, infinite where none is known.

        ``constant`` says that the data do not move, which may help.
        """


@dataclass(frozen=True)
class PowerWeights:
    """Averaging weights t^power: 0 counts every round the same, 1 gives late rounds more.

    ``weighting``, a positive function of t = 1, 2, ..., takes the place of the power: any weights will do.
    """

    power: float = field(default=0.0, kw_only=True)
    weighting: Callable[[int], float] | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        number_between("The averaging power", self.power, 0.0, 30.0)

    def round_weight(self, number: int) -> float:
        """The weight of round t."""
        if self.weighting is not None:
            return number_between(f"The weight of round {number}", self.weighting(number), 1e-300, 1e300)
        if self.power == 0.0:
            return 1.0
        return float(number) if self.power == 1.0 else float(number) ** self.power

    def round_weights(self, rounds: int) -> Vec:
        """The weights of all rounds so far."""
        return np.array([self.round_weight(number) for number in range(1, rounds + 1)])

    def total(self, rounds: int) -> float:
        """The sum of the weights."""
        return power_sum(self.power, rounds) if self.weighting is None else float(self.round_weights(rounds).sum())

    def squares(self, rounds: int) -> float:
        """The sum of their squares."""
        if self.weighting is None:
            return power_sum(2.0 * self.power, rounds)
        return float((self.round_weights(rounds) ** 2).sum())


def power_sum(power: float, rounds: int) -> float:
    """1^power + 2^power + ... + rounds^power; by Euler and Maclaurin where there are many."""
    n, few = float(rounds), 10_000
    if power == 0.0:
        return n
    if power == 1.0:
        return n * (n + 1.0) / 2.0
    if power == 2.0:
        return n * (n + 1.0) * (2.0 * n + 1.0) / 6.0
    total = float((np.arange(1.0, min(rounds, few) + 1.0) ** power).sum())
    if rounds <= few:
        return total
    between = np.log(n / few) if power == -1.0 else (n ** (power + 1.0) - few ** (power + 1.0)) / (power + 1.0)
    ends = 0.5 * (n**power - few**power) + power * (n ** (power - 1.0) - few ** (power - 1.0)) / 12.0
    return total + float(between + ends)


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
    spread = bound**2 * squares
    return sqrt(2.0 * width / spread) if width > 0.0 and spread > 0.0 else 1.0  # nothing to learn: any step will do
