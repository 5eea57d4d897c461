"""Logits with part-worths: classes value attributes or a price, and an item has an effect of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from rankstream._core.types import Codes, Label, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.assortments import Assortments
from rankstream.data.attributes import Attributes
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import PriceLevels
from rankstream.models.base import finite_array
from rankstream.models.lifts import Chains, steps_down, tail_sums
from rankstream.models.parametric.base import climb_smooth, fit_facts
from rankstream.models.parametric.latent_class import (
    TRIED_CLASSES,
    ClassOptions,
    LatentClassModel,
    MixtureModel,
    fit_classes,
    mixed_shares,
)
from rankstream.models.parametric.mnl import PRIOR_EFFECTS, PRIOR_SQUARES, SHRUNK_SMOOTHING, with_imaginary_offer

# benchmarks/attributes.py and prices_accuracy.py print the errors
MAX_VARIANCE_ROUNDS, VARIANCE_TOLERANCE = 8, 0.05  # of the fixed point; each round climbs from the last one's end
MAX_STEPS = 200  # of one climb
START_SPREAD = 1.0  # standard deviation of the classes' coefficients at a random start
MIN_SLOPE, MAX_LOG_SLOPE = 1e-3, 50.0  # of a start, and of a price coefficient, in units of the prices' spread
LEAST_LOG = -200.0  # of a class's share and of an item's worth, relative to the largest: products of them are not 0
MIN_CURVATURE = 1e-9  # in units of the diagonal
N_KINDS = 5
ATTRIBUTE, FREE_ITEM, PRICE, CLASS_DEVIATION, ITEM_EFFECT = range(N_KINDS)
"""The kinds of coefficients, each with a variance of its own."""
ITEM_SQUARES, ITEM_EFFECTS = 0.02, 0.1  # as PRIOR_SQUARES, where items have attributes: effects of items may be small
SQUARES: Vec = np.array([ITEM_SQUARES, PRIOR_SQUARES, PRIOR_SQUARES, PRIOR_SQUARES, ITEM_SQUARES])
EFFECTS: Vec = np.array([ITEM_EFFECTS, PRIOR_EFFECTS, PRIOR_EFFECTS, PRIOR_EFFECTS, ITEM_EFFECTS])
COMMON = ("items", "log_likelihood", "iterations", "converged", "n_parameters", "no_choice_code")
NO_PRICES = "No item has a price in its name, such as 'tea @ 3.50': use the method without a price, or PriceLevels."


@dataclass(frozen=True, kw_only=True, eq=False)
class PricedModel(MixtureModel):
    """Classes of customers for whom an item at a price is worth exp(constant - slope * price).

    It predicts at any price of its items, in the data or not: ``tea @ 4.25`` needs no level. Slopes are positive.

    It also has the attributes of ``Fitted``.

    Attributes
    ----------
    mixture : array
        ``mixture[k]`` is the share of class k.
    constants : array
        ``constants[k, g]`` is that of item g to class k; levels of an item share it.
    slopes : array
        What a unit of money costs each class.
    prices : array
        The price of every label; 0 for those without one.
    owner : array
        The number of every label's item.
    """

    FORMAT: ClassVar[str] = "rankstream-priced-logit-model"
    ARRAYS: ClassVar[dict[str, str]] = {"mixture": "k"}
    constants: Vec
    slopes: Vec
    prices: Vec
    owner: Codes

    @property
    def attraction(self) -> Vec:
        """``attraction[k, i]`` is what label i is worth to class k; rows sum to 1."""
        utility = self.constants[:, self.owner] - np.outer(self.slopes, self.prices)
        worth: Vec = np.exp(utility - utility.max(axis=1, keepdims=True))
        worth = np.maximum(worth, 1e-300)
        shares: Vec = worth / worth.sum(axis=1, keepdims=True)
        return shares

    def shares(self, indptr: Codes, members: Codes) -> Vec:
        """Return the classes' probabilities, mixed."""
        return mixed_shares(self.mixture, self.attraction, indptr, members)

    def probabilities(self, assortments: Assortments) -> Vec:
        """Return the choice probability of every coordinate, for any offers of its items at any prices."""
        known = set(self.items)
        new = [item for item in assortments.items if item not in known]
        return super(PricedModel, self.at(new) if new else self).probabilities(assortments)

    def at(self, labels: Sequence[Label]) -> "PricedModel":
        """Return the same model with its items at more prices. Labels of other items are ignored."""
        own, other = PriceLevels.from_labels(self.items), PriceLevels.from_labels(labels)
        if own is None or other is None:
            return self
        number = {own.of(label)[0]: int(k) for label, k in zip(self.items, self.owner, strict=True)}
        pairs = [(label, *other.of(label)) for label in labels]
        added = [(label, number[item], price) for label, item, price in pairs if item in number and price is not None]
        return replace(
            self,
            items=(*self.items, *(label for label, _, _ in added)),
            owner=np.concatenate([self.owner, np.array([k for _, k, _ in added], dtype=np.int64)]),
            prices=np.concatenate([self.prices, np.array([price for *_, price in added], dtype=np.float64)]),
        )

    def draw_orders(self, size: int, random: np.random.Generator) -> Codes:
        """Draw a class by its share, then one taste per item for all of its prices: cheaper always comes first."""
        classes = self.draw_classes(size, random)
        taste = self.constants[classes] + random.gumbel(size=(size, self.constants.shape[1]))
        utility = taste[:, self.owner] - self.slopes[classes, np.newaxis] * self.prices
        by_price = np.argsort(self.prices, kind="stable")
        return by_price[np.argsort(-utility[:, by_price], axis=1, kind="stable")]

    def falling(self, order: Chains) -> LatentClassModel:
        """Return the same model as latent classes whose demand falls along chains of its price levels."""
        steps = np.maximum(steps_down(self.attraction, order), 1e-300)
        common = {name: getattr(self, name) for name in COMMON}
        attraction = steps / steps.sum(axis=1, keepdims=True)
        return LatentClassModel(**common, mixture=self.mixture, attraction=attraction, order=order)

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        """Return the model that ``to_content`` described."""
        known, owner = cls.fields_in(content), np.array(content["owner"])
        size, classes = len(known["items"]), len(known["mixture"])
        constants = finite_array("constants", content["constants"], (classes, -1))
        inside = (owner >= 0) & (owner < constants.shape[1]) if owner.dtype.kind == "i" else np.zeros(1, np.bool_)
        if owner.shape != (size,) or not inside.all():
            raise ValueError("its owner does not give the number of an item for each label")
        slopes, prices = (
            finite_array(name, content[name], (length,)) for name, length in (("slopes", classes), ("prices", size))
        )
        return cls(**known, constants=constants, slopes=slopes, prices=prices, owner=owner.astype(np.int64))


