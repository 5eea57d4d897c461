"""Mirror descent on the dual: with a constant step, with those of strong convexity, and lazily without a horizon."""

from dataclasses import dataclass, field
from math import inf, isinf, sqrt
from typing import NamedTuple

import numpy as np

from rankstream._types import Vec
from rankstream.distances.protocol import Distance
from rankstream.learners.protocol import PowerWeights, require_smoothing, step_for, whole_grad_bound
from rankstream.rounds import Round


def prox_step(distance: Distance, dual: Vec, played: Round, step: float) -> Vec:
    """The dual that one step along the payoff's gradient leads to."""
    slope = distance.pull(played.vertex, dual, played.frequencies) * -step
    slope -= distance.mirror(dual) * (1.0 - step * distance.smoothing)
    return distance.prox(slope)


@dataclass(frozen=True)
class MirrorDescent(PowerWeights):
    """Online mirror descent with the textbook constant step for a horizon T, and any weights (Theorem "OMD").

    After t rounds the dual regret is at most
    width / (step * total_weight) + step * bound^2 * (sum of squared weights) / (2 * total_weight),
    which is sqrt(2 * width * bound^2 / T) at t = T with equal weights.
    """

    horizon: int = 10_000
    step: float | None = None
    needs_smoothing = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.horizon < 1:
            raise ValueError(f"The horizon {self.horizon} must be at least 1 round.")
        if self.step is not None and not self.step > 0.0:
            raise ValueError(f"The step size {self.step} must be positive.")

    def step_size(self, distance: Distance) -> float:
        """sqrt(2 * width / (bound^2 * sum of squared weights)), unless a step was given."""
        if self.step is not None:
            return self.step
        bound = whole_grad_bound(distance)
        if isinf(bound):
            raise ValueError(
                f"{type(distance).__name__} with smoothing has no bounded gradient, so MirrorDescent cannot choose its "
                "step: give one, drop the smoothing, or use 'strongly-convex-mirror-descent'."
            )
        return step_for(distance.width, bound, self.squares(self.horizon))

    def init(self, distance: Distance) -> tuple[Vec, float]:
        """The dual of least potential, and the step size."""
        return distance.start(), self.step_size(distance)

    def play(self, state: tuple[Vec, float]) -> Vec:
        """The current dual."""
        return state[0]

    def update(self, distance: Distance, state: tuple[Vec, float], played: Round) -> tuple[Vec, float]:
        """One prox step along the payoff's gradient."""
        dual, step = state
        return prox_step(distance, dual, played, step * played.weight), step

    def regret_bound(self, distance: Distance, rounds: int) -> float:
        """The bound above, for any number of rounds with the step tuned to the horizon."""
        step, total = self.step_size(distance), self.total(rounds)
        bound = whole_grad_bound(distance)
        return distance.width / (step * total) + step * bound**2 * self.squares(rounds) / (2.0 * total)


@dataclass(frozen=True)
class StronglyConvexMirrorDescent(PowerWeights):
    """Mirror descent for smoothed distances with steps weight / (smoothing * total_weight) (Theorem "s-OMD").

    With weights t the step is 2 / (smoothing * (t + 1)) and the dual regret at most 2 G^2 / (smoothing * (T + 1)),
    where G bounds the whole gradient. For an entropy G is infinite, and the bound holds only in the interior.
    """

    power: float = field(default=1.0, kw_only=True)
    needs_smoothing = True

    def init(self, distance: Distance) -> Vec:
        """The dual of least potential."""
        require_smoothing(self, distance)
        return distance.start()

    def play(self, state: Vec) -> Vec:
        """The current dual."""
        return state

    def update(self, distance: Distance, state: Vec, played: Round) -> Vec:
        """One prox step along the payoff's gradient."""
        return prox_step(distance, state, played, played.weight / (distance.smoothing * played.sums.total_weight))

    def regret_bound(self, distance: Distance, rounds: int) -> float:
        """The theorem's bound; infinite where the whole gradient is not bounded."""
        require_smoothing(self, distance)
        return strong_regret_bound(self, whole_grad_bound(distance), distance.smoothing, rounds)


class Averaged(NamedTuple):
    """The state of dual averaging: the next dual, the weighted sum of pulls, and of squared weights."""

    dual: Vec
    pulls: Vec
    squares: float


@dataclass(frozen=True)
class DualAveraging(PowerWeights):
    """Follow the regularised leader, for streams without an end: no horizon, and a bound at every round.

    y_{t+1} minimises -<sum of weighted pulls, y> + (smoothing * total_weight + firmness_t) * potential(y) with
    firmness_t = scale * G * sqrt(sum of squared weights up to t + 1) / sqrt(width). After every t the dual regret is at
    most (scale + 1 / scale) * G * sqrt(width * sum of squared weights) / total_weight: with scale 1, sqrt(2) times the
    bound of mirror descent tuned to t. Unlike mirror descent with falling steps it needs only the width of the
    potential, so it holds on the entropy domains, where Bregman distances are not bounded. The potential's part of the
    payoff is kept whole, not linearised, so G is the bound on the pull alone.
    """

    scale: float = 1.0
    needs_smoothing = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.scale < inf:
            raise ValueError(f"The scale {self.scale} must be positive.")

    def init(self, distance: Distance) -> Averaged:
        """The dual of least potential."""
        start = distance.start()
        return Averaged(start, np.zeros_like(start), 1.0)

    def play(self, state: Averaged) -> Vec:
        """The leader so far."""
        return state.dual

    def update(self, distance: Distance, state: Averaged, played: Round) -> Averaged:
        """Add the round's pull and find the new leader."""
        pull = distance.pull(played.vertex, played.dual, played.frequencies)
        pulls = state.pulls + played.weight * pull
        squares = state.squares + self.round_weight(played.number + 1) ** 2
        firmness = distance.smoothing * played.sums.total_weight
        firmness += self.scale * distance.grad_bound * sqrt(squares / distance.width)
        return Averaged(distance.prox(pulls * (-1.0 / firmness)), pulls, squares)

    def regret_bound(self, distance: Distance, rounds: int) -> float:
        """The bound above."""
        spread = sqrt(distance.width * self.squares(rounds))
        return (self.scale + 1.0 / self.scale) * distance.grad_bound * spread / self.total(rounds)


def strong_regret_bound(weights: PowerWeights, bound: float, smoothing: float, rounds: int) -> float:
    """Sum of weight^2 * bound^2 / (2 * smoothing * total_weight so far), divided by the total weight.

    With weights t the theorems' 2 * bound^2 / (smoothing * (T + 1)) is its simple form.
    """
    if weights.power == 1.0:
        return 2.0 * bound**2 / (smoothing * (rounds + 1.0))
    each = np.arange(1, rounds + 1, dtype=np.float64) ** weights.power
    return float(bound**2 / (2.0 * smoothing) * (each**2 / np.cumsum(each)).sum() / each.sum())
