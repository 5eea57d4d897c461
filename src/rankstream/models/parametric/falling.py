"""Latent classes whose demand falls along chains, such as price levels: logits that respect an order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Codes, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observed import observed
from rankstream.models.lifting import Chains, chains_of, closed_offers, lift, steps_down
from rankstream.models.parametric.climb import climb
from rankstream.models.parametric.falling_kernels import falling_step
from rankstream.models.parametric.fitted import Fitted, check_start, data_log_likelihood
from rankstream.models.parametric.latent_class import SMOOTHING, mixed_shares
from rankstream.models.parametric.mnl import fit_mnl, plackett_luce_orders

LEAST = 0.01  # of an item's attraction is left to each of its levels where a fit begins


@dataclass(frozen=True, kw_only=True, eq=False)
class FallingClassModel(Fitted):
    """A mixture of logits in which a level is worth what it and all dearer levels of its item attract together.

    Attributes
    ----------
    items : tuple of items
        What the model knows.
    log_likelihood : float
        That of the choices it was fitted to, in nats, without any smoothing term.
    iterations : int
        How many steps the fit took.
    converged : bool
        Whether the fit met the tolerance.
    n_parameters : int
        How many free numbers the model has.
    no_choice_code : int or None
        The number of the item that is in every offer, where there is one.
    mixture : array
        ``mixture[k]`` is the share of class k.
    attraction : array
        ``attraction[k, i]`` is what item i is worth to class k beyond the next one of its chain.
    order : tuple of tuples of item codes
        The chains, best first.

    """

    FORMAT: ClassVar[str] = "rankstream-falling-class-model"
    ARRAYS: ClassVar[dict[str, str]] = {"mixture": "k", "attraction": "kn"}
    mixture: Vec
    attraction: Vec
    order: Chains = ()

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.mixture)

    def shares(self, indptr: Codes, members: Codes) -> Vec:
        """The classes' probabilities, mixed."""
        return falling_shares(self.mixture, self.attraction, indptr, members, self.order)

    def draw_orders(self, size: int, random: np.random.Generator) -> Codes:
        """A class by its share, then from the top, with what must come before put in front."""
        classes = random.choice(self.n_classes, size=size, p=self.mixture / self.mixture.sum())
        return lift(plackett_luce_orders(self.attraction[classes], random), self.order)

    def to_content(self) -> dict[str, Any]:
        """What is in a file."""
        return super().to_content() | {"order": [list(chain) for chain in self.order]}

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        """The model that ``to_content`` described."""
        order = tuple(tuple(chain) for chain in content["order"])
        codes = [code for chain in order for code in chain]
        if not set(codes) <= set(range(len(content["items"]))) or len(set(codes)) < len(codes):
            raise ValueError("its order names an item twice, or one that is not there")
        model = super().from_content(content)
        object.__setattr__(model, "order", order)
        return model


def falling_shares(mixture: Vec, attraction: Vec, indptr: Codes, members: Codes, order: Chains) -> Vec:
    """The choice probabilities of a mixture of logits (classes by items), lifted."""
    closed = closed_offers(indptr, members, order)
    return closed.gather(mixed_shares(mixture, attraction, closed.indptr, closed.members), len(members))


def fit_falling_class(
    counts: ChoiceCounts,
    *,
    classes: int,
    smoothing: float = SMOOTHING,
    tolerance: float = 1e-8,
    max_steps: int = 3000,
    seed: int = 0,
    watch: Watch = unwatched,
    start: FallingClassModel | None = None,
) -> FallingClassModel:
    """The mixture of logits with falling demand that one start of an accelerated EM comes to.

    Parameters
    ----------
    counts : ChoiceCounts
        The choices from offers with an order that is made of chains; offers without choices are left out.
    classes : int
        How many classes.
    smoothing : float
        As in ``fit_latent_class``.
    tolerance : float
        The fit ends when three steps gain less than this, in nats per observation.
    max_steps : int
        The most steps.
    seed : int
        Seed for the start.
    watch : Watch
        Asked every few steps whether that is enough; the fit then ends with what it has.
    start : FallingClassModel, optional
        A mixture fitted to nearly the same counts, to start from.

    >>> from rankstream import Assortments
    >>> offers = Assortments([("tea @ 3", "no"), ("tea @ 4", "no")], order=[("tea @ 3", "tea @ 4")])
    >>> model = fit_falling_class(ChoiceCounts(offers, [500, 500, 600, 400]), classes=1)
    >>> {item: round(share, 2) for item, share in model.predict(("tea @ 4", "no")).items()}
    {'tea @ 4': 0.55, 'no': 0.45}

    """
    number_between("smoothing", smoothing, 1e-9)
    data = observed(counts)
    check_start(data, start)
    offers, order = data.assortments, chains_of(data.assortments)
    problem = _Falling(data, whole_number("classes", classes, least=1) if start is None else start.n_classes, smoothing)
    if start is None:
        begin = problem.begin(data, np.random.default_rng(seed))
    else:
        begin = np.concatenate([start.mixture, start.attraction.T.ravel()])
    limits = (tolerance * data.observations, max_steps, watch, "latent classes")
    end = climb(problem.step, problem.normalise, begin, *limits)
    mixture, table = problem.parts(end.point)
    attraction = np.ascontiguousarray(table.T)
    shares = falling_shares(mixture, attraction, offers.indptr, offers.members, order)
    return FallingClassModel(
        items=offers.items,
        log_likelihood=data_log_likelihood(data, shares),
        iterations=end.steps,
        converged=end.converged,
        no_choice_code=offers.no_choice_code,
        n_parameters=len(mixture) * offers.n_items - 1,
        mixture=mixture,
        attraction=attraction,
        order=order,
    )


class _Falling:
    """The EM step; a point is the mixture followed by the attractions, items by classes."""

    def __init__(self, data: ChoiceCounts, classes: int, smoothing: float) -> None:
        offers = data.assortments
        self.order = chains_of(offers)
        closed = closed_offers(offers.indptr, offers.members, self.order)
        self.data = closed.indptr, closed.members, closed.of, np.ascontiguousarray(data.tallies), smoothing
        self.shape = offers.n_items, classes
        self.work = np.empty(len(closed.members)), np.empty(self.shape), np.empty(self.shape)

    def parts(self, point: Vec) -> tuple[Vec, Vec]:
        """The mixture and the attractions."""
        return point[: self.shape[1]], point[self.shape[1] :].reshape(self.shape)

    def begin(self, data: ChoiceCounts, generator: np.random.Generator) -> Vec:
        """The logit's attractions made to fall, spread at random."""
        logit = fit_mnl(data).attraction
        for chain in self.order:
            logit[list(chain)] = np.maximum.accumulate(logit[list(chain[::-1])])[::-1]
        steps = np.maximum(steps_down(logit, self.order), LEAST * logit)
        spread = generator.gumbel(size=self.shape) if self.shape[1] > 1 else np.zeros(self.shape)
        return self.normalise(np.concatenate([np.ones(self.shape[1]), (steps[:, np.newaxis] * np.exp(spread)).ravel()]))

    def normalise(self, point: Vec) -> Vec:
        """Scale the mixture, and the attractions of each class, to the sum 1."""
        mixture, attraction = self.parts(point)
        return np.concatenate([mixture / mixture.sum(), (attraction / attraction.sum(axis=0)).ravel()])

    def step(self, point: Vec) -> tuple[Vec, float]:
        """One step of EM, and the smoothed likelihood before it."""
        after = point.copy()
        value = falling_step(*self.data, *self.parts(after), *self.work)
        return after, value
