"""The certificate of any model of counts: its distance from them, and how near any ranking model could be."""

from dataclasses import replace
from typing import Any

import numpy as np

from rankstream import distances
from rankstream._core import Vec, Watch, unwatched
from rankstream.certificate import Certificate, certify
from rankstream.columns.lower_bound import HalfSpace, prove_lower_bound
from rankstream.data import Assortments, ChoiceCounts, Target
from rankstream.distances import HighNorm
from rankstream.estimation.task import Task
from rankstream.learners.rounds import Sums
from rankstream.models import ChoiceModel, RankingModel
from rankstream.oracles import Oracle
from rankstream.solver.runs import Estimate, History

MAX_OPEN_PART, MIN_DISTANCE = 0.01, 1e-9  # of the distance may stay unproven; below the second, nothing is


def estimate_of(model: ChoiceModel, task: Task, rounds: int, converged: bool) -> Estimate[Any]:
    """A model that was fitted in some other way as an Estimate, with the certificate and history that all have."""
    counts, target = task.counts, task.target
    seen = np.ones(task.assortments.n_coordinates, dtype=bool) if target.seen is None else target.seen
    fitted = np.zeros(task.assortments.n_coordinates)
    shown = np.flatnonzero(counts.totals > 0.0)
    offers = Assortments([task.assortments.offers[number] for number in shown.tolist()], task.assortments.items)
    fitted[seen] = model.probabilities(offers)
    certificate = certificate_of(fitted, counts, task.oracle, task.proving)
    mae = float(np.abs(fitted - target.frequencies)[seen].mean())
    size = float(len(model.weights)) if isinstance(model, RankingModel) else np.nan
    row = (float(counts.observations), mae, mae, certificate.upper, size, certificate.gap)
    history = History(*(np.array([value]) for value in row))
    return Estimate(model, certificate, rounds, converged, history)


def certificate_of(fitted: Vec, counts: ChoiceCounts, oracle: Oracle, watch: Watch = unwatched) -> Certificate:
    """How far a model's probabilities are from the counts in l2, and how near any ranking model could be.

    Offers weigh by their observations, as in every fit of counts. What is proven is the best of the residual's own
    direction, of the zero dual, which proves 0 without rounding, and of what ``prove_lower_bound`` finds until what is
    open is ``MAX_OPEN_PART`` of the model's own distance. The regrets are those of one round in which that dual was
    answered best: none of the oracle's.
    """
    assortments, target = counts.assortments, counts.target()
    data = target.frequencies if target.seen is None else np.where(target.seen, target.frequencies, fitted)
    distance = distances.L2(assortments, weights=distances.observation_weights(counts))
    dual = distance.respond(fitted, data) if (fitted != data).any() else distance.start()
    found = certify(Sums(fitted, data, dual, 1.0, latest=data), distance, oracle, seen=target.seen)
    found, space = replace(found, lower=max(found.lower, 0.0)), None
    if found.gap > MAX_OPEN_PART * found.upper > MIN_DISTANCE and not watch("proving"):
        space = prove_lower_bound(distance, target, oracle, MAX_OPEN_PART * found.upper, watch)
    return with_proof(found, space, distance, target)


def with_proof(found: Certificate, space: HalfSpace | None, distance: HighNorm, target: Target) -> Certificate:
    """The same certificate with what a half-space proves, where that is more."""
    lower = found.lower if space is None else max(found.lower, space.lower(distance, target))
    return replace(found, lower=lower, oracle_regret=0.0, dual_regret=found.upper - lower)