def fit_attribute_logit(
    counts: ChoiceCounts,
    attributes: Attributes | None = None,
    *,
    classes: int | Literal["cv"] = "cv",
    tried: Sequence[int] = TRIED_CLASSES,
    starts: int = 3,
    smoothing: float = SHRUNK_SMOOTHING,
    tolerance: float = 1e-8,
    max_rounds: int = MAX_STEPS,
    folds: int = 4,
    seed: int = 0,
    watch: Watch = unwatched,
    start: LatentClassModel | None = None,
) -> Any:
    """Fit classes with part-worths of their own, and item effects that they share; without attributes, a PricedModel.

    Coefficients are normal around 0, those of classes around common ones, and so are the logarithms of price
    coefficients. MacKay's fixed point estimates the variance of each kind: the sum of squares over the effective number
    of coefficients, with posterior variances by Laplace's approximation, as if the classes of choices were known. An
    item without attributes has a coefficient of its own in each class. The parameters are those of
    ``methods.PricedClasses``, with ``tolerance`` for ``tolerance_nats``; a step is one of L-BFGS. Otherwise as for
    ``fit_latent_class``; ``start`` is a fit to similar counts (``PricedModel.falling`` with prices).

    >>> offers = Assortments([("tea @ 3.00", "no"), ("tea @ 4.00", "no")])
    >>> model = fit_attribute_logit(ChoiceCounts(offers, [600, 400, 400, 600]), classes=1)
    >>> model.slopes.round(1).tolist(), round(model.predict(("tea @ 3.50", "no"))["no"], 2)
    ([0.8], 0.5)
    """
    options = ClassOptions(starts, smoothing, tolerance, max_rounds, seed, watch, start)
    return fit_classes(counts, classes, tried, folds, options, partial(_fit, attributes=attributes))


