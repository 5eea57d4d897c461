"""``examples/demo.py``, which ``make demo`` runs: what it prints and writes, and how it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import demo
from rankstream import load_model
from shell import run
from waits import LONG

COMMAND = [sys.executable, demo.__file__]


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run([*COMMAND, "--tolerance", "0.005"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "rankstream-demo", done.stdout


def test_demo_reports_rankings_and_shares(demonstration: tuple[Path, str]) -> None:
    folder, text = demonstration
    assert "Converged after" in text
    assert "%  " in text
    assert "(nothing)" in text
    assert "predicted    true" in text
    model = load_model(folder / "model.json")
    assert f"{len(model.weights)} rankings" in text
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in folder.iterdir()) == ["choices.csv", "demo.png", "items.csv", "model.json"]


def test_the_page_that_demo_names_can_be_made(demonstration: tuple[Path, str], tmp_path: Path) -> None:
    folder, text = demonstration
    words = next(
        line for line in text.splitlines() if line.startswith("To write a report about it: rankstream report")
    ).split()
    given = [*words[7:-1], str(tmp_path / "report.html"), "--no-intervals"]
    done = run(*given, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "could still be gained" in page
    assert "(l2)" in page
    assert "The value of shelf space" in page


def test_demo_twice_gives_the_same_bytes(
    demonstration: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, text = demonstration
    monkeypatch.chdir(tmp_path)
    demo.main(["--tolerance", "0.005"])
    assert capsys.readouterr().out == text
    assert (tmp_path / "rankstream-demo" / "model.json").read_bytes() == (folder / "model.json").read_bytes()


def test_demo_stops_at_the_round_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo.main(["--max-rounds", "3", "--out", str(tmp_path / "here")])
    text = capsys.readouterr().out
    assert "Stopped after 3 rounds" in text
    certificate = load_model(tmp_path / "here" / "model.json").about["certificate"]
    assert certificate["distance"] - certificate["proven_least_distance"] == pytest.approx(certificate["gap"])
    assert f"at most {certificate['gap']:.4f} could still be gained." in text


def test_interrupted_demo_keeps_what_there_is(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--tolerance", "0", "--max-rounds", "100000000"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # a background job may have been told to ignore it
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("A market of")  # from here on Ctrl-C ends the rounds
    process.send_signal(signal.SIGINT)
    text, errors = process.communicate(timeout=LONG)
    assert process.returncode == 0, errors
    assert "Interrupted" in text
    assert (tmp_path / "rankstream-demo" / "model.json").exists()


@pytest.mark.parametrize(
    "words", [["--seed", "-1"], ["--tolerance", "no"], ["--per-round", "0"], ["--tolerance", "nan"], ["--out", "file"]]
)
def test_bad_options_end_with_code_2(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        demo.main(words)
    assert ended.value.code == 2
    assert words[0] in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
