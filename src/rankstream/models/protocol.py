"""What every choice model can be asked."""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from rankstream._core.types import Label, Vec
from rankstream.data.assortments import Assortments


class Predicts(Protocol):
    """The least that is needed of a model to ask it something."""

    @property
    def items(self) -> tuple[Label, ...]:
        """The items it knows."""

    def probabilities(self, assortments: Assortments) -> Vec:
        """Return the choice probability of every coordinate."""


@runtime_checkable
class ChoiceModel(Predicts, Protocol):
    """Anything that answers with choice probabilities: a RankingModel, an EntropyModel, a logit, or yours."""

    def predict(self, offer: Iterable[Label]) -> dict[Label, float]:
        """Return the choice probabilities of one offer; they sum to 1."""
