"""Names of version 0.2, and what they are called now: asking for one is an error that says so. Gone in 0.4."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

NAMES = {
    "RankingChoiceModel": "RankingEstimator",
    "entropy": "estimate(counts, method='max-entropy'), or models.fit_max_entropy",
    "evaluate": "compare",
    "intervals": "Bootstrap",
}
"""Public names of the package."""
MODULES = {
    "alarms": "ChangeDetector",
    "answers": "models",
    "assortments": "Assortments",
    "catching_up": "streams.catch_up",
    "checkpoint": "streams.save and streams.load",
    "chunks": "Solver",
    "commands": "the command line",
    "comparison": "compare",
    "completion": "models.redraw",
    "corrective": "estimate(counts, method='nearest')",
    "counts": "ChoiceCounts",
    "customer_types": "type_changes and favourite_changes",
    "detector": "ChangeDetector",
    "drift": "drift_report",
    "entropy": "estimate(counts, method='max-entropy'), or models.fit_max_entropy",
    "entropy_estimate": "estimate(counts, method='max-entropy')",
    "entropy_model": "EntropyModel",
    "estimator": "RankingEstimator",
    "forgetting": "DecayingCounts and WindowCounts",
    "growth": "streams.grow",
    "intervals": "Bootstrap",
    "live": "Live and Record",
    "model": "RankingModel",
    "model_files": "load_model",
    "priors": "models.fit_prior",
    "readers": "read and read_counts",
    "reweighing": "streams.reweigh",
    "rounds": "learners",
    "runs": "Estimate",
    "sparse": "RankingModel.sparsify",
    "splits": "compare",
    "watched": "Live(detect=True)",
    "windows": "DecayingCounts and WindowCounts",
}
"""Modules that could be imported, and the public name to use instead."""
ATTRIBUTES = {"Assortments.no_choice": "Assortments.no_choice_code"}
"""Attributes of public classes."""


def sentence(old: str, new: str) -> str:
    """What the error says to whoever uses an old name."""
    return f"rankstream.{old} of version 0.2 is now rankstream.{new}: see docs/upgrading.md."


class _Renamed(MetaPathFinder):
    """Asked last, when there is no such file: raises what Python would, with the new name in it."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        old = rest.split(".")[0]
        new = {**NAMES, **MODULES}.get(old)  # "from rankstream import name" looks for a module of that name, too
        if package == "rankstream" and new is not None and not (Path(__file__).parents[1] / old).exists():
            raise ImportError(sentence(old, new))
        return None


def watch_imports() -> None:
    """From now on, say what an old module is called."""
    if not any(isinstance(finder, _Renamed) for finder in sys.meta_path):
        sys.meta_path.append(_Renamed())
