import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rankstream as rs
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


def output_and_modules(*words: str, cwd: Path) -> tuple[str, set[str]]:
    """What a command prints, and the modules that it has loaded when it ends."""
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules))\n"
    code += f"from rankstream.cli import main; main({list(words)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True)
    printed, _, modules = done.stdout.rstrip().rpartition("\n")
    return printed, set(modules.split())


def modules_of(*words: str, cwd: Path) -> set[str]:
    """The modules that a command has loaded when it ends."""
    return output_and_modules(*words, cwd=cwd)[1]


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


@pytest.mark.parametrize("number", [1, 200])
def test_one_small_question_to_maximum_entropy_needs_no_compiled_code(number: int, tmp_path: Path) -> None:
    market = rs.simulate.market(0)
    model = rs.estimate(market.assortments, market.frequencies(), method="max-entropy").model
    model.save(tmp_path / "model.json")
    offer = ["item 1", "item 4", "item 6", "item 7", "nothing"]
    printed, modules = output_and_modules(
        "predict", "model.json", *number * ["--offer", ";".join(offer)], "--json", cwd=tmp_path
    )
    assert ("numba" in modules) == (number > 1)  # more questions pay for loading it
    assert json.loads(printed)[0]["shares"] == pytest.approx(model.predict(offer), abs=1e-12)


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
