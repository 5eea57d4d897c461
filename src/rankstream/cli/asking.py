"""What the commands that ask a model share: offers as people write them, and the items they name."""

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rankstream._core.types import Label
    from rankstream.models.entropy.model import EntropyModel
    from rankstream.models.parametric.fitted import Fitted
    from rankstream.models.rankings import RankingModel

    Model: TypeAlias = RankingModel | EntropyModel | Fitted

KINDS = {
    "RankingModel": ("rankings", "nearest", ""),
    "EntropyModel": ("max-entropy", "max-entropy", "all rankings, by maximum entropy"),
    "LogitModel": ("mnl", "mnl", "a multinomial logit"),
    "LatentClassModel": ("latent-class", "latent-class", "a mixture of logits"),
    "MarkovChainModel": ("markov-chain", "markov-chain", "a Markov chain"),
}
"""What a model is called, the method for it where the file does not say which it was, and a few words."""


def kind_of(model: "Model") -> str:
    """What kind of model it is, in a word."""
    return KINDS[type(model).__name__][0]


def method_of(model: "Model") -> str:
    """How it was fitted: as its file says, else as such models usually are."""
    noted, usual = model.about.get("method"), KINDS[type(model).__name__][1]
    return noted if isinstance(noted, str) and (noted == usual or kind_of(model) == "rankings") else usual


def words_of(kind: str, rankings: int | None) -> str:
    """A kind of model in a few words."""
    if rankings is not None:
        return "1 ranking" if rankings == 1 else f"{rankings} rankings"
    return next(words for name, _, words in KINDS.values() if name == kind)


def read_offers(file: Path) -> list[str]:
    """The lines of a text file, without empty ones; a first line "offered" is a heading."""
    if not file.is_file():
        raise ValueError(f"There is no file {file}: name a text file with an offer in every line.")
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not a text file in UTF-8 ({error}): save it as one.") from None
    found = [line[1:-1] if line[0] == line[-1] == '"' else line for line in lines if line]
    found = found[1:] if found and found[0] == "offered" else found
    if not found:
        raise ValueError(f"{file} holds no offers: write one in every line, its items joined by ';'.")
    return found


def as_items(text: str, by_name: "dict[str, Label]") -> "list[Label]":
    """The items that a text names, joined by ";"; those with a ";" in their names can be told in a JSON list."""
    names = [name.strip() for name in text.split(";")]
    if text.lstrip().startswith("[") and not all(name in by_name for name in names):
        with suppress(ValueError):
            names = [str(name).strip() for name in json.loads(text)]
    for name in names:
        if name not in by_name:
            known = ", ".join(map(repr, by_name))
            raise ValueError(f"The offer {text!r} holds {name!r}, which the model does not know: it knows {known}.")
    return [by_name[name] for name in names]
