"""Certificate: how good a model is, proven from running means and one oracle call; with confidence, for the truth."""

from dataclasses import dataclass
from math import lgamma, log
from typing import Any

import numpy as np

from rankstream._core.arguments import number_between
from rankstream._core.old_names import old_keywords
from rankstream._core.types import ROUNDING, Mask, Vec
from rankstream.data.counts import ChoiceCounts
from rankstream.distances.protocol import Distance
from rankstream.learners.rounds import Sums
from rankstream.oracles.protocol import Oracle


@dataclass(frozen=True)
class Certificate:
    """A proof of how good a model is.

    ``lower <= min over all ranking models of D(x, p) <= upper = D(x_bar, p)`` for the frequencies p it was asked for,
    whatever the data did on the way; ``gap`` is their difference, and bounds how far the model is from the best one.
    The regrets are those of equation (12), as the duals were played. Their sum ``regret_sum``, the paper's approximate
    gap, can be negative when the data move, and bounds anything only together with ``averaging_error`` and
    ``drift_error`` (Theorem 1). What is not known is None.

    Attributes
    ----------
    upper : float
        The distance of the model from the data.
    lower : float
        A proven bound: no ranking model is nearer. It is the better of what the mean dual and the distance's trivial
        dual prove (such as that norms are not negative), so that the gap of a norm does not exceed the norm, but for
        rounding.
    oracle_regret : float
        R_x, routinely negative.
    dual_regret : float or None
        R_y; None for a distance that is not affine where the data moved.
    exact : bool
        Whether the oracle's last answer was proven to be the cheapest ranking.
    true_gap : float or None
        The gap at the true probabilities, where those were given.
    averaging_error, drift_error : float or None
        The two errors of moving data in Theorem 1, where the true probabilities were given.
    mean_dual_lower : float or None
        What the mean dual alone proves: ``upper - mean_dual_lower`` is the saddle-point gap of equation (9).
    """

    upper: float
    lower: float
    oracle_regret: float
    dual_regret: float | None
    exact: bool
    true_gap: float | None = None
    averaging_error: float | None = None
    drift_error: float | None = None
    mean_dual_lower: float | None = None

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
    """Return the certificate after some rounds, at the mean frequencies or at others on request: one oracle call.

    Where the distance has a ``trivial_dual``, the better of its bound and the mean dual's counts.

    Parameters
    ----------
    sums : Sums
        The weighted sums of all rounds so far (``state.sums``).
    distance : Distance
        What the rounds were played with.
    oracle : Oracle
        What finds the cheapest ranking for the mean dual; its bound goes into ``lower``.
    frequencies : array, optional
        Where to certify; without it, at the mean of the rounds' frequencies.
    truth : array, optional
        The true probabilities, for ``true_gap``, ``averaging_error`` and ``drift_error``.
    seen : array of bool, optional
        For every coordinate, whether its offer has data. Offers without are not part of the problem: neither the
        distance nor the dual counts them, which keeps the bound valid.
    """
    vertex, mean, played = sums.mean_vertex, sums.mean_frequencies, sums.mean_dual
    parts: Any = distance
    whole = seen is None or not hasattr(parts, "restrict")
    dual = played if seen is None else distance.silence(played, seen) if whole else parts.restrict(played, seen)
    costs = distance.costs(dual)
    answer = oracle.cheapest(costs)
    silenced = seen is not None and not np.array_equal(dual, played)
    costs_played = distance.costs(played) if silenced else costs
    answer_played = oracle.cheapest(costs_played) if silenced else answer
    trivial: Vec | None = parts.trivial_dual() if hasattr(parts, "trivial_dual") else None
    trivial = trivial if whole or trivial is None else parts.restrict(trivial, seen)

    def proven(at: Vec) -> tuple[float, float]:
        """What the mean dual proves, and the better of that and what the trivial one does."""
        by_mean = _payoff_at_least(distance, dual, at, answer.bound)
        by_none = -np.inf if trivial is None else _payoff_at_least(distance, trivial, at)
        return by_mean, by_none if by_none > by_mean else by_mean

    here = mean if frequencies is None else frequencies
    mean_dual_lower, lower = proven(here)
    mean_payoff = (sums.answer - sums.offset) / sums.total_weight
    hindsight = answer_played.bound - sums.offset / sums.total_weight
    told_by_means = distance.affine or not sums.moved
    known: dict[str, Any] = {}
    if truth is not None:
        true = truth if seen is None else np.where(seen, truth, vertex)
        known["true_gap"] = distance_on(distance, vertex, true, seen) - proven(true)[1]
        known["averaging_error"] = distance.data_change(mean, truth) if told_by_means else None
        if distance.affine:
            at_truth = float(costs_played @ truth) + distance.smoothing * sums.potential / sums.total_weight
            known["drift_error"] = at_truth - sums.offset / sums.total_weight
    return Certificate(
        upper=distance_on(distance, vertex, here, seen),
        lower=lower,
        oracle_regret=mean_payoff - hindsight,
        dual_regret=distance.value(vertex, mean) - mean_payoff if told_by_means else None,
        exact=answer.exact,
        mean_dual_lower=mean_dual_lower,
        **known,
    )


