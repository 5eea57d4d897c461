"""Model files: whichever kind of model a file holds."""

import json
import os
from pathlib import Path

from rankstream.entropy_model import FORMAT as ENTROPY_FORMAT
from rankstream.entropy_model import EntropyModel
from rankstream.model import RankingModel


def load_model(path: str | os.PathLike[str]) -> RankingModel | EntropyModel:
    """Read a model that any ``save`` wrote."""
    if not Path(path).is_file():
        raise ValueError(f"There is no model file {path}: name one that 'rankstream fit' or save() wrote.")
    try:
        with Path(path).open(encoding="utf-8") as file:
            content = json.load(file)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a whole model file ({error}): save the model again.") from None
    if isinstance(content, dict) and content.get("format") == ENTROPY_FORMAT:
        return EntropyModel.load(path)
    return RankingModel.load(path)
