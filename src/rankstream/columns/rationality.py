"""The limit of rationality: how well any distribution over rankings can fit, and whether the rest is noise."""

from dataclasses import dataclass
from math import exp, inf
from typing import NamedTuple

import numpy as np

from rankstream._core import Label, Vec, Watch, unwatched, whole_number
from rankstream.certificate.gap import log_mixture
from rankstream.columns import mle
from rankstream.columns.corrective import ColumnSearch, Goal
from rankstream.columns.data import ColumnFinder, Observed, observe
from rankstream.data.counts import ChoiceCounts, Target
from rankstream.distances import L2
from rankstream.models.nearest import NearestMixture
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Ties


class SquaredMinimum(NamedTuple):
    """The nearest mixture (a start for other targets), its squared distance, and a bound on that."""

    mixture: NearestMixture
    value: float
    bound: float
    iterations: int


class SquaredSearch:
    """Find the mixture nearest to a point, by the mean over observations of the squared l2 distance.

    It runs the engine of the l2 distance and squares its bounds.
    """

    def __init__(self, observed: Observed, finder: ColumnFinder) -> None:
        self.observed, self.finder = observed, finder
        self._shares = observed.offer_shares
        self._norm = L2(observed.assortments, weights=tuple(np.sqrt(self._shares).tolist()))

    def run(
        self,
        aim: Vec,
        tolerance: float,
        *,
        against: float = np.nan,
        first: NearestMixture | None = None,
        max_rounds: int = 500,
        watch: Watch = unwatched,
    ) -> SquaredMinimum:
        """Find the nearest mixture up to a tolerance, or until its square is known to be below ``against`` or not.

        It starts from the rankings of ``first``. The aim need not be frequencies.
        """
        nearest = NearestMixture(self.finder.assortments, aim, self._shares) if first is None else first.aimed_at(aim)
        goal = Goal("squared-gap", tolerance, against)
        search = ColumnSearch(self._norm, Target(aim), self.finder, goal, max_rounds, watch)
        search.run_nearest(nearest, self._norm)
        proof = search.certificate(nearest)
        return SquaredMinimum(nearest, proof.upper * proof.upper, proof.lower * proof.lower, search.rounds)


MAX_NOISE_SHARE = 1e-3  # of the noise in the least loss: more accuracy would not change a p-value; an estimate


@dataclass(frozen=True)
class OfferMisfit:
    """One offer's part of the statistic, and its expected value from sampling noise alone.

    Noise varies between offers, so a single ``ratio`` of 2 or 3 is common; large ones show where the model fails.
    """

    offer: tuple[Label, ...]
    observations: float
    misfit: float
    noise: float

    @property
    def ratio(self) -> float:
        """Misfit over noise."""
        if self.noise > 0.0:
            return self.misfit / self.noise
        return 0.0 if self.misfit == 0.0 else np.inf


@dataclass(frozen=True, eq=False)
class Rationality:
    """How well rankings can explain the choices.

    ``lower <= least loss <= upper``, where the loss is the mean over observations of the squared l2 distance between
    observed and modelled frequencies; ``divergence`` encloses the same for the Kullback-Leibler divergence, in nats.
    ``statistic`` is observations * least loss. ``p_value`` comes from a bootstrap (None if skipped) and is valid for
    many observations; ``anytime_p_value`` is valid for any number, however often one looks. If they are small, no
    distribution over rankings explains the choices. ``offers`` has the misfit of each observed offer, the worst ratio
    first; ``model`` is the nearest model.
    """

    lower: float
    upper: float
    divergence: tuple[float, float]
    statistic: float
    p_value: float | None
    anytime_p_value: float
    stretch: float
    offers: tuple[OfferMisfit, ...]
    model: RankingModel

    @property
    def verdict(self) -> str:
        """One sentence: whether rankings can explain the choices, at the 5 % level."""
        if min(1.0 if self.p_value is None else self.p_value, self.anytime_p_value) < 0.05:
            return "no ranking model explains these choices"
        return "a ranking model can explain these choices"

    def __repr__(self) -> str:
        tested = "not bootstrapped" if self.p_value is None else f"p = {self.p_value:.3g}"
        return f"Rationality({self.verdict}: {tested}, anytime p = {self.anytime_p_value:.3g})"


