"""What people use instead, by name: the estimators of the literature and of practice, on the same data (Appendix B)."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from rankstream.columns import column_generation, frank_wolfe, mle
from rankstream.columns.rationality import rationality
from rankstream.columns.revenue import probability_range, revenue_range
from rankstream.data.counts import ChoiceCounts
from rankstream.models.parametric.latent_class import LatentClass, fit_latent_class
from rankstream.models.parametric.markov_chain import MarkovChain, fit_markov_chain
from rankstream.models.parametric.mnl import MNL, fit_mnl
from rankstream.models.protocol import ChoiceModel

__all__ = [
    "FITS",
    "MNL",
    "ChoiceModel",
    "LatentClass",
    "MarkovChain",
    "fit",
    "fit_latent_class",
    "fit_markov_chain",
    "fit_mnl",
    "probability_range",
    "rationality",
    "revenue_range",
]

FITS: dict[str, Callable[..., Any]] = {
    "l1-column-generation": partial(column_generation.fit, norm="l1"),
    "linf-column-generation": partial(column_generation.fit, norm="linf"),
    "mle": mle.fit,
    "frank-wolfe": frank_wolfe.fit,
    "mnl": fit_mnl,
    "latent-class": fit_latent_class,
    "markov-chain": fit_markov_chain,
}


def fit(name: str, counts: ChoiceCounts, **options: Any) -> ChoiceModel:
    """The model that a baseline makes of the counts; the options are those of its own ``fit``.

    >>> from rankstream import Assortments
    >>> counts = ChoiceCounts(Assortments([("tea", "pie"), ("tea", "nothing")]), [3, 1, 1, 1])
    >>> round(fit("mle", counts).predict(("tea", "pie"))["tea"], 2)
    0.75
    """
    if name not in FITS:
        raise ValueError(f"There is no baseline {name!r}: choose one of {', '.join(map(repr, FITS))}.")
    found = FITS[name](counts, **options)
    return cast(ChoiceModel, found if isinstance(found, ChoiceModel) else found.model)
