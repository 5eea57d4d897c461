"""Model files: whichever kind of model is in a file."""

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from rankstream.models.base import read_content

KINDS = {
    "rankstream-model": ("rankings", "RankingModel"),
    "rankstream-entropy-model": ("entropy.model", "EntropyModel"),
    "rankstream-logit-model": ("parametric.mnl", "LogitModel"),
    "rankstream-latent-class-model": ("parametric.latent_class", "LatentClassModel"),
    "rankstream-markov-chain-model": ("parametric.markov_chain", "MarkovChainModel"),
    "rankstream-priced-logit-model": ("parametric.priced", "PricedModel"),
    "rankstream-falling-class-model": ("parametric.falling", "FallingClassModel"),
}
"""Formats, and where the classes that read them live; only the one that is needed is imported."""


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is a model; others may be choices."""
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return re.match(rb'\s*{\s*"format"\s*:\s*"rankstream-', file.read(1000)) is not None


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model that any ``save`` wrote.

    >>> import tempfile
    >>> from rankstream import RankingModel
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     RankingModel(["tea", "pie"], [("tea", "pie")], [1.0]).save(f"{folder}/model.json")
    ...     load_model(f"{folder}/model.json")
    RankingModel(1 rankings of 2 items)
    """
    return model_in(read_content(path), path)


def model_in(content: dict[str, Any], path: str | os.PathLike[str]) -> Any:
    """The model of a file that was parsed already; ``path`` is what sentences call it."""
    if content["format"] not in KINDS:
        known = ", ".join(map(repr, KINDS))
        raise ValueError(f"{path} says format {content['format']!r}, which is none of {known}: update rankstream.")
    place, name = KINDS[content["format"]]
    return getattr(import_module(f"rankstream.models.{place}"), name).read(content, path)
