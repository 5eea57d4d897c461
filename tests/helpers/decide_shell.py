"""A folder with a model, items and choices, and the command that decides on them."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from rankstream import Assortments, ChoiceCounts, RankingModel
from rankstream.cli.app import make_app

ITEMS = ("tea", "cream", "cake", "pie", "nothing")
MODEL = RankingModel(
    ITEMS,
    [("tea", "cake", "nothing", "pie", "cream"), ("cream", "pie", "cake", "nothing", "tea"),
     ("pie", "tea", "cream", "nothing", "cake"), ("cake", "nothing", "tea", "cream", "pie")],
    [0.4, 0.3, 0.2, 0.1], no_choice_code=4,
)  # fmt: skip
TABLE = "item,margin,listing_cost,space\ntea,1,0.1,1\ncream,3,,2\ncake,2,0.1,1\npie,2.5,0.1,2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    MODEL.save(tmp_path / "model.json")
    (tmp_path / "items.csv").write_text(TABLE)
    offers = Assortments([("tea", "cake", "nothing"), ("cream", "pie", "nothing"), ITEMS], ITEMS)
    counts = ChoiceCounts(offers, np.round(200 * MODEL.probabilities(offers)))
    lines = ["offered,chosen,count"]
    for coordinate, (offer, item) in enumerate(zip(offers.owner, offers.members, strict=True)):
        if counts.tallies[coordinate]:
            lines.append(f"{';'.join(offers.offers[offer])},{ITEMS[item]},{int(counts.tallies[coordinate])}")
    (tmp_path / "choices.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def call(folder: Path, *words: object) -> Result:
    files = {"ITEMS": folder / "items.csv", "DATA": folder / "choices.csv"}
    given = [str(files.get(str(word), word)) for word in words]
    named = ["decide", str(folder / "model.json"), "--margins", str(folder / "items.csv")]
    return CliRunner().invoke(make_app(("decide", "show")), [*named, *given])
