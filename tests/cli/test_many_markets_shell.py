"""Many markets at the shell and in pictures."""

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import rankstream as rs
from many_markets import choices
from rankstream.decide import best_offer
from rankstream.decide.decision import Units
from shell import run

ITEMS = "item,margin\ntea,1\npie,2\ncake,3\nscone,2\n"
INTERVAL = ("--interval", "0.9", "--replicates", "5")
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
    assert (found["fitted"], found["by"], found["methods"]) == (7, ["store", "kind"], {"nearest": 7})
    assert (found["choices"], found["failed"], found["models"]) == (186, [], "models")
    said = run(*WORDS, "--out", "models", cwd=folder)
    assert "186 choices; 7 markets by store, kind; method: nearest for 7." in said.stdout


def test_fit_names_the_markets_that_failed(folder: Path, tmp_path: Path) -> None:
    rows = pd.read_csv(folder / "rows.csv")
    rows.loc[0, "chosen"] = "cabbage"
    rows.to_csv(tmp_path / "rows.csv", index=False)
    done = run(*WORDS, cwd=tmp_path)
    assert done.returncode == 1
    assert "Saved 6 models in models." in done.stdout
    assert f"Failed: York;{rows['kind'].tolist()[0]}: " in done.stdout
    assert "'cabbage' is not in its offer" in done.stdout
    assert len(rs.Markets.load(tmp_path / "models")) == 6


