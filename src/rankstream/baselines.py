"""Baselines by name: estimators from the literature and from practice, on the same data (Appendix B)."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from rankstream.columns.corrective import fit_nearest
from rankstream.columns.mle import fit_mle
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import observed
from rankstream.estimation.estimate import estimate
from rankstream.estimation.methods.rankings import PrimalDual
from rankstream.models.parametric.latent_class import fit_latent_class
from rankstream.models.parametric.markov_chain import fit_markov_chain
from rankstream.models.parametric.mnl import fit_mnl
from rankstream.models.protocol import ChoiceModel
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Oracle
from rankstream.solver.runs import Estimate

__all__ = ["FITS", "fit", "fit_frank_wolfe", "fit_latent_class", "fit_markov_chain", "fit_mle", "fit_mnl"]


def _fit_norm(
    distance: str, counts: ChoiceCounts, *, tolerance: float = 1e-7, **options: Any
) -> Estimate[RankingModel]:
    """Fit the nearest model as ``methods.Nearest`` does, with equal weights for all offers (Appendix B.3)."""
    return fit_nearest(counts.assortments, counts, distance, tolerance=tolerance, **options)


def fit_frank_wolfe(
    counts: ChoiceCounts, *, loss: str = "squared-l2", tolerance: float = 1e-4, max_rounds: int = 2000,
    oracle: Oracle | None = None, seed: int = 0,
) -> Estimate[RankingModel]:  # fmt: skip
    """Jagabathula and Rusmevichientong's estimator: Frank-Wolfe on a smooth loss, "squared-l2" or "kl".

    On constant data it equals follow-the-leader (Appendix E). Every digit of the gap takes ten times the rounds;
    ``methods.Nearest`` (for squares) and ``methods.Likelihood`` reach any tolerance in a few dozen.

    Parameters
    ----------
    counts : ChoiceCounts
        The choices; offers without any are left out.
    loss : "squared-l2" or "kl"
        The loss to minimise.
    tolerance : float
        The certified gap at which to stop.
    max_rounds, oracle, seed : optional
        As for ``methods.PrimalDual`` and ``estimate``.
    """
    if loss not in ("squared-l2", "kl"):
        raise ValueError(f"Unknown loss {loss!r}: choose 'kl' or 'squared-l2'.")
    settings = PrimalDual(
        distance=loss, learner="follow-the-leader", oracle=oracle, gap=tolerance, max_rounds=max_rounds
    )
    return estimate(observed(counts), method=settings, seed=seed)


FITS: dict[str, Callable[..., Any]] = {
    "nearest-l1": partial(_fit_norm, "l1"),
    "nearest-linf": partial(_fit_norm, "linf"),
    "mle": fit_mle,
    "frank-wolfe": fit_frank_wolfe,
    "mnl": fit_mnl,
    "latent-class": fit_latent_class,
    "markov-chain": fit_markov_chain,
}
"""The names of all baselines, and their functions."""


def fit(name: str, counts: ChoiceCounts, **options: Any) -> ChoiceModel:
    """Fit a baseline to the counts; options go to its function in ``FITS``."""
    if name not in FITS:
        raise ValueError(f"Unknown baseline {name!r}: choose one of {', '.join(map(repr, FITS))}.")
    result = FITS[name](counts, **options)
    return cast(ChoiceModel, result if isinstance(result, ChoiceModel) else result.model)
