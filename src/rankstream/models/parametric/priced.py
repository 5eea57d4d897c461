"""Logits with a price coefficient: what an item is worth falls in proportion to its price, one class or several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Codes, Label, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import observed
from rankstream.data.prices import PriceLevels
from rankstream.models.base import finite_array
from rankstream.models.lifts import Chains, steps_down, tail_sums
from rankstream.models.parametric.base import check_start, data_log_likelihood, probabilities_of
from rankstream.models.parametric.falling_demand import FallingClassModel
from rankstream.models.parametric.latent_class import (
    SMOOTHING,
    TRIED_CLASSES,
    MixtureModel,
    best_held_out,
    mixed_shares,
)

NO_PRICES = "No item has a price in its name, such as 'tea @ 3.50': use the method without a price, or PriceLevels."


@dataclass(frozen=True, kw_only=True, eq=False)
class PricedModel(MixtureModel):
    """Classes of customers to whom an item at a price is worth exp(constant - slope * price).

    It answers at any price of an item that it knows, seen or not: ``tea @ 4.25`` needs no level. Slopes are above 0.

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
        """Return the same model with more labels: its items at other prices. Labels of other items are left out."""
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
        """A class by its share, then one taste per item, the same at all of its prices: cheaper always comes first."""
        classes = self.draw_classes(size, random)
        taste = self.constants[classes] + random.gumbel(size=(size, self.constants.shape[1]))
        utility = taste[:, self.owner] - self.slopes[classes, np.newaxis] * self.prices
        by_price = np.argsort(self.prices, kind="stable")
        orders: Codes = by_price[np.argsort(-utility[:, by_price], axis=1, kind="stable")]
        return orders

    def falling(self, order: Chains) -> FallingClassModel:
        """Return the same model as one of falling demand along chains of its price levels."""
        steps = np.maximum(steps_down(self.attraction, order), 1e-300)
        common = {name: getattr(self, name) for name in COMMON}
        attraction = steps / steps.sum(axis=1, keepdims=True)
        return FallingClassModel(**common, mixture=self.mixture, attraction=attraction, order=order)

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        """Return the model that ``to_content`` described."""
        items, owner = tuple(content["items"]), np.array(content["owner"])
        constants = finite_array("constants", content["constants"], (-1, -1))
        classes, groups = constants.shape
        if owner.shape != (len(items),) or owner.dtype.kind != "i" or not ((owner >= 0) & (owner < groups)).all():
            raise ValueError("its owner does not give the number of an item for each label")
        code = content["no_choice_code"]
        if code is not None and (type(code) is not int or not 0 <= code < len(items)):
            raise ValueError(f"its no-choice item is {code!r}, not the number of an item")
        return cls(
            items=items,
            no_choice_code=code,
            log_likelihood=float(finite_array("log_likelihood", [content["log_likelihood"]], (1,))[0]),
            iterations=int(content["iterations"]),
            converged=bool(content["converged"]),
            n_parameters=int(content["n_parameters"]),
            mixture=probabilities_of("mixture", content["mixture"], (classes,)),
            constants=constants,
            slopes=finite_array("slopes", content["slopes"], (classes,)),
            prices=finite_array("prices", content["prices"], (len(items),)),
            owner=owner.astype(np.int64),
        )


COMMON = ("items", "log_likelihood", "iterations", "converged", "n_parameters", "no_choice_code")


def fit_priced_logit(
    counts: ChoiceCounts, *, smoothing: float = SMOOTHING, seed: int = 0, watch: Watch = unwatched
) -> PricedModel:
    """One logit with a constant per item and a price coefficient above 0; prices are those of the labels.

    >>> offers = Assortments([("tea @ 3.00", "no"), ("tea @ 4.00", "no")])
    >>> model = fit_priced_logit(ChoiceCounts(offers, [600, 400, 400, 600]))
    >>> model.slopes.round(1).tolist(), round(model.predict(("tea @ 3.50", "no"))["no"], 2)
    ([0.8], 0.5)
    """
    return fit_priced_class(counts, classes=1, smoothing=smoothing, seed=seed, watch=watch)


