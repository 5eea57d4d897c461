"""The maximum-entropy fit as an Estimate: with the certificate and the history that every method has."""

from dataclasses import replace
from typing import Any

import numpy as np

from rankstream import distances, entropy, oracles
from rankstream.assortments import Assortments
from rankstream.certificate import Certificate, certify
from rankstream.counts import ChoiceCounts
from rankstream.entropy_model import EntropyModel
from rankstream.model import RankingModel
from rankstream.rounds import Sums
from rankstream.runs import Estimate, History

__all__ = ["EntropyModel", "entropy_estimate", "raw_certificate"]


def entropy_estimate(
    assortments: Assortments, counts: ChoiceCounts, **options: Any
) -> Estimate[EntropyModel | RankingModel]:
    """Fit, and certify the raw l2 distance with the hard oracle: how far any ranking model could be nearer to the data.

    ``rounds`` are evaluations of the soft program; ``converged`` says that its own duality gap is small enough.
    """
    found = entropy.fit(counts, **options)
    certificate = raw_certificate(found.model, counts, oracles.auto(assortments, seed=options.get("seed", 0)))
    target = counts.target()
    residual = found.model.probabilities(assortments) - target.frequencies
    seen = slice(None) if target.seen is None else target.seen
    mae = float(np.abs(residual[seen]).mean())
    size = float(len(found.model.weights)) if isinstance(found.model, RankingModel) else np.nan
    row = (float(counts.observations), mae, mae, certificate.upper, size, certificate.gap)
    history = History(*(np.array([value]) for value in row))
    return Estimate(found.model, certificate, found.evaluations, found.converged, history)


def raw_certificate(model: EntropyModel | RankingModel, counts: ChoiceCounts, oracle: oracles.Oracle) -> Certificate:
    """How far a model is from the counts in the plain l2 distance, and how near any ranking model could be.

    What is proven is the better of the residual's own direction and of the zero dual, which proves 0 without rounding.
    """
    assortments, target = counts.assortments, counts.target()
    fitted = model.probabilities(assortments)
    data = target.frequencies if target.seen is None else np.where(target.seen, target.frequencies, fitted)
    residual = fitted - data
    length = float(np.linalg.norm(residual))
    duals = [residual / length, np.zeros_like(residual)] if length > 0.0 else [residual]
    best = max(
        (
            certify(Sums(fitted, data, dual, 1.0, latest=data), distances.L2(assortments), oracle, seen=target.seen)
            for dual in duals
        ),
        key=lambda found: found.lower,
    )
    return replace(best, lower=max(best.lower, 0.0))
