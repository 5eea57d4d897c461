"""What people use instead, by name: the estimators of the literature and of practice, on the same data (Appendix B)."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from rankstream.columns.column_generation import fit_column_generation
from rankstream.columns.frank_wolfe import fit_frank_wolfe
from rankstream.columns.mle import fit_mle
from rankstream.data.counts import ChoiceCounts
from rankstream.models.parametric.latent_class import fit_latent_class
from rankstream.models.parametric.markov_chain import fit_markov_chain
from rankstream.models.parametric.mnl import fit_mnl
from rankstream.models.protocol import ChoiceModel

__all__ = [
    "FITS",
    "fit",
    "fit_column_generation",
    "fit_frank_wolfe",
    "fit_latent_class",
    "fit_markov_chain",
    "fit_mle",
    "fit_mnl",
]

FITS: dict[str, Callable[..., Any]] = {
    "nearest-l1": partial(fit_column_generation, norm="l1"),
    "nearest-linf": partial(fit_column_generation, norm="linf"),
    "mle": fit_mle,
    "frank-wolfe": fit_frank_wolfe,
    "mnl": fit_mnl,
    "latent-class": fit_latent_class,
    "markov-chain": fit_markov_chain,
}
"""The names of all rivals, and the functions behind them."""


def fit(name: str, counts: ChoiceCounts, **options: Any) -> ChoiceModel:
    """The model that a baseline makes of the counts; the options are those of its own function.

    >>> from rankstream import Assortments
    >>> counts = ChoiceCounts(Assortments([("tea", "pie"), ("tea", "nothing")]), [3, 1, 1, 1])
    >>> round(fit("mle", counts).predict(("tea", "pie"))["tea"], 2)
    0.75
    """
    if name not in FITS:
        raise ValueError(f"There is no baseline {name!r}: choose one of {', '.join(map(repr, FITS))}.")
    found = FITS[name](counts, **options)
    return cast(ChoiceModel, found if isinstance(found, ChoiceModel) else found.model)
