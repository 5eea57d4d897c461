"""Logits with part-worths: an item is worth what its attributes are worth to a class, and an effect of its own."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from rankstream._core.types import Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.attributes import Attributes
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import observed
from rankstream.models.parametric.base import climb_smooth, fit_facts
from rankstream.models.parametric.latent_class import LatentClassModel, mixed_shares
from rankstream.models.parametric.mnl import SHRUNK_SMOOTHING, with_imaginary_offer

# not tuned; benchmarks/attributes.py prints the errors
PRIOR_SQUARES, PRIOR_EFFECTS = 0.25, 1.0  # one coefficient of each kind seen in advance, as in the shrunk logit
MAX_VARIANCE_ROUNDS, VARIANCE_TOLERANCE = 8, 0.05  # of the fixed point; each round climbs from the last one's end
MAX_STEPS = 200  # of one climb
START_SPREAD = 1.0  # standard deviation of the classes' coefficients at a random start
N_KINDS = 4
ATTRIBUTE, FREE_ITEM, CLASS_DEVIATION, ITEM_EFFECT = range(N_KINDS)
"""The kinds of coefficients, each with a variance of its own."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AttributeModel(LatentClassModel):
    """Classes with ``attraction[k, i]`` proportional to ``exp(x_i @ part_worths[k] + effect_i)``, and their point."""

    part_worths: Vec
    point: Vec


def fit_attribute_logit(
    counts: ChoiceCounts,
    attributes: Attributes,
    classes: int = 1,
    *,
    smoothing: float = SHRUNK_SMOOTHING,
    tolerance: float = 1e-6,
    max_rounds: int = MAX_STEPS,
    seed: int = 0,
    watch: Watch = unwatched,
    start: LatentClassModel | None = None,
) -> AttributeModel:
    """Fit classes with part-worths of their own, and item effects that they share, from one start.

    Coefficients are normal around 0, those of classes around common ones. MacKay's fixed point estimates the variance
    of each kind: the sum of squares over the effective number of coefficients, with posterior variances by Laplace's
    approximation, as if the classes of choices were known. An item without attributes has a coefficient of its own.
    """
    data = observed(counts)
    problem = _Problem(data, attributes, classes, smoothing)
    point = np.zeros(problem.size)
    if isinstance(start, AttributeModel):
        point = start.point
    elif classes > 1:  # around the logit
        logit = fit_attribute_logit(counts, attributes, smoothing=smoothing, tolerance=tolerance, watch=watch)
        point[classes:] = START_SPREAD * np.random.default_rng(seed).normal(size=len(problem.kinds))
        point[classes:][problem.kinds != CLASS_DEVIATION] = logit.point[1:]
    limits = {"ftol": tolerance, "gtol": 1e-6, "maxiter": min(max_rounds, MAX_STEPS)}
    variances, steps, converged = np.ones(N_KINDS), 0, False
    for _ in range(MAX_VARIANCE_ROUNDS):
        precision = problem.precision(variances)
        scale = np.linalg.inv(np.linalg.cholesky(problem.information(point) + np.diag(precision))).T
        cost = partial(problem.cost, precision=precision, base=point, scale=scale)
        end = climb_smooth(cost, np.zeros(problem.size), limits, watch, "part-worths")
        point, steps = point + scale @ end.x, steps + int(end.nit)
        before, variances = variances, problem.next_variances(point, variances)
        converged = bool((np.abs(variances - before) <= VARIANCE_TOLERANCE * before).all())
        if converged or watch("part-worths"):
            break
    mixture, worth = problem.mixture(point)
    attraction = worth / worth.sum(axis=1, keepdims=True)
    shares = mixed_shares(mixture, attraction, data.assortments.indptr, data.assortments.members)
    return AttributeModel(
        **fit_facts(data, shares, steps, converged), n_parameters=problem.size - 1, mixture=mixture,
        attraction=attraction, part_worths=problem.part_worths(point), point=point,
    )  # fmt: skip