def _fit(data: ChoiceCounts, classes: int, options: ClassOptions, attributes: Attributes | None) -> Any:
    problem = AttributeProblem(data, attributes, classes, options.smoothing)
    if options.start is not None:
        points = [problem.point_of(options.start)]
    elif classes == 1:
        points = [np.zeros(problem.size)]
    else:  # around the logit
        one = AttributeProblem(data, attributes, 1, options.smoothing)
        logit, random = one.climb(np.zeros(one.size), options)[0], np.random.default_rng(options.seed)
        points = [problem.around(logit, random) for _ in range(options.starts)]
    ends = [problem.climb(point, options) for point in points]
    point, _, _, converged = max(ends, key=lambda end: end[1])
    steps = sum(end[2] for end in ends)
    mixture, worth, slopes = problem.parts(point)
    attraction, offers = worth / worth.sum(axis=1, keepdims=True), data.assortments
    shares = mixed_shares(mixture, attraction, offers.indptr, offers.members)
    facts = fit_facts(data, shares, steps, converged) | {"n_parameters": problem.n_free, "mixture": mixture}
    if attributes is not None:
        return LatentClassModel(**facts, attraction=attraction)
    constants = np.log(worth) + np.outer(slopes, problem.money)
    first = np.unique(problem.owner, return_index=True)[1]
    return PricedModel(
        **facts, constants=constants[:, first] - constants[:, first].mean(axis=1, keepdims=True),
        slopes=slopes / problem.scale, prices=problem.money * problem.scale, owner=problem.owner,
    )  # fmt: skip


