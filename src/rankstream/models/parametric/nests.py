"""A nested logit whose nests are found from data, and the latent classes that stand for it."""

from functools import cache

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import observed
from rankstream.models.parametric.base import climb_smooth
from rankstream.models.parametric.latent_class import LatentClassModel, fit_latent_class
from rankstream.models.parametric.mnl import fit_mnl, logit_shares

# chosen on markets of benchmarks/truths.py, seeds 7001 to 7008
TRIED_GROUPS = (1, 2, 3, 4, 6, 9)  # of items, in the partitions that are tried
NEST_NATS = 1.0  # that another nest has to gain
MIN_SCALE, SCALE_PENALTY = 0.1, 0.02  # of a nest, where 1 is the logit: the least, and nats for squared log-odds
SMOOTHING = 0.3  # imaginary choices of each item
CLASSES, CLASS_SMOOTHING, MAX_ROUNDS = 10, 0.02, 300  # of the classes; 30 predict hardly better
N_OFFERS, CHOICES = 300, 300.0  # imaginary offers that the classes are fitted to, and choices from each


def fit_nests(counts: ChoiceCounts, *, watch: Watch = unwatched) -> LatentClassModel:
    """Fit a nested logit with the nests of highest likelihood, and latent classes to what it predicts.

    Nests are groups of items in the average linkage of their ``pair_scores``. A program over unions of offers cannot
    run a nested logit, but ten classes that are fitted to its shares in 300 random offers predict nearly the same.

    >>> offers = Assortments([("bus", "tram", "car"), ("bus", "car"), ("tram", "car"), ("tram", "bus")])
    >>> model = fit_nests(ChoiceCounts(offers, [250, 250, 500, 500, 500, 500, 500, 500, 500]))
    >>> model.n_classes, round(model.predict(("bus", "tram", "car"))["car"], 1)
    (10, 0.5)
    """
    data = observed(counts)
    best = min((_climb(data, nests, watch) for nests in _partitions(data)), key=lambda fit: fit[0])
    menus, items = _menus(data.assortments.n_items, data.assortments.no_choice_code), data.assortments.items
    offers = Assortments([[items[code] for code in menu] for menu in menus], items)
    return fit_latent_class(
        ChoiceCounts(offers, CHOICES * nested_shares(*best[1:], offers)[0]), classes=CLASSES, starts=1,
        smoothing=CLASS_SMOOTHING, tolerance=1e-6, max_rounds=MAX_ROUNDS, watch=watch,
    )  # fmt: skip


def nested_shares(utility: Vec, scale: Vec, nests: Codes, offers: Assortments) -> tuple[Vec, Vec, Vec, Vec]:
    """Return a nested logit's shares, those within nests, and by offer and nest its shares and inclusive values.

    >>> offers = Assortments([("bus", "tram", "car")])
    >>> nested_shares(np.zeros(3), np.array([0.5, 1.0]), np.array([0, 0, 1]), offers)[0].round(2).tolist()
    [0.29, 0.29, 0.41]
    """
    places = offers.owner * scale.size + nests[offers.members]
    worth = np.maximum(np.exp((utility - utility.max()) / scale[nests]), 1e-300)[offers.members]
    inclusive = np.bincount(places, worth, offers.n_offers * scale.size)
    pull = (inclusive ** np.tile(scale, offers.n_offers)).reshape(-1, scale.size)
    within, between = worth / inclusive[places], (pull / pull.sum(axis=1, keepdims=True)).ravel()
    return within * between[places], within, between, np.log(np.where(inclusive > 0.0, inclusive, 1.0))


