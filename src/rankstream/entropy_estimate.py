"""The maximum-entropy fit as an Estimate: with the certificate and the history that every method has."""

from typing import Any

import numpy as np

from rankstream import distances, entropy, oracles
from rankstream.assortments import Assortments
from rankstream.certificate import certify
from rankstream.counts import ChoiceCounts
from rankstream.entropy_model import EntropyModel
from rankstream.model import RankingModel
from rankstream.rounds import Sums
from rankstream.runs import Estimate, History

__all__ = ["EntropyModel", "entropy_estimate"]


def entropy_estimate(
    assortments: Assortments, counts: ChoiceCounts, **options: Any
) -> Estimate[EntropyModel | RankingModel]:
    """Fit, and certify the raw l2 distance with the hard oracle: how far any ranking model could be nearer to the data.

    ``rounds`` are evaluations of the soft program; ``converged`` says that its own duality gap is small enough.
    """
    found = entropy.fit(counts, **options)
    target = counts.target()
    fitted = found.model.probabilities(assortments)
    data = target.frequencies if target.seen is None else np.where(target.seen, target.frequencies, fitted)
    residual = fitted - data
    length = float(np.linalg.norm(residual))
    distance, oracle = distances.L2(assortments), oracles.auto(assortments, seed=options.get("seed", 0))
    duals = [residual / length, np.zeros_like(residual)] if length > 0.0 else [residual]  # a zero dual proves 0
    certificate = max(
        (certify(Sums(fitted, data, dual, 1.0, latest=data), distance, oracle, seen=target.seen) for dual in duals),
        key=lambda found: found.lower,
    )
    seen = slice(None) if target.seen is None else target.seen
    mae = float(np.abs(residual[seen]).mean())
    size = float(len(found.model.weights)) if isinstance(found.model, RankingModel) else np.nan
    row = (float(counts.observations), mae, mae, certificate.upper, size, certificate.gap)
    history = History(*(np.array([value]) for value in row))
    return Estimate(found.model, certificate, found.evaluations, found.converged, history)
