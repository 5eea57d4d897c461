"""Dual players: mirror descent, dual averaging, and those that respond to the averages, which is Frank-Wolfe."""

from dataclasses import dataclass, field
from math import inf, isinf, sqrt
from typing import NamedTuple

import numpy as np

from rankstream._core import Vec, number_between, whole_number
from rankstream.distances.protocol import Distance
from rankstream.learners.protocol import PowerWeights, Round, power_sum, require_smoothing, step_for, whole_grad_bound

MAX_SUMMED_ROUNDS = 100_000  # beyond, an integral replaces the sum over rounds


class Moved(NamedTuple):
    """The state of mirror descent: the dual to play, its mirror image, and the step size if it is constant."""

    dual: Vec
    image: Vec
    step: float = 0.0


def prox_step(distance: Distance, state: Moved, played: Round, step: float) -> Moved:
    """Take one step along the payoff's gradient.

    The mirror image is carried along because computing it from tiny entries of the dual would lose precision.
    """
    slope = distance.pull(played.vertex, state.dual, played.frequencies) * -step
    slope -= state.image * (1.0 - step * distance.smoothing)
    dual = distance.prox(slope)
    return Moved(dual, distance.image(slope, dual), state.step)


@dataclass(frozen=True)
class _Stepper(PowerWeights):
    """A learner whose state contains the dual to play."""

    def play(self, state: "Moved | Averaged") -> Vec:
        """Play the current dual."""
        return state.dual


@dataclass(frozen=True)
class MirrorDescent(_Stepper):
    """Online mirror descent with the textbook constant step for a horizon T (Theorem "OMD").

    After t rounds the dual regret is at most
    width / (step * total_weight) + step * bound^2 * (sum of squared weights) / (2 * total_weight),
    which is sqrt(2 * width * bound^2 / T) at t = T with equal weights.
    """

    horizon: int = 10_000
    step: float | None = None
    needs_smoothing = False

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("horizon", self.horizon, least=1)
        if self.step is not None:
            number_between("step", self.step, 1e-300, 1e300)

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

    def init(self, distance: Distance) -> Moved:
        """Start at the dual of least potential, with the step size."""
        start = distance.start()
        return Moved(start, distance.mirror(start), self.step_size(distance))

    def update(self, distance: Distance, state: Moved, played: Round) -> Moved:
        """Take a prox step along the payoff's gradient."""
        return prox_step(distance, state, played, state.step * played.weight)

    def regret_bound(self, distance: Distance, rounds: int, constant: bool = False) -> float:
        """Return the bound above; the step stays tuned to the horizon, whatever the rounds."""
        step, total = self.step_size(distance), self.total(rounds)
        bound = whole_grad_bound(distance)
        return distance.width / (step * total) + step * bound**2 * self.squares(rounds) / (2.0 * total)


@dataclass(frozen=True)
class StronglyConvexMirrorDescent(_Stepper):
    """Mirror descent for smoothed distances with steps weight / (smoothing * total_weight) (Theorem "s-OMD").

    With weights t the step is 2 / (smoothing * (t + 1)) and the dual regret at most 2 G^2 / (smoothing * (T + 1)),
    where G bounds the whole gradient. For an entropy G is infinite, and the bound holds only in the interior.
    """

    power: float = field(default=1.0, kw_only=True)
    needs_smoothing = True

    def init(self, distance: Distance) -> Moved:
        """Start at the dual of least potential."""
        require_smoothing(self, distance)
        start = distance.start()
        return Moved(start, distance.mirror(start))

    def update(self, distance: Distance, state: Moved, played: Round) -> Moved:
        """Take a prox step along the payoff's gradient."""
        return prox_step(distance, state, played, played.weight / (distance.smoothing * played.sums.total_weight))

    def regret_bound(self, distance: Distance, rounds: int, constant: bool = False) -> float:
        """Return the theorem's bound; infinite if the whole gradient is not bounded."""
        require_smoothing(self, distance)
        return strong_regret_bound(self, whole_grad_bound(distance), distance.smoothing, rounds)


class Averaged(NamedTuple):
    """The state of dual averaging: the next dual, the weighted sum of pulls, and the sum of squared weights."""

    dual: Vec
    pulls: Vec
    squares: float


