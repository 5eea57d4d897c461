"""The nearest mixture of rankings as a method: data that stand still, few rankings, tight bounds."""

from dataclasses import dataclass
from typing import Any, ClassVar

from rankstream import distances
from rankstream._core.arguments import number_between
from rankstream.columns import corrective
from rankstream.distances import Distance
from rankstream.estimation.task import Task, Weighting, offer_weights
from rankstream.models.protocol import ChoiceModel
from rankstream.oracles import Oracle, Ties
from rankstream.solver.runs import Estimate


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """The mixture of rankings nearest to fixed data: few rankings, tight bounds on both sides.

    By the fully corrective engine: after every answer of the oracle, the best weights for all rankings so far.

    Parameters
    ----------
    distance : str or Distance
        "l1", "l2" or "linf"; an object brings weights of its own.
    weights : "observations" or "equal"
        Whether an offer counts by the root of its observations, for a distance given by name.
    gap : float
        The certified gap at which the fit ends, in the units of the distance.
    max_rankings : int, optional
        The most rankings to keep, those that lose least; the certificate is that of the smaller model.
    oracle : Oracle, optional
        What finds the cheapest ranking; without it ``oracles.auto`` chooses.
    ties : "random", "first" or "last"
        Which of the rankings that choose alike from all offers is kept.
    max_rounds : int
        How often the oracle is asked at most.

    """

    name: ClassVar[str] = "nearest"
    tolerance: ClassVar[str] = "gap"
    distance: str | Distance = "l2"
    weights: Weighting = "observations"
    gap: float = 1e-3
    max_rankings: int | None = None
    oracle: Oracle | None = None
    ties: Ties = "random"
    max_rounds: int = 10_000

    def fit(self, task: Task) -> Estimate[Any]:
        """Fit; see ``Method``."""
        task.require_still(self.name)
        number_between("gap", self.gap, 0.0)
        found = corrective.fit_nearest(
            task.assortments, task.target, self._form(task),
            self.oracle if self.oracle is not None or self.ties != "random" else task.oracle,
            self.ties, self.gap, "gap", self.max_rounds, task.seed, task.watch, self.oracle is None,
        )  # fmt: skip
        if self.max_rankings is None or len(found.model.weights) <= self.max_rankings:
            return found
        return corrective.with_fewer(found, task.target, self._form(task), self.max_rankings)

    def model(self, task: Task) -> ChoiceModel:
        """Fit; see ``Method``."""
        model: ChoiceModel = self.fit(task).model
        return model

    def _form(self, task: Task) -> Distance:
        weights = offer_weights(self.distance, self.weights, task)
        if isinstance(self.distance, str):
            return distances.make(self.distance, task.assortments, 0.0, weights)
        return self.distance
