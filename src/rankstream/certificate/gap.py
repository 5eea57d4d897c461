"""Certificates: proofs of how good a model is, from running means and one oracle call."""

from dataclasses import dataclass
from math import lgamma, log
from typing import Any

import numpy as np

from rankstream._core import ROUNDING, Mask, Vec, number_between
from rankstream.data.counts import ChoiceCounts
from rankstream.distances.protocol import Distance
from rankstream.learners.protocol import Sums
from rankstream.oracles.protocol import Oracle


@dataclass(frozen=True)
class Certificate:
    """How close a model is to the data, and a proof of how close any could be.

    ``lower <= min over all ranking models of D(x, p) <= upper = D(x_bar, p)`` at the certified frequencies p, however
    the data changed along the way. ``gap`` is the difference, and bounds how far the model is from the best one.
    The regrets are those of equation (12), for the duals as played. Their sum ``regret_sum``, the paper's approximate
    gap, can be negative when the data move. It is a bound only together with ``averaging_error`` and ``drift_error``
    (Theorem 1). Unknown values are None.

    Attributes
    ----------
    upper : float
        The distance of the model from the data.
    lower : float
        A proven bound: no ranking model is nearer. It is the larger of two bounds, from the mean dual and from the
        distance's trivial dual (norms are not negative, for example). So the gap of a norm is at most the norm, up to
        rounding.
    oracle_regret : float
        R_x, routinely negative.
    dual_regret : float or None
        R_y; None if the distance is not affine and the data moved.
    exact : bool
        Whether the oracle's last answer was proven to be the cheapest ranking.
    true_gap : float or None
        The gap at the true probabilities, if those were given.
    averaging_error, drift_error : float or None
        The two errors of moving data in Theorem 1, if the true probabilities were given.
    mean_dual_lower : float or None
        The bound from the mean dual alone: ``upper - mean_dual_lower`` is the saddle-point gap of equation (9).
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
        """Upper minus lower: never negative, and at least the model's suboptimality."""
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
    """Return the certificate of the rounds so far, at the mean frequencies or at given ones. Takes one oracle call.

    Parameters
    ----------
    sums : Sums
        The weighted sums of all rounds so far (``state.sums``).
    distance : Distance
        The distance of the rounds. If it has a ``trivial_dual``, that gives a second lower bound.
    oracle : Oracle
        Finds the cheapest ranking for the mean dual; its bound enters ``lower``.
    frequencies : array, optional
        Where to certify; by default at the mean frequencies of the rounds.
    truth : array, optional
        The true probabilities, for ``true_gap``, ``averaging_error`` and ``drift_error``.
    seen : array of bool, optional
        For every coordinate, whether its offer has data. Offers without data are left out of both the distance and
        the dual, which keeps the bound valid.
    """
    vertex, mean, played = sums.mean_vertex, sums.mean_frequencies, sums.mean_dual
    dual, trivial = _restricted_duals(distance, played, seen)
    costs = distance.costs(dual)
    answer = oracle.cheapest(costs)
    silenced = seen is not None and not np.array_equal(dual, played)
    costs_played = distance.costs(played) if silenced else costs
    answer_played = oracle.cheapest(costs_played) if silenced else answer

    def lower_bounds(at: Vec) -> tuple[float, float]:
        """Return the bound from the mean dual, and the larger of it and the trivial dual's."""
        from_mean = _dual_value(distance, dual, at, answer.bound)
        from_trivial = -np.inf if trivial is None else _dual_value(distance, trivial, at)
        return from_mean, max(from_mean, from_trivial)

    here = mean if frequencies is None else frequencies
    mean_dual_lower, lower = lower_bounds(here)
    mean_payoff = (sums.answer - sums.offset) / sums.total_weight
    hindsight = answer_played.bound - sums.offset / sums.total_weight
    means_suffice = distance.affine or not sums.moved  # running means determine the regrets
    at_truth: dict[str, Any] = {}
    if truth is not None:
        true = truth if seen is None else np.where(seen, truth, vertex)
        at_truth["true_gap"] = distance_on(distance, vertex, true, seen) - lower_bounds(true)[1]
        at_truth["averaging_error"] = distance.data_change(mean, truth) if means_suffice else None
        if distance.affine:
            offset = float(costs_played @ truth) + distance.smoothing * sums.potential / sums.total_weight
            at_truth["drift_error"] = offset - sums.offset / sums.total_weight
    return Certificate(
        upper=distance_on(distance, vertex, here, seen),
        lower=lower,
        oracle_regret=mean_payoff - hindsight,
        dual_regret=distance.value(vertex, mean) - mean_payoff if means_suffice else None,
        exact=answer.exact,
        mean_dual_lower=mean_dual_lower,
        **at_truth,
    )


