"""The long checks of ``benchmarks/`` in short: hostile files, certificates by every door, mistakes that are made."""

import ast
import re
import runpy
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import typer

import certificates
import fuzz
import fuzz_commands
import fuzz_service
import hostile
import known_mistakes
import mutants
from doors import Claim
from local_service import shop
from mutations import mutations
from odd_requests import Maker
from rankstream.cli.app import make_app
from relevance import Mentions, Relevance, uncompiled_runs


@pytest.mark.parametrize("number", range(0, len(fuzz_commands.PAIRS), 3))
def test_hostile_input_ends_in_order(number: int, tmp_path: Path) -> None:
    case = fuzz.make(number, 1, tmp_path)
    code, out, err = fuzz.play(case, tmp_path)
    assert fuzz.complaint(case, tmp_path, code, out, err) is None


def test_what_is_wrong_with_an_end_is_noticed(tmp_path: Path) -> None:
    case = fuzz.Case(0, "fit", ".csv", ["fit", "odd.csv", "--json"])
    assert fuzz.complaint(case, tmp_path, 3, "", "") == "exit code 3"
    assert "without a sentence" in str(fuzz.complaint(case, tmp_path, 2, "", "Traceback"))
    assert "not JSON" in str(fuzz.complaint(case, tmp_path, 0, "half {", ""))
    assert "out.model is not there" in str(fuzz.complaint(case, tmp_path, 0, "{}", ""))
    (tmp_path / "out.model").write_bytes(hostile.saved_models()[0][:-9])
    assert "not whole" in str(fuzz.complaint(case, tmp_path, 0, "{}", ""))
    (tmp_path / "out.model").write_bytes(hostile.saved_models()[0])
    assert fuzz.complaint(case, tmp_path, 0, "{}", "") is None
    assert "out.model is there" in str(fuzz.complaint(case, tmp_path, 2, "", "rankstream: no."))
    (tmp_path / ".out.model.7.tmp").touch()
    assert "left" in str(fuzz.complaint(case, tmp_path, 0, "{}", ""))
    assert hostile.hostile(Random(5), ".csv") == hostile.hostile(Random(5), ".csv")


@pytest.mark.parametrize("number", range(2))
def test_odd_requests_are_answered_in_order(number: int) -> None:
    statuses, wrong = fuzz_service.play(number, seed=1, requests=48)
    assert wrong == []
    assert statuses.total() == 48
    assert statuses[202] > 3


def test_what_is_wrong_with_an_answer_is_noticed() -> None:
    assert fuzz_service.complaint(200, "application/json", "{}", "") is None
    assert fuzz_service.complaint(422, "application/json", '{"error": "No."}', "") is None
    assert "status 500" in str(fuzz_service.complaint(500, "application/json", '{"error": "No."}', ""))
    assert "computed" in str(fuzz_service.complaint(503, "", '{"error": "It could not be computed: no."}', ""))
    assert "without a sentence" in str(fuzz_service.complaint(404, "application/json", '{"detail": []}', ""))
    assert "no sentence" in str(fuzz_service.complaint(404, "application/json", '{"error": "no"}', ""))
    assert "noted" in str(fuzz_service.complaint(200, "", "", '{"event": "a market cannot be learned"}'))
    assert "not whole" in str(fuzz_service.complaint(200, "text/html", "<!DOCTYPE html><p>", ""))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("door", certificates.DOORS)
def test_certificates_enclose_the_optimum(door: str) -> None:
    told = {name: Counter[str]() for name in certificates.DOORS}
    number = list(certificates.DOORS).index(door)
    for _ in range(2):
        certificates.run(number, 7, told)
        number += len(certificates.DOORS)
    assert told[door]["cases"] == 2
    assert told[door]["failures"] == 0


def test_a_wrong_claim_is_noticed() -> None:
    assert Claim(0.1, 0.3, 0.2, 0.3, 0.2).complaint() is None
    assert "above the least" in str(Claim(0.21, 0.3, 0.2, 0.3).complaint())
    assert "below the least" in str(Claim(0.1, 0.19, 0.2, 0.19).complaint())
    assert "model's own" in str(Claim(0.1, 0.3, 0.2, 0.31).complaint())
    assert "gap" in str(Claim(0.1, 0.3, 0.2, 0.3, 0.25).complaint())
    assert Claim(0.1, 0.19, 0.2, 0.19, None, False).complaint() is None