def test_fit_saves_nothing_where_all_markets_failed(tmp_path: Path) -> None:
    rows = pd.DataFrame({"store": ["York", "Bath"], "kind": "hot", "offered": "tea;none", "chosen": "cabbage"})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    done = run(*WORDS, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout.count("Failed: ") == 2
    assert "Saved" not in done.stdout
    assert run(*WORDS, "--json", cwd=tmp_path).returncode == 2


def test_one_market_is_called_one_market(tmp_path: Path) -> None:
    rows = pd.DataFrame({"store": "York", "kind": "hot", "offered": "tea;none", "chosen": ["tea", "none"]})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    done = run(*WORDS, cwd=tmp_path)
    assert done.stdout == "2 choices; 1 market by store, kind; method: nearest for 1.\nSaved 1 model in models.\n"
    assert repr(rs.Markets.load(tmp_path / "models")) == "Markets(1 market by store, kind, 0 failed)"


@pytest.mark.parametrize("more", [["--since", "2024-01-01"], ["--budget", "5"]])
def test_fit_refuses_what_is_for_one_model(more: list[str], folder: Path) -> None:
    done = run(*WORDS, "--out", "other", *more, cwd=folder)
    assert done.returncode == 2
    assert "does not work with many markets: leave it out." in done.stderr
    assert not (folder / "other").exists()


def test_predict_asks_one_market(folder: Path) -> None:
    found = answer(folder, "predict", "models", "--market", "York;hot", "--offer", "tea;none")
    expected = rs.Markets.load(folder / "models").predict("York;hot", ("tea", "none"))
    assert found[0]["shares"] == expected


def test_commands_answer_for_all_markets_by_name(folder: Path) -> None:
    markets = rs.Markets.load(folder / "models")
    found = answer(folder, "show", "models", "--top", "2")["markets"]
    assert list(found) == [row.market for row in markets.rows]
    one = answer(folder, "show", "models", "--top", "2", "--market", "York;hot")
    assert found["York;hot"] == one
    assert one == answer(folder, "show", f"models/{markets.row('York;hot').file}", "--top", "2")
    text = run("show", "models", "--top", "2", cwd=folder).stdout
    assert "York;hot\n--------\nA model of 3 items: " in text
    assert f"with rankstream {rs.__version__}." in text
    assert f"Fitted to {markets.row('York;hot').choices:g} choices in store 'York', kind 'hot' (digest " in text
    assert text.count("No intervals: the model stores none.") == 7
    errors = run("show", "models", "--top", "2", "--data", "models", "--replicates", "2", cwd=folder).stdout
    assert "No intervals" not in errors


def test_a_market_that_cannot_answer_has_a_sentence_instead(folder: Path) -> None:
    words = ("predict", "models", "--offer", "tea;none")
    done = run(*words, "--json", cwd=folder)
    found = json.loads(done.stdout)["markets"]
    assert done.returncode == 1
    expected = rs.Markets.load(folder / "models").predict("York;hot", ("tea", "none"))
    assert found["York;hot"][0]["shares"] == expected
    assert "is not an item of the model" in found["Wells;hot"]["error"]
    assert done.stderr.startswith("Wells;hot: The offer 'tea;none' names 'tea', which is not an item of the model")
    done = run(*words, cwd=folder)
    assert (done.returncode, "Wells;hot" in done.stdout) == (1, False)
    none = run("predict", "models", "--offer", "gin", cwd=folder)
    assert (none.returncode, none.stdout) == (2, "")


def test_intervals_of_a_market_come_from_the_choices_in_the_folder(folder: Path) -> None:
    words = (
        "predict",
        "models",
        "--market",
        "York;hot",
        "--offer",
        "tea;none",
        "--interval",
        "0.9",
        "--replicates",
        "5",
    )
    found = answer(folder, *words)
    markets = rs.Markets.load(folder / "models")
    many = rs.Bootstrap(markets.counts("York;hot"), "nearest", 5, 0, model=markets.model("York;hot"))
    expected = {item: [row.low, row.high] for item, row in many.predict(("tea", "none"), 0.9).items()}
    assert found[0]["intervals"] == expected
    assert answer(folder, *words, "--data", "rows.csv") == found
    assert answer(folder, *words, "--data", "models") == found
    assert "is not what the model was fitted to" not in run(*words, "--data", "rows.csv", cwd=folder).stderr


def test_show_prints_the_stored_intervals_of_every_market(folder: Path) -> None:
    words = ("fit", "rows.csv", "--by", "kind", "--method", "max-entropy", "--jobs", "1", "--no-pool")
    assert run(*words, "--out", "kinds", cwd=folder).returncode == 0
    shown = run("show", "kinds", cwd=folder).stdout
    assert shown.count(" (10 refits; ") == 2
    assert shown.count("they ignore store, so they are too narrow") == 2
    assert run(*words, "--out", "kinds", "--no-standard-errors", cwd=folder).returncode == 0
    assert "10 refits" not in run("show", "kinds", cwd=folder).stdout


def test_pictures_have_a_file_for_each_market_and_reports_one(folder: Path) -> None:
    rows = pd.read_csv(folder / "rows.csv")
    rows[rows["store"] != "Wells"].to_csv(folder / "some.csv", index=False)
    words = ("--by", "store", "--method", "nearest", "--jobs", "1", "--no-pool", "--out", "stores")
    assert run("fit", "some.csv", *words, cwd=folder).returncode == 0
    assert run("plot", "stores", "-o", "fit.svg", "--kind", "fit", cwd=folder).returncode == 0
    assert sorted(path.name for path in folder.glob("*.svg")) == ["fit-Bath.svg", "fit-Ely.svg", "fit-York.svg"]
    assert run("plot", "stores", "-o", "one.svg", "--kind", "fit", "--market", "York", cwd=folder).returncode == 0
    assert sorted(path.name for path in folder.glob("one*.svg")) == ["one.svg"]
    report = ("report", "stores", "-o", "page.html", "--no-intervals")
    content = answer(folder, *report)
    assert content["report"] == "page.html"
    assert set(content["markets"]) == {"Bath", "Ely", "York"}
    assert content["markets"]["York"]["read"]["choices"] == 60
    assert answer(folder, *report, "--market", "York")["report"] == "page.html"
    one = ("--market", "York;hot", "--margins", "items.csv", "--at-most", "1")
    decided = answer(folder, "report", "models", *report[2:], *one)["decision"]
    assert set(decided["offer"]) <= {"tea", "pie", "cake"}


@pytest.mark.parametrize("market", ["york;HOT", "York;hat"])
def test_a_market_that_is_not_there_brings_the_nearest_names(market: str, folder: Path) -> None:
    done = run("show", "models", "--market", market, cwd=folder)
    assert done.returncode == 2
    assert f"There is no market '{market}' with a model: did you mean 'York;hot'" in done.stderr


def test_drift_compares_market_by_market(folder: Path) -> None:
    before, after = choices(seed=1), choices(("York", "Bath", "Wells"), seed=2)
    for frame, day in ((before, "2024-05-16"), (after, "2024-06-16")):
        frame["time"] = day
        frame.to_csv(folder / f"{day[:7]}.csv", index=False)
    pd.concat([before, after]).to_csv(folder / "both.csv", index=False)
    done = run("drift", "2024-05.csv", "2024-06.csv", "--by", "store", "--json", cwd=folder)
    found = json.loads(done.stdout)["markets"]
    assert list(found) == ["Bath", "York"]
    assert "Only in the earlier period, so not compared: Ely." in done.stderr
    assert "Only in the later period, so not compared: Wells." in done.stderr
    own = [frame[frame["store"] == "York"].drop(columns=["store", "time"]) for frame in (before, after)]
    expected = rs.drift_report(*(rs.read_counts(one) for one in own))
    assert found["York"]["moved"] == len(expected.moved)
    pairs = [(tuple(one["offer"]), one["p_value"]) for one in found["York"]["offers"]]
    assert sorted(pairs) == sorted((one.offer, one.p_value) for one in expected.movements)
    assert json.loads(run("drift", "both.csv", "--at", "2024-06", "--by", "store", "--json", cwd=folder).stdout) == {
        "markets": found
    }
    words = ("drift", "both.csv", "--at", "2024-06", "--by", "store", "--market", "York")
    assert answer(folder, *words) == found["York"]
    assert "did you mean 'York'?" in run(*words[:-1], "Yorck", cwd=folder).stderr


def test_drift_compares_the_models_of_two_folders(folder: Path) -> None:
    found = answer(folder, "drift", "models", "models")["markets"]
    assert list(found) == [row.market for row in rs.Markets.load(folder / "models").rows]
    assert all(row["grew"] == row["shrank"] == row["appeared"] == row["vanished"] == [] for row in found.values())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["models", "--offer", "tea;none", "--market", "Yorc;hot"], "did you mean 'York;hot'"),
        (["rows.csv", "--offer", "tea;none", "--market", "York;hot"], "--market needs a folder of markets"),
        (["models", "--offer", "x", "--rejects", "bad.csv"], "--rejects does not work with a folder of markets"),
    ],
)
def test_predict_refuses_what_it_cannot_know(words: list[str], sentence: str, folder: Path) -> None:
    done = run("predict", *words, cwd=folder)
    assert done.returncode == 2
    assert sentence in done.stderr