def rationality(counts: ChoiceCounts, *, samples: int = 200, ties: Ties = "random", seed: int = 0) -> Rationality:
    """Test whether any distribution over rankings (any random utility model) can explain these choices.

    The naive bootstrap is invalid at the boundary of the set X of ranking models, where truths with few rankings lie.
    ``p_value`` comes from a stretched bootstrap: noise is drawn at the nearest point x of X and stretched by kappa, and
    the distance of x + kappa * noise from X is divided by kappa. It is valid for all truths p in X at once. For a
    convex set the quotient grows with kappa, so at p itself it is at least the statistic's own law. And x is no
    further from p than the data are, so using x instead of p changes the quotient by at most (the size of the noise)
    / kappa, which vanishes as kappa = 2 * (observations per offer) ** 0.25 grows. (Kitamura and Stoye, 2018, tighten X
    instead; at their sqrt(log N / N) that rejected a truth of two rankings 17 times of 100 at level 0.1.)

    If offers have only a few choices, use ``anytime_p_value``. It rests on the ratio of the Dirichlet(1/2) mixture of
    likelihoods, offer by offer, to the largest likelihood of any ranking model. Under the hypothesis, that ratio ever
    exceeds 1 / alpha with probability at most alpha (Ville). It is conservative. In both tests, unfinished optimisation
    favours the hypothesis. ``samples=0`` skips the bootstrap.

    If the counts have an order, such as price levels, only rankings that respect it count: nobody prefers the dearer
    version of an item. If a choice contradicts the order, the divergence is infinite and ``anytime_p_value`` is 0.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> offers = Assortments([("tea", "pie"), ("tea", "pie", "nothing")])
    >>> report = rationality(ChoiceCounts(offers, [4000, 6000, 5000, 2000, 3000])) # tea gains when nothing joins
    >>> report.p_value < 0.01, report.anytime_p_value < 0.01
    (True, True)
    >>> rationality(ChoiceCounts(offers, [4, 6, 5, 2, 3])).p_value > 0.1          # too few choices to reject
    True
    """
    whole_number("samples", samples)
    if not isinstance(counts, ChoiceCounts):
        raise ValueError(f"A test needs ChoiceCounts, not {type(counts).__name__}: frequencies have no sampling noise.")
    counts.require_whole("A test of rationality")
    observed = observe(counts)
    search, total = SquaredSearch(observed, observed.finder(None, ties, seed)), float(observed.totals.sum())
    accuracy = MAX_NOISE_SHARE * observed.totals.size / total
    stretch = float(2.0 * max(float(observed.totals.mean()), 1.0) ** 0.25)
    nearest = search.run(observed.frequencies, accuracy)
    p_value = _bootstrap(search, nearest, accuracy, stretch, samples, seed) if samples else None
    divergence, evidence = _likelihood(counts, observed, ties, seed)
    return Rationality(
        lower=nearest.bound,
        upper=nearest.value,
        divergence=divergence,
        statistic=total * nearest.value,
        p_value=p_value,
        anytime_p_value=exp(-max(evidence, 0.0)),
        stretch=stretch,
        offers=_by_offer(observed, nearest.mixture.point),
        model=observed.model(nearest.mixture.orders, nearest.mixture.weights, ties, seed),
    )


def _likelihood(counts: ChoiceCounts, observed: Observed, ties: Ties, seed: int) -> tuple[tuple[float, float], float]:
    """Return bounds on the least divergence, and the log of the mixture's likelihood ratio to any ranking model."""
    if observed.impossible.size:
        return (inf, inf), inf
    total = float(observed.totals.sum())
    likely = mle.fit_mle(counts, tolerance=min(1e-4, 0.01 / total), max_rounds=200, ties=ties, seed=seed)
    offers = np.split(counts.tallies, counts.assortments.indptr[1:-1])
    evidence = sum(map(log_mixture, offers)) - likely.log_likelihood - total * max(likely.gap, 0.0)
    return (max(likely.bound, 0.0), likely.value), evidence


def _bootstrap(
    search: SquaredSearch, nearest: SquaredMinimum, accuracy: float, stretch: float, samples: int, seed: int
) -> float:
    """Return the share of resampled statistics that are at least the observed one; ``stretch`` is kappa."""
    observed, centre, generator = search.observed, nearest.mixture.point, np.random.default_rng(seed)
    scale = stretch**2  # of squared distances
    against = nearest.bound * scale
    if against <= 0.0:  # no distance is less
        return 1.0
    totals = observed.totals.astype(np.int64).tolist()
    shares = [part / part.sum() for part in np.split(centre, observed.assortments.indptr[1:-1])]
    at_least = 0
    for _ in range(samples):
        parts = [generator.multinomial(total, part) / total for total, part in zip(totals, shares, strict=True)]
        aim = centre + stretch * (np.concatenate(parts) - centre)
        sample = search.run(aim, accuracy * scale, against=against, first=nearest.mixture)
        at_least += sample.value >= against
    return (1 + at_least) / (1 + samples)


def _by_offer(observed: Observed, point: Vec) -> tuple[OfferMisfit, ...]:
    offers = observed.assortments
    squares = np.add.reduceat((point - observed.frequencies) ** 2, offers.indptr[:-1]) * observed.totals
    noise = np.add.reduceat(point * (1.0 - point), offers.indptr[:-1])
    rows = zip(offers.offers, observed.totals.tolist(), squares.tolist(), np.maximum(noise, 0.0).tolist(), strict=True)
    return tuple(sorted((OfferMisfit(*row) for row in rows), key=lambda row: -row.ratio))