def distance_on(distance: Any, vertex: Vec, frequencies: Vec, seen: Mask | None) -> float:
    """The distance over the offers that were seen; over all without ``seen``, or without a method for it."""
    if seen is None or not hasattr(distance, "value_on"):
        return float(distance.value(vertex, frequencies))
    return float(distance.value_on(vertex, frequencies, seen))


def _payoff_at_least(distance: Any, dual: Vec, frequencies: Vec, least: float | None = None) -> float:
    """The dual function: a bound on the payoff of any model, less what rounding may have added.

    ``least`` bounds the costs of a ranking from below. Without it, every offer is given its cheapest item: no ranking
    does better, and none worse where the items of an offer cost the same, as they do for a trivial dual.
    """
    costs, offset = distance.costs(dual), distance.offset(dual, frequencies)
    if least is None:
        least = float(np.minimum.reduceat(costs, distance.assortments.indptr[:-1]).sum())
    rounding = ROUNDING * costs.size * (1.0 + float(np.abs(costs).sum()) + abs(offset))
    return float(least - offset - rounding)


@old_keywords(level="confidence")
def confidence_radii(counts: ChoiceCounts, confidence: float = 0.95) -> Vec:
    """For each offer, a bound on the l1 distance of its frequencies from the true ones; for all offers and all times.

    If choices are independent draws from probabilities that do not drift, then with probability ``confidence`` no bound
    ever fails, however long the stream and whenever one looks. With a = 1 - confidence: the Dirichlet(1/2) mixture of
    multinomial likelihoods over the true likelihood is a martingale of mean 1, so by Ville's inequality it exceeds
    m / a on any of the m offers with probability a at most. Hence
    K * KL(frequencies, truth) <= log(m / a) + log(largest likelihood) - log(mixture), and Pinsker's
    inequality turns that into an l1 radius. An offer never seen has radius 2. Counts that forget or have weights are
    refused: their tallies are not numbers of independent choices.
    """
    if not 0.0 < number_between("confidence", confidence, 0.0, 1.0) < 1.0:
        raise ValueError(f"confidence is {confidence}: it must lie strictly between 0 and 1.")
    counts.require_whole("A bound on the sampling error")
    log_odds = log(counts.assortments.n_offers / (1.0 - confidence))
    by_offer = np.split(counts.tallies, counts.assortments.indptr[1:-1])
    return np.array([_radius(tallies, log_odds) for tallies in by_offer])


def _radius(tallies: Vec, log_odds: float) -> float:
    total, size = float(tallies.sum()), tallies.size
    if size == 1:
        return 0.0
    if total == 0.0:
        return 2.0
    best = sum(k * log(k / total) for k in tallies.tolist() if k > 0.0)
    return float(min(2.0, np.sqrt(2.0 * (log_odds + best - log_mixture(tallies)) / total)))


def log_mixture(tallies: Vec) -> float:
    """The log of the Dirichlet(1/2) mixture of multinomial likelihoods of one offer's tallies."""
    times, half = tallies.tolist(), 0.5 * tallies.size
    return lgamma(half) - lgamma(sum(times) + half) + sum(lgamma(k + 0.5) - lgamma(0.5) for k in times)


@old_keywords(level="confidence")
def confident_gap(
    certificate: Certificate, distance: Distance, counts: ChoiceCounts, confidence: float = 0.95
) -> float:
    """With this confidence, the model is at most this far from the best ranking model for the *true* probabilities.

    The certificate must be the one at the counts' own frequencies, ``solver.certificate(state, counts)``; its gap grows
    by 2 L * radius, since both D(x_bar, .) and min D(x, .) change by at most L per unit of change in the frequencies.
    """
    return certificate.gap + 2.0 * distance.lipschitz * distance.data_radius(confidence_radii(counts, confidence))
