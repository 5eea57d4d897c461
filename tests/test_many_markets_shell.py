"""Many markets at the shell and in pictures."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import rankstream as rs
from many_markets import choices
from rankstream.decide import best_offer
from shell import run

ITEMS = "item,margin\ntea,1\npie,2\ncake,3\nscone,2\n"
WORDS = ("fit", "rows.csv", "--by", "store,kind", "--method", "nearest", "--jobs", "1", "--no-pool")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shell")
    rows = choices()
    own = pd.DataFrame({"store": "Wells", "kind": "hot", "offered": "scone;none", "chosen": ["scone", "none"] * 3})
    pd.concat([rows, own]).to_csv(path / "rows.csv", index=False)
    (path / "items.csv").write_text(ITEMS)
    assert run(*WORDS, "--out", "models", cwd=path).returncode == 0
    return path


def answer(folder: Path, *words: str) -> Any:
    done = run(*words, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_fit_says_what_became_of_all_markets(folder: Path) -> None:
    found = answer(folder, *WORDS, "--out", "models")
    assert (found["markets"], found["by"], found["methods"]) == (7, ["store", "kind"], {"nearest": 7})
    assert (found["choices"], found["failed"], found["models"]) == (186, [], "models")
    said = run(*WORDS, "--out", "models", cwd=folder)
    assert "186 choices; 7 markets by store, kind, 7 by nearest." in said.stdout


def test_fit_names_the_markets_that_failed(folder: Path, tmp_path: Path) -> None:
    rows = pd.read_csv(folder / "rows.csv")
    rows.loc[0, "chosen"] = "cabbage"
    rows.to_csv(tmp_path / "rows.csv", index=False)
    done = run(*WORDS, cwd=tmp_path)
    assert done.returncode == 0
    assert f"Failed: York;{rows['kind'].tolist()[0]}: " in done.stdout
    assert "'cabbage' is not in its offer" in done.stdout
    assert len(rs.Markets.load(tmp_path / "models")) == 6


@pytest.mark.parametrize("more", [["--since", "2024-01-01"], ["--budget", "5"], ["--outside-share", "0.1,0.2"]])
def test_fit_refuses_what_is_for_one_model(more: list[str], folder: Path) -> None:
    done = run(*WORDS, "--out", "other", *more, cwd=folder)
    assert done.returncode == 2
    assert "not for many markets: leave it out." in done.stderr
    assert not (folder / "other").exists()


def test_predict_asks_one_market(folder: Path) -> None:
    found = answer(folder, "predict", "models", "--market", "York;hot", "--offer", "tea;none")
    expected = rs.Markets.load(folder / "models").predict("York;hot", ("tea", "none"))
    assert found[0]["shares"] == expected


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["models", "--offer", "tea;none"], "name one with --market, such as"),
        (["models", "--offer", "tea;none", "--market", "Yorc;hot"], "did you mean 'York;hot'"),
        (["rows.csv", "--offer", "tea;none", "--market", "York;hot"], "--market is for a folder of markets"),
        (["models", "--offer", "x", "--interval", "0.9", "--data", "rows.csv"], "--interval is not for a folder"),
    ],
)
def test_predict_refuses_what_it_cannot_know(words: list[str], sentence: str, folder: Path) -> None:
    done = run("predict", *words, cwd=folder)
    assert done.returncode == 2
    assert sentence in done.stderr


def test_decide_makes_one_table_of_all_markets(folder: Path) -> None:
    words = ("decide", "models", "--margins", "items.csv", "--at-most", "2", "--never", "cake")
    found = answer(folder, *words)
    markets = rs.Markets.load(folder / "models")
    assert [row["market"] for row in found] == [row.market for row in markets.rows]
    margins = {"tea": 1.0, "pie": 2.0, "cake": 3.0}
    best = best_offer(markets.model("York;hot"), margins, at_most=2, never=["cake"])
    york = next(row for row in found if row["market"] == "York;hot")
    assert (tuple(york["offer"]), york["value"]) == (best.offer, best.value)
    assert next(row for row in found if row["market"] == "Wells;hot")["offer"] == ["scone"]
    text = run(*words, cwd=folder).stdout
    assert text.splitlines()[0].split() == ["market", "value", "offer"]
    assert len(text.splitlines()) == 8


def test_decide_says_where_an_item_that_must_be_is_not_carried(folder: Path) -> None:
    found = answer(folder, "decide", "models", "--margins", "items.csv", "--must", "scone")
    errors = {row["market"]: row["error"] for row in found}
    assert errors.pop("Wells;hot") is None
    assert all("scone" in error for error in errors.values())
    done = run("decide", "models", "--margins", "items.csv", "--data", "rows.csv", cwd=folder)
    assert done.returncode == 2
    assert "--data is not for a folder of markets" in done.stderr


def test_pictures_show_every_market(folder: Path) -> None:
    markets = rs.Markets.load(folder / "models")
    figure = rs.plots.market_shares(markets, Figure(), most=5)
    drawn = [axes for axes in figure.axes if axes.get_visible()]
    assert len(drawn) == 5
    assert {axes.get_title().split(" (")[0] for axes in drawn} <= {row.market for row in markets.rows}
    york = rs.plots.market_shares(markets, Figure(), keys=["York;hot"]).axes[0]
    bars: list[Any] = list(york.patches)
    widths = [bar.get_width() for bar in bars]
    expected = markets.predict("York;hot", markets.model("York;hot").items)
    assert np.allclose(widths, [100.0 * share for share in expected.values()])
    axes = rs.plots.market_map(markets, Figure().subplots(), differing=["York;hot"])
    points = np.asarray(axes.collections[0].get_offsets())
    assert points.shape == (7, 2)
    alone = list(markets).index(("Wells", "hot"))
    assert np.hypot(*(points - points.mean(axis=0)).T).argmax() == alone
