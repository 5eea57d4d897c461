import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pytest

import rankstream
from rankstream._core import renamed

SOURCE = Path(rankstream.__file__).parent
ON_PURPOSE = {
    *("compare", "decide", "fit", "reproduce"),  # a command is called as what it does
    *("frontier", "segments", "substitution"),  # a picture is called as what it shows
    "make",  # a part from its name: a distance, a learner, a method
}
OLD = """
import importlib, json, sys
import rankstream
names, modules = json.loads(sys.argv[1])
said = {}
for name in names:
    try:
        getattr(rankstream, name)
    except AttributeError as error:
        said[name] = str(error)
    try:
        exec(f"from rankstream import {name}")
    except ImportError as error:
        said[f"from {name}"] = str(error)
for name in modules:
    for path in (name, f"{name}.thing"):
        try:
            importlib.import_module(f"rankstream.{path}")
        except ImportError as error:
            said[f"import {path}"] = str(error)
print(json.dumps(said))
"""


def test_public_names_are_these() -> None:
    assert set(rankstream.__all__) == {
        *("Assortments", "ChoiceCounts", "DecayingCounts", "WindowCounts", "read", "read_counts"),
        *("with_outside", "outside_sensitivity", "simulate", "PriceLevels"),
        *("estimate", "Estimate", "Solver", "RankingEstimator", "fit_within", "Bootstrap", "predict_interval"),
        *("estimate_many", "Markets"),
        *("RankingModel", "EntropyModel", "Certificate", "load_model"),
        *("Live", "Record", "ChangeDetector", "DriftReport", "drift_report", "type_changes", "favourite_changes"),
        *("compare", "rationality", "revenue_range", "probability_range"),
        *("distances", "learners", "oracles", "certificate", "models", "methods", "baselines", "plots", "checks"),
        *("streams", "decide", "Client"),
    }
    assert set(rankstream.PLACES) == set(rankstream.__all__)
    assert all(hasattr(rankstream, name) for name in rankstream.__all__)
    assert dir(rankstream) == sorted(rankstream.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = rankstream.nonsense


def test_import_is_light() -> None:
    code = "import sys, rankstream; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"sklearn", "matplotlib", "pandas", "highspy", "duckdb", "joblib", "typer", "rich", "fastapi", "httpx"}
    assert not heavy & set(loaded)


def test_kernels_work_without_a_cache_directory() -> None:
    code = """
import numba
from numba.core import caching
caching.CacheImpl._locator_classes = []
import rankstream as rs
print(rs.oracles.auto(rs.Assortments([("a", "b")])).cheapest([1.0, 0.0]).value)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "0.0", done.stderr


def test_what_needs_pandas_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not a dependency: ``pip install .`` does not bring it."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    model = rankstream.RankingModel(["tea", "pie"], [("tea", "pie")], [1.0])
    with pytest.raises(ValueError, match=r"A data frame of rankings needs pandas, .*: pip install pandas\."):
        model.to_frame()
    with pytest.raises(ValueError, match="A data frame of offers needs pandas"):
        rankstream.decide.value(model, [("tea",)], 1.0)


def test_old_names_say_what_they_are_called_now() -> None:
    every = {**renamed.NAMES, **renamed.MODULES}
    given = json.dumps([list(renamed.NAMES), list(renamed.MODULES)])
    done = subprocess.run([sys.executable, "-c", OLD, given], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    real = {name for name in renamed.NAMES if (SOURCE / name).exists()}  # a package that can be imported still
    wanted = {*renamed.NAMES, *(f"from {name}" for name in set(renamed.NAMES) - real)}
    wanted |= {f"import {name}{more}" for name in renamed.MODULES for more in ("", ".thing")}
    assert set(said) == wanted
    for call, sentence in said.items():
        old = call.split()[-1].removesuffix(".thing")
        assert sentence == f"rankstream.{old} of version 0.2 is now rankstream.{every[old]}: see docs/upgrading.md."


@pytest.mark.parametrize("new", sorted({*renamed.NAMES.values(), *renamed.MODULES.values()}))
def test_new_names_exist(new: str) -> None:
    names = re.findall(r"\b[A-Za-z_]+(?:\.[A-Za-z_]+)*", re.sub(r"\(.*?\)|\b(and|or)\b", " ", new))
    assert names
    for name in names if new != "the command line" else ["cli.main"]:
        thing: object = rankstream if name != "cli.main" else __import__("rankstream.cli").cli
        for part in name.removeprefix("cli.").split("."):
            thing = getattr(thing, part)


def namespaces() -> list[ModuleType]:
    """The package and its public namespaces."""
    members = [getattr(rankstream, name) for name in rankstream.__all__]
    return [rankstream, *(member for member in members if isinstance(member, ModuleType))]


def test_a_name_has_one_meaning() -> None:
    """No class, and no function that users can reach, is defined in two modules, but for a few on purpose."""
    reached = {name for namespace in namespaces() for name in getattr(namespace, "__all__", ())}
    places = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            named = isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef) and node.name in reached)
            if named and not node.name.startswith("_"):  # type: ignore[attr-defined]
                places[node.name].append(str(path.relative_to(SOURCE)))  # type: ignore[attr-defined]
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert {name: paths for name, paths in twice.items() if name not in ON_PURPOSE} == {}