def fit_priced_class(
    counts: ChoiceCounts,
    *,
    classes: int | Literal["cv"] = "cv",
    tried: Sequence[int] = TRIED_CLASSES,
    starts: int = 3,
    smoothing: float = SMOOTHING,
    tolerance: float = 1e-9,
    max_rounds: int = 500,
    folds: int = 4,
    seed: int = 0,
    watch: Watch = unwatched,
    start: FallingClassModel | None = None,
) -> PricedModel:
    """Latent classes of logits, each with constants and a price coefficient of its own, of highest likelihood.

    Parameters
    ----------
    counts : ChoiceCounts
        The choices; offers without any are left out.
    classes : int or "cv"
        How many classes; or the number among ``tried`` with the highest likelihood of held-out offers.
    tried : sequence of int
        The numbers that "cv" tries, until two in a row were worse.
    starts : int
        How many random starts; the likeliest end counts. One while "cv" tries numbers.
    smoothing : float
        Imaginary choices of every item by every class, from an offer of everything.
    tolerance : float
        A start ends when a step gains less than this, in nats per observation.
    max_rounds : int
        The most steps of a start, by L-BFGS.
    folds : int
        How many parts of the offers "cv" holds out in turn.
    seed : int
        Seed for the starts and the folds.
    watch : Watch
        Asked after every step whether that is enough; the fit then ends with what it has.
    start : FallingClassModel, optional
        A fit to nearly the same counts (``PricedModel.falling``): the only start, with its number of classes.

    """
    number_between("smoothing", smoothing, 1e-9)
    whole_number("starts", starts, least=1)
    whole_number("max_rounds", max_rounds, least=1)
    data = observed(counts)
    check_start(data, start)
    options = _Options(starts, smoothing, number_between("tolerance", tolerance, 0.0), max_rounds, seed, watch, start)
    if start is not None:
        return _fit(data, start.n_classes, options)
    if classes != "cv":
        return _fit(data, whole_number("classes", classes, least=1), options)
    sizes = sorted({whole_number("A number of classes to try", size, least=1) for size in tried})
    if not sizes:
        raise ValueError("There is no number of classes to try: give some, such as tried=(1, 2, 3).")
    single = options._replace(starts=1)
    size = (
        sizes[0]
        if data.assortments.n_offers == 1
        else best_held_out(data, sizes, folds, seed, watch, lambda rest, number: _fit(rest, number, single))
    )
    return _fit(data, size, options)


class _Options(NamedTuple):
    starts: int
    smoothing: float
    tolerance: float
    max_rounds: int
    seed: int
    watch: Watch
    start: FallingClassModel | None


def _fit(data: ChoiceCounts, classes: int, options: _Options) -> PricedModel:
    from rankstream.models.parametric.priced_fit import PricedProblem

    offers = data.assortments
    levels = PriceLevels.from_labels(offers.items)
    if levels is None:
        raise ValueError(NO_PRICES)
    found = [levels.of(label) for label in offers.items]
    number = {item: k for k, item in enumerate(dict.fromkeys(item for item, _ in found))}
    owner = np.array([number[item] for item, _ in found], dtype=np.int64)
    prices = np.array([price or 0.0 for _, price in found])
    problem = PricedProblem(data, owner, prices, classes, options.smoothing)
    random, start = np.random.default_rng(options.seed), options.start
    if start is None:
        points = [problem.random_point(random) for _ in range(options.starts if classes > 1 else 1)]
    else:
        points = [problem.point_of(start.mixture, tail_sums(start.attraction, start.order))]
    ends = [problem.climb(point, options.tolerance, options.max_rounds, options.watch) for point in points]
    best = max(ends, key=lambda end: end.height)
    mixture, constants, slopes = problem.parts(best.point)
    model = PricedModel(
        items=offers.items,
        no_choice_code=offers.no_choice_code,
        log_likelihood=0.0,
        iterations=sum(end.steps for end in ends),
        converged=best.converged,
        n_parameters=classes * (len(number) + 1) - 1,
        mixture=mixture,
        constants=constants - constants.mean(axis=1, keepdims=True),
        slopes=slopes,
        prices=prices,
        owner=owner,
    )
    return replace(model, log_likelihood=data_log_likelihood(data, model.shares(offers.indptr, offers.members)))