def test_decide_makes_one_table_of_all_markets(folder: Path) -> None:
    words = ("decide", "models", "--margins", "items.csv", "--at-most", "2", "--never", "cake")
    found = answer(folder, *words)["markets"]
    markets = rs.Markets.load(folder / "models")
    assert list(found) == [row.market for row in markets.rows]
    margins = {"tea": 1.0, "pie": 2.0, "cake": 3.0}
    best = best_offer(markets.model("York;hot"), margins, at_most=2, never=["cake"])
    york = found["York;hot"]
    assert (tuple(york["offer"]), york["value"]) == (best.offer, best.value)
    assert found["Wells;hot"]["offer"] == ["scone"]
    text = run(*words, "--currency", "EUR", cwd=folder).stdout
    lines = text.splitlines()
    assert lines[0].split() == ["market", "value", "gain", "offer"]
    gain = "The gain is against today's offer."
    assert lines[-1] == f"Values are per 100 customers. {gain} In brackets: 95 % intervals."
    assert len(lines) == 9
    assert f"{100 * york['expected']:.4g} EUR [" in text
    assert f"  {100 * york['context']['gain']:+.2f} EUR [" in text
    assert york["context"]["gain_interval"] is not None


def test_decide_says_where_an_item_that_must_be_is_not_carried(folder: Path) -> None:
    words = ("decide", "models", "--margins", "items.csv", "--no-intervals")
    some = run(*words, "--must", "scone", "--json", cwd=folder)
    found = json.loads(some.stdout)["markets"]
    assert some.returncode == 1
    assert found.pop("Wells;hot")["offer"] == ["scone"]
    assert all("scone" in row["error"] for row in found.values())
    none = run(*words, "--at-least", "9", cwd=folder)
    assert (none.returncode, none.stdout) == (2, "")
    tried = answer(folder, "decide", "models", "--margins", "items.csv", "--next")["markets"]
    assert all(row["offer"] for row in tried.values())


