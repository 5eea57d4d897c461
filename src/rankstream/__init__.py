"""rankstream: non-parametric choice models, estimated and certified while the choices arrive."""

from typing import TYPE_CHECKING

from rankstream._core.lazy import importer

if TYPE_CHECKING:
    from rankstream import baselines, certificate, checks, distances, evaluate, learners, oracles, plots
    from rankstream.certificate import Certificate
    from rankstream.columns.rationality import rationality
    from rankstream.columns.revenue import probability_range, revenue_range
    from rankstream.data import simulate
    from rankstream.data.assortments import Assortments
    from rankstream.data.counts import ChoiceCounts
    from rankstream.data.readers import read, read_counts
    from rankstream.estimation import intervals
    from rankstream.estimation.estimate import Estimate, estimate
    from rankstream.estimation.estimator import RankingChoiceModel
    from rankstream.models.entropy import fit as entropy
    from rankstream.models.entropy.model import EntropyModel
    from rankstream.models.files import load_model
    from rankstream.models.rankings import RankingModel
    from rankstream.solver.loop import Solver

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
    "certificate",
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

PLACES = {
    "Assortments": "data.assortments",
    "Certificate": "certificate",
    "ChoiceCounts": "data.counts",
    "EntropyModel": "models.entropy.model",
    "Estimate": "estimation.estimate",
    "RankingChoiceModel": "estimation.estimator",
    "RankingModel": "models.rankings",
    "Solver": "solver.loop",
    "baselines": "baselines.",
    "certificate": "certificate.",
    "checks": "checks.",
    "distances": "distances.",
    "entropy": "models.entropy.fit.",
    "estimate": "estimation.estimate",
    "evaluate": "evaluate.",
    "intervals": "estimation.intervals.",
    "learners": "learners.",
    "load_model": "models.files",
    "oracles": "oracles.",
    "plots": "plots.",
    "probability_range": "columns.revenue",
    "rationality": "columns.rationality",
    "read": "data.readers",
    "read_counts": "data.readers",
    "revenue_range": "columns.revenue",
    "simulate": "data.simulate.",
}
__getattr__ = importer(__name__, PLACES)


def __dir__() -> list[str]:
    return sorted(__all__)
