import ast
import inspect
import re
import subprocess
import sys
from collections import defaultdict
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

import rankstream

pytestmark = pytest.mark.quick

SOURCE = Path(rankstream.__file__).parent
ON_PURPOSE = {
    *("compare", "decide", "fit", "open", "report", "reproduce"),  # a command is called as what it does
    *("frontier", "segments", "substitution"),  # a picture is called as what it shows
    "make",  # a part from its name: a distance, a learner, a method
    "explain",  # why a part is picked: an oracle, a method
}


def test_public_names_are_these() -> None:
    assert set(rankstream.__all__) == {
        *("Assortments", "ChoiceCounts", "DecayingCounts", "WindowCounts", "read", "read_counts", "read_sales"),
        *("with_outside", "simulate", "PriceLevels", "UncertainCounts", "availability"),
        *("estimate", "Estimate", "Solver", "RankingEstimator", "fit_within", "Bootstrap"),
        *("Attributes", "read_attributes"),
        *("estimate_many", "Markets"),
        *("RankingModel", "EntropyModel", "Certificate", "load_model"),
        *("Live", "Record", "ChangeDetector", "DriftReport", "drift_report", "favourite_changes"),
        *("compare", "rationality", "revenue_range", "probability_range"),
        *("distances", "learners", "oracles", "certificate", "models", "methods", "plots", "checks"),
        *("streams", "decide", "Client", "best_offer", "safe_offer", "next_offer", "lost_sales", "report"),
    }
    assert all(hasattr(rankstream, name) for name in rankstream.__all__)
    assert dir(rankstream) == sorted(rankstream.__all__)
    with pytest.raises(AttributeError, match="attribute nonsense"):
        getattr(rankstream, "nonsense")  # noqa: B009


def test_signatures_can_be_completed_and_read() -> None:
    """Explicit keywords, and a name for the data instead of every type that numpy takes."""
    assert inspect.signature(rankstream.read_counts).parameters == inspect.signature(rankstream.read).parameters
    assert inspect.signature(rankstream.read_counts).return_annotation is rankstream.ChoiceCounts
    assert rankstream.read_counts("examples/cafe.csv", "transactions", no_choice="nothing").observations == 1200
    *named, rest = inspect.signature(rankstream.estimate).parameters.values()
    assert rest.name == "settings"  # of a method that is given by its name; everything else is named
    assert all(one.kind != inspect.Parameter.VAR_KEYWORD for one in named)
    assert inspect.signature(rankstream.estimate).parameters["data"].annotation == "Data | None"


def test_import_is_light() -> None:
    code = "import sys, rankstream; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"sklearn", "matplotlib", "pandas", "highspy", "duckdb", "joblib", "typer", "rich", "fastapi", "httpx"}
    assert not heavy & set(loaded)


@pytest.mark.slow
def test_kernels_work_without_a_cache_directory() -> None:
    code = """
import numba
from numba.core import caching
caching.CacheImpl._locator_classes = []
import rankstream as rs
print(*rs.Assortments([("a", "b")]).vertex([1, 0]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "0.0 1.0", done.stderr


def test_what_needs_pandas_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not a dependency: ``pip install .`` does not bring it."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    model = rankstream.RankingModel(["tea", "pie"], [("tea", "pie")], [1.0])
    with pytest.raises(ValueError, match=r"A data frame of rankings needs pandas, .*: pip install pandas\."):
        model.to_frame()
    with pytest.raises(ValueError, match="A data frame of offers needs pandas"):
        rankstream.decide.value(model, [("tea",)], 1.0)


def namespaces() -> list[ModuleType]:
    """The package and its public namespaces."""
    members = [getattr(rankstream, name) for name in rankstream.__all__]
    return [rankstream, *(member for member in members if isinstance(member, ModuleType))]


@pytest.mark.slow
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


def test_no_hint_installs_rankstream_from_an_index() -> None:
    """It is on none: extras are installed from the checkout."""
    root, hint = Path(__file__).parents[2], re.compile(r"pip install +['\"]?rankstream\b")
    texts = [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.js"), *SOURCE.rglob("*.html"), *(root / "docs").rglob("*.md")]
    texts += [root / "README.md", root / "CONTRIBUTING.md", *(root / "examples").rglob("*.py")]
    assert [str(path) for path in texts if hint.search(path.read_text(encoding="utf-8"))] == []
    for module in ("cli.serve", "service.client", "data.readers.sources.excel"):
        assert re.search(r'pip install "\.\[\w+\]"', (SOURCE / f"{module.replace('.', '/')}.py").read_text())


def test_everything_names_one_version() -> None:
    root = Path(__file__).parents[2]
    cited = re.search(r"^version: (.+)$", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    newest = re.search(r"^## (\d\S*)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited is not None
    assert newest is not None
    assert cited[1] == newest[1] == rankstream.__version__ == metadata.version("rankstream")
