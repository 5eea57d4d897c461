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
from rankstream.data.observed import observed
from rankstream.data.prices import PriceLevels
from rankstream.models.base import finite_array
from rankstream.models.lifting import Chains, steps_down
from rankstream.models.parametric.falling import FallingClassModel
from rankstream.models.parametric.fitted import Fitted, data_log_likelihood, probabilities_of
from rankstream.models.parametric.latent_class import SMOOTHING, TRIED, best_held_out, mixed_shares
from rankstream.models.parametric.priced_fit import PricedProblem

NO_PRICES = "No item has a price in its name, such as 'tea @ 3.50': use the method without a price, or PriceLevels."


@dataclass(frozen=True, kw_only=True, eq=False)
class PricedModel(Fitted):
    """Classes of customers to whom an item at a price is worth exp(constant - slope * price).

    It answers at any price of an item that it knows, seen or not: ``tea @ 4.25`` needs no level. Slopes are above 0.

    Attributes
    ----------
    items : tuple of items
        What the model knows: items at prices, and items without one.
    log_likelihood : float
        That of the choices it was fitted to, in nats, without any smoothing term.
    iterations : int
        How many steps the fit took, over all starts.
    converged : bool
        Whether the best start met the tolerance.
    n_parameters : int
        How many free numbers the model has.
    no_choice_code : int or None
        The number of the item that is in every offer, where there is one.
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
    mixture: Vec
    constants: Vec
    slopes: Vec
    prices: Vec
    owner: Codes

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.mixture)

    @property
    def attraction(self) -> Vec:
        """``attraction[k, i]`` is what label i is worth to class k; rows sum to 1."""
        utility = self.constants[:, self.owner] - np.outer(self.slopes, self.prices)
        worth: Vec = np.exp(utility - utility.max(axis=1, keepdims=True))
        worth = np.maximum(worth, 1e-300)
        shares: Vec = worth / worth.sum(axis=1, keepdims=True)
        return shares

    def shares(self, indptr: Codes, members: Codes) -> Vec:
        """The classes' probabilities, mixed."""
        return mixed_shares(self.mixture, self.attraction, indptr, members)

    def probabilities(self, assortments: Assortments) -> Vec:
        """The choice probability of every coordinate, for any offers of its items at any prices."""
        known = set(self.items)
        new = [item for item in assortments.items if item not in known]
        return super(PricedModel, self.at(new) if new else self).probabilities(assortments)

    def at(self, labels: Sequence[Label]) -> "PricedModel":
        """The same model with more labels: its items at other prices. Labels of other items are left out."""
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
        classes = random.choice(self.n_classes, size=size, p=self.mixture / self.mixture.sum())
        taste = self.constants[classes] + random.gumbel(size=(size, self.constants.shape[1]))
        utility = taste[:, self.owner] - self.slopes[classes, np.newaxis] * self.prices
        by_price = np.argsort(self.prices, kind="stable")
        orders: Codes = by_price[np.argsort(-utility[:, by_price], axis=1, kind="stable")]
        return orders

    def falling(self, order: Chains) -> FallingClassModel:
        """The same model as one of falling demand along chains of its price levels."""
        steps = np.maximum(steps_down(self.attraction, order), 1e-300)
        common = {name: getattr(self, name) for name in COMMON}
        attraction = steps / steps.sum(axis=1, keepdims=True)
        return FallingClassModel(**common, mixture=self.mixture, attraction=attraction, order=order)

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        """The model that ``to_content`` described."""
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


def fit_priced_logit(counts: ChoiceCounts, *, smoothing: float = SMOOTHING, seed: int = 0) -> PricedModel:
    """One logit with a constant per item and a price coefficient above 0; prices are those of the labels.

    >>> offers = Assortments([("tea @ 3.00", "no"), ("tea @ 4.00", "no")])
    >>> model = fit_priced_logit(ChoiceCounts(offers, [600, 400, 400, 600]))
    >>> model.slopes.round(1).tolist(), round(model.predict(("tea @ 3.50", "no"))["no"], 2)
    ([0.8], 0.5)
    """
    return fit_priced_class(counts, classes=1, smoothing=smoothing, seed=seed)


def fit_priced_class(
    counts: ChoiceCounts,
    *,
    classes: int | Literal["cv"] = "cv",
    tried: Sequence[int] = TRIED,
    starts: int = 3,
    smoothing: float = SMOOTHING,
    tolerance: float = 1e-9,
    max_steps: int = 500,
    folds: int = 4,
    seed: int = 0,
    watch: Watch = unwatched,
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
    max_steps : int
        The most steps of a start, by L-BFGS.
    folds : int
        How many parts of the offers "cv" holds out in turn.
    seed : int
        Seed for the starts and the folds.
    watch : Watch
        Asked after every step whether that is enough; the fit then ends with what it has.

    """
    number_between("smoothing", smoothing, 1e-9)
    whole_number("starts", starts, least=1)
    whole_number("max_steps", max_steps, least=1)
    data = observed(counts)
    options = _Options(starts, smoothing, number_between("tolerance", tolerance, 0.0), max_steps, seed, watch)
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
    max_steps: int
    seed: int
    watch: Watch


def _fit(data: ChoiceCounts, classes: int, options: _Options) -> PricedModel:
    offers = data.assortments
    levels = PriceLevels.from_labels(offers.items)
    if levels is None:
        raise ValueError(NO_PRICES)
    found = [levels.of(label) for label in offers.items]
    number = {item: k for k, item in enumerate(dict.fromkeys(item for item, _ in found))}
    owner = np.array([number[item] for item, _ in found], dtype=np.int64)
    prices = np.array([price or 0.0 for _, price in found])
    problem = PricedProblem(data, owner, prices, classes, options.smoothing)
    random, limits = np.random.default_rng(options.seed), (options.tolerance, options.max_steps, options.watch)
    ends = [problem.climb(random, *limits) for _ in range(options.starts if classes > 1 else 1)]
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