@dataclass(frozen=True)
class DualAveraging(_Stepper):
    """Follow the regularised leader: no horizon, and a regret bound at every round. Made for endless streams.

    y_{t+1} minimises ``-<weighted pulls, y> + (smoothing * total_weight + firmness_t) * potential(y)`` with
    firmness_t = scale * G * sqrt(sum of squared weights up to t + 1) / sqrt(width). After every t the dual regret is at
    most (scale + 1 / scale) * G * sqrt(width * sum of squared weights) / total_weight. With scale 1 that is sqrt(2)
    times the bound of mirror descent tuned to t. Unlike mirror descent with falling steps, it needs only the width of
    the potential, so it also holds on entropy domains, where Bregman distances are not bounded. The potential in the
    payoff is not linearised, so G bounds the pull alone.
    """

    scale: float = 1.0
    needs_smoothing = False

    def __post_init__(self) -> None:
        super().__post_init__()
        number_between("scale", self.scale, 1e-300, 1e300)

    def init(self, distance: Distance) -> Averaged:
        """Start at the dual of least potential."""
        start = distance.start()
        return Averaged(start, np.zeros_like(start), self.round_weight(1) ** 2)

    def update(self, distance: Distance, state: Averaged, played: Round) -> Averaged:
        """Add the round's pull and find the new leader."""
        pull = distance.pull(played.vertex, played.dual, played.frequencies)
        pulls = state.pulls + played.weight * pull
        squares = state.squares + self.round_weight(played.number + 1) ** 2
        return self.lead(distance, pulls, squares, played.sums.total_weight)

    def lead(self, distance: Distance, pulls: Vec, squares: float, total_weight: float) -> Averaged:
        """Return the state in which the leader for these sums is played."""
        firmness = distance.smoothing * total_weight + self.firmness(distance) * sqrt(squares)
        return Averaged(distance.prox(pulls * (-1.0 / firmness)), pulls, squares)

    def firmness(self, distance: Distance) -> float:
        """Return the factor of the root of the sum of squared weights; 1 if there is nothing to learn."""
        spread = self.scale * distance.grad_bound
        return spread / sqrt(distance.width) if spread > 0.0 and distance.width > 0.0 else 1.0

    def regret_bound(self, distance: Distance, rounds: int, constant: bool = False) -> float:
        """Return the bound above."""
        spread = sqrt(distance.width * self.squares(rounds))
        return (self.scale + 1.0 / self.scale) * distance.grad_bound * spread / self.total(rounds)


def strong_regret_bound(weights: PowerWeights, bound: float, smoothing: float, rounds: int) -> float:
    """Return the sum of weight^2 * bound^2 / (2 * smoothing * total_weight so far), divided by the total weight.

    With weights t it is the theorems' 2 * bound^2 / (smoothing * (T + 1)). For other powers and many rounds, the
    smaller t^(power + 1) / (power + 1) replaces the total weight.
    """
    if weights.power == 1.0 and weights.weighting is None:
        return 2.0 * bound**2 / (smoothing * (rounds + 1.0))
    if rounds <= MAX_SUMMED_ROUNDS or weights.weighting is not None:
        each = weights.round_weights(rounds)
        ratios = float((each**2 / np.cumsum(each)).sum())
    else:
        ratios = (weights.power + 1.0) * power_sum(weights.power - 1.0, rounds)
    return bound**2 / (2.0 * smoothing) * ratios / weights.total(rounds)


@dataclass(frozen=True)
class _Responder(PowerWeights):
    """A learner whose state is the best response to an average; ``nonsmooth`` waives the need for smoothing."""

    power: float = field(default=1.0, kw_only=True)
    nonsmooth: bool = False
    needs_smoothing = True

    def init(self, distance: Distance) -> Vec:
        """Start at the dual of least potential."""
        if not self.nonsmooth and not distance.smooth:
            require_smoothing(self, distance)
        return distance.start()

    def play(self, state: Vec) -> Vec:
        """Play the best response to the averages so far."""
        return state


@dataclass(frozen=True)
class FollowTheLeader(_Responder):
    """The best dual against the averages x_bar, p_bar so far (Theorem "s-FTL").

    This is the Frank-Wolfe method for moving data (Remark "F-Wequiv"): the oracle's costs are the gradient of
    D(x_bar, p_bar). With smoothing and weights t, its dual regret is at most 2 G^2 / (smoothing * (T + 1)). On
    constant data G is the diameter of the choice probabilities, as in the paper. On moving data it is twice that,
    because the averaged residual and the round's can be twice as far apart. ``nonsmooth`` lets it run on a plain norm,
    without a guarantee.
    """

    def update(self, distance: Distance, state: Vec, played: Round) -> Vec:
        """Respond to the averages, this round included."""
        return distance.respond(played.sums.mean_vertex, played.sums.mean_frequencies)

    def regret_bound(self, distance: Distance, rounds: int, constant: bool = False) -> float:
        """Return the theorem's bound, with G for constant data and 2 G for moving data."""
        if not distance.smoothing or not distance.affine:
            return inf
        spread = distance.grad_bound if constant else 2.0 * distance.grad_bound
        return strong_regret_bound(self, spread, distance.smoothing, rounds)


@dataclass(frozen=True)
class NaiveFrankWolfe(_Responder):
    """Frank-Wolfe that takes the current frequencies for the truth: the best dual against x_bar and p_t.

    It is not a regret minimiser of the framework. Freund and Grigas bound its error if the data converge fast enough
    (``certificate.guaranteed_gap``). On constant data it equals ``FollowTheLeader``.
    """

    def update(self, distance: Distance, state: Vec, played: Round) -> Vec:
        """Respond to the averaged model and the latest data."""
        return distance.respond(played.sums.mean_vertex, played.frequencies)

    def regret_bound(self, distance: Distance, rounds: int, constant: bool = False) -> float:
        """Return infinity: no bound is known."""
        return inf
