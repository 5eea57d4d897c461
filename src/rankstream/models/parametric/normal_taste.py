"""Normal taste: a mixed logit whose utilities vary smoothly between customers along a few directions."""

from functools import cache
from typing import Any

import numpy as np

from rankstream._core.types import Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.attributes import Attributes
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import observed
from rankstream.models.parametric.base import climb_smooth, fit_facts
from rankstream.models.parametric.em_kernels import mixture_step
from rankstream.models.parametric.latent_class import LatentClassModel, mixed_shares
from rankstream.models.parametric.mnl import fit_mnl

FACTORS, HALF, MAX_ROUNDS = 5, 32, 300  # directions, half of the points, steps; not tuned
MIN_ATTRACTION = 1e-100  # relative to the best item's, so that sums of quotients stay finite
OWN_SPREAD = 0.3  # of items with attributes, relative to part-worths; benchmarks/attributes.py
SPREAD, LEVEL = 0.5, 0.05  # penalties of a squared direction and a squared mean utility, in nats
ATTRIBUTE_SPREAD, ATTRIBUTE_LEVEL = 2.0, 0.2  # the same with attributes; benchmarks/attributes.py


@cache
def taste_points(factors: int, half: int) -> Vec:
    """Return fixed points of a standard normal law in several directions: evenly spread ones, and their negatives.

    Multiples of powers of a generalised golden ratio fill the unit cube evenly; the normal quantile maps them to
    tastes. They are scaled so that every direction has mean 0 and variance 1, without correlations.
    """
    from scipy.special import ndtri

    ratio = 2.0
    for _ in range(50):
        ratio = (1.0 + ratio) ** (1.0 / (factors + 1.0))
    steps = ratio ** -np.arange(1.0, factors + 1.0)
    points: Vec = ndtri((0.5 + np.outer(np.arange(1, half + 1), steps)) % 1.0)
    points = np.concatenate([points, -points])
    points = np.linalg.solve(np.linalg.cholesky(points.T @ points / len(points)), points.T).T.copy()
    points.flags.writeable = False
    return points


def fit_normal_taste(
    counts: ChoiceCounts,
    *,
    seed: int = 0,
    watch: Watch = unwatched,
    start: LatentClassModel | None = None,
    attributes: Attributes | None = None,
) -> LatentClassModel:
    """Fit a mixed logit with utilities mean + directions @ normal taste, as a mixture of 64 logits of equal weight.

    Mean and directions maximise the likelihood minus ``SPREAD`` times the sum of squared directions and a small penalty
    for the mean, by L-BFGS with the analytic gradient. It is the only guide that varies smoothly. With few choices it
    is more stable than latent classes. ``start`` is a fit to similar counts. With attributes, mean and directions are
    part-worths, to which items with attributes add less of their own.

    >>> from rankstream import Assortments
    >>> offers = Assortments([("tea", "pie"), ("pie", "cake"), ("tea", "cake"), ("tea", "pie", "cake")])
    >>> found = fit_normal_taste(ChoiceCounts(offers, [50, 50, 50, 50, 50, 50, 50, 20, 30]))
    >>> found.n_classes, round(found.predict(("tea", "pie"))["tea"], 1)
    (64, 0.5)
    """
    data = observed(counts)
    offers, points = data.assortments, taste_points(FACTORS, HALF)
    mixture = np.full(len(points), 1.0 / len(points))
    tallies, basis = np.ascontiguousarray(data.tallies), _basis(data, attributes)
    size = basis.shape[1]
    spread, level_cost = (SPREAD, LEVEL) if attributes is None else (ATTRIBUTE_SPREAD, ATTRIBUTE_LEVEL)

    def attraction_of(parameters: Vec) -> Vec:
        level, directions = parameters[:size], parameters[size:].reshape(size, FACTORS)
        utility = basis @ (level[:, np.newaxis] + directions @ points.T)
        attraction: Vec = np.maximum(np.exp(utility - utility.max(axis=0)), MIN_ATTRACTION)
        return attraction

    def height(parameters: Vec) -> tuple[float, Vec]:
        attraction = attraction_of(parameters)
        top, bottom = np.zeros_like(attraction), np.zeros_like(attraction)
        value = mixture_step(offers.indptr, offers.members, tallies, mixture, attraction, top, bottom)
        slope = basis.T @ (top - attraction * bottom)
        level, directions = parameters[:size], parameters[size:]
        gradient = np.concatenate([slope.sum(axis=1), (slope @ points).ravel()])
        gradient -= np.concatenate([2.0 * level_cost * level, 2.0 * spread * directions])
        cost = level_cost * float(level @ level) + spread * float(directions @ directions)
        return cost - value, -gradient

    begin: Any = _begin(data, seed) if start is None else _parameters(start, points)
    begin = begin if attributes is None else np.linalg.lstsq(basis, begin, rcond=None)[0]
    begin = np.concatenate([begin[:, 0], begin[:, 1:].ravel()])
    result = climb_smooth(height, begin, {"maxiter": MAX_ROUNDS, "ftol": 1e-10, "gtol": 1e-6}, watch, "normal taste")
    attraction = attraction_of(result.x)
    attraction = np.ascontiguousarray((attraction / attraction.sum(axis=0)).T)
    shares = mixed_shares(mixture, attraction, offers.indptr, offers.members)
    facts = fit_facts(data, shares, int(result.nit), result.success)
    return LatentClassModel(**facts, n_parameters=size * (1 + FACTORS) - 1, mixture=mixture, attraction=attraction)


def _basis(data: ChoiceCounts, attributes: Attributes | None) -> Vec:
    """Return what a unit of each parameter adds to the utility of each item: to its own, or by an attribute."""
    items = data.assortments.items
    if attributes is None:
        return np.eye(len(items))
    table, rated = attributes.design(items)
    return np.hstack([np.diag(np.where(rated, OWN_SPREAD, 1.0)), table])


def _begin(data: ChoiceCounts, seed: int) -> Vec:
    """Return the logit's utilities and small random directions of each item, because zero is a saddle point."""
    level = np.log(fit_mnl(data).attraction)
    random = np.random.default_rng(seed).normal(scale=0.3, size=(level.size, FACTORS))
    return np.column_stack([level - level.mean(), random])


def _parameters(model: LatentClassModel, points: Vec) -> Vec:
    """Return the mean and the directions of each item of a fit: utilities are linear in the points."""
    utility = np.log(model.attraction)
    utility = utility - utility.mean(axis=1, keepdims=True)
    design = np.column_stack([np.ones(len(points)), points])
    solved: Vec = np.linalg.lstsq(design, utility, rcond=None)[0].T
    return solved
