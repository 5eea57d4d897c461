"""Statistics: how far the observed frequencies can be from the truth, at all times at once, with what confidence."""

from math import lgamma, log

import numpy as np

from rankstream._core.arguments import number_between
from rankstream._core.types import Vec
from rankstream.certificate.gap import Certificate
from rankstream.data.counts import ChoiceCounts
from rankstream.distances.protocol import Distance


def confidence_radii(counts: ChoiceCounts, level: float = 0.95) -> Vec:
    """For each offer, a bound on the l1 distance of its frequencies from the true ones; for all offers and all times.

    If choices are independent draws from probabilities that do not drift, then with probability ``level`` no bound ever
    fails, however long the stream and whenever one looks. The inequality: the
    Dirichlet(1/2) mixture of multinomial likelihoods over the true likelihood is a martingale of mean 1, so by Ville's
    inequality it never exceeds m / (1 - level) on any of the m offers except with probability 1 - level. Hence
    K * KL(frequencies, truth) <= log(m / (1 - level)) + log(largest likelihood) - log(mixture), and Pinsker's
    inequality turns that into an l1 radius. An offer never seen has radius 2. Counts that forget or have weights are
    refused: their tallies are not numbers of independent choices.
    """
    if not 0.0 < number_between("The confidence level", level, 0.0, 1.0) < 1.0:
        raise ValueError(f"level is {level}: it must lie strictly between 0 and 1.")
    counts.require_whole("A bound on the sampling error")
    assortments = counts.assortments
    radii = np.empty(assortments.n_offers)
    for offer in range(assortments.n_offers):
        tallies = counts.tallies[assortments.indptr[offer] : assortments.indptr[offer + 1]]
        radii[offer] = _radius(tallies, log(assortments.n_offers / (1.0 - level)))
    return radii


def _radius(tallies: Vec, log_odds: float) -> float:
    total, size = float(tallies.sum()), tallies.size
    if size == 1:
        return 0.0
    if total == 0.0:
        return 2.0
    best = sum(k * log(k / total) for k in tallies.tolist() if k > 0.0)
    mixture = lgamma(0.5 * size) - lgamma(total + 0.5 * size)
    mixture += sum(lgamma(k + 0.5) - lgamma(0.5) for k in tallies.tolist())
    return float(min(2.0, np.sqrt(2.0 * (log_odds + best - mixture) / total)))


def confident_gap(certificate: Certificate, distance: Distance, counts: ChoiceCounts, level: float = 0.95) -> float:
    """With this confidence, the model is at most this far from the best ranking model for the *true* probabilities.

    The certificate must be the one at the counts' own frequencies, ``solver.certificate(state, counts)``; its gap grows
    by 2 L * radius, since both D(x_bar, .) and min D(x, .) change by at most L per unit of change in the frequencies.
    """
    return certificate.gap + 2.0 * distance.lipschitz * distance.data_radius(confidence_radii(counts, level))
