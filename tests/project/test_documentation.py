import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from doctest import DocTestParser, OutputChecker
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

import rankstream as rs
from close_numbers import PAGE_FLAGS, matches
from rankstream.cli.app import make_app
from strategies import compiled_only

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
EVERY_PAGE = [ROOT / "README.md", ROOT / "examples" / "README.md", *PAGES]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TRANSCRIPT = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
SETTING_UP = ("make ", "pip ", "git ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_all_python_on_a_page_is_an_example_that_runs(page: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        assert block.startswith(">>> "), f"doctest does not see this:\n{block}"
        assert block.endswith("\n\n"), f"the fence would be part of the last answer:\n{block}"


def test_tests_that_pages_name_exist() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in EVERY_PAGE)
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    named = set(re.findall(r"`(test_\w+)`", pages))
    assert len(named) > 100
    assert not [name for name in sorted(named) if f"def {name}(" not in tests]


def public(module: ModuleType) -> set[str]:
    return set(getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")]))


def private_uses(source: str) -> Iterator[str]:
    """Whatever of the package is imported or asked for that is neither a public name nor in a public namespace."""
    spaces = {name: getattr(rs, name) for name in rs.__all__ if isinstance(getattr(rs, name), ModuleType)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("rankstream."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rankstream":
            _, _, space = str(node.module).partition(".")
            known = set(rs.__all__) if not space else public(spaces[space]) if space in spaces else set()
            yield from (f"{node.module}.{name.name}" for name in node.names if name.name not in known)
        elif isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            if owner == "rs" and node.attr not in {*rs.__all__, "__version__"}:
                yield f"rs.{node.attr}"
            space = owner.removeprefix("rs.")
            if owner.startswith("rs.") and space in spaces and node.attr not in public(spaces[space]):
                yield f"{owner}.{node.attr}"


@pytest.mark.parametrize("file", [*EVERY_PAGE, *EXAMPLES], ids=lambda file: str(file.relative_to(ROOT)))
def test_pages_and_examples_use_public_names_only(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    sources = [text] if file.suffix == ".py" else [example.source for example in DocTestParser().get_examples(text)]
    assert not [use for source in sources for use in private_uses(source)]


def test_private_uses_are_seen() -> None:
    source = """
import rankstream as rs, rankstream.plots
from rankstream import Solver, distances, loop
from rankstream.oracles import Answer
from rankstream.oracles.tables import lattice
from rankstream.solver.loop import State
rs.estimate, rs.entropy, rs.methods.Nearest, rs.methods.Farthest, rs.__version__
"""
    uses = ["rankstream.plots", "rankstream.loop", "rankstream.oracles.tables.lattice", "rankstream.solver.loop.State"]
    assert sorted(private_uses(source)) == sorted([*uses, "rs.entropy", "rs.methods.Farthest"])


def commands(block: str) -> Iterator[str]:
    """The commands of a block of shell, one a line; what goes into a file up to END belongs to its command."""
    lines = iter(block.splitlines())
    for line in lines:
        command = [line]
        if line.endswith("<<'END'"):
            for more in lines:
                command.append(more)
                if more == "END":
                    break
        yield "\n".join(command)


def run(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command prints: our own within this process, which is quicker, and all others by a real shell."""
    first, *words = shlex.split(command, comments=True)
    if first == "rankstream" and not {"|", ">", "<", "&&"} & set(words):
        monkeypatch.chdir(folder)
        result = CliRunner().invoke(make_app(), words, catch_exceptions=False)
        assert result.exit_code == 0, f"{command}\n{result.output}"
        return result.stdout
    ours = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = ["bash", "-euc", command]
    done = subprocess.run(shell, cwd=folder, env=os.environ | {"PATH": ours}, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout


@compiled_only
@pytest.mark.parametrize(
    "page",
    [page for page in EVERY_PAGE if TRANSCRIPT.search(page.read_text(encoding="utf-8"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_transcripts_of_the_shell_are_true(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for block, shown in TRANSCRIPT.findall(page.read_text(encoding="utf-8")):
        if block.startswith(SETTING_UP):
            continue
        printed = "".join(run(command, tmp_path, monkeypatch) for command in commands(block))
        if shown:
            assert OutputChecker().check_output(shown, printed, PAGE_FLAGS), f"{block}\nprints\n{printed}"


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("{'pie': 0.37, 'tea': -1.9}", "{'pie': 0.3745671, 'tea': -1.93}", True),
        ("earns 153.8 [144.0, 163.5]", "earns 153.9 [144.2, 163.1]", True),
        ("earns 153.8 [144.0, 163.5]", "earns 153.8 [14.4, 163.5]", False),
        ("0.0 to 0.5", "0.1 to 0.5", True),
        ("{'pie': 0.37}", "{'pie': 0.3845671}", False),
        ("0.0 to 0.5", "0.2 to 0.5", False),
        ("p = 2.31e-12", "p = 2.33e-12", True),
        ("p = 2.31e-12", "p = 2.31e-11", False),
        ("cake 36.5 %", "pie 36.5 %", False),
        ("1,200 choices", "1,201 choices", False),
        ("one ... two 0.5", "one\n  or two 0.501\n", True),
        ("0.5 each", "0.5", False),
        ("nothing 21 % [0, 43]", "nothing 22 % [0, 42]", True),
        ("nothing 21 % [0, 43]", "nothing 21 % [0, 45]", False),
        ("nothing 21 % [0, 43]", "nothing 21.4 % [0, 43]", False),
        ("(3, 4)", "(3, 5)", False),
    ],
)
def test_pages_may_differ_from_what_is_printed_in_the_last_digits_alone(shown: str, printed: str, same: bool) -> None:
    assert matches(shown, printed) == same
    assert OutputChecker().check_output(shown, printed, PAGE_FLAGS) == same
    assert not OutputChecker().check_output("0.5", "0.501", 0)


def found(name: str) -> bool:
    """Whether a dotted name leads somewhere, through modules, classes and the fields of classes."""
    owner, *rest = name.split(".")
    try:
        thing = getattr(rs, owner) if hasattr(rs, owner) else import_module(f"rankstream.{owner}")
        for part in rest:
            if part in getattr(thing, "__dataclass_fields__", {}):
                return True
            thing = getattr(thing, part) if hasattr(thing, part) else import_module(f"{thing.__name__}.{part}")
    except (ImportError, AttributeError):
        return False
    return True


def test_the_names_beside_the_papers_results_exist() -> None:
    rows = re.findall(r"^\| .*\|$", (DOCS / "explanation" / "concepts.md").read_text(), re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`([a-zA-Z_]+\.[A-Za-z_.0-9]+)`", row)}
    assert len(names) > 20
    missing = {name for name in names - {"distance.lipschitz"} if not found(name)}
    assert not missing


def test_every_public_name_has_its_place_in_the_reference() -> None:
    text = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    modules = {name for name in rs.__all__ if isinstance(getattr(rs, name), ModuleType)}
    for name in set(rs.__all__) - modules:
        assert re.search(rf"^::: rankstream\.(?:.*\.)?{name}$", text, re.MULTILINE), (
            f"{name} is on no page of the reference"
        )
    for name in modules:
        assert f"::: {getattr(rs, name).__name__}." in text, f"nothing of {name} is on a page of the reference"


@pytest.mark.parametrize("page", [*EVERY_PAGE, ROOT / "CONTRIBUTING.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not [target for target in missing if not target.startswith(("study/", "../study/"))]


def test_the_readme_fits_two_screens_and_names_all_packages() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    layout = text.split("## Project layout")[1].split("\n## ")[0]
    packages = {init.parent.name for init in (ROOT / "src" / "rankstream").glob("*/__init__.py")}
    assert len(text.splitlines()) <= 120
    assert not {name for name in packages if not re.search(rf"\b{name}\b", layout)}


def test_every_page_begins_with_an_example_or_a_picture() -> None:
    """What a reader can do, and an example, belong into the first screen: forty lines."""
    shown = re.compile(r"^(```|    \S|!\[|\||<!-- README)", re.MULTILINE)
    beginnings = {page: "\n".join(page.read_text(encoding="utf-8").splitlines()[:40]) for page in PAGES}
    assert not [page for page, beginning in beginnings.items() if not shown.search(beginning)]
