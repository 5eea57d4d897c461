"""The base of models with a fixed number of parameters, and what their fits share."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.types import Codes, Label, Vec
from rankstream.data.assortments import Assortments, as_offer
from rankstream.data.counts import ChoiceCounts


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