@pytest.mark.parametrize("mistake", known_mistakes.MISTAKES, ids=lambda mistake: f"{mistake.item} {mistake.module}")
def test_a_known_mistake_can_still_be_put_back(mistake: known_mistakes.Mistake) -> None:
    made, source = mistake.mutant(), (mutants.ROOT / "src" / "rankstream" / mistake.module).read_text()
    assert made.mutation.apply(source) == source.replace(mistake.before, mistake.after)
    file, _, test = mistake.test.partition("::")
    assert ("def " + test.partition("[")[0]) in (mutants.ROOT / file).read_text()


SOURCE = '''"""A module with 3 words."""

def f(x: int = 2) -> float:
    """At most 1."""
    if x < 0:
        raise ValueError(f"{x + 1} is wrong")
    x += 1
    return max(x, 5) * 2.0 if x else -x
'''


def test_mistakes_are_small_and_leave_words_alone() -> None:
    found = mutations(SOURCE)
    changes = {(one.before, one.after) for one in found}
    assert {("x < 0", "(x <= 0)"), ("x < 0", "(False)"), ("x += 1", "pass"), ("max", "(min)"), ("5", "(6)")} <= changes
    assert {("-x", "(x)"), ("2.0", "(3.0)"), ("max(x, 5) * 2.0", "(max(x, 5) / 2.0)"), ("2", "(3)")} <= changes
    assert not any("wrong" in before or "most" in before for before, _ in changes)
    assert all(ast.parse(one.apply(SOURCE)) for one in found)
    assert len({one.apply(SOURCE) for one in found}) == len(found)


def test_samples_of_mutants_are_drawn_by_their_seed_from_all_packages() -> None:
    every = mutants.every_mutant()
    few, many = mutants.draw(every, 40, 1), mutants.draw(every, 300, 1)
    assert many[:40] == few == mutants.draw(every, 40, 1)
    assert len(set(few) & set(mutants.draw(every, 40, 2))) < 5
    folders = {path.parent.name for path in (mutants.ROOT / "src" / "rankstream").glob("*/__init__.py")}
    assert folders <= {mutant.package for mutant in many}
    assert any(mutant.module.endswith("_kernels.py") for mutant in many)
    assert {mutant.module for mutant in mutants.every_mutant(["certificate/gap.py"])} == {"certificate/gap.py"}


def test_kernels_are_tested_uncompiled_as_make_does() -> None:
    (tests,) = uncompiled_runs(mutants.ROOT)
    assert "tests/oracles/test_kernels.py" in tests
    assert "tests/oracles/test_search.py::test_search_brackets_the_minimum" in tests


