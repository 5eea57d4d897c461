"""Dual players that answer the averages directly: follow the leader, which is Frank-Wolfe, and its naive relative."""

from dataclasses import dataclass, field
from math import inf

from rankstream._core.types import Vec
from rankstream.distances.protocol import Distance
from rankstream.learners.mirror_descent import strong_regret_bound
from rankstream.learners.protocol import PowerWeights, require_smoothing
from rankstream.learners.rounds import Round


@dataclass(frozen=True)
class _Responder(PowerWeights):
    """A learner whose state is the dual that answers an average; ``nonsmooth`` waives the need for smoothing."""

    power: float = field(default=1.0, kw_only=True)
    nonsmooth: bool = False
    needs_smoothing = True

    def init(self, distance: Distance) -> Vec:
        """The dual of least potential."""
        if not self.nonsmooth and not distance.smooth:
            require_smoothing(self, distance)
        return distance.start()

    def play(self, state: Vec) -> Vec:
        """The answer to the averages so far."""
        return state


@dataclass(frozen=True)
class FollowTheLeader(_Responder):
    """The best dual against the averages x_bar, p_bar so far (Theorem "s-FTL").

    This is the Frank-Wolfe method for moving data (Remark "F-Wequiv"): the oracle is asked at the gradient of
    D(x_bar, p_bar). Smoothed, its dual regret is at most 2 G^2 / (smoothing * (T + 1)) with weights t, where G is the
    diameter of the choice probabilities if the data are constant, as the paper has it; if they move, the averaged
    residual and the round's can be twice as far apart, so G is twice that. ``nonsmooth`` lets it run on a plain norm,
    where nothing is guaranteed.
    """

    def update(self, distance: Distance, state: Vec, played: Round) -> Vec:
        """Answer the averages, this round included."""
        return distance.respond(played.sums.mean_vertex, played.sums.mean_frequencies)

    def regret_bound(self, distance: Distance, rounds: int, constant: bool = False) -> float:
        """The theorem's bound, with G for constant data and 2 G for others."""
        if not distance.smoothing or not distance.affine:
            return inf
        spread = distance.grad_bound if constant else 2.0 * distance.grad_bound
        return strong_regret_bound(self, spread, distance.smoothing, rounds)


@dataclass(frozen=True)
class NaiveFrankWolfe(_Responder):
    """Frank-Wolfe that pretends today's frequencies are the truth: the best dual against x_bar and p_t.

    It is not a regret minimiser of the framework; Freund and Grigas bound it where the data converge fast enough
    (``certificate.guaranteed_gap``). With constant data it is ``FollowTheLeader``.
    """

    def update(self, distance: Distance, state: Vec, played: Round) -> Vec:
        """Answer the averaged model and the latest data."""
        return distance.respond(played.sums.mean_vertex, played.frequencies)

    def regret_bound(self, distance: Distance, rounds: int, constant: bool = False) -> float:
        """None is known."""
        return inf
