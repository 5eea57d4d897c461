import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rankstream import RankingModel
from shell import run
from waits import LONG

COMMAND = [sys.executable, "-m", "rankstream"]


def run_apart(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("demo")
    done = run("demo", "--tolerance", "0.005", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "rankstream-demo", done.stdout


def test_demo_reports_rankings_and_shares(demonstration: tuple[Path, str]) -> None:
    folder, text = demonstration
    assert "Converged after" in text
    assert "%  " in text
    assert "(nothing)" in text
    assert "predicted    true" in text
    model = RankingModel.load(folder / "model.json")
    assert f"{len(model.weights)} rankings" in text
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in folder.iterdir()) == ["choices.csv", "demo.png", "items.csv", "model.json"]


def test_the_page_that_demo_names_can_be_made(demonstration: tuple[Path, str], tmp_path: Path) -> None:
    folder, text = demonstration
    words = next(
        line for line in text.splitlines() if line.startswith("To write a report about it: rankstream report")
    ).split()
    given = [*words[7:-1], str(tmp_path / "report.html"), "--no-intervals", "--no-compare"]
    done = run(*given, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "could still be gained" in page
    assert "(l2)" in page
    assert "The value of shelf space" in page


def test_demo_twice_gives_the_same_bytes(demonstration: tuple[Path, str], tmp_path: Path) -> None:
    folder, text = demonstration
    again = run_apart("demo", "--tolerance", "0.005", cwd=tmp_path)
    assert again.stdout == text
    assert (tmp_path / "rankstream-demo" / "model.json").read_bytes() == (folder / "model.json").read_bytes()


def test_demo_stops_at_the_round_limit(tmp_path: Path) -> None:
    done = run("demo", "--max-rounds", "3", "--out", "here", cwd=tmp_path)
    assert done.returncode == 0
    assert "Stopped after 3 rounds" in done.stdout
    assert json.loads((tmp_path / "here" / "model.json").read_text())["version"] == 1


def test_interrupted_demo_keeps_what_there_is(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "demo", "--tolerance", "0", "--max-rounds", "100000000"],
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
    "words",
    [["demo", "--seed", "-1"], ["demo", "--tolerance", "no"], ["no-such-command"], ["demo", "--per-round", "0"]],
)
def test_bad_options_end_with_code_2(words: list[str], tmp_path: Path) -> None:
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_ends_with_code_2(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert "is a file: give a folder" in run("demo", "--out", "file", cwd=tmp_path).stderr
    done = run("demo", "--out", "file/below", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("rankstream: ")
    assert "Traceback" not in done.stderr


def test_version_is_shown(tmp_path: Path) -> None:
    assert run("--version", cwd=tmp_path).stdout.startswith("rankstream 0.")


def test_help_names_the_commands(tmp_path: Path) -> None:
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "demo" in done.stdout


def modules_of(*words: str, cwd: Path) -> set[str]:
    """The modules that a command has loaded when it ends."""
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules))\n"
    code += f"from rankstream.cli import main; main({list(words)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def loaded(*words: str, cwd: Path) -> set[str]:
    """The packages that a command has loaded when it ends."""
    return {name.split(".")[0] for name in modules_of(*words, cwd=cwd)}


def test_a_decision_loads_what_it_needs(tmp_path: Path) -> None:
    rankings = [("tea", "pie", "nothing"), ("nothing", "tea", "pie")]
    RankingModel(["tea", "pie", "nothing"], rankings, [0.75, 0.25], no_choice_code=2).save(tmp_path / "model.json")
    (tmp_path / "items.csv").write_text("item,margin\ntea,1\npie,2\n")
    found = modules_of("decide", "model.json", "--margins", "items.csv", cwd=tmp_path)
    ours = sorted(name for name in found if name.split(".")[0] == "rankstream")
    assert len(ours) < 80, ours
    assert not {"matplotlib", "duckdb", "sklearn", "highspy"} & found


HEAVY = {"numpy", "scipy", "numba", "duckdb", "matplotlib", "sklearn", "highspy", "joblib", "pandas"}


def test_each_command_loads_only_what_it_needs(tmp_path: Path) -> None:
    RankingModel(["tea", "pie"], [("tea", "pie")], [1.0]).save(tmp_path / "model.json")
    assert not HEAVY & loaded("--help", cwd=tmp_path)
    assert not HEAVY & loaded("fit", "--help", cwd=tmp_path)
    for words in (["predict", "model.json", "--offer", "tea;pie"], ["show", "model.json"]):
        assert not {"duckdb", "matplotlib", "sklearn", "highspy", "joblib"} & loaded(*words, cwd=tmp_path)


@pytest.mark.parametrize(
    ("words", "last"),
    [
        (["pre"], ["predict"]),
        (["predict", "--of"], ["--offer", "--offers"]),
        (["fit", "--format", "co"], ["counts"]),
        (["plot", "--period", ""], ["hour", "day", "week", "month", "year"]),
    ],
)
def test_the_shell_completes(words: list[str], last: list[str], tmp_path: Path) -> None:
    given = {"COMP_WORDS": " ".join(["rankstream", *words]), "COMP_CWORD": str(len(words))}
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'rankstream'; from rankstream.cli import main; main()"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | given | {"_RANKSTREAM_COMPLETE": "complete_bash"},
    )
    assert done.stdout.split() == last
