"""rankstream: non-parametric choice models, estimated and certified while the choices arrive."""

from typing import TYPE_CHECKING, Any

from rankstream import checks, distances, learners, oracles, simulate
from rankstream.assortments import Assortments
from rankstream.certificate import Certificate
from rankstream.counts import ChoiceCounts
from rankstream.estimation import Estimate, estimate
from rankstream.model import RankingModel
from rankstream.solver import Solver

if TYPE_CHECKING:
    from rankstream.estimator import RankingChoiceModel

__version__ = "0.1.0"

__all__ = [
    "Assortments",
    "Certificate",
    "ChoiceCounts",
    "Estimate",
    "RankingChoiceModel",
    "RankingModel",
    "Solver",
    "checks",
    "distances",
    "estimate",
    "learners",
    "oracles",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Import the scikit-learn face only when it is asked for."""
    if name == "RankingChoiceModel":
        from rankstream.estimator import RankingChoiceModel

        return RankingChoiceModel
    raise AttributeError(f"module 'rankstream' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
