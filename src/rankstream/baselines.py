"""Rival methods by name: the estimators of the literature and of practice, on the same data (Appendix B)."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from rankstream._core import old_names
from rankstream.columns.corrective import fit_nearest
from rankstream.columns.frank_wolfe import fit_frank_wolfe
from rankstream.columns.mle import fit_mle
from rankstream.data.counts import ChoiceCounts
from rankstream.models.parametric.latent_class import fit_latent_class
from rankstream.models.parametric.markov_chain import fit_markov_chain
from rankstream.models.parametric.mnl import fit_mnl
from rankstream.models.protocol import ChoiceModel
from rankstream.models.rankings import RankingModel
from rankstream.solver.runs import Estimate

__all__ = [
    "FITS",
    "fit",
    "fit_frank_wolfe",
    "fit_latent_class",
    "fit_markov_chain",
    "fit_mle",
    "fit_mnl",
]


def _fit_norm(
    distance: str, counts: ChoiceCounts, *, tolerance: float = 1e-7, **options: Any
) -> Estimate[RankingModel]:
    """The nearest model by the engine of ``methods.Nearest``, with all offers weighted equally (Appendix B.3)."""
    return fit_nearest(counts.assortments, counts, distance, tolerance=tolerance, **options)


FITS: dict[str, Callable[..., Any]] = {
    "nearest-l1": partial(_fit_norm, "l1"),
    "nearest-linf": partial(_fit_norm, "linf"),
    "mle": fit_mle,
    "frank-wolfe": fit_frank_wolfe,
    "mnl": fit_mnl,
    "latent-class": fit_latent_class,
    "markov-chain": fit_markov_chain,
}
"""The names of all rivals, and the functions behind them."""


def fit(name: str, counts: ChoiceCounts, **options: Any) -> ChoiceModel:
    """Fit a baseline to the counts; the options are those of its own function.

    >>> from rankstream import Assortments
    >>> counts = ChoiceCounts(Assortments([("tea", "pie"), ("tea", "nothing")]), [3, 1, 1, 1])
    >>> round(fit("mle", counts).predict(("tea", "pie"))["tea"], 2)
    0.75
    """
    if name not in FITS:
        raise ValueError(f"Unknown baseline {name!r}: choose one of {', '.join(map(repr, FITS))}.")
    found = FITS[name](counts, **options)
    return cast(ChoiceModel, found if isinstance(found, ChoiceModel) else found.model)


def __getattr__(name: str) -> Any:
    """For a baseline that is gone, say what to use instead."""
    raise AttributeError(old_names.renamed(f"{__name__}.{name}") or f"module {__name__!r} has no attribute {name!r}")
