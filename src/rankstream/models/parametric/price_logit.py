"""Logits with a price coefficient: utility falls in proportion to the price, in one class or several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from rankstream._core.types import Codes, Label, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.prices import PriceLevels
from rankstream.models.base import finite_array
from rankstream.models.lifts import Chains, steps_down, tail_sums
from rankstream.models.parametric.base import Climb, climb_smooth, data_log_likelihood, fit_facts
from rankstream.models.parametric.latent_class import (
    SMOOTHING,
    TRIED_CLASSES,
    ClassOptions,
    LatentClassModel,
    MixtureModel,
    fit_classes,
    mixed_shares,
)

SPREAD = 0.7  # of constants and log slopes in random starts
NO_PRICES = "No item has a price in its name, such as 'tea @ 3.50': use the method without a price, or PriceLevels."


class PricedProblem:
    """The smoothed likelihood and its gradient; a point has the log mixture, the constants by class, the log slopes.

    Both are per observation, so that steps and tolerances suit one choice as well as 10 billion. Slopes are in units
    of the prices' spread, so that all coordinates have one scale, and as logarithms, so that none is negative. In each
    class an item gets ``smoothing`` imaginary choices from an offer of everything, shared by its levels, and each
    class as many customers.
    """

    def __init__(self, data: ChoiceCounts, owner: Codes, prices: Vec, classes: int, smoothing: float) -> None:
        offers = data.assortments
        self.observations = max(1.0, float(data.tallies.sum()))
        self.offers = offers.indptr, offers.members, data.tallies / self.observations
        self.owner, self.classes, self.groups = owner, classes, int(owner.max()) + 1
        priced = prices[prices > 0.0]
        self.scale = float(priced.std()) or float(priced.mean() if priced.size else 1.0)
        self.money = prices / self.scale
        self.smoothing = smoothing / self.observations
        self.imagined = self.smoothing / np.bincount(owner)[owner]

    def parts(self, point: Vec) -> tuple[Vec, Vec, Vec]:
        """Return the mixture, constants and slopes of a point."""
        size = self.classes
        logs = point[:size] - point[:size].max()
        mixture = np.exp(logs) / np.exp(logs).sum()
        slopes = np.exp(np.minimum(point[-size:], 50.0)) / self.scale
        return mixture, point[size:-size].reshape(size, self.groups), slopes

    def cost(self, point: Vec) -> tuple[float, Vec]:
        """Return minus the smoothed log-likelihood per observation, and its gradient."""
        from rankstream.models.parametric.em_kernels import mixture_step  # compiled, for fits alone

        mixture, constants, slopes = self.parts(point)
        utility = constants.T[self.owner] - np.outer(self.money, slopes * self.scale)
        utility -= utility.max(axis=0)
        attraction = np.maximum(np.exp(utility), 1e-300)
        top, bottom = np.zeros_like(attraction), np.zeros_like(attraction)
        value = mixture_step(*self.offers, mixture, attraction, top, bottom)
        customers = top.sum(axis=0) + self.smoothing
        total = attraction.sum(axis=0)
        shares = attraction / total
        value += float(self.imagined @ (utility - np.log(total)).sum(axis=1))
        value += self.smoothing * float(np.log(np.maximum(mixture, 1e-300)).sum())
        slope = top - attraction * bottom + self.imagined[:, np.newaxis] - self.imagined.sum() * shares
        by_item = np.zeros((self.groups, self.classes))
        np.add.at(by_item, self.owner, slope)
        by_slope = -(self.money @ slope) * slopes * self.scale
        gradient = [customers - customers.sum() * mixture, by_item.T.ravel(), by_slope]
        return -value, -np.concatenate(gradient)

    def random_point(self, random: np.random.Generator) -> Vec:
        """Draw a point to begin at."""
        size, spread = self.classes, SPREAD if self.classes > 1 else 0.0
        return np.concatenate([np.zeros(size), spread * random.normal(size=size * (self.groups + 1))])

    def point_of(self, mixture: Vec, worth: Vec) -> Vec:
        """Return the point of classes with this worth of each label; slopes are least squares within items."""
        logs, sizes = np.log(np.maximum(worth, 1e-300)), np.bincount(self.owner)

        def item_means(rows: Vec) -> Vec:
            return np.array([np.bincount(self.owner, row) for row in np.atleast_2d(rows)]) / sizes

        money = self.money - item_means(self.money)[0, self.owner]
        slopes = np.maximum(-(logs @ money) / max(float(money @ money), 1e-300), 1e-6)
        constants = item_means(logs + np.outer(slopes, self.money))
        return np.concatenate([np.log(np.maximum(mixture, 1e-300)), constants.ravel(), np.log(slopes)])

    def climb(self, begin: Vec, tolerance: float, max_rounds: int, watch: Watch) -> Climb:
        """Run L-BFGS from a point, until a step gains less than ``tolerance`` nats per observation."""
        from rankstream._core.threads import one_blas_thread  # loads the compiler

        limits = {"maxiter": max_rounds, "maxfun": 2 * max_rounds, "ftol": tolerance, "gtol": 1e-7}
        with one_blas_thread():  # vectors are too short for threads
            result = climb_smooth(self.cost, begin, limits, watch, "logits with a price")
        return Climb(result.x, int(result.nit), bool(result.success), [-float(result.fun) * self.observations])


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


COMMON = ("items", "log_likelihood", "iterations", "converged", "n_parameters", "no_choice_code")


def fit_priced_class(
    counts: ChoiceCounts,
    *,
    classes: int | Literal["bic", "cv"] = "cv",
    tried: Sequence[int] = TRIED_CLASSES,
    starts: int = 3,
    smoothing: float = SMOOTHING,
    tolerance: float = 1e-9,
    max_rounds: int = 500,
    folds: int = 4,
    seed: int = 0,
    watch: Watch = unwatched,
    start: LatentClassModel | None = None,
) -> PricedModel:
    """Fit latent classes of logits, each with its own constants and price coefficient, by maximum likelihood.

    The parameters are those of ``methods.PricedClasses``, with ``tolerance`` for ``tolerance_nats``; a step is one of
    L-BFGS. Otherwise as for ``fit_latent_class``; ``start`` is a fit to similar counts from ``PricedModel.falling``.

    >>> offers = Assortments([("tea @ 3.00", "no"), ("tea @ 4.00", "no")])
    >>> model = fit_priced_class(ChoiceCounts(offers, [600, 400, 400, 600]), classes=1)
    >>> model.slopes.round(1).tolist(), round(model.predict(("tea @ 3.50", "no"))["no"], 2)
    ([0.8], 0.5)
    """
    options = ClassOptions(starts, smoothing, tolerance, max_rounds, seed, watch, start)
    return fit_classes(counts, classes, tried, folds, options, _fit)


def _fit(data: ChoiceCounts, classes: int, options: ClassOptions) -> PricedModel:
    offers = data.assortments
    levels = PriceLevels.from_labels(offers.items)
    if levels is None:
        raise ValueError(NO_PRICES)
    pairs = [levels.of(label) for label in offers.items]
    number = {item: k for k, item in enumerate(dict.fromkeys(item for item, _ in pairs))}
    owner = np.array([number[item] for item, _ in pairs], dtype=np.int64)
    prices = np.array([price or 0.0 for _, price in pairs])
    problem = PricedProblem(data, owner, prices, classes, options.smoothing)
    random, start = np.random.default_rng(options.seed), options.start
    if start is None:
        points = [problem.random_point(random) for _ in range(options.starts if classes > 1 else 1)]
    else:
        points = [problem.point_of(start.mixture, tail_sums(start.attraction, start.order))]
    ends = [problem.climb(point, options.tolerance, options.max_rounds, options.watch) for point in points]
    best = max(ends, key=lambda end: end.heights[-1])
    mixture, constants, slopes = problem.parts(best.point)
    model = PricedModel(
        **fit_facts(data, np.ones(offers.n_coordinates), sum(end.steps for end in ends), best.converged),
        n_parameters=classes * (len(number) + 1) - 1,
        mixture=mixture,
        constants=constants - constants.mean(axis=1, keepdims=True),
        slopes=slopes,
        prices=prices,
        owner=owner,
    )
    return replace(model, log_likelihood=data_log_likelihood(data, model.shares(offers.indptr, offers.members)))
