"""The learner protocol: an online player of the dual, what it sees of a round, and its averaging weights."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import sqrt
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from rankstream._core import Vec, number_between
from rankstream.distances.protocol import Distance

S = TypeVar("S")


@dataclass
class Sums:
    """Weighted sums over the rounds. Divided by the total weight, they are the running means."""

    vertex: Vec
    frequencies: Vec
    dual: Vec
    total_weight: float = 0.0
    answer: float = 0.0
    offset: float = 0.0
    potential: float = 0.0
    latest: Vec = field(default_factory=lambda: np.empty(0))
    moved: bool = False

    def add(self, weight: float, vertex: Vec, frequencies: Vec, dual: Vec) -> None:
        """Add one round."""
        self.total_weight += weight
        for total, term in ((self.vertex, vertex), (self.frequencies, frequencies), (self.dual, dual)):
            total += term if weight == 1.0 else weight * term
        self.watch(frequencies)

    def watch(self, frequencies: Vec) -> None:
        """Remember the latest frequencies, and whether they ever changed."""
        if self.latest is not frequencies:
            self.moved = self.moved or (self.latest.size > 0 and not np.array_equal(self.latest, frequencies))
            self.latest = frequencies

    def rounds_at_rest(self, rows: Vec) -> int:
        """Count the coming rounds, one row of frequencies each, before the data change."""
        if self.moved or (self.latest.size > 0 and not np.array_equal(self.latest, rows[0])):
            return 0
        moves = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1))
        return int(moves[0]) + 1 if moves.size else len(rows)

    def scale(self, factor: float) -> None:
        """Multiply every sum: the weights of all rounds so far change by this factor."""
        for array in (self.vertex, self.frequencies, self.dual):
            array *= factor
        self.total_weight *= factor
        self.answer *= factor
        self.offset *= factor
        self.potential *= factor

    @property
    def mean_vertex(self) -> Vec:
        """The model's choice probabilities (the paper's x-bar)."""
        return self.vertex / self.total_weight

    @property
    def mean_frequencies(self) -> Vec:
        """The averaged data (the paper's p-bar)."""
        return self.frequencies / self.total_weight

    @property
    def mean_dual(self) -> Vec:
        """The averaged dual (the paper's y-bar)."""
        return self.dual / self.total_weight


class Round(NamedTuple):
    """The information a learner gets after round t; the sums include the round."""

    number: int
    weight: float
    dual: Vec
    vertex: Vec
    frequencies: Vec
    sums: Sums


class Learner(Protocol[S]):
    """A dual player (paper, Section 4.2). Its settings are frozen; its state is opaque to the solver."""

    @property
    def needs_smoothing(self) -> bool:
        """Whether its guarantee needs a distance with smoothing."""

    def init(self, distance: Distance) -> S:
        """Return the state before the first round; raise a ValueError if the distance does not suit the learner."""

    def play(self, state: S) -> Vec:
        """Return the dual y_t of the coming round."""

    def update(self, distance: Distance, state: S, played: Round) -> S:
        """Return the state after a round; y_{t+1} uses p_t."""

    def round_weight(self, number: int) -> float:
        """Return the averaging weight of round t = 1, 2, ..."""

    def regret_bound(self, distance: Distance, rounds: int, constant: bool = False) -> float:
        """Return a bound on the dual regret R_y after ``rounds`` rounds; infinite if none is known.

        ``constant`` means that the data do not move, which may allow a smaller bound.
        """


@dataclass(frozen=True)
class PowerWeights:
    """Averaging weights t^power: 0 gives every round the same weight, 1 gives late rounds more.

    ``weighting``, a positive function of t = 1, 2, ..., replaces the power if given.
    """

    power: float = field(default=0.0, kw_only=True)
    weighting: Callable[[int], float] | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        number_between("The averaging power", self.power, 0.0, 30.0)

    def round_weight(self, number: int) -> float:
        """Return the weight of round t."""
        if self.weighting is not None:
            return number_between(f"The weight of round {number}", self.weighting(number), 1e-300, 1e300)
        if self.power == 0.0:
            return 1.0
        return float(number) if self.power == 1.0 else float(number) ** self.power

    def round_weights(self, rounds: int) -> Vec:
        """Return the weights of the first ``rounds`` rounds."""
        return np.array([self.round_weight(number) for number in range(1, rounds + 1)])

    def total(self, rounds: int) -> float:
        """Return the sum of the weights."""
        return power_sum(self.power, rounds) if self.weighting is None else float(self.round_weights(rounds).sum())

    def squares(self, rounds: int) -> float:
        """Return the sum of the squared weights."""
        if self.weighting is None:
            return power_sum(2.0 * self.power, rounds)
        return float((self.round_weights(rounds) ** 2).sum())


def power_sum(power: float, rounds: int) -> float:
    """Return 1^power + 2^power + ... + rounds^power; Euler-Maclaurin beyond the first terms."""
    n, exact = float(rounds), 10_000
    if power == 0.0:
        return n
    if power == 1.0:
        return n * (n + 1.0) / 2.0
    if power == 2.0:
        return n * (n + 1.0) * (2.0 * n + 1.0) / 6.0
    total = float((np.arange(1.0, min(rounds, exact) + 1.0) ** power).sum())
    if rounds <= exact:
        return total
    integral = np.log(n / exact) if power == -1.0 else (n ** (power + 1.0) - exact ** (power + 1.0)) / (power + 1.0)
    ends = 0.5 * (n**power - exact**power) + power * (n ** (power - 1.0) - exact ** (power - 1.0)) / 12.0
    return total + float(integral + ends)


def whole_grad_bound(distance: Distance) -> float:
    """Bound the payoff's whole gradient in the dual, including the potential (errata to Theorem s-OMD)."""
    if not distance.smoothing:
        return distance.grad_bound
    return distance.grad_bound + distance.smoothing * distance.mirror_bound


def require_smoothing(learner: object, distance: Distance) -> None:
    """Raise a ValueError if the learner's guarantee needs smoothing and the distance has none."""
    if not distance.smoothing > 0.0:
        raise ValueError(
            f"{type(learner).__name__} needs a smoothed distance and {type(distance).__name__} has smoothing 0: "
            "set smoothing (see distances.optimal_smoothing), square it ('squared-l2'), or use 'mirror-descent'."
        )


def step_for(width: float, bound: float, squares: float) -> float:
    """Return the step sqrt(2 * width / (bound^2 * squares)) that balances the two terms of Theorem "OMD"."""
    spread = bound**2 * squares
    return sqrt(2.0 * width / spread) if width > 0.0 and spread > 0.0 else 1.0  # nothing to learn: any step is fine
