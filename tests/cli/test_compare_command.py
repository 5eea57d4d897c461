import json
import subprocess
import sys
from pathlib import Path

import pytest

from rankstream.data.readers import read_counts
from shell import run

GOOD = """offered,chosen,count
tea;pie,tea,30
pie;tea,pie,10
pie;cake,pie,20
pie; cake,cake,20
tea;cake,tea,25
tea;cake,cake,15
tea;pie;cake,tea,40
"""


def run_apart(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rankstream", "compare", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "choices.csv"
    path.write_text(GOOD)
    return path


def test_records_become_counts(data: Path) -> None:
    counts = read_counts(data)
    assert counts.assortments.n_offers == 4
    assert counts.observations == 160
    assert counts.tallies[counts.assortments.coordinate(("pie", "tea"), "pie")] == 10
    assert counts.tallies[counts.assortments.coordinate(("cake", "pie"), "cake")] == 20


def test_the_count_may_be_left_out_and_a_mark_may_lead(data: Path) -> None:
    data.write_text("\ufeffchosen,offered\ntea,tea;pie\ntea,tea;pie\n", encoding="utf-8")
    assert read_counts(data).tallies.tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no records: a CSV file starts with the names"),
        ("offered,picked\n", r"no column 'chosen' \(it has 'offered', 'picked'\)"),
        ("offered,chosen\n", "has 0 records"),
        ("offered,chosen\na;b,c\n", r"line 2: the choice 'c' is not in its offer 'a;b'"),
        ("offered,chosen\na;b,a\na;;b,a\n", r"line 3: the offer 'a;;b' has an empty item"),
        ("offered,chosen\na;a,a\n", "lists an item twice"),
        ("offered,chosen\na;b\n", "line 2: there are fewer values than columns"),
        ("offered,chosen\na;b,a,3\n", "line 2: there are more values than columns"),
        ("offered,chosen,count\na;b,a,-1\n", "line 2: the count '-1'"),
        ("offered,chosen,count\na;b,a,inf\n", "line 2: the count 'inf'"),
        ("offered,chosen,count\na;b,a,few\n", "line 2: the count 'few'"),
        ("offered,chosen,count\na;b,a\n", "line 2: there are fewer values than columns"),
        ("offered,chosen,count\na;b,a,\n", "line 2: the count ''"),
    ],
)
def test_wrong_lines_are_named(data: Path, text: str, words: str) -> None:
    data.write_text(text)
    with pytest.raises(ValueError, match=words):
        read_counts(data)


def test_what_is_no_text_is_refused(data: Path) -> None:
    data.write_bytes(b"offered,chosen\n\xff\xfe,a\n")
    with pytest.raises(ValueError, match="not a CSV file in UTF-8"):
        read_counts(data)


@pytest.mark.usefixtures("data")
def test_table_in_a_pipe_is_quiet(tmp_path: Path) -> None:
    done = run_apart("choices.csv", "--folds", "2", "--models", "mnl, markov-chain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.splitlines()[2].startswith("model ")
    assert " close" in done.stdout  # no model is significantly better


@pytest.mark.usefixtures("data")
def test_json_and_picture(tmp_path: Path) -> None:
    words = ["--holdout", "choices", "--folds", "2", "--plot", "picture.svg", "--json"]
    content = json.loads(run("compare", "choices.csv", *words, cwd=tmp_path).stdout)
    assert content["holdout"] == "choices"
    assert {record["model"] for record in content["models"]} >= {"mnl", "latent-class", "markov-chain"}
    assert "<svg" in (tmp_path / "picture.svg").read_text()


def test_later_periods_need_times(data: Path, tmp_path: Path) -> None:
    head, *rows = data.read_text().splitlines()
    timed = [f"2024-05-{10 + day},{row}" for day, row in enumerate(rows)]
    timeless = run("compare", "choices.csv", "--holdout", "time", cwd=tmp_path)
    assert timeless.returncode == 2
    assert "--holdout time needs a time for every record: map it with --columns time=YOUR_COLUMN." in timeless.stderr
    data.write_text("\n".join([f"time,{head}", *reversed(timed)]) + "\n")
    words = ["compare", "choices.csv", "--models", "mnl", "--holdout", "time", "--folds", "2"]
    assert json.loads(run(*words, "--json", cwd=tmp_path).stdout)["models"][0]["folds"] == 2
    assert "later periods held out" in run(*words, cwd=tmp_path).stdout


def test_bad_records_are_skipped_on_demand(data: Path, tmp_path: Path) -> None:
    with data.open("a") as file:
        file.write("tea;pie,rum,1\n")
    words = ["--models", "mnl", "--folds", "2", "--on-error", "skip", "--rejects", "bad.csv"]
    done = run("compare", "choices.csv", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("1 record was skipped.\n  1 record: choices.csv, line 9: the choice 'rum'")
    assert "rum" in (tmp_path / "bad.csv").read_text()


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["nowhere.csv"], "There is no file nowhere.csv"),
        (["choices.csv", "--format", "long"], "choices.csv has no column 'observation'"),
        (["choices.csv", "--on-error", "hide"], "--on-error is 'hide'"),
        (["choices.csv", "--models", "mnl,magic"], "Unknown model 'magic'"),
        (["choices.csv", "--holdout", "luck"], "--holdout is 'luck'"),
        (["choices.csv", "--folds", "9"], "There are 4 different offers with choices but 9 folds"),
        (["choices.csv", "--plot", "no/where.png"], "The folder no does not exist"),
        (["choices.csv", "--plot", "picture.odd"], "picture.odd is not the name of an image"),
    ],
)
def test_wrong_words_end_with_code_2(tmp_path: Path, words: list[str], error: str) -> None:
    done = run("compare", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"rankstream: {error}")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