def test_decide_has_intervals_of_every_market(folder: Path) -> None:
    words = ("decide", "models", "--margins", "items.csv", "--at-most", "1")
    found = answer(folder, *words)["markets"]
    assert all(row["interval"][0] <= row["expected"] <= row["interval"][1] for row in found.values())
    york = answer(folder, *words, "--market", "York;hot")
    assert (york["offer"], york["interval"]) == (found["York;hot"]["offer"], found["York;hot"]["interval"])
    lines = run(*words, "--data", "models", cwd=folder).stdout.splitlines()
    assert len({line.index("]") for line in lines[1:-1]}) == 1
    plain = answer(folder, *words, "--no-intervals")["markets"]["York;hot"]
    assert (plain.get("interval"), plain["context"]["gain_interval"]) == (None, None)
    less = found["York;hot"]["overestimate"]
    assert less > 0.0
    assert plain["context"]["gain"] - less == pytest.approx(found["York;hot"]["context"]["gain"])


def test_decide_repeats_the_warnings_of_a_folder_once(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "models", tmp_path / "models")
    ignored = {"name": "Price", "kind": "price", "sentence": "", "warning": "Price is ignored: use prices='Price'."}
    for file in rs.Markets.load(tmp_path / "models").rows[:2]:
        path = tmp_path / "models" / str(file.file)
        rs.load_model(path).note(unused=[ignored]).save(path)
    words = ("decide", "models", "--margins", str(folder / "items.csv"), "--at-most", "1")
    done = run(*words, cwd=tmp_path)
    assert done.stdout.startswith("Warning: Price is ignored: use --price-columns Price. (In Bath;cold, Bath;hot.)\n")
    assert done.stdout.count("Warning") == 1
    assert "In brackets: intervals (they ignore Price, so they are too narrow)." in done.stdout
    found = json.loads(run(*words, "--json", cwd=tmp_path).stdout)["markets"]
    assert found["Bath;hot"]["warnings"] == ["Price is ignored: use --price-columns Price."]
    assert (found["Ely;hot"]["warnings"], found["Ely;hot"]["interval_name"]) == ([], "95 % intervals")
    hurried = run(*words, "--budget", "0", cwd=tmp_path)
    assert "Some markets have no intervals: the refits did not finish in time." in hurried.stderr


def test_a_report_names_the_markets_that_it_lacks(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item,margin\ntea,1\npie,2\ncake,3\nscone,2\n")
    shutil.copytree(folder / "models", tmp_path / "models")
    markets = rs.Markets.load(tmp_path / "models")
    path = tmp_path / "models" / str(markets.row("Wells;hot").file)
    one = rs.RankingModel(["scone"], [("scone",)], [1.0])
    one.note(**markets.model("Wells;hot").about).save(path)
    words = ("report", "models", "-o", "page.html", "--no-intervals", "--margins", "items.csv")
    done = run(*words, "--currency", "EUR", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert "Wells;hot: " in done.stderr
    found = json.loads(done.stdout)["markets"]
    assert "error" in found["Wells;hot"]
    assert found["York;hot"]["decision"]["offer"]
    page = (tmp_path / "page.html").read_text()
    assert "no report" in page
    gain = found["York;hot"]["decision"]["context"]["gain"]
    assert Units(currency="EUR").change(gain) in page
