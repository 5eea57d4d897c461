"""The maximum-entropy fit as an Estimate: with the certificate and the history that every method has."""

from dataclasses import replace
from typing import Any

import numpy as np

from rankstream import distances, oracles
from rankstream._core.types import Mask, Vec
from rankstream._core.watch import Watch, until, unwatched
from rankstream.certificate import Certificate, certify
from rankstream.columns import corrective
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.learners.rounds import Sums
from rankstream.models.entropy import fit as entropy
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.rankings import RankingModel
from rankstream.solver.runs import Estimate, History

__all__ = ["FITTING", "EntropyModel", "entropy_estimate", "raw_certificate"]

NEAR, TINY, ROUNDS = 0.01, 1e-9, 200
FITTING = 0.9
"""The part of the time that is for the fit; the rest is for its certificate."""


def entropy_estimate(
    assortments: Assortments,
    counts: ChoiceCounts,
    *,
    seed: int = 0,
    watch: Watch = unwatched,
    proving: Watch = unwatched,
    **options: Any,
) -> Estimate[EntropyModel | RankingModel]:
    """Fit, and certify the raw distance with the hard oracle: how much nearer to the data any ranking model could be.

    ``rounds`` are evaluations of the soft program; ``converged`` says that its own duality gap is small enough. The
    certificate holds for whatever model there is when ``watch`` says that it is enough; ``proving`` watches the search
    for a good bound.
    """
    found = entropy.fit(counts, seed=seed, watch=until(watch, FITTING), **options)
    target = counts.target()
    seen = np.ones(assortments.n_coordinates, dtype=bool) if target.seen is None else target.seen
    fitted = _spread(found, assortments, seen)
    certificate = raw_certificate(fitted, counts, oracles.auto(assortments, seed=seed), seed, proving)
    mae = float(np.abs(fitted - target.frequencies)[seen].mean())
    size = float(len(found.model.weights)) if isinstance(found.model, RankingModel) else np.nan
    row = (float(counts.observations), mae, mae, certificate.upper, size, certificate.gap)
    history = History(*(np.array([value]) for value in row))
    return Estimate(found.model, certificate, found.evaluations, found.converged, history)


def _spread(found: entropy.EntropyFit, assortments: Assortments, seen: Mask) -> Vec:
    """The fitted probabilities in the order of these offers; the fit holds those that were seen, 0 for the others."""
    if found.assortments == assortments:
        return found.fitted
    out = np.zeros(assortments.n_coordinates)
    for place in np.flatnonzero(seen).tolist():
        item = assortments.items[assortments.members[place]]
        out[place] = found.fitted[found.assortments.coordinate(assortments.offers[assortments.owner[place]], item)]
    return out


def raw_certificate(
    fitted: Vec, counts: ChoiceCounts, oracle: oracles.Oracle, seed: int = 0, watch: Watch = unwatched
) -> Certificate:
    """How far a model's probabilities are from the counts in l2, and how near any ranking model could be.

    Offers weigh by their observations, as in every fit of counts. What is proven is the best of the residual's own
    direction, of the zero dual, which proves 0 without rounding, and, where the oracle is quick, of the fully
    corrective engine, which goes on until what is open is ``NEAR`` of the model's own distance, or for ``ROUNDS``
    rounds. The regrets are those of one round in which that dual was answered best: none of the oracle's.
    """
    assortments, target = counts.assortments, counts.target()
    data = target.frequencies if target.seen is None else np.where(target.seen, target.frequencies, fitted)
    distance = distances.L2(assortments, weights=distances.observation_weights(counts))
    dual = distance.respond(fitted, data) if (fitted != data).any() else distance.start()
    found = certify(Sums(fitted, data, dual, 1.0, latest=data), distance, oracle, seen=target.seen)
    lower = max(found.lower, 0.0)
    room = NEAR * found.upper
    if hasattr(oracle, "cheapest_by_first") and found.upper - lower > room > TINY and not watch("proving"):
        nearest = corrective.fit(assortments, counts, distance, oracle, "random", room, "gap", ROUNDS, seed, watch)
        lower = max(lower, nearest.certificate.lower)
    return replace(found, lower=lower, oracle_regret=0.0, dual_regret=found.upper - lower)
