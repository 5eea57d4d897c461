"""What is measured of a fit: error on unseen offers, sparsity, effort, and what was proven."""

from dataclasses import replace
from typing import Any

import numpy as np

from experiments.instances import Instance
from rankstream import certificate as certificates
from rankstream._core.types import Vec
from rankstream.certificate import Certificate
from rankstream.distances import HighNorm
from rankstream.models.rankings import RankingModel
from rankstream.solver.runs import Run as Fit


def mean_error(found: Vec, true: Vec) -> float:
    """The mean absolute error."""
    return float(np.abs(found - true).mean())


def distinct_rankings(model: RankingModel) -> int:
    """How many orders of what is ranked above the no-choice item there are."""
    if model.no_choice_code is None:
        return len(model.orders)
    ends = np.argmax(model.orders == model.no_choice_code, axis=1)
    return len({order[:end].tobytes() for order, end in zip(model.orders, ends.tolist(), strict=True)})


def errors(fit: Fit, instance: Instance) -> dict[str, Any]:
    """Where a fit stands: its errors against the data, the truth, and offers it has not seen."""
    state = fit.state
    model = fit.solver.model(state)
    return {
        "rounds": state.round,
        "observations": 0 if np.isnan(state.observations) else int(state.observations),
        "rankings": distinct_rankings(model),
        "mae": state.mae,
        "latest_mae": state.latest_mae,
        "truth_mae": mean_error(state.sums.mean_vertex, instance.truth),
        "data_mae": mean_error(state.sums.latest, instance.truth),
        "test_mae": mean_error(model.probabilities(instance.market.test), instance.test),
    }


def gap(fit: Fit) -> float:
    """The saddle-point gap that the averaged dual certifies, in the plain norm and at the averaged data.

    It is what the guarantees in advance bound; ``Certificate.gap`` is never more, for it knows that norms are not
    negative. The averaged dual of a smoothed norm is one of the norm itself, so it proves a bound there, too; that of a
    square is not, and its gap is translated.
    """
    solver = fit.solver
    distance: Any = solver.distance  # one of our own, a dataclass: the protocol does not say so
    if isinstance(distance, HighNorm) and distance.squared:
        return certificates.translate_to_norm(distance, _of_mean_dual(solver.certificate(fit.state)))
    return _of_mean_dual(certificates.certify(fit.state.sums, replace(distance, smoothing=0.0), solver.oracle))


def _of_mean_dual(found: Certificate) -> float:
    return found.gap if found.mean_dual_lower is None else found.upper - found.mean_dual_lower


def guarantee(fit: Fit, instance: Instance) -> float:
    """What was known of that gap before the first round, for constant data."""
    solver, offers = fit.solver, instance.market.assortments
    return certificates.guaranteed_gap(solver.learner, solver.distance, offers, fit.state.round, of_norm=True)