class AttributeProblem:
    """Minus the log of the posterior density; a point is log shares of classes, then coefficients.

    These are of attributes, of items without any, and of the price, common to all classes; how each class deviates from
    them; and the effects of items with attributes. ``linear[k]`` maps them to the utilities of class k, but for
    ``exp(on_price[k] @ coefficients)`` times the price in units of its spread. Without prices, ``money`` is 0.
    """

    def __init__(self, data: ChoiceCounts, attributes: Attributes | None, classes: int, smoothing: float) -> None:
        items = data.assortments.items
        self.owner, prices = np.arange(len(items)), np.zeros(len(items))
        table, rated = np.zeros((len(items), 0)), np.zeros(len(items), np.bool_)
        if attributes is not None:
            table, rated = attributes.design(items)
        else:
            self.owner, prices = _items_and_prices(items)
        single = np.eye(int(self.owner.max()) + 1)[self.owner]
        self.scale = float(prices[prices > 0.0].std() or prices.max()) if prices.any() else 1.0
        self.money, levels = prices / self.scale, single.sum(axis=0)[self.owner]
        free, effects = single[:, ~rated[: single.shape[1]]], single[:, rated[: single.shape[1]]]
        kinds = np.repeat([ATTRIBUTE, FREE_ITEM, PRICE], [table.shape[1], free.shape[1], int(prices.any())])
        columns, price = np.hstack([table, free, np.zeros((len(items), int(prices.any())))]), (kinds == PRICE) * 1.0
        own = np.eye(classes) if classes > 1 else np.zeros((1, 0))  # one class has no deviations
        self.linear = np.array([np.hstack([columns, np.kron(row, columns), effects]) for row in own])
        self.on_price = np.array([np.concatenate([price, np.kron(row, price), 0.0 * effects[0]]) for row in own])
        sizes = own.shape[1] * len(kinds), effects.shape[1]
        self.kinds = np.concatenate([kinds, np.repeat([CLASS_DEVIATION, ITEM_EFFECT], sizes)])
        self.classes, self.size = classes, classes + len(self.kinds)
        self.n_free = classes * len(kinds) + sizes[1] - 1
        self.offered, self.chosen = with_imaginary_offer(data, smoothing / levels)

    def parts(self, point: Vec) -> tuple[Vec, Vec, Vec]:
        """Return the shares of classes, what each label is worth to them, and their price coefficients."""
        mixture = np.exp(np.maximum(point[: self.classes] - point[: self.classes].max(), LEAST_LOG))
        slopes = np.exp(np.minimum(self.on_price @ point[self.classes :], MAX_LOG_SLOPE))
        utility = self.linear @ point[self.classes :] - np.outer(slopes, self.money)
        worth = np.exp(np.maximum(utility - utility.max(axis=1, keepdims=True), LEAST_LOG))
        return mixture / mixture.sum(), worth, slopes

    def around(self, logit: Vec, random: np.random.Generator) -> Vec:
        """Return classes of equal size whose coefficients are spread around those of a logit."""
        drawn = START_SPREAD * random.normal(size=len(self.kinds))
        drawn[self.kinds != CLASS_DEVIATION] = logit[1:]
        return np.concatenate([np.zeros(self.classes), drawn])

    def point_of(self, start: LatentClassModel) -> Vec:
        """Return a point with nearly these worths of labels: the shortest coefficients of least squares."""
        logs = np.log(np.maximum(tail_sums(start.attraction, start.order), 1e-300))
        priced = self.on_price.any(axis=0)
        design = self.linear - self.on_price[:, np.newaxis] * self.money[:, np.newaxis]
        design, logs = design - design.mean(axis=1, keepdims=True), logs - logs.mean(axis=1, keepdims=True)
        solved: Vec = np.linalg.lstsq(np.concatenate(design), logs.ravel(), rcond=None)[0]
        slopes = np.log(np.maximum(self.on_price[:, priced] @ solved[priced], MIN_SLOPE))
        solved[priced] = np.linalg.lstsq(self.on_price[:, priced], slopes, rcond=None)[0]
        return np.concatenate([np.log(np.maximum(start.mixture, 1e-300)), solved])

    def climb(self, point: Vec, options: ClassOptions) -> tuple[Vec, float, int, bool]:
        """Climb and estimate the variances in turn; return the point, its height, steps, and whether they settled."""
        limits = {"ftol": options.tolerance, "gtol": 1e-6, "maxiter": min(options.max_rounds, MAX_STEPS)}
        variances, steps, converged, height = np.ones(N_KINDS), 0, False, -np.inf
        for _ in range(MAX_VARIANCE_ROUNDS):
            precision = self.precision(variances)
            scale = self.root(point, precision)
            cost = partial(self.cost, precision=precision, base=point, scale=scale)
            end = climb_smooth(cost, np.zeros(self.size), limits, options.watch, "part-worths")
            point, steps = point + scale @ end.x, steps + int(end.nit)
            height = -float(end.fun) - 0.5 * float(np.log(variances[self.kinds]).sum())
            before, variances = variances, self.next_variances(point, variances)
            converged = bool((np.abs(variances - before) <= VARIANCE_TOLERANCE * before).all())
            if converged or options.watch("part-worths"):
                break
        return point, height, steps, converged

    def _members(self, mixture: Vec, worth: Vec) -> tuple[Vec, Vec, Vec]:
        """Return the likelihood of each choice, what each class adds to it, and choices by offer and class."""
        rates = mixture / (self.offered @ worth.T)
        likely = rates @ worth
        return likely, rates, rates * ((self.chosen / likely) @ worth.T)

    def _slopes_of(self, slopes: Vec) -> Vec:
        """Return the derivative of utilities by coefficients, a matrix for each class."""
        fall = slopes[:, np.newaxis] * self.money
        steep: Vec = self.linear - fall[:, :, np.newaxis] * self.on_price[:, np.newaxis]
        return steep

    def precision(self, variances: Vec) -> Vec:
        """Return the inverse prior variance of each number of a point."""
        return np.concatenate([np.zeros(self.classes), 1.0 / variances[self.kinds]])

    def cost(self, step: Vec, precision: Vec, base: Vec, scale: Vec) -> tuple[float, Vec]:
        """Return the cost of ``base + scale @ step``, and its gradient."""
        point = base + scale @ step
        mixture, worth, slopes = self.parts(point)
        likely, rates, members = self._members(mixture, worth)
        slope = worth * (rates.T @ (self.chosen / likely) - (members * rates / mixture).T @ self.offered)
        by_class = members.sum(axis=0) + 1.0 - mixture * (members.sum() + self.classes)  # one more choice of each class
        gradient = np.concatenate([by_class, np.einsum("ki,kij->j", slope, self._slopes_of(slopes))])
        height = float((self.chosen * np.log(likely)).sum() + np.log(mixture).sum())
        return 0.5 * float(precision @ point**2) - height, (precision * point - gradient) @ scale

    def information(self, point: Vec) -> Vec:
        """Return minus the second derivative of the log-likelihood, as if the classes of choices were known."""
        mixture, worth, slopes = self.parts(point)
        members = self._members(mixture, worth)[2]
        hessian = np.diag(np.concatenate([members.sum(axis=0) + 1.0, np.zeros(len(self.kinds))]))
        for choices, row, design in zip(members.T, worth, self._slopes_of(slopes), strict=True):
            shares = self.offered * row
            shares /= shares.sum(axis=1, keepdims=True)
            weighted = shares * choices[:, np.newaxis]
            inner = np.diag(weighted.sum(axis=0)) - weighted.T @ shares
            hessian[self.classes :, self.classes :] += design.T @ inner @ design
        return hessian

    def root(self, point: Vec, precision: Vec) -> Vec:
        """Return a root of the posterior covariance; rounding errors of billions of choices do not make it singular."""
        curved = self.information(point) + np.diag(precision)
        unit = 1.0 / np.sqrt(np.maximum(np.diag(curved), precision + MIN_CURVATURE))
        values, vectors = np.linalg.eigh(curved * np.outer(unit, unit))
        root: Vec = unit[:, np.newaxis] * vectors / np.sqrt(np.maximum(values, MIN_CURVATURE))
        return root

    def next_variances(self, point: Vec, variances: Vec) -> Vec:
        """Return the next variances of the fixed point, one of each kind."""
        precision = self.precision(variances)
        known = np.clip(1.0 - precision * (self.root(point, precision) ** 2).sum(axis=1), 0.0, 1.0)
        squares, effective = (np.bincount(self.kinds, part[self.classes :], N_KINDS) for part in (point**2, known))
        return (squares + SQUARES) / (effective + EFFECTS)


def _items_and_prices(labels: Sequence[Label]) -> tuple[Codes, Vec]:
    levels = PriceLevels.from_labels(labels)
    if levels is None:
        raise ValueError(NO_PRICES)
    pairs = [levels.of(label) for label in labels]
    number = {item: k for k, item in enumerate(dict.fromkeys(item for item, _ in pairs))}
    return np.array([number[item] for item, _ in pairs], dtype=np.int64), np.array([price or 0.0 for _, price in pairs])
