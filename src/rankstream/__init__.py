"""rankstream: non-parametric choice models, estimated and certified while the choices arrive."""

from typing import TYPE_CHECKING, Any

from rankstream._core import renamed
from rankstream._core.lazy import importer
from rankstream._core.version import VERSION

if TYPE_CHECKING:
    from rankstream import baselines, certificate, checks, decide, distances, learners, models, oracles, plots, streams
    from rankstream.certificate import Certificate
    from rankstream.columns.rationality import rationality
    from rankstream.columns.revenue import probability_range, revenue_range
    from rankstream.data import simulate
    from rankstream.data.assortments import Assortments
    from rankstream.data.counts import ChoiceCounts
    from rankstream.data.drift import DriftReport, drift_report
    from rankstream.data.forgetting import DecayingCounts, WindowCounts
    from rankstream.data.prices import PriceLevels
    from rankstream.data.readers import outside_sensitivity, read, read_counts, with_outside
    from rankstream.estimation import methods
    from rankstream.estimation.budget import fit_within
    from rankstream.estimation.estimate import Estimate, estimate
    from rankstream.estimation.estimator import RankingEstimator
    from rankstream.estimation.intervals import Bootstrap, predict_interval
    from rankstream.estimation.many.results import Markets
    from rankstream.estimation.many.run import estimate_many
    from rankstream.evaluate.compare import compare
    from rankstream.evaluate.customer_types import favourite_changes, type_changes
    from rankstream.models.entropy.model import EntropyModel
    from rankstream.models.files import load_model
    from rankstream.models.rankings import RankingModel
    from rankstream.service.client import Client
    from rankstream.solver.loop import Solver
    from rankstream.streams.detector import ChangeDetector
    from rankstream.streams.live import Live, Record

__version__ = VERSION

__all__ = [
    "Assortments",
    "Bootstrap",
    "Certificate",
    "ChangeDetector",
    "ChoiceCounts",
    "Client",
    "DecayingCounts",
    "DriftReport",
    "EntropyModel",
    "Estimate",
    "Live",
    "Markets",
    "PriceLevels",
    "RankingEstimator",
    "RankingModel",
    "Record",
    "Solver",
    "WindowCounts",
    "baselines",
    "certificate",
    "checks",
    "compare",
    "decide",
    "distances",
    "drift_report",
    "estimate",
    "estimate_many",
    "favourite_changes",
    "fit_within",
    "learners",
    "load_model",
    "methods",
    "models",
    "oracles",
    "outside_sensitivity",
    "plots",
    "predict_interval",
    "probability_range",
    "rationality",
    "read",
    "read_counts",
    "revenue_range",
    "simulate",
    "streams",
    "type_changes",
    "with_outside",
]

PLACES = {
    "Assortments": "data.assortments",
    "Bootstrap": "estimation.intervals",
    "Certificate": "certificate",
    "ChangeDetector": "streams.detector",
    "ChoiceCounts": "data.counts",
    "Client": "service.client",
    "DecayingCounts": "data.forgetting",
    "DriftReport": "data.drift",
    "EntropyModel": "models.entropy.model",
    "Estimate": "estimation.estimate",
    "Live": "streams.live",
    "Markets": "estimation.many.results",
    "PriceLevels": "data.prices",
    "RankingEstimator": "estimation.estimator",
    "RankingModel": "models.rankings",
    "Record": "streams.live",
    "Solver": "solver.loop",
    "WindowCounts": "data.forgetting",
    "baselines": "baselines.",
    "certificate": "certificate.",
    "checks": "checks.",
    "compare": "evaluate.compare",
    "decide": "decide.",
    "distances": "distances.",
    "drift_report": "data.drift",
    "estimate": "estimation.estimate",
    "estimate_many": "estimation.many.run",
    "favourite_changes": "evaluate.customer_types",
    "fit_within": "estimation.budget",
    "learners": "learners.",
    "load_model": "models.files",
    "methods": "estimation.methods.",
    "models": "models.",
    "oracles": "oracles.",
    "outside_sensitivity": "data.readers",
    "plots": "plots.",
    "predict_interval": "estimation.intervals",
    "probability_range": "columns.revenue",
    "rationality": "columns.rationality",
    "read": "data.readers",
    "read_counts": "data.readers",
    "revenue_range": "columns.revenue",
    "simulate": "data.simulate.",
    "streams": "streams.",
    "type_changes": "evaluate.customer_types",
    "with_outside": "data.readers",
}
"""Where the public names live; each is imported when it is first asked for, so that importing takes no time."""
_find = importer(__name__, PLACES)
renamed.watch_imports()


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for; of an old one, say what it is called now."""
    if name in renamed.NAMES:
        raise AttributeError(renamed.sentence(name, renamed.NAMES[name]))
    return _find(name)


def __dir__() -> list[str]:
    return sorted(__all__)
