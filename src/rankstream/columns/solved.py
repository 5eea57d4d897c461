"""When the exact approaches stop, and what they answer with."""

from dataclasses import dataclass

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.models.rankings import RankingModel


@dataclass(frozen=True)
class Limits:
    """When to stop: at a small gap, or out of patience."""

    tolerance: float = 1e-7
    max_iterations: int = 10_000
    max_seconds: float = np.inf
    watch: Watch = unwatched


@dataclass(frozen=True, eq=False)
class Minimum:
    """The mixture of rankings with the least loss: that loss, the proven bound on it, and how it was reached."""

    orders: Codes
    weights: Vec
    point: Vec
    value: float
    bound: float
    iterations: int
    seconds: dict[str, float]


@dataclass(frozen=True, eq=False)
class ProvenFit:
    """A model, what it loses (``value``), and the proven ``bound`` that no distribution over rankings undercuts.

    ``proven`` says that the two are as near as was asked for; ``seconds`` how long the parts of the search took.
    """

    model: RankingModel
    value: float
    bound: float
    proven: bool
    iterations: int
    columns: int
    seconds: dict[str, float]

    @property
    def gap(self) -> float:
        """How far the value can be from the least."""
        return self.value - self.bound
