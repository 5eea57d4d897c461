"""rankstream: non-parametric choice models, estimated and certified while the choices arrive."""

from typing import TYPE_CHECKING, Any

from rankstream import checks, distances, learners, oracles
from rankstream.certificate import Certificate
from rankstream.data import simulate
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.estimation.estimate import Estimate, estimate
from rankstream.models.rankings import RankingModel
from rankstream.solver.loop import Solver

if TYPE_CHECKING:
    from rankstream import baselines, evaluate, plots
    from rankstream.columns.rationality import rationality
    from rankstream.columns.revenue import probability_range, revenue_range
    from rankstream.data.readers import read, read_counts
    from rankstream.estimation import intervals
    from rankstream.estimation.estimator import RankingChoiceModel
    from rankstream.models.entropy import fit as entropy
    from rankstream.models.entropy.model import EntropyModel
    from rankstream.models.files import load_model

__version__ = "0.2.0"

__all__ = [
    "Assortments",
    "Certificate",
    "ChoiceCounts",
    "EntropyModel",
    "Estimate",
    "RankingChoiceModel",
    "RankingModel",
    "Solver",
    "baselines",
    "checks",
    "distances",
    "entropy",
    "estimate",
    "evaluate",
    "intervals",
    "learners",
    "load_model",
    "oracles",
    "plots",
    "probability_range",
    "rationality",
    "read",
    "read_counts",
    "revenue_range",
    "simulate",
]

LATER = {
    "EntropyModel": "entropy_model",
    "RankingChoiceModel": "estimator",
    "baselines": "",
    "entropy": "",
    "evaluate": "",
    "intervals": "",
    "load_model": "model_files",
    "plots": "",
    "probability_range": "baselines",
    "rationality": "baselines",
    "read": "readers",
    "read_counts": "readers",
    "revenue_range": "baselines",
}
"""Names that are imported only when they are asked for, and the modules that hold them."""


def __getattr__(name: str) -> Any:
    """Import what takes time only when it is asked for."""
    if name not in LATER:
        raise AttributeError(f"module 'rankstream' has no attribute {name!r}")
    from importlib import import_module

    if not LATER[name]:
        return import_module(f"rankstream.{name}")
    return getattr(import_module(f"rankstream.{LATER[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
