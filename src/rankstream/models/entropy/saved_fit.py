"""The fit behind a saved maximum-entropy model, for refits: guides, weights, trust and tilt."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankstream._core.types import Vec
from rankstream.models.entropy.ensemble import Stack
from rankstream.models.entropy.fit import EntropyFit
from rankstream.models.entropy.guides import CHAIN, PRICED, TASTE, UNIFORM, FittedGuide, Guide, with_attributes
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.entropy.ranking_laws import RankingLaw, plackett_luce
from rankstream.models.parametric.latent_class import LatentClassModel
from rankstream.models.parametric.markov_chain import MarkovChainModel
from rankstream.models.parametric.normal_taste import HALF

UNKNOWN: dict[str, Any] = {"log_likelihood": 0.0, "iterations": 0, "converged": True, "n_parameters": 0}
"""Facts about the guides' fits that a prior does not store and refits do not need."""


def saved_fit(model: Any) -> EntropyFit | None:
    """Rebuild the fit of a model from its prior and its notes about predictions.

    Returns None for other kinds of models, and if the notes do not match the prior (a guide from other markets).
    """
    noted = getattr(model, "about", {}).get("prediction")
    if not isinstance(model, EntropyModel) or not isinstance(noted, Mapping):
        return None
    try:
        trust = noted["adjustment"] if "adjustment" in noted else noted["trust"]  # its name in 0.3
        trust = None if trust is None else float(trust)
        misfit = float(noted["held_out_misfit"]) if "held_out_misfit" in noted else None
        known = {guide.name: guide for guide in (*PRICED, *with_attributes(model.attributes))}
        guides, weights = _split(model.prior, known, {name: float(weight) for name, weight in noted["weights"].items()})
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    stack = Stack(guides, weights, misfit=misfit)
    fitted = np.zeros(model.duals.size)  # not needed by refits
    return EntropyFit(model, model.assortments, model.duals, fitted, 0.0, 0, True, False, trust, stack)


def _split(
    prior: RankingLaw, known: Mapping[str, Guide], weights: Mapping[str, float]
) -> tuple[tuple[FittedGuide, ...], Vec]:
    """Split a mixture into its guides, and return their weights.

    The prior has the classes of one guide after the other, and for each guide one EM result after the other. Noted
    weights are rounded, but tell after how many results the next guide begins.
    """
    guides, exact, first = [], [], 0
    for name, weight in weights.items():
        guide = known[name]
        if guide is CHAIN:
            arrival, moves = prior.arrivals[0], prior.moves[0]
            chain = MarkovChainModel(items=prior.items, arrival=arrival, transitions=moves, **UNKNOWN)
            guides.append(FittedGuide(guide, (chain,), np.ones(1)))
            exact.append(float(prior.chain_weights.sum()))
            continue
        size = 2 * HALF if guide.family == TASTE.family else max(1, guide.classes)
        rest = prior.class_weights[first : first + (prior.class_weights.size - first) // size * size]
        ends = rest.reshape(-1, size).sum(axis=1)
        ends = ends[: 1 + int(np.argmin(np.abs(ends.cumsum() - weight)))]
        blocks = [slice(first + size * k, first + size * (k + 1)) for k in range(ends.size)]
        models = tuple(_model(guide, prior, block) for block in blocks)
        guides.append(FittedGuide(guide, models, ends / ends.sum()))
        exact.append(float(ends.sum()))
        first += size * ends.size
    if first != prior.class_weights.size or len(prior.chain_weights) != (CHAIN.name in weights):
        raise ValueError("the saved prior does not match the saved guides")
    return tuple(guides), np.array(exact)


def _model(guide: Guide, prior: RankingLaw, block: slice) -> Any:
    mixture, attraction = prior.class_weights[block] / prior.class_weights[block].sum(), prior.attraction[block]
    if guide is UNIFORM:
        return plackett_luce(prior.items, attraction, order=prior.order)
    return LatentClassModel(items=prior.items, mixture=mixture, attraction=attraction, order=prior.order, **UNKNOWN)
