"""Latent classes whose demand falls along chains, such as price levels: logits that respect an order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Codes, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import impossible_choices, observed
from rankstream.models.lifts import Chains, chains_of, closed_offers, lift, steps_down
from rankstream.models.parametric.base import check_start, fit_facts
from rankstream.models.parametric.latent_class import SMOOTHING, MixtureModel, MixtureProblem, mixed_shares
from rankstream.models.parametric.mnl import fit_mnl, plackett_luce_orders

MIN_LEVEL_SHARE = 0.01  # of an item's attraction for each of its levels at the start of a fit


@dataclass(frozen=True, kw_only=True, eq=False)
class FallingClassModel(MixtureModel):
    """A mixture of logits in which a level's worth is the attraction of itself and all dearer levels of its item.

    It also has the attributes of ``Fitted``.

    Attributes
    ----------
    mixture : array
        ``mixture[k]`` is the share of class k.
    attraction : array
        ``attraction[k, i]`` is what item i is worth to class k beyond the next one of its chain.
    order : tuple of tuples of item codes
        The chains, best first.
    """

    FORMAT: ClassVar[str] = "rankstream-falling-class-model"
    ARRAYS: ClassVar[dict[str, str]] = {"mixture": "k", "attraction": "kn"}
    attraction: Vec
    order: Chains = ()

    def shares(self, indptr: Codes, members: Codes) -> Vec:
        """The classes' probabilities, mixed."""
        return falling_shares(self.mixture, self.attraction, indptr, members, self.order)

    def draw_orders(self, size: int, random: np.random.Generator) -> Codes:
        """Draw a class by its share, then rank from the top and lift the ranking."""
        return lift(plackett_luce_orders(self.attraction[self.draw_classes(size, random)], random), self.order)

    def to_content(self) -> dict[str, Any]:
        """Return the content of a file."""
        return super().to_content() | {"order": [list(chain) for chain in self.order]}

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Self:
        """Return the model that ``to_content`` described."""
        order = tuple(tuple(chain) for chain in content["order"])
        codes = [code for chain in order for code in chain]
        if not set(codes) <= set(range(len(content["items"]))) or len(set(codes)) < len(codes):
            raise ValueError("its order names an item twice, or an unknown one")
        return cls(**cls.fields_in(content), order=order)


def falling_shares(mixture: Vec, attraction: Vec, indptr: Codes, members: Codes, order: Chains) -> Vec:
    """Return the choice probabilities of a lifted mixture of logits (classes by items)."""
    closed = closed_offers(indptr, members, order)
    return closed.gather(mixed_shares(mixture, attraction, closed.indptr, closed.members), len(members))


def fit_falling_class(
    counts: ChoiceCounts,
    *,
    classes: int,
    smoothing: float = SMOOTHING,
    tolerance: float = 1e-8,
    max_rounds: int = 3000,
    seed: int = 0,
    watch: Watch = unwatched,
    start: FallingClassModel | None = None,
) -> FallingClassModel:
    """Fit a mixture of logits with falling demand, by one start of an accelerated EM.

    The parameters are those of ``fit_latent_class``; the offers have an order made of chains.

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
        begin = problem.point(start.mixture, start.attraction)
    end = problem.climb(begin, tolerance * data.observations, max_rounds, watch, "latent classes")
    mixture, table = problem.parts(end.point)
    attraction = np.ascontiguousarray(table.T)
    shares = falling_shares(mixture, attraction, offers.indptr, offers.members, order)
    shares[impossible_choices(offers, data.tallies)] = 1.0  # they cost every model the same
    facts = fit_facts(data, shares, end.steps, end.converged) | {"n_parameters": len(mixture) * offers.n_items - 1}
    return FallingClassModel(**facts, mixture=mixture, attraction=attraction, order=order)


class _Falling(MixtureProblem):
    """The EM step; a point is the mixture followed by the attractions, items by classes."""

    def __init__(self, data: ChoiceCounts, classes: int, smoothing: float) -> None:
        super().__init__(data, classes, smoothing)
        offers = data.assortments
        self.order = chains_of(offers)
        closed = closed_offers(offers.indptr, offers.members, self.order)
        self.data = closed.indptr, closed.members, closed.of, self.data[-1]

    def begin(self, data: ChoiceCounts, generator: np.random.Generator) -> Vec:
        """Return the logit's attractions, made to fall along chains and randomised."""
        logit = fit_mnl(data).attraction
        for chain in self.order:
            logit[list(chain)] = np.maximum.accumulate(logit[list(chain[::-1])])[::-1]
        return self.random_point(np.maximum(steps_down(logit, self.order), MIN_LEVEL_SHARE * logit), generator)
