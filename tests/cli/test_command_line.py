import os
import subprocess
import sys
from pathlib import Path

import pytest

from rankstream import RankingModel
from shell import run

CAFE = str(Path(__file__).parents[2] / "examples" / "cafe.csv")


@pytest.mark.parametrize(
    "words",
    [
        ["fit", "DATA", "--seed", "-1"],
        ["fit", "DATA", "--tolerance", "no"],
        ["no-such-command"],
        ["show", "DATA", "--top", "0"],
    ],
)
def test_bad_options_end_with_code_2(words: list[str], tmp_path: Path) -> None:
    done = run(*[CAFE if word == "DATA" else word for word in words], cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_ends_with_code_2(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "choices.jsonl").write_text('{"offered": ["tea", "pie"], "chosen": "tea"}\n' * 60)
    words = ["stream", "choices.jsonl", "--to-end", "--out"]
    assert "is a file: give a folder" in run(*words, "file", cwd=tmp_path).stderr
    done = run(*words, "file/below", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("rankstream: ")
    assert "Traceback" not in done.stderr


def test_version_is_shown(tmp_path: Path) -> None:
    assert run("--version", cwd=tmp_path).stdout.startswith("rankstream 0.")


def test_help_names_the_commands(tmp_path: Path) -> None:
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "decide" in done.stdout


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
