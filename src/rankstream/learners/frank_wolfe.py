"""Dual players that respond to the averages: follow the leader, which is Frank-Wolfe, and naive Frank-Wolfe."""

from dataclasses import dataclass, field
from math import inf

from rankstream._core.types import Vec
from rankstream.distances.protocol import Distance
from rankstream.learners.mirror_descent import strong_regret_bound
from rankstream.learners.protocol import PowerWeights, require_smoothing
from rankstream.learners.rounds import Round


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
