"""Settings of the study: the paper's, those of a file, and what is wrong with one."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rankstream
import shell
from experiments import settings
from experiments.settings import StudyRun
from rankstream.cli.app import make_app
from rankstream.cli.reproduce import load_study


def test_the_study_of_a_checkout_is_found_from_any_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from rankstream.cli.reproduce import load_study as load; print(load().__name__)"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("experiments.study\n", "")


def test_the_study_has_the_paper_s_cells() -> None:
    parts = settings.parts()
    static = {
        cell
        for name in ("compare_L5", "compare_L10", "compare_L100", "compare_m")
        for cell in (replace(run, instance=0) for run in parts[name].runs(1))
    }
    assert len(static) == 9 * 11
    assert len(parts["metrics-dynamic"].cells) == 30
    assert [part.number for part in list(parts.values())[:7]] == [1, 2, 3, 4, 5, 6, 7]
    assert len(parts["ties"].runs(100)) == 30 * 3 * 3 * 2


def test_parts_by_name_number_and_path(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('kind = "static"\nmethods = ["MD_ns"]\noffers = [10]\ntolerance = 0.02\n')
    chosen = settings.choose(["2", "ties", str(mine)])
    assert [part.name for part in chosen] == ["metrics-dynamic-obs", "ties", "mine"]
    assert chosen[2].runs(3)[2] == StudyRun("static", 5, 5.0, 10, "l2", "MD_ns", 0, 2, tolerance=0.02)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "other"', "the kind is 'other'"),
        ('kind = "static"\nmethods = ["best"]', "methods contains 'best'"),
        ('kind = "static"\nmethods = []', "at least one entry"),
        ('kind = "static"\ncolour = [1]', "unknown setting 'colour'"),
        ('kind = "static"\nsegments = [1.5]', "segments"),
        ("kind = ", "not a settings file"),
        ('kind = "static"', "names no methods"),
        ('kind = "static"\nmethods = ["F-W"]\nitems = [1]', "items"),
        ('kind = "static"\nmethods = ["F-W"]\nsizes = "x"', "sizes is 'x'"),
        ('kind = "static"\nmethods = ["F-W"]\nalso = 5', "also is 5"),
        ('kind = "dynamic"\nmethods = ["FW_dyn"]', "need per_round"),
    ],
)
def test_bad_settings_are_explained(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        settings.read_settings(path)


def test_settings_of_ones_own_have_names_of_their_own(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in ("mine", "ties"):
            (tmp_path / folder / f"{name}.toml").write_text('kind = "static"\nmethods = ["MD_ns"]\n')
    with pytest.raises(ValueError, match="part of the paper's study"):
        settings.choose([str(tmp_path / "one" / "ties.toml")])
    with pytest.raises(ValueError, match="named twice"):
        settings.choose([str(tmp_path / folder / "mine.toml") for folder in ("one", "two")])
    with pytest.raises(ValueError, match="no settings file"):
        settings.choose(["nowhere.toml"])


def test_unknown_figures_exit_with_2(tmp_path: Path) -> None:
    done = shell.run("reproduce", "8", "--out", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "There is no figure '8'" in done.stderr


def test_without_a_checkout_reproduce_says_where_the_study_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rankstream, "__file__", str(tmp_path / "lib" / "site-packages" / "rankstream" / "__init__.py"))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(make_app(), ["reproduce", "1"])
    assert done.exit_code != 0
    with pytest.raises(ValueError, match="clone the repository and run `rankstream reproduce`"):
        load_study()