def _restricted_duals(distance: Any, mean_dual: Vec, seen: Mask | None) -> tuple[Vec, Vec | None]:
    """Return the mean dual and the trivial dual, if there is one, over the observed offers."""
    trivial: Vec | None = distance.trivial_dual() if hasattr(distance, "trivial_dual") else None
    if seen is None:
        return mean_dual, trivial
    if not hasattr(distance, "restrict"):
        return distance.silence(mean_dual, seen), trivial
    return distance.restrict(mean_dual, seen), None if trivial is None else distance.restrict(trivial, seen)


def distance_on(distance: Any, vertex: Vec, frequencies: Vec, seen: Mask | None) -> float:
    """Return the distance over the observed offers; over all without ``seen`` or a method ``value_on``."""
    if seen is None or not hasattr(distance, "value_on"):
        return float(distance.value(vertex, frequencies))
    return float(distance.value_on(vertex, frequencies, seen))


def _dual_value(distance: Any, dual: Vec, frequencies: Vec, least: float | None = None) -> float:
    """Return the dual function, a lower bound on the payoff of any model, minus a margin for rounding.

    ``least`` bounds the costs of a ranking from below. By default every offer counts with its cheapest item: no
    ranking does better. For a trivial dual, whose costs are equal within an offer, that is exact.
    """
    costs, offset = distance.costs(dual), distance.offset(dual, frequencies)
    if least is None:
        least = float(np.minimum.reduceat(costs, distance.assortments.indptr[:-1]).sum())
    rounding = ROUNDING * costs.size * (1.0 + float(np.abs(costs).sum()) + abs(offset))
    return float(least - offset - rounding)


def confidence_radii(counts: ChoiceCounts, confidence: float = 0.95) -> Vec:
    """Bound the l1 distance of each offer's frequencies from the true ones, for all offers and at all times.

    If choices are independent draws from probabilities that do not drift, then with probability ``confidence`` no bound
    ever fails, however long the stream and however often one looks. With a = 1 - confidence: the Dirichlet(1/2) mixture
    of multinomial likelihoods over the true likelihood is a martingale of mean 1, so by Ville's inequality it exceeds
    m / a on any of the m offers with probability a at most. Hence
    K * KL(frequencies, truth) <= log(m / a) + log(largest likelihood) - log(mixture), and Pinsker's inequality gives
    an l1 radius. An offer without choices has radius 2. Counts that forget or have weights raise a ValueError, because
    their tallies are not numbers of independent choices.
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
    """Return the log of the Dirichlet(1/2) mixture of multinomial likelihoods of one offer's tallies."""
    times, half = tallies.tolist(), 0.5 * tallies.size
    return lgamma(half) - lgamma(sum(times) + half) + sum(lgamma(k + 0.5) - lgamma(0.5) for k in times)


def confident_gap(
    certificate: Certificate, distance: Distance, counts: ChoiceCounts, confidence: float = 0.95
) -> float:
    """Bound, with this confidence, how far the model is from the best one for the *true* probabilities.

    The certificate must be at the counts' own frequencies: ``solver.certificate(state, counts)``. Its gap grows by
    2 L * radius, since both D(x_bar, .) and min D(x, .) change by at most L per unit of change in the frequencies.
    """
    return certificate.gap + 2.0 * distance.lipschitz * distance.data_radius(confidence_radii(counts, confidence))