class _Problem:
    """Minus the log of the posterior density; a point is log shares of classes, then coefficients.

    These are of attributes and of items without any, common to all classes; how each class deviates from them; and the
    effects of items with attributes. ``design[k]`` maps them to the utilities of class k.
    """

    def __init__(self, data: ChoiceCounts, attributes: Attributes, classes: int, smoothing: float) -> None:
        table, rated = attributes.design(data.assortments.items)
        single = np.eye(len(rated))
        columns = np.hstack([table, single[:, ~rated]])
        self.classes, self.width, self.n_attributes = classes, columns.shape[1], table.shape[1]
        own = [np.kron(row, columns) for row in np.eye(classes)] if classes > 1 else [columns[:, :0]]
        self.design = np.array([np.hstack([columns, block, single[:, rated]]) for block in own])
        common = np.where(np.arange(self.width) < self.n_attributes, ATTRIBUTE, FREE_ITEM)
        sizes = own[0].shape[1], int(rated.sum())
        self.kinds = np.concatenate([common, np.repeat([CLASS_DEVIATION, ITEM_EFFECT], sizes)])
        self.size = classes + len(self.kinds)
        self.offered, self.chosen = with_imaginary_offer(data, smoothing)

    def part_worths(self, point: Vec) -> Vec:
        """Return the coefficients of attributes, a row for each class."""
        coefficients = point[self.classes :]
        own = coefficients[self.kinds == CLASS_DEVIATION].reshape(-1, self.width)[:, : self.n_attributes]
        return coefficients[: self.n_attributes] + (own if len(own) else np.zeros((1, 1)))

    def precision(self, variances: Vec) -> Vec:
        """Return the inverse prior variance of each number of a point."""
        return np.concatenate([np.zeros(self.classes), 1.0 / variances[self.kinds]])

    def mixture(self, point: Vec) -> tuple[Vec, Vec]:
        """Return the shares of classes, and what each item is worth to them."""
        mixture = np.exp(point[: self.classes] - point[: self.classes].max())
        utility = self.design @ point[self.classes :]
        return mixture / mixture.sum(), np.exp(np.maximum(utility - utility.max(axis=1, keepdims=True), -500.0))

    def _members(self, mixture: Vec, worth: Vec) -> tuple[Vec, Vec, Vec]:
        """Return the likelihood of each choice, what each class adds to it, and choices by offer and class."""
        rates = mixture / (self.offered @ worth.T)
        likely = rates @ worth
        return likely, rates, rates * ((self.chosen / likely) @ worth.T)

    def cost(self, step: Vec, precision: Vec, base: Vec, scale: Vec) -> tuple[float, Vec]:
        """Return the cost of ``base + scale @ step``, and its gradient."""
        point = base + scale @ step
        mixture, worth = self.mixture(point)
        likely, rates, members = self._members(mixture, worth)
        slope = worth * (rates.T @ (self.chosen / likely) - (members * rates / mixture).T @ self.offered)
        by_class = members.sum(axis=0) + 1.0 - mixture * (members.sum() + self.classes)  # one more choice of each class
        gradient = np.concatenate([by_class, np.einsum("ki,kij->j", slope, self.design)])
        height = float((self.chosen * np.log(likely)).sum() + np.log(mixture).sum())
        return 0.5 * float(precision @ point**2) - height, (precision * point - gradient) @ scale

    def information(self, point: Vec) -> Vec:
        """Return minus the second derivative of the log-likelihood, as if the classes of choices were known."""
        mixture, worth = self.mixture(point)
        members = self._members(mixture, worth)[2]
        hessian = np.diag(np.concatenate([members.sum(axis=0) + 1.0, np.zeros(len(self.kinds))]))
        for choices, row, design in zip(members.T, worth, self.design, strict=True):
            shares = self.offered * row
            shares /= shares.sum(axis=1, keepdims=True)
            weighted = shares * choices[:, np.newaxis]
            inner = np.diag(weighted.sum(axis=0)) - weighted.T @ shares
            hessian[self.classes :, self.classes :] += design.T @ inner @ design
        return hessian

    def next_variances(self, point: Vec, variances: Vec) -> Vec:
        """Return the next variances of the fixed point, one of each kind."""
        precision = self.precision(variances)
        known = 1.0 - precision * np.diag(np.linalg.inv(self.information(point) + np.diag(precision)))
        squares, effective = (np.bincount(self.kinds, part[self.classes :], N_KINDS) for part in (point**2, known))
        return (squares + PRIOR_SQUARES) / (effective + PRIOR_EFFECTS)
