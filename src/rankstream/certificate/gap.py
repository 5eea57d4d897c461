"""Certificate: how good a model is, proven from running means and one oracle call."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankstream._core.rounding import ROUNDING
from rankstream._core.types import Mask, Vec
from rankstream.distances.protocol import Distance
from rankstream.learners.rounds import Sums
from rankstream.oracles.protocol import Oracle


@dataclass(frozen=True)
class Certificate:
    """What is proven about a model.

    ``lower <= min over all ranking models of D(x, p) <= upper = D(x_bar, p)`` for the frequencies p it was asked for,
    whatever the data did on the way; ``gap`` is their difference, the saddle-point gap of equation (9), and bounds
    how far the model is from the best one. ``dual_regret`` and ``oracle_regret`` are R_y and R_x of equation (12); the
    second is routinely negative. Their sum ``regret_sum``, the paper's approximate gap, can be negative when the data
    move, and bounds anything only together with ``averaging_error`` and ``drift_error`` (Theorem 1). Those two, and
    ``true_gap``, need the true probabilities. What is not known is None.
    """

    upper: float
    lower: float
    oracle_regret: float
    dual_regret: float | None
    exact: bool
    true_gap: float | None = None
    averaging_error: float | None = None
    drift_error: float | None = None

    @property
    def gap(self) -> float:
        """The difference of upper and lower: never negative, and at least the model's suboptimality."""
        return self.upper - self.lower

    @property
    def regret_sum(self) -> float | None:
        """R_x + R_y, the paper's approximate gap."""
        return None if self.dual_regret is None else self.dual_regret + self.oracle_regret


def certify(
    sums: Sums,
    distance: Distance,
    oracle: Oracle,
    frequencies: Vec | None = None,
    truth: Vec | None = None,
    seen: Mask | None = None,
) -> Certificate:
    """The certificate after some rounds, at the mean frequencies or at others on request: one oracle call.

    Offers that are not ``seen`` are no part of the problem: the dual is silenced on them, which keeps the bound valid.
    """
    vertex, mean, played = sums.mean_vertex, sums.mean_frequencies, sums.mean_dual
    dual = played if seen is None else distance.silence(played, seen)
    costs = distance.costs(dual)
    answer = oracle.cheapest(costs)
    silenced = seen is not None and not np.array_equal(dual, played)
    costs_played = distance.costs(played) if silenced else costs
    answer_played = oracle.cheapest(costs_played) if silenced else answer

    def bounds(at: Vec) -> tuple[float, float]:
        offset = distance.offset(dual, at)
        rounding = ROUNDING * costs.size * (1.0 + float(np.abs(costs).sum()) + abs(offset))
        return distance.value(vertex, at), answer.bound - offset - rounding

    upper, lower = bounds(mean if frequencies is None else frequencies)
    mean_payoff = (sums.answer - sums.offset) / sums.total_weight
    hindsight = answer_played.bound - sums.offset / sums.total_weight
    told_by_means = distance.affine or not sums.moved
    known: dict[str, Any] = {}
    if truth is not None:
        true_upper, true_lower = bounds(truth)
        known["true_gap"] = true_upper - true_lower
        known["averaging_error"] = distance.data_change(mean, truth) if told_by_means else None
        if distance.affine:
            at_truth = float(costs_played @ truth) + distance.smoothing * sums.potential / sums.total_weight
            known["drift_error"] = at_truth - sums.offset / sums.total_weight
    return Certificate(
        upper=upper,
        lower=lower,
        oracle_regret=mean_payoff - hindsight,
        dual_regret=distance.value(vertex, mean) - mean_payoff if told_by_means else None,
        exact=answer.exact,
        **known,
    )
