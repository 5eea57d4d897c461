"""Attributes at the shell: fit, predict and decide with items that were never offered."""

import json
from pathlib import Path
from typing import Any

import pytest

from rankstream import load_model
from shell import run
from strategies import compiled_only

pytestmark = [compiled_only, pytest.mark.slow]
CHOICES = """offered,chosen,count
tea;pie;nothing,tea,40
tea;pie;nothing,pie,30
tea;pie;nothing,nothing,30
cake;rum;nothing,cake,50
cake;rum;nothing,rum,20
cake;rum;nothing,nothing,30
tea;cake;nothing,tea,30
tea;cake;nothing,cake,45
tea;cake;nothing,nothing,25
"""
ITEMS = "item,size\ntea,2\npie,1\ncake,3\nrum,1\n"
CANDIDATES = "item,size,colour\ngin,3,red\nbun,1,blue\n"


def told_by(folder: Path, *words: str) -> str:
    result = run(*words, cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shop")
    (place / "choices.csv").write_text(CHOICES)
    (place / "items.csv").write_text(ITEMS)
    (place / "candidates.csv").write_text(CANDIDATES)
    names = ("tea", "pie", "cake", "rum", "gin", "bun")
    (place / "margins.csv").write_text("item,margin\n" + "".join(f"{name},{k + 1}\n" for k, name in enumerate(names)))
    told = told_by(place, "fit", "choices.csv", "--attributes", "items.csv", "-o", "model.json")
    assert "a model of all rankings, by maximum entropy" in told
    return place


def test_predict_with_new_items(folder: Path) -> None:
    words = ("predict", "model.json", "--items", "candidates.csv", "--offer", "gin;bun;tea")
    told = told_by(folder, *words)
    assert told.startswith("Warning: Never offered, so predicted by their attributes alone: gin, bun.\n")
    content: list[dict[str, Any]] = json.loads(told_by(folder, *words, "--json"))
    wide = load_model(folder / "model.json").with_items(folder / "candidates.csv")
    assert content[0]["shares"] == pytest.approx(wide.predict(("gin", "bun", "tea", "nothing")))
    assert content[0]["warnings"] == ["Never offered, so predicted by their attributes alone: gin, bun."]
    intervals = [*words, "--json", "--interval", "0.9", "--data", "choices.csv", "--replicates", "4"]
    again = json.loads(told_by(folder, *intervals))[0]
    assert again["shares"] == pytest.approx(content[0]["shares"])
    low, high = again["intervals"]["gin"]
    assert low < content[0]["shares"]["gin"] < high


def test_decide_with_new_items(folder: Path) -> None:
    words = ["decide", "model.json", "--items", "candidates.csv"]
    words += ["--margins", "margins.csv", "--at-most", "2", "--excludes", "gin:bun"]
    told = told_by(folder, *words, "--no-intervals")
    assert "Warning: Never offered" in told
    assert not {"gin", "bun"} <= set(json.loads(told_by(folder, *words, "--no-intervals", "--json"))["offer"])
    content = json.loads(told_by(folder, *words, "--json", "--must", "gin"))
    assert "gin" in content["offer"]
    assert content["context"]["refits"] == 20
    sure = json.loads(told_by(folder, *words, "--json", "--must", "tea", "--never", "gin", "--never", "bun"))
    low, high = (found["interval"][1] - found["interval"][0] for found in (sure, content))
    assert 0.0 < low < high  # nobody has chosen gin


def test_the_next_offer_tries_a_new_item(folder: Path) -> None:
    words = ("decide", "model.json", "--items", "candidates.csv", "--margins", "margins.csv", "--next", "--must", "gin")
    told = told_by(folder, *words, "--at-most", "1")
    assert "Offer next: gin\nNever offered before, so this is a test: gin.\n" in told
    content = json.loads(told_by(folder, *words, "--at-most", "2", "--never", "bun", "--json"))
    assert content["untried"] == ["gin"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("decide", "model.json", "--items", "candidates.csv", "--margins", "margins.csv", "--safe"),
            "--items does not work with --safe",
        ),
        (("predict", "model.json", "--items", "items.csv", "--offer", "tea"), "already has the item 'cake'"),
        (("fit", "choices.csv", "--attributes", "items.csv", "--method", "mnl"), "'mnl' has no setting 'attributes'"),
        (("fit", "choices.csv", "--attributes", "candidates.csv"), "2 items allow 1 to 0 columns"),
    ],
)
def test_errors_at_the_shell(folder: Path, words: tuple[str, ...], said: str) -> None:
    result = run(*words, cwd=folder)
    assert result.returncode == 2
    assert said in " ".join(result.stderr.split())
