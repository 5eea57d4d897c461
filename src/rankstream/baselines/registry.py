"""One door to all baselines: a name and counts in, a model out."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol, cast, runtime_checkable

from rankstream._types import Label, Vec
from rankstream.assortments import Assortments
from rankstream.baselines import column_generation, frank_wolfe, mle
from rankstream.counts import ChoiceCounts


@runtime_checkable
class ChoiceModel(Protocol):
    """What every baseline's model can do, as ``RankingModel`` can."""

    @property
    def items(self) -> tuple[Label, ...]:
        """The items it knows."""

    def predict(self, offer: Iterable[Label]) -> dict[Label, float]:
        """The choice probabilities of one offer."""

    def probabilities(self, assortments: Assortments) -> Vec:
        """The choice probability of every coordinate."""


FITS: dict[str, Callable[..., Any]] = {
    "l1-column-generation": partial(column_generation.fit, norm="l1"),
    "linf-column-generation": partial(column_generation.fit, norm="linf"),
    "mle": mle.fit,
    "frank-wolfe": frank_wolfe.fit,
}


def fit(name: str, counts: ChoiceCounts, **options: Any) -> ChoiceModel:
    """The model that a baseline makes of the counts; the options are those of its own ``fit``.

    >>> counts = ChoiceCounts(Assortments([("tea", "pie"), ("tea", "nothing")]), [3, 1, 1, 1])
    >>> round(fit("mle", counts).predict(("tea", "pie"))["tea"], 2)
    0.75
    """
    if name not in FITS:
        raise ValueError(f"There is no baseline {name!r}: choose one of {', '.join(map(repr, FITS))}.")
    found = FITS[name](counts, **options)
    return cast(ChoiceModel, found if isinstance(found, ChoiceModel) else found.model)
