"""Certificate: how good a model is, proven from running means and one oracle call."""

from dataclasses import dataclass

import numpy as np

from rankstream._types import Vec
from rankstream.distances import Distance
from rankstream.oracles.protocol import Oracle
from rankstream.rounds import Sums

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Certificate:
    """What is proven about a model.

    ``lower <= min over all ranking models of D(x, p) <= upper = D(x_bar, p)`` for the frequencies p it was asked for,
    whatever the data did on the way; ``gap`` is their difference, the saddle-point gap of equation (10), and bounds
    how far the model is from the best one. ``dual_regret`` and ``oracle_regret`` are R_y and R_x of equation (13);
    the second is routinely negative. Their sum ``regret_sum``, the paper's approximate gap, can be negative when the
    data move, and bounds anything only together with ``averaging_error`` and ``drift_error`` (Theorem 1), which need
    the true probabilities and are None where those were not given.
    """

    upper: float
    lower: float
    dual_regret: float
    oracle_regret: float
    exact: bool
    averaging_error: float | None = None
    drift_error: float | None = None

    @property
    def gap(self) -> float:
        """The difference of upper and lower: never negative, and at least the model's suboptimality."""
        return self.upper - self.lower

    @property
    def regret_sum(self) -> float:
        """R_x + R_y, the paper's approximate gap."""
        return self.dual_regret + self.oracle_regret


def certify(
    sums: Sums, distance: Distance, oracle: Oracle, frequencies: Vec | None = None, truth: Vec | None = None
) -> Certificate:
    """The certificate after some rounds, at the mean frequencies or at others on request: one oracle call."""
    vertex, mean, dual = sums.mean_vertex, sums.mean_frequencies, sums.mean_dual
    costs = distance.costs(dual)
    answer = oracle.cheapest(costs)
    at = mean if frequencies is None else frequencies
    smoothed = distance.smoothing * distance.potential(dual) if distance.smoothing else 0.0
    rounding = ROUNDING * costs.size * (1.0 + float(np.abs(costs).sum()) + abs(smoothed))
    mean_payoff = (
        sums.answer - sums.target
    ) / sums.total_weight - distance.smoothing * sums.potential / sums.total_weight
    hindsight = answer.bound - (sums.target + distance.smoothing * sums.potential) / sums.total_weight
    known = (
        {}
        if truth is None
        else {
            "averaging_error": distance.unsmoothed(mean - truth),
            "drift_error": float(costs @ truth) - sums.target / sums.total_weight,
        }
    )
    return Certificate(
        upper=distance.value(vertex - at),
        lower=answer.bound - float(costs @ at) - smoothed - rounding,
        dual_regret=distance.value(vertex - mean) - mean_payoff,
        oracle_regret=mean_payoff - hindsight,
        exact=answer.exact,
        **known,
    )
