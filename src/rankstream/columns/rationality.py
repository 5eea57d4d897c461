"""The limit of rationality: how well any distribution over rankings can fit, and whether noise explains the rest."""

from dataclasses import dataclass
from math import exp, inf
from typing import NamedTuple

import numpy as np

from rankstream._core.arguments import whole_number
from rankstream._core.types import Label, Vec
from rankstream._core.watch import Watch, unwatched
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
    """The nearest mixture, from which a search with another aim can go on; its squared distance, and a bound on it."""

    mixture: NearestMixture
    value: float
    bound: float
    iterations: int


class SquaredSearch:
    """What is nearest to any aim, over the same offers: the mean over observations of the squared l2 distance.

    The engine is that of the l2 distance, whose bounds are squared here.
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
        """The nearest mixture up to a tolerance, or up to knowing whether its square is below ``against``.

        ``first`` is a mixture with whose rankings it begins. The aim need not be frequencies.
        """
        nearest = NearestMixture(self.finder.assortments, aim, self._shares) if first is None else first.aimed_at(aim)
        goal = Goal("squared-gap", tolerance, against)
        search = ColumnSearch(self._norm, Target(aim), self.finder, goal, max_rounds, watch)
        search.run_nearest(nearest, self._norm)
        found = search.certificate(nearest)
        return SquaredMinimum(nearest, found.upper * found.upper, found.lower * found.lower, search.rounds)


MAX_NOISE_SHARE = 1e-3  # of what noise adds to the least loss: nearer would not change a p-value; an estimate


@dataclass(frozen=True)
class OfferMisfit:
    """One offer's part of the statistic, and the mean of what sampling noise alone would make of it.

    Noise spreads over all offers, so a single ``ratio`` of 2 or 3 is common; large ones say where the model fails.
    """

    offer: tuple[Label, ...]
    observations: float
    misfit: float
    noise: float

    @property
    def ratio(self) -> float:
        """Misfit over noise."""
        return self.misfit / self.noise if self.noise > 0.0 else 0.0 if self.misfit == 0.0 else np.inf


@dataclass(frozen=True, eq=False)
class Rationality:
    """How well rankings can explain the choices.

    ``lower <= least loss <= upper``, where the loss is the mean over observations of the squared l2 distance between
    observed and modelled frequencies; ``divergence`` encloses the same for the Kullback-Leibler divergence, in nats.
    ``statistic`` is observations * least loss. ``p_value`` is that of a bootstrap (None: not asked for), valid for many
    observations, ``anytime_p_value`` one that holds for any number of them and at any time of looking; a small one says
    that no distribution over rankings made these choices. ``offers`` has the misfit of each offer that was seen, the
    worst ratio first; ``model`` is the nearest.
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
        """Whether rankings can explain the choices, in one sentence, at the 5 % level."""
        if min(1.0 if self.p_value is None else self.p_value, self.anytime_p_value) < 0.05:
            return "no ranking model explains these choices"
        return "a ranking model can explain these choices"

    def __repr__(self) -> str:
        tested = "not bootstrapped" if self.p_value is None else f"p = {self.p_value:.3g}"
        return f"Rationality({self.verdict}: {tested}, anytime p = {self.anytime_p_value:.3g})"


def rationality(counts: ChoiceCounts, *, samples: int = 200, ties: Ties = "random", seed: int = 0) -> Rationality:
    """Test whether any distribution over rankings (any random utility model) can explain these choices.

    The naive bootstrap is invalid at the boundary of the set X of ranking models, where truths with few rankings lie.
    ``p_value`` comes from a stretched one: noise is drawn at the nearest point x of X, stretched by kappa, and the
    distance of x + kappa * noise from X is divided by kappa. Why it is valid, for all truths p in X at once: for a
    convex set that quotient grows with kappa, so at p itself it is at least the statistic's own law; and x is no
    further from p than the data are, so having x in place of p changes the quotient by at most (the size of the noise)
    / kappa, which vanishes as kappa = 2 * (observations per offer) ** 0.25 grows. (Kitamura and Stoye, 2018, tighten X
    instead; at their sqrt(log N / N) that rejected a truth of two rankings 17 times of 100 at level 0.1.)

    Where offers are seen a few times only, trust ``anytime_p_value``: the ratio of the Dirichlet(1/2) mixture of
    likelihoods, offer by offer, to the largest likelihood of any ranking model has mean at most 1 at any time if
    rankings made the choices, so it ever exceeds 1 / alpha with probability at most alpha (Ville). It is conservative.
    Unfinished optimisation counts for the hypothesis in both. ``samples=0`` skips the bootstrap.

    Where the counts have an order, such as price levels, rankings are those that keep it: nobody prefers the dearer
    version of an item. A choice where another item of the offer must come before it is impossible then: the divergence
    is infinite, and ``anytime_p_value`` is 0.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> offers = Assortments([("tea", "pie"), ("tea", "pie", "nothing")])
    >>> report = rationality(ChoiceCounts(offers, [4000, 6000, 5000, 2000, 3000])) # tea gains when nothing joins
    >>> report.p_value < 0.01, report.anytime_p_value < 0.01
    (True, True)
    >>> rationality(ChoiceCounts(offers, [4, 6, 5, 2, 3])).p_value > 0.1          # so few choices say little
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
    """Bounds on the least divergence, and the log of how much likelier the mixture is than any ranking model."""
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
    """The share of resampled statistics that are at least the observed one; ``stretch`` is kappa."""
    observed, centre, generator = search.observed, nearest.mixture.point, np.random.default_rng(seed)
    scale = stretch**2  # what the stretch does to squared distances
    against = nearest.bound * scale
    if against <= 0.0:  # every distance is at least that
        return 1.0
    totals = observed.totals.astype(np.int64).tolist()
    shares = [part / part.sum() for part in np.split(centre, observed.assortments.indptr[1:-1])]
    at_least = 0
    for _ in range(samples):
        parts = [generator.multinomial(total, part) / total for total, part in zip(totals, shares, strict=True)]
        aim = centre + stretch * (np.concatenate(parts) - centre)
        again = search.run(aim, accuracy * scale, against=against, first=nearest.mixture)
        at_least += again.value >= against
    return (1 + at_least) / (1 + samples)


def _by_offer(observed: Observed, point: Vec) -> tuple[OfferMisfit, ...]:
    offers = observed.assortments
    squares = np.add.reduceat((point - observed.frequencies) ** 2, offers.indptr[:-1]) * observed.totals
    noise = np.add.reduceat(point * (1.0 - point), offers.indptr[:-1])
    rows = zip(offers.offers, observed.totals.tolist(), squares.tolist(), np.maximum(noise, 0.0).tolist(), strict=True)
    return tuple(sorted((OfferMisfit(*row) for row in rows), key=lambda row: -row.ratio))
