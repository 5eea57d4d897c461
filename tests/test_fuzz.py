"""The long checks of ``benchmarks/`` in short: hostile files, certificates by every door, mistakes that are made."""

import ast
from collections import Counter
from pathlib import Path
from random import Random

import pytest

import certificates
import fuzz
import fuzz_service
import hostile
import mutants
from doors import Claim
from mutations import mutations


@pytest.mark.parametrize("number", range(0, len(fuzz.PAIRS), 3))
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


def test_every_module_has_tests_that_are_there() -> None:
    named = mutants.modules([])
    assert len(named) > 40
    assert not any(module.endswith("_kernels.py") for module in named)
    for module in named:
        for name in mutants.names_of(module):
            assert (mutants.ROOT / "tests" / f"test_{name}.py").exists()
    assert mutants.names_of("columns/mle.py") == ("sharp_columns", "mle")
    path = mutants.ROOT / "src" / "rankstream" / "certificate" / "gap.py"
    assert mutants.chosen(path, "gap", 3, 0) == mutants.chosen(path, "gap", 3, 0)
    assert len(mutants.chosen(path, "gap", 3, 0)) == 3
