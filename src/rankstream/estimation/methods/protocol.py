"""What a method is: frozen settings that can fit a task."""

from typing import Any, ClassVar, Literal, Protocol

from rankstream import distances
from rankstream.data.counts import ChoiceCounts
from rankstream.distances import Distance
from rankstream.estimation.task import Task
from rankstream.models.protocol import ChoiceModel
from rankstream.solver.runs import Estimate

Weighting = Literal["observations", "equal"]


class Method(Protocol):
    """A way of fitting: its settings, its name, and which of the settings says when the fit is good enough."""

    name: ClassVar[str]
    tolerance: ClassVar[str]

    def fit(self, task: Task) -> Estimate[Any]:
        """The fitted model, with its certificate."""

    def model(self, task: Task) -> ChoiceModel:
        """The fitted model alone."""


def offer_weights(distance: str | Distance, weights: Weighting, task: Task) -> tuple[float, ...] | None:
    """What each offer weighs in a distance given by name: the root of its observations, for KL their share."""
    if weights not in ("observations", "equal"):
        raise ValueError(f"weights is {weights!r}: choose 'observations' or 'equal'.")
    if not isinstance(distance, str) or weights == "equal":
        return None
    if not isinstance(task.data, ChoiceCounts) or not task.data.observations:
        return None
    return distances.observation_weights(task.data, "share" if distance == "kl" else "root")
