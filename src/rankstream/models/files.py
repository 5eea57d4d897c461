"""Model files: the kinds of models, their names and usual methods, and how to read them."""

import os
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rankstream._core.terminal import plural

if TYPE_CHECKING:
    from rankstream.models.entropy.model import EntropyModel
    from rankstream.models.parametric.base import Fitted
    from rankstream.models.rankings import RankingModel

    Model: TypeAlias = RankingModel | EntropyModel | Fitted


class Kind(NamedTuple):
    """A kind of model: its class, its name, its default method, and a short description."""

    place: str
    name: str
    method: str
    words: str


KINDS = {
    "model": Kind("rankings:RankingModel", "rankings", "nearest", ""),
    "entropy-model":
        Kind("entropy.model:EntropyModel", "max-entropy", "max-entropy", "all rankings, by maximum entropy"),
    "logit-model": Kind("parametric.mnl:LogitModel", "mnl", "mnl", "a multinomial logit"),
    "latent-class-model":
        Kind("parametric.latent_class:LatentClassModel", "latent-class", "latent-class", "a mixture of logits"),
    "markov-chain-model":
        Kind("parametric.markov_chain:MarkovChainModel", "markov-chain", "markov-chain", "a Markov chain"),
    "priced-logit-model":
        Kind("parametric.attribute_logit:PricedModel", "priced-logit", "latent-class-price",
             "logits with a price coefficient"),
}  # fmt: skip
"""Every kind by its format, without "rankstream-"; a class is imported only when needed."""
SEVERAL_METHODS = {"rankings": None, "priced-logit": ("mnl-price", "latent-class-price")}
"""Kinds with several methods: any (None), or these."""


def kind_of(model: "Model") -> str:
    """Return the name of a model's kind."""
    return _kind(model).name


def method_of(model: "Model") -> str:
    """Return the method of a model's fit: the noted one, or the default of its kind."""
    noted, kind = model.about.get("method"), _kind(model)
    known = SEVERAL_METHODS.get(kind.name, (kind.method,))
    return noted if isinstance(noted, str) and (known is None or noted in known) else kind.method


def words_of(kind: str, rankings: int | None) -> str:
    """Describe a kind of model in a few words."""
    if rankings is not None:
        return plural(rankings, "ranking")
    return next(known.words for known in KINDS.values() if known.name == kind)


def _kind(model: "Model") -> Kind:
    return KINDS[model.FORMAT.removeprefix("rankstream-")]


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a model, by its first bytes; others may be choices."""
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return re.match(rb'\s*{\s*"format"\s*:\s*"rankstream-', file.read(1000)) is not None


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model that any ``save`` wrote.

    Examples
    --------
    >>> import tempfile
    >>> from rankstream import RankingModel
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     RankingModel(["tea", "pie"], [("tea", "pie")], [1.0]).save(f"{folder}/model.json")
    ...     load_model(f"{folder}/model.json")
    RankingModel(1 rankings of 2 items)
    """
    from rankstream.models.base import read_content  # with numpy, which words about models do not need

    return model_in(read_content(path), path)


def model_in(content: dict[str, Any], path: str | os.PathLike[str]) -> Any:
    """Return the model of a parsed file; ``path`` is its name in error messages."""
    kind = KINDS.get(str(content["format"]).removeprefix("rankstream-"))
    if kind is None:
        known = ", ".join(f"'rankstream-{name}'" for name in KINDS)
        raise ValueError(f"{path} has the format {content['format']!r}, which is none of {known}: update rankstream.")
    module, name = kind.place.split(":")
    return getattr(import_module(f"rankstream.models.{module}"), name).read(content, path)
