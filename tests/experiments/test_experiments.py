import csv
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from experiments import claims, settings, study
from experiments.claims.verdicts import difference, graded, less, spearman
from experiments.expectation import measure
from experiments.fits import StudyRow, run_all
from experiments.instances import Instance, Stream
from experiments.questions import QUESTIONS
from experiments.report import write_report
from experiments.settings import StudyRun
from experiments.store import Store
from experiments.tables import Results
from rankstream.cli.app import make_app
from rankstream.data import simulate
from waits import wait_for

QUIET = Console(quiet=True)
ROOT = Path(__file__).parents[2]
STATIC = StudyRun("static", 5, 5.0, 20, "l2", "MD_ns", 0, 0)
DYNAMIC = StudyRun("dynamic", 5, 5.0, 20, "l2", "FW_naive", 1000, 0, tolerance=0.01)


def small(name: str, **changes: object) -> settings.StudyPart:
    """A part of the study with a loose tolerance, so that it is over soon."""
    part = settings.parts()[name]
    cells = tuple(
        {**cell, "tolerance": 0.01, "max_rounds": min(cell.get("max_rounds", 3000), 3000)} for cell in part.cells
    )
    return replace(part, cells=cells, most_instances=2, **changes)  # type: ignore[arg-type]


def tiny_milp(part: settings.StudyPart) -> settings.StudyPart:
    return replace(part, cells=tuple({**cell, "max_rounds": 2} for cell in part.cells), most_instances=1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[settings.StudyPart]]:
    parts = [small(name) for name in settings.parts() if name not in ("solvers", "resolving")]
    parts.append(tiny_milp(settings.parts()["solvers"]))
    parts.append(replace(small("resolving"), most_instances=1))
    store = study.run_parts(parts, 2, 1, tmp_path_factory.mktemp("study"), QUIET)
    return store, parts


@pytest.fixture(scope="module")
def report(tiny: tuple[Store, list[settings.StudyPart]]) -> Path:
    """The report about the tiny study, whose figures take ten times as long as its runs."""
    return write_report(*tiny, 2)


def test_a_run_is_what_its_settings_say() -> None:
    instance = Instance(STATIC)
    assert instance.market.assortments.n_offers == 20
    (row,) = run_all([STATIC])
    assert row.results["converged"] == 1
    assert row.results["mae"] <= 1e-3
    assert row.results["rankings"] <= row.results["rounds"]
    assert row.results["truth_mae"] == pytest.approx(row.results["mae"], abs=1e-12)
    assert 0.0 <= row.results["gap"] <= row.results["guarantee"]
    again = run_all([STATIC])[0]
    assert again.results == row.results
    timed = run_all([replace(STATIC, timed=True)])[0]
    assert timed.results["rounds"] == pytest.approx(row.results["rounds"], rel=0.1)
    assert 0.0 < timed.times["oracle_seconds"] < timed.times["seconds"]


def test_changes_to_a_method_are_made() -> None:
    # With weights t mirror descent takes the rounds of Frank-Wolfe, and Frank-Wolfe with equal weights those of it.
    plain, late, equal, frank = (
        run_all([run])[0].results["rounds"]
        for run in (
            STATIC,
            replace(STATIC, power=1.0),
            replace(STATIC, method="F-W", power=0.0),
            replace(STATIC, method="F-W"),
        )
    )
    assert plain == pytest.approx(equal, rel=0.05)
    assert late == pytest.approx(frank, rel=0.05)
    assert plain < 0.8 * frank
    rough, fine = (run_all([replace(STATIC, method="MD_smth", smoothing=factor)])[0] for factor in (0.1, 10.0))
    assert rough.results["rounds"] > fine.results["rounds"]
    assert run_all([replace(STATIC, step=100.0)])[0].results["rounds"] > plain


def test_both_readings_of_the_stopping_rule() -> None:
    (row,) = run_all([DYNAMIC])
    assert row.results["mae"] <= 0.01
    assert row.results["rounds_by_latest"] <= row.results["rounds"]
    assert row.results["observations"] == 2000 + 1000 * (row.results["rounds"] - 1)


