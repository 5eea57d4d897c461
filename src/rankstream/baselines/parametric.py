"""What all choice models have in common, and the base of those with a fixed number of parameters."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from rankstream._types import Codes, Label, Vec
from rankstream.assortments import Assortments, as_offer
from rankstream.counts import ChoiceCounts


@runtime_checkable
class ChoiceModel(Protocol):
    """Anything that answers with choice probabilities: RankingModel, the models here, or yours."""

    @property
    def items(self) -> tuple[Label, ...]:
        """The items it knows."""

    def predict(self, offer: Iterable[Label]) -> dict[Label, float]:
        """The choice probabilities of one offer; they sum to 1."""

    def probabilities(self, assortments: Assortments) -> Vec:
        """The choice probability of every coordinate."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted(ABC):
    """A fitted model: the items it knows, and how its fit ended.

    ``log_likelihood`` is that of the choices it was fitted to, in nats, without any smoothing term.
    """

    items: tuple[Label, ...]
    log_likelihood: float
    iterations: int
    converged: bool
    n_parameters: int

    @abstractmethod
    def shares(self, indptr: Codes, members: Codes) -> Vec:
        """The probability of every coordinate of offers that are given by the model's own item codes."""

    def probabilities(self, assortments: Assortments) -> Vec:
        """The choice probability of every coordinate, for any offers of the model's items."""
        code = {item: number for number, item in enumerate(self.items)}
        own = np.array([code.get(item, -1) for item in assortments.items], dtype=np.int64)[assortments.members]
        if own.min() < 0:
            unknown = assortments.items[assortments.members[np.argmin(own)]]
            raise ValueError(
                f"The model does not know the item {unknown!r}: name it in the items of the Assortments to fit."
            )
        return self.shares(assortments.indptr, frozen(own))

    def predict(self, offer: Iterable[Label]) -> dict[Label, float]:
        """The choice probabilities of one offer, seen before or not; they sum to 1."""
        single = Assortments([as_offer("The offer", offer)])
        return dict(zip(single.offers[0], self.probabilities(single).tolist(), strict=True))


def frozen(codes: ArrayLike) -> Codes:
    """An array that cannot be written to, as those of Assortments: kernels are compiled anew for any other kind."""
    array = np.ascontiguousarray(codes, dtype=np.int64)
    array.flags.writeable = False
    return array


def restrict(counts: ChoiceCounts, numbers: ArrayLike) -> ChoiceCounts:
    """Counts over some of the offers, with the same items: those of the others stay known.

    >>> offers = Assortments([("tea", "pie"), ("pie", "cake")])
    >>> fewer = restrict(ChoiceCounts(offers, [3, 1, 2, 2]), [1])
    >>> fewer.assortments.items, fewer.assortments.offers, fewer.tallies
    (('tea', 'pie', 'cake'), (('pie', 'cake'),), array([2., 2.]))
    """
    whole = counts.assortments
    kept = np.asarray(numbers, dtype=np.int64).tolist()
    places = [np.arange(whole.indptr[number], whole.indptr[number + 1]) for number in kept]
    smaller = Assortments([whole.offers[number] for number in kept], whole.items)
    return ChoiceCounts(smaller, counts.tallies[np.concatenate(places)])


def observed(counts: ChoiceCounts) -> ChoiceCounts:
    """The same choices without the offers that nobody was shown, and with equal offers counted as one."""
    whole = counts.assortments
    seen = np.flatnonzero(counts.totals > 0.0).tolist()
    if not seen:
        raise ValueError("The counts hold no observations yet: observe some choices first.")
    first: dict[frozenset[Label], int] = {}
    for number in seen:
        first.setdefault(frozenset(whole.offers[number]), number)
    if len(first) == len(seen):
        return counts if len(seen) == whole.n_offers else restrict(counts, seen)
    merged = ChoiceCounts(Assortments([whole.offers[number] for number in first.values()], whole.items))
    for number in seen:
        where = [merged.assortments.coordinate(whole.offers[number], item) for item in whole.offers[number]]
        merged.observe_coordinates(where, counts.tallies[whole.indptr[number] : whole.indptr[number + 1]])
    return merged


def check_start(data: ChoiceCounts, start: Fitted | None) -> None:
    """A fit can only start from a model of the same items, in the same order."""
    if start is not None and start.items != data.assortments.items:
        raise ValueError(
            f"The start is a model of the items {', '.join(map(repr, start.items))}: give one of the items to fit."
        )


def data_log_likelihood(counts: ChoiceCounts, probabilities: Vec) -> float:
    """The log-likelihood of the choices in nats; -inf where something was chosen that has probability 0."""
    chosen = counts.tallies > 0.0
    with np.errstate(divide="ignore"):
        return float(counts.tallies[chosen] @ np.log(probabilities[chosen]))