def test_a_mutant_is_killed_by_a_test_that_passes_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a project of one module: killed, survived, and a test that fails anyway."""
    for name in ("src/rankstream", "tests"):
        (tmp_path / "project" / name).mkdir(parents=True)
    project = tmp_path / "project"
    (project / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['slow']\n")
    (project / "src/rankstream/__init__.py").touch()
    (project / "src/rankstream/sums.py").write_text("STEP = 1\n\n\ndef total(x):\n    return x + STEP + 0 * 5\n")
    (project / "Makefile").write_text("test:\n\tpytest\n")
    (project / "tests/test_sums.py").write_text(
        "from rankstream.sums import total\n\n"
        "def test_wrong():\n    assert total(1) == 7\n\ndef test_right():\n    assert total(1) == 2\n"
    )
    (project / "tests/conftest.py").write_text("import gc\n\ndef pytest_collection_finish():\n    gc.freeze()\n")
    (project / "tests/test_other.py").write_text("def test_other():\n    assert True\n")
    (project / "tests/test_long.py").write_text(
        "import pytest\nfrom rankstream import sums\n\n"
        "@pytest.mark.slow\ndef test_slowly():\n    assert sums.total.__code__.co_consts != (None, 0, 6)\n"
    )
    monkeypatch.setattr(mutants, "ROOT", project)
    monkeypatch.setattr(mutants, "COPIED", ("src", "tests", "pyproject.toml"))
    copy = mutants.Copy(tmp_path / "copy", 20.0)
    relevance = copy.relevance[True]
    assert relevance.pick("sums.py", 5) == ["tests/test_sums.py::test_right", "tests/test_sums.py::test_wrong"]
    assert relevance.pick("sums.py", 1) == relevance.pick("sums.py", 5)  # those that use the constant
    assert Relevance(copy.tests[True], tmp_path / "lines").seconds == 0.0  # measured before
    assert relevance.pick_long("sums.py", 5) == ["tests/test_long.py::test_slowly"]
    named = Mentions(copy.tests[True])
    assert sorted(named.pick("sums.py", 5)) == sorted(named.pick("sums.py", 1)) == relevance.pick("sums.py", 5)
    some = [one for one in mutants.every_mutant() if one.change in ("1 -> (2)", "5 -> (6)", "x + STEP -> (x)")]
    fates = {one.change: mutants.judge(copy, one) for one in some}
    for change in ("1 -> (2)", "x + STEP -> (x)"):  # of a constant, and in a function
        assert (fates[change].word, fates[change].by) == ("killed", "tests/test_sums.py::test_right")
    assert fates["5 -> (6)"].word == "survived"
    assert "sums.py:5" in mutants.report(list(fates.values()))
    assert "5 -> (6)" in mutants.report(list(fates.values()))
    assert (tmp_path / "copy/src/rankstream/sums.py").read_text() == (project / "src/rankstream/sums.py").read_text()
    copy.close()


def commands() -> dict[str, set[str]]:
    """Every command of the parser, and its options by their long names."""

    def walk(group: Any, words: tuple[str, ...]) -> Iterator[tuple[str, set[str]]]:
        for name, command in getattr(group, "commands", {}).items():
            yield from walk(command, (*words, name))
        if not hasattr(group, "commands"):
            named = {max(one.opts, key=len) for one in group.params if one.param_type_name == "option"}
            yield " ".join(words), named - {"--help"}

    return dict(walk(typer.main.get_command(make_app()), ()))


def test_the_commands_of_the_smoke_test_exist() -> None:
    parser = commands()
    for command, *words in runpy.run_path(str(Path(__file__).parents[1] / "smoke.py"))["COMMANDS"]:
        assert {word for word in words if word.startswith("--")} <= parser[command], command


def test_the_fuzzer_knows_every_command_and_option() -> None:
    parser = commands()
    assert set(fuzz_commands.KINDS) == set(parser)
    tables = (fuzz_commands.NUMERIC, fuzz_commands.WORDS, fuzz_commands.PATHS, fuzz_commands.FLAGS)
    for command, options in parser.items():
        told = [option for table in tables for option in table.get(command, ())]
        assert sorted(told) == sorted(options - {"--json"}), command
        assert "--json" in options
    assert all(set(table) <= set(parser) for table in tables)
    assert "options" in {kind for kinds in fuzz_commands.KINDS.values() for kind in kinds}


def test_cases_try_every_option() -> None:
    """Not only the table has them: the cases that are drawn from it do."""
    seen: dict[str, set[str]] = defaultdict(set)
    for command in fuzz_commands.KINDS:
        for number in range(600):
            seen[command].update(fuzz.options(Random(number), command))
    for command, options in commands().items():
        assert options - {"--json"} <= seen[command], command


def test_odd_requests_know_every_path_and_method(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        whole = opened.http.request("GET", "/openapi.json").json()
    paths, schemas = whole["paths"], whole["components"]["schemas"]
    there = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    patterns = {route: re.compile(re.sub(r"\{\w+\}", "[^/]+", route[1]) + r"(\?|$)") for route in there}
    tried = set()
    for number in range(60):
        maker = Maker(number, 0)
        for _ in range(100):
            odd = maker.request()
            tried |= {route for route, path in patterns.items() if route[0] == odd.method and path.match(odd.path)}
    assert there == tried
    asked = {*Maker(0, 0).every_constraint(), "margins", "budget"}
    assert asked == {name for kind in ("DecideBody", "NextBody") for name in schemas[kind]["properties"]}
    assert set(Maker(0, 0).every_setting()) == set(schemas["SettingsBody"]["properties"])
