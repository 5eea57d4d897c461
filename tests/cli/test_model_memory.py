"""What a model remembers of its fit: ``show`` says it, and commands read choices as the fit did."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankstream as rs
from rankstream.cli import model_answers
from rankstream.cli.options import ReadingOptions
from rankstream.data.drift import drift_report
from rankstream.reports.origin import origin_lines, prediction_lines
from shell import run

ROWS = {
    "tea;pie": {"tea": 120, "pie": 60, "": 20},
    "tea;cake": {"tea": 110, "cake": 50, "": 40},
    "pie;cake": {"pie": 90, "cake": 70, "": 40},
    "tea;pie;cake": {"tea": 100, "pie": 50, "cake": 30, "": 20},
    "tea": {"tea": 150, "": 50},
}
READ = ["--columns", "offered=shown,chosen=picked", "--no-choice", "none"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory")
    rows = [f"2024-01-01,{offer},{item},{number}" for offer, row in ROWS.items() for item, number in row.items()]
    (path / "choices.csv").write_text("\n".join(["time,shown,picked,count", *rows]) + "\n")
    (path / "items.csv").write_text("item,margin\ntea,1\npie,2\ncake,3\n")
    for method in ("max-entropy", "mnl"):
        done = run("fit", "choices.csv", "-o", f"{method}.json", "--method", method, "--seed", "3", *READ, cwd=path)
        assert done.returncode == 0, done.stderr
    return path


def shown(folder: Path, *words: str) -> str:
    done = run("show", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_show_says_where_a_model_comes_from(folder: Path) -> None:
    text = shown(folder, "mnl.json")
    digest = rs.load_model(folder / "mnl.json").about["data"]["digest"]
    assert f"Fitted to 1,000 choices in choices.csv, 2024-01-01 to 2024-01-01 (digest {digest[:12]})." in text
    assert "Read with --no-choice none --columns offered=shown,chosen=picked." in text
    assert f"Fitted by mnl, seed 3, with rankstream {rs.__version__}." in text
    certificate = rs.load_model(folder / "mnl.json").about["certificate"]
    beside = f"root of the summed squared errors; sampling noise alone: {certificate['noise_distance']:.4f}"
    assert f"Distance from the observed shares {certificate['distance']:.4f} ({beside}). " in text
    assert f"can be closer than {certificate['proven_least_distance']:.4f} (proven)" in text
    assert f"at most {certificate['gap']:.4f} could still be gained" in text


def test_show_says_what_a_prediction_rests_on(folder: Path) -> None:
    text = shown(folder, "max-entropy.json")
    about = rs.load_model(folder / "max-entropy.json").about["prediction"]
    heaviest = max(about["weights"], key=lambda name: about["weights"][name])
    words = re.sub(r"(\d+) classes", r"latent-class logit with \1 classes", heaviest)
    named = f"{words.replace(', light', ', lightly regularised')} (weight {100 * about['weights'][heaviest]:.0f} %)"
    assert f"by accuracy on held-out offers: {named}" in text
    assert json.loads(shown(folder, "max-entropy.json", "--json"))["about"]["prediction"] == about
    assert "held-out" not in shown(folder, "mnl.json")


@pytest.mark.parametrize(
    ("prediction", "sentence"),
    [
        (
            {"weights": {"logit": 0.5, "x": 0.5}, "held_out_nats": {}},
            "predictions for unseen offers start from 2 simpler models such as logit.",
        ),
        ({"trust": 30.0, "approximate": True}, "so rankings were sampled."),
        ({"weights": {"logit": 1.0}, "adjustment": 30.0}, "start from a simpler model, logit."),
    ],
)
def test_other_predictions_have_their_words(prediction: dict[str, Any], sentence: str) -> None:
    assert any(sentence in line for line in prediction_lines({"prediction": prediction}))


@pytest.mark.parametrize("value", [None, 7, "text", [], {}, {"weights": 3, "held_out_nats": [], "trust": "x"}])
def test_whatever_a_file_says_of_itself_is_no_traceback(value: Any) -> None:
    about = dict.fromkeys(("data", "reading", "method", "certificate", "prediction", "times", "changed"), value)
    assert all(isinstance(line, str) for line in (*origin_lines(about), *prediction_lines(about)))
    model = rs.RankingModel(["tea"], [["tea"]], [1.0]).note(**about)
    assert replace(ReadingOptions().as_fitted(model), _model=None) == ReadingOptions()


def test_choices_are_read_as_the_fit_read_them(folder: Path) -> None:
    words = {
        "predict": ["--offer", "tea;none", "--interval", "0.9", "--replicates", "3", "--data", "choices.csv"],
        "show": ["--data", "choices.csv", "--replicates", "3"],
        "plot": ["-o", "fit.png", "--kind", "fit", "--data", "choices.csv"],
        "decide": ["--margins", "items.csv", "--data", "choices.csv", "--next", "--strategy", "greedy"],
    }
    for command, more in words.items():
        told = run(command, "mnl.json", *more, *READ, cwd=folder)
        alone = run(command, "mnl.json", *more, cwd=folder)
        assert alone.returncode == 0, alone.stderr
        assert (alone.stdout, alone.stderr) == (told.stdout, "")


def test_options_that_are_given_win(folder: Path) -> None:
    model = rs.load_model(folder / "mnl.json")
    assert ReadingOptions(no_choice="left").as_fitted(model).no_choice == "left"
    assert ReadingOptions(columns="chosen=x").as_fitted(model).columns == "chosen=x"
    assert ReadingOptions(format="long").as_fitted(model).columns is None
    assert ReadingOptions().as_fitted(model).columns == "offered=shown,chosen=picked"
    (folder / "other.csv").write_text("offered,chosen\ntea;pie,tea\n")
    said = run("show", "mnl.json", "--data", "other.csv", cwd=folder).stderr
    assert "has no column 'shown'" in said
    told = "--no-choice none, --columns offered=shown,chosen=picked; pass other options to change that)."
    assert said.endswith(f"(read with the options of the fit, {told}\n")


def test_other_choices_than_those_of_the_fit_are_reported(folder: Path) -> None:
    text = (folder / "choices.csv").read_text()
    (folder / "more.csv").write_text(text + "2024-01-02,tea,tea,10\n")
    done = run("show", "mnl.json", "--data", "more.csv", "--replicates", "3", cwd=folder)
    assert done.returncode == 0
    assert done.stderr.startswith("more.csv is not what the model was fitted to")
    (folder / "less.csv").write_text("\n".join(line for line in text.splitlines() if "cake" not in line) + "\n")
    done = run("show", "mnl.json", "--data", "less.csv", cwd=folder)
    assert done.stderr.startswith("rankstream: less.csv never offers 'cake', an item of the model")


def test_types_and_gains_have_intervals(folder: Path) -> None:
    words = ["mnl.json", "--data", "choices.csv", "--replicates", "20"]
    found = json.loads(shown(folder, *words, "--json"))
    assert (found["segments_by"], found["replicates"]) == ("first two choices", 20)
    assert all(0.0 <= one["low"] < one["share"] < one["high"] <= 1.0 for one in found["segments"])
    assert sum(one["share"] for one in found["segments"]) == pytest.approx(1.0)
    tea = next(row for row in found["items"] if row["item"] == "tea")
    assert tea["low"] < tea["share"] < tea["high"]
    for name, part in tea["gains"].items():
        assert tea["gains_intervals"][name][0] < part < tea["gains_intervals"][name][1]
    text = shown(folder, *words)
    first, low, high = (100 * found["segments"][0][name] for name in ("share", "low", "high"))
    assert f"{first:5.1f} % [{low:.1f}, {high:.1f}]  " in text
    gain, part = next(iter(tea["gains"].items()))
    ends = tea["gains_intervals"][gain]
    assert f"{gain} {100 * part:.0f} % [{100 * ends[0]:.0f}, {100 * ends[1]:.0f}]" in text
    assert f"{100 * tea['share']:.1f} % [{100 * tea['low']:.1f}, {100 * tea['high']:.1f}]" in text


def test_pictures_have_intervals(folder: Path) -> None:
    for kind in ("segments", "substitution"):
        words = ["mnl.json", "--kind", kind, "--replicates", "3"]
        assert run("plot", *words, "-o", "plain.svg", cwd=folder).returncode == 0
        assert run("plot", *words, "-o", "ends.svg", "--data", "choices.csv", cwd=folder).returncode == 0
        plain, ends = ((folder / name).read_text() for name in ("plain.svg", "ends.svg"))
        assert "with 95 % intervals" in ends
        assert "with 95 % intervals" not in plain


def test_a_bootstrap_bounds_types_and_moves_as_their_definitions_say(folder: Path) -> None:
    model = rs.load_model(folder / "mnl.json")
    many = model_answers.refitted(model, folder / "choices.csv", ReadingOptions(), 5, 0)
    assert many is not None
    moves, types = many.substitution(), many.favourites("none")
    assert moves.low is not None
    tables = np.array([one.substitution(moves.items).shares for one in many.models])  # type: ignore[attr-defined]
    reach = 1.959963984540054 * np.hypot(tables.std(axis=0, ddof=1), tables.mean(axis=0) - moves.shares)
    assert moves.low == pytest.approx(np.maximum(0.0, moves.shares - reach))
    assert types["tea", "pie"].share == pytest.approx(
        moves.before[moves.items.index("tea")] * moves.gains("tea")["pie"]
    )
    singles = many.favourites("none", places=1)
    assert singles["tea",] == pytest.approx(many.predict(moves.items)["tea"])


def test_one_cause_is_one_line(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    items = [f"item {number}" for number in range(6)]
    offers = rs.Assortments([(*items[:size], *extra) for size in (2, 3, 5) for extra in ((), ("Oat Milk",))])

    def counts(oat: float) -> rs.ChoiceCounts:
        worth = {item: 1.0 + number for number, item in enumerate(items)} | {"Oat Milk": oat}
        rows = [np.array([worth[str(item)] for item in offer]) for offer in offers.offers]
        return rs.ChoiceCounts(offers, np.concatenate([random.multinomial(900, row / row.sum()) for row in rows]))

    report = drift_report(counts(1.0), counts(4.0))
    assert [(one.item, one.offers, one.moved) for one in report.items] == [("Oat Milk", 3, 3)]
    assert report.items[0].change > 0.1
    assert not drift_report(counts(1.0), counts(1.0)).items
    lines = ["time,offered,chosen,count"]
    for month, period in ((1, counts(1.0)), (2, counts(4.0))):
        for place, tally in enumerate(period.tallies.tolist()):
            offer = ";".join(map(str, offers.offers[offers.owner[place]]))
            lines.append(f"2024-0{month}-01,{offer},{offers.items[offers.members[place]]},{tally:g}")
    (tmp_path / "choices.csv").write_text("\n".join(lines) + "\n")
    text = run("drift", "choices.csv", "--at", "2024-02", cwd=tmp_path).stdout
    assert any(line.startswith("  Oat Milk: +") for line in text.splitlines())
    assert " points in all 3 offers with it (p = " in text
    assert len(text.splitlines()) == 4  # a verdict, how many offers, the item, and what is behind it
    found = json.loads(run("drift", "choices.csv", "--at", "2024-02", "--json", cwd=tmp_path).stdout)
    assert [one["item"] for one in found["items"]] == ["Oat Milk"]
    assert len(found["offers"]) == 6


def test_columns_that_are_given_leave_the_format_of_the_fit() -> None:
    noted = {"format": "long", "columns": "chosen=bought", "no_choice": "none"}
    model = rs.RankingModel(["tea"], [["tea"]], [1.0]).note(reading=noted)
    choices: list[dict[str, Any]] = [{"columns": "chosen=taken"}, {"format": "wide"}]
    for given in choices:
        found = ReadingOptions(**given).as_fitted(model)
        assert (found.format, found.columns) == (given.get("format"), given.get("columns"))
        assert found.no_choice == "none"


@pytest.mark.parametrize("cut", [True, False, None, "yes"])
def test_a_fit_that_stopped_early_is_said_beside_its_certificate(cut: Any) -> None:
    certificate = {"distance": 0.03, "proven_least_distance": 0.02, "gap": 0.01, "cut_short": cut}
    (line,) = (line for line in origin_lines({"certificate": certificate}) if line.startswith("Distance"))
    assert line.endswith("; the fit stopped early.") == (cut is True)