def pair_scores(data: ChoiceCounts) -> Vec:
    """Return how much more two items take from each other than in a logit, in standard errors; 0 if never together.

    That is the score of a covariance of their utilities, at the fitted logit.
    """
    offers = data.assortments
    shares, chosen = np.zeros((2, offers.n_offers, offers.n_items))
    shares[offers.owner, offers.members] = logit_shares(fit_mnl(data).attraction, offers.indptr, offers.members)
    chosen[offers.owner, offers.members] = data.tallies
    expected = data.totals[:, np.newaxis] * shares
    score, variance = (expected - chosen).T @ shares, expected.T @ shares**2
    variance = variance + variance.T - 4.0 * (expected * shares).T @ shares**2
    scores: Vec = (score + score.T) / np.sqrt(np.where(variance > 0.0, variance, np.inf))
    return scores


def _partitions(data: ChoiceCounts) -> list[Codes]:
    """Return the nest of every item in each partition to try; the no-purchase option is alone."""
    from scipy.cluster.hierarchy import cut_tree, linkage

    n_items, code = data.assortments.n_items, data.assortments.no_choice_code
    others = np.flatnonzero(np.arange(n_items) != code)
    if others.size < 2:
        return [np.arange(n_items)]
    scores = pair_scores(data)[np.ix_(others, others)]
    tree = linkage((scores.max() - scores)[np.triu_indices(others.size, 1)], "average")
    cuts = cut_tree(tree, [size for size in TRIED_GROUPS if size <= others.size]).T
    return [cut if code is None else np.insert(cut, code, cut.max() + 1) for cut in cuts]


def _climb(data: ChoiceCounts, nests: Codes, watch: Watch) -> tuple[float, Vec, Vec, Codes]:
    """Return the least cost of a nested logit, its utilities, and the scales of its nests."""
    offers, tallies, n_items, n_nests = data.assortments, data.tallies, data.assortments.n_items, int(nests.max()) + 1
    groups = nests[offers.members]
    places = offers.owner * n_nests + groups
    by_nest = np.bincount(places, tallies, offers.n_offers * n_nests)

    def scale_of(point: Vec) -> Vec:
        scale: Vec = MIN_SCALE + (1.0 - MIN_SCALE) / (1.0 + np.exp(-point[n_items:]))
        return scale

    def cost(point: Vec) -> tuple[float, Vec]:
        utility, scale, odds = point[:n_items] - point[:n_items].max(), scale_of(point), point[n_items:]
        share, within, between, inclusive = nested_shares(utility, scale, nests, offers)
        missing = by_nest - np.repeat(data.totals, n_nests) * between
        pull = (tallies - by_nest[places] * within) / scale[groups] + missing[places] * within
        everything = np.exp(utility) / np.exp(utility).sum()
        by_item = np.bincount(offers.members, pull, n_items) + SMOOTHING * (1.0 - n_items * everything)
        by_scale = (missing * inclusive).reshape(-1, n_nests).sum(axis=0)
        by_scale -= np.bincount(groups, pull * (utility / scale[nests])[offers.members], n_nests)
        by_odds = by_scale * (scale - MIN_SCALE) * (1.0 - scale) / (1.0 - MIN_SCALE) - 2.0 * SCALE_PENALTY * odds
        value = float(tallies @ np.log(share)) + SMOOTHING * float(np.log(everything).sum())
        return SCALE_PENALTY * float(odds @ odds) - value, -np.append(by_item, by_odds)

    start = np.append(np.log(fit_mnl(data).attraction), np.ones(n_nests))
    found = climb_smooth(cost, start, {"maxiter": 300, "ftol": 1e-7}, watch, "nests")
    extra = NEST_NATS * float((np.bincount(nests) > 1).sum())
    return float(found.fun) + extra, found.x[:n_items], scale_of(found.x), nests


@cache
def _menus(n_items: int, nothing: int | None) -> tuple[tuple[int, ...], ...]:
    """Return random offers of all sizes, each with the no-purchase option."""
    random, others = np.random.default_rng(0), [code for code in range(n_items) if code != nothing]
    always, least = ((), 2) if nothing is None else ((nothing,), 1)
    sizes = random.integers(min(least, len(others)), len(others) + 1, N_OFFERS).tolist()
    return tuple({(*sorted(random.permutation(others)[:size].tolist()), *always): None for size in sizes})
