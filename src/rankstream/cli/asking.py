"""What the commands that ask a model share: offers as people write them, and the items they name."""

import json
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rankstream._core.terminal import visible

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
    "PricedModel": ("priced-logit", "latent-class-price", "logits with a price coefficient"),
    "FallingClassModel": ("falling-class", "max-entropy", "logits whose demand falls with the price"),
}
"""What a model is called, the method for it where the file does not say which it was, and a few words."""
SEVERAL = {"rankings": None, "priced-logit": ("mnl-price", "latent-class-price")}
"""Kinds that several methods make: any, or these."""
MOST_DRAWN, MOST_DRAWN_FROM_CHAINS = 1000, 60
"""Items of which whole rankings are drawn in seconds; those of a Markov chain take far longer."""
MOST_LISTED = 20
"""Names that a sentence lists."""


def kind_of(model: "Model") -> str:
    """What kind of model it is, in a word."""
    return KINDS[type(model).__name__][0]


def method_of(model: "Model") -> str:
    """How it was fitted: as its file says, else as such models usually are."""
    noted, (kind, usual, _) = model.about.get("method"), KINDS[type(model).__name__]
    known = SEVERAL.get(kind, (usual,))
    return noted if isinstance(noted, str) and (known is None or noted in known) else usual


def can_be_drawn(model: "Model") -> bool:
    """Whether whole rankings are there, or can be drawn from the model within seconds."""
    chains = len(getattr(getattr(model, "prior", None), "chain_weights", ())) or hasattr(model, "transitions")
    return kind_of(model) == "rankings" or len(model.items) <= (MOST_DRAWN_FROM_CHAINS if chains else MOST_DRAWN)


def require_drawn(model: "Model", option: str) -> None:
    """Refuse what would take hours."""
    if not can_be_drawn(model):
        raise ValueError(f"{option} needs rankings drawn from a model of {len(model.items):,} items: leave it out.")


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
        raise ValueError(f"{file} has no offers: write one in every line, its items joined by ';'.")
    return found


def as_items(text: str, names: "dict[str, Label]") -> "list[Label]":
    """The items that a text names, joined by ";"; those with a ";" in their names can be given in a JSON list."""
    words = [name.strip() for name in text.split(";")]
    if text.lstrip().startswith("[") and not all(name in names for name in words):
        with suppress(ValueError):
            words = [str(name).strip() for name in json.loads(text)]
    return [find_item(name, names, f"The offer {text!r} names") for name in words]


def find_item(name: str, names: "dict[str, Label]", who: str) -> "Label":
    """The item of that name; ``who`` begins the sentence where there is none."""
    if name.strip() not in names:
        known = ", ".join(map(repr, list(names)[:MOST_LISTED]))
        known += f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
        raise ValueError(f"{who} {name!r}, which the model does not know{did_you_mean(name, names)}: it knows {known}.")
    return names[name.strip()]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question in brackets where a word is nearly one that is known; nothing where none is near.

    >>> did_you_mean("Te", ["tea", "pie"]), did_you_mean("rum", ["tea", "pie"])
    (" (did you mean 'tea'?)", '')
    """
    plain = {word.strip().lower(): word for word in known}
    near = get_close_matches(name.strip().lower(), plain, 1, 0.6)
    return f" (did you mean {plain[near[0]]!r}?)" if near else ""


def by_name(model: Any) -> "dict[str, Label]":
    """The model's items by how they read."""
    found: dict[str, Label] = {}
    for item in model.items:
        if found.setdefault(str(item).strip(), item) is not item:
            raise ValueError(f"The model has two items that read {item!s}: ask it from Python, where they differ.")
    return found


def shown(item: Any) -> str:
    """How an item reads in a line."""
    return visible(str(item), keep="")
