"""Model files: whichever kind of model a file holds."""

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from rankstream.models.rankings import FORMAT, RankingModel

if TYPE_CHECKING:
    from rankstream.models.entropy.model import EntropyModel


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is a model; others may hold choices."""
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return re.match(rb'\s*{\s*"format"\s*:\s*"rankstream-', file.read(1000)) is not None


def load_model(path: str | os.PathLike[str]) -> "RankingModel | EntropyModel":
    """Read a model that any ``save`` wrote."""
    if not Path(path).is_file():
        raise ValueError(f"There is no model file {path}: name one that 'rankstream fit' or save() wrote.")
    try:
        with Path(path).open(encoding="utf-8") as file:
            content = json.load(file)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a whole model file ({error}): save the model again.") from None
    if isinstance(content, dict) and content.get("format") != FORMAT:
        from rankstream.models.entropy import model as entropy  # compiled, and not needed for rankings

        if content.get("format") == entropy.FORMAT:
            return entropy.EntropyModel.load(path)
    return RankingModel.load(path)