def test_rows_survive_and_are_not_run_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(run_all([STATIC]))
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"version": "0.1.0", "run": {"kind"')
    again = Store(tmp_path)
    assert STATIC in again
    assert DYNAMIC not in again
    assert again.rows([STATIC]) == store.rows([STATIC])
    assert (tmp_path / "journal.jsonl").read_text().endswith("\n")


def test_rows_of_other_versions_are_run_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(run_all([STATIC]))
    journal = tmp_path / "journal.jsonl"
    journal.write_text(journal.read_text().replace('{"version": "', '{"version": "0.'))
    assert STATIC not in Store(tmp_path)


def test_a_damaged_journal_is_named(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("[1, 2]\n")
    with pytest.raises(ValueError, match=r"Line 1 of .* is damaged"):
        Store(tmp_path)
    (tmp_path / "journal.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match="is damaged: delete it"):
        Store(tmp_path)


def test_an_out_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file"):
        Store(tmp_path / "file")


def test_tables_do_not_depend_on_processes_or_interruptions(tmp_path: Path) -> None:
    parts = [small("compare_m"), small("metrics-dynamic")]
    study.run_parts(parts, 2, 1, tmp_path / "one", QUIET)
    study.run_parts(parts, 2, 2, tmp_path / "two", QUIET)
    runs = parts[1].runs(2)
    Store(tmp_path / "three").add(run_all([run for run in runs if run.instance == 1]))
    store = study.run_parts(parts, 2, 1, tmp_path / "three", QUIET)
    tables = [(tmp_path / name / "runs.csv").read_bytes() for name in ("one", "two", "three")]
    assert tables[0] == tables[1] == tables[2]
    write_report(store, parts, 2)
    before = {path.name: path.read_bytes() for path in (tmp_path / "three").iterdir()}
    write_report(study.run_parts(parts, 2, 1, tmp_path / "three", QUIET), parts, 2)
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "three").iterdir()}
    rows = list(csv.DictReader((tmp_path / "one" / "runs.csv").read_text().splitlines()))
    assert len(rows) == 2 * (27 + 30)
    assert "seconds" not in rows[0]


def test_a_killed_study_goes_on_where_it_was(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rankstream", "reproduce", "3", "--instances", "2", "--jobs", "1"]
    process = subprocess.Popen([*command, "--out", str(tmp_path / "killed")], stdout=subprocess.DEVNULL)
    journal = tmp_path / "killed" / "journal.jsonl"
    wait_for(lambda: journal.exists() and journal.stat().st_size)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    for name in ("killed", "whole"):
        assert CliRunner().invoke(make_app(), [*command[3:], "--out", str(tmp_path / name)]).exit_code == 0
    assert (tmp_path / "killed" / "runs.csv").read_bytes() == (tmp_path / "whole" / "runs.csv").read_bytes()


def test_the_command_writes_report_and_figures(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('kind = "static"\nmethods = ["MD_ns", "F-W"]\ntolerance = 0.02\n')
    done = CliRunner().invoke(
        make_app(), ["reproduce", str(mine), "--instances", "2", "--jobs", "1", "--out", str(tmp_path / "x")]
    )
    assert done.exit_code == 0, done.output
    assert "oracle calls/s" in done.output
    report = (tmp_path / "x" / "report.md").read_text()
    assert "not run" in report
    assert {"mine.png", "mine.pdf", "summary.csv", "tables.tex", "runs.csv", "times.csv"} <= {
        p.name for p in (tmp_path / "x").iterdir()
    }


def test_every_claim_and_question_is_answered(tiny: tuple[Store, list[settings.StudyPart]], report: Path) -> None:
    store, parts = tiny
    found = {part.name: Results(store.rows(part.runs(2))) for part in parts}
    for claim in claims.CLAIMS:
        verdict = claim.verdict(found)
        assert verdict is not None, claim.says
        assert verdict.measured
        assert claim.verdict({}) is None
    for title, _, answer in QUESTIONS:
        assert answer(found), title
    text = report.read_text()
    assert text.count("**holds") + text.count("**does not hold") == len(claims.CLAIMS)
    assert "nan" not in text


def test_every_figure_of_the_paper_is_drawn(tiny: tuple[Store, list[settings.StudyPart]], report: Path) -> None:
    wanted = {part.name for part in tiny[1] if part.number}
    for kind, beginning in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        assert {path.stem for path in report.parent.glob(f"*.{kind}")} == wanted
        assert all((report.parent / f"{name}.{kind}").read_bytes().startswith(beginning) for name in wanted)


def made_up(method: str, rounds: list[int], **settings_of_run: object) -> list[StudyRow]:
    run = replace(STATIC, method=method, **settings_of_run)  # type: ignore[arg-type]
    return [StudyRow(replace(run, instance=number), {"rounds": value}, {}) for number, value in enumerate(rounds)]


def test_verdicts_follow_the_numbers() -> None:
    few, many = Results(made_up("MD_ns", [10, 12, 14])), Results(made_up("F-W", [20, 22, 24]))
    assert difference(few, many, "rounds") == (-10.0, 0.0)
    assert less(few, many, "rounds")
    assert not less(many, few, "rounds")
    assert graded(3, 3, "").holds == "holds"
    assert graded(2, 3, "").holds == "holds in part"
    assert graded(1, 3, "").holds == "does not hold"
    best = next(claim for claim in claims.CLAIMS if "fewest rounds, however" in claim.says)
    for worse, expected in ((30, "holds"), (5, "does not hold")):
        rows = [
            row
            for method, base in (("MD_ns", 10), ("FW_dyn", worse))
            for row in made_up(method, [base, base + 1, base], kind="dynamic", per_round=50)
        ]
        verdict = best.verdict({"metrics-dynamic": Results(rows)})
        assert verdict is not None
        assert verdict.holds == expected


def test_spearman_against_scipy() -> None:
    from scipy.stats import spearmanr

    random = np.random.default_rng(0)
    for _ in range(20):
        first, second = random.integers(6, size=30).astype(float), random.integers(6, size=30).astype(float)
        assert spearman(first, second) == pytest.approx(float(spearmanr(first, second).statistic))


def test_expected_values(tmp_path: Path) -> None:
    content = json.loads((ROOT / "experiments" / "expected.json").read_text())
    measured = measure(tmp_path)
    assert [entry["cell"] for entry in measured] == [entry["cell"] for entry in content["cells"]]
    for now, before in zip(measured, content["cells"], strict=True):
        for name, tolerance in content["tolerances"].items():
            assert now["means"][name] == pytest.approx(before["means"][name], rel=tolerance), (now["cell"], name)


def test_a_stream_needs_a_choice_from_every_offer() -> None:
    market = simulate.market(seed=2)
    assert not next(market.stream(first=10)).totals.all()
    with pytest.raises(ValueError, match="After 10 choices some offer was never shown: raise the argument first"):
        next(Stream(market, 200, 10).blocks())
    frequencies, observations = next(Stream(market, 200, 2000).blocks())
    assert len(frequencies) == len(observations) == 256
    assert observations[:2].tolist() == [2000, 2200]
    assert frequencies[1].tolist() == next(islice(market.stream(), 1, 2)).frequencies().tolist()
