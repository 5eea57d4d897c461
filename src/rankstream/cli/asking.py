"""What the commands that ask a model share: offers as people write them, and the items they name."""

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rankstream._core.types import Label
    from rankstream.models.entropy.model import EntropyModel
    from rankstream.models.rankings import RankingModel

    Model: TypeAlias = RankingModel | EntropyModel


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
