"""Protocols of choice models."""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from rankstream._core.types import Label, Vec
from rankstream.data.assortments import Assortments


class Predicts(Protocol):
    """The minimum that a model needs to make predictions."""

    @property
    def items(self) -> tuple[Label, ...]:
        """The items of the model."""

    def probabilities(self, assortments: Assortments) -> Vec:
        """Return the choice probability of every coordinate."""


@runtime_checkable
class ChoiceModel(Predicts, Protocol):
    """Anything that returns choice probabilities: a RankingModel, an EntropyModel, a logit, or your own model."""

    def predict(self, offer: Iterable[Label]) -> dict[Label, float]:
        """Return the choice probabilities of one offer; they sum to 1."""
