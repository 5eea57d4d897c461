"""Names that say what a thing is: modules are nouns, constants say what they limit, and no folder is a heap."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "rankstream"
PLACES = (SOURCE, ROOT / "tests" / "helpers", ROOT / "benchmarks", ROOT / "experiments", ROOT / "examples")
MAX_MODULES = 26
MIN_LINES = 60

NOUNS = {
    "packing", "pooling", "pricing", "reading", "resampling", "rounding", "sampling",
}  # fmt: skip
"""Words in -ing that name a thing or a method in every book; none in -ed does."""

ADJECTIVES = {
    "AHEAD", "BROAD", "CLOSE", "DEEP", "ENOUGH", "FAINT", "FAR", "FEW", "FRESH", "FRUITLESS", "HEALTHY", "IDLE",
    "INNER", "LARGE", "LEAST", "LESS", "LIGHT", "LITTLE", "LONG", "LOOSE", "MANY", "MODERATE", "MORE", "MOST", "NARROW",
    "NEGLIGIBLE", "NEVER", "PATIENT", "QUICK", "QUIET", "ROOM", "SELDOM", "SEVERAL", "SHORT", "SLOW", "SLOWER", "SMALL",
    "TINY", "WARM", "WORST", "WORTHWHILE", "DRAWN", "FORGOTTEN", "HELD", "KEPT", "RETAKEN", "SHOWN", "TOLD",
}  # fmt: skip
"""Words that do not say of what: ``MAX_TABLE_ITEMS`` instead of ``MOST``. Superlatives and participles count, too."""

SMALL_FILES = {
    "_core/memory.py": "the one place that reads /proc and control groups",
    "_core/stderr.py": "runs before anything else is imported",
    "_core/types.py": "imported by most files, so it imports nothing of ours",
    "_core/version.py": "the build reads it, and it imports nothing",
    "cli/reproduce.py": "every command has a file",
    "data/vertex_kernels.py": "kernels have files of their own",
    "models/protocol.py": "what a model is, for files that the models themselves import",
    "service/journal.py": "every process of the service writes by it, and it imports nothing of ours",
}
"""Files below ``MIN_LINES`` lines, each with the reason why no other file is its place."""


def modules() -> Iterator[Path]:
    for place in PLACES:
        yield from place.rglob("*.py")


def is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand)
    return isinstance(node, ast.BinOp) and is_number(node.left) and is_number(node.right)


def numbers(text: str) -> Iterator[str]:
    """The names of a module's numeric constants, also of those that are assigned together."""
    for node in ast.parse(text).body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = [*zip(target.elts, node.value.elts, strict=True)]
            else:
                pairs = [(target, node.value)] if node.value is not None else []
            yield from (name.id for name, value in pairs if isinstance(name, ast.Name) and is_number(value))


def is_adjective(name: str) -> bool:
    word = name.lstrip("_")
    return word in ADJECTIVES or bool(re.fullmatch(r"[A-Z]{2,}(EST|ED)", word))


def test_modules_are_named_by_nouns() -> None:
    named = {f"{path.parent.name}/{path.stem}" for path in modules() if re.search(r"(ing|ed)$", path.stem)}
    found = {name for name in named if re.split(r"[/_]", name)[-1] not in NOUNS}
    assert not found, "name a module by a noun"


def test_constants_say_what_they_limit() -> None:
    found = {
        f"{path.relative_to(SOURCE).parts[0].removesuffix('.py')}.{name}"
        for path in SOURCE.rglob("*.py")
        for name in numbers(path.read_text(encoding="utf-8"))
        if is_adjective(name)
    }
    assert not found, "name a constant by what it limits"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("MOST = 3", ["MOST"]), ("LONGEST, SHARE = 2 * 10**3, -0.5", ["LONGEST"]), ("_KEPT: int = 4", ["_KEPT"]),
        ("MAX_ITEMS = 3", []), ("MOST = 'a'", []), ("SHARE = 0.5", []), ("MOST = None", []), ("REST = 1", []),
    ],
)  # fmt: skip
def test_constants_of_one_adjective_are_noticed(text: str, wanted: list[str]) -> None:
    assert [name for name in numbers(text) if is_adjective(name)] == wanted


def test_no_folder_is_a_heap() -> None:
    folders = {path.parent for path in SOURCE.rglob("*.py")}
    sizes = {str(folder.relative_to(ROOT)): len([*folder.glob("*.py")]) for folder in folders}
    assert {name: size for name, size in sizes.items() if size > MAX_MODULES} == {}


def test_no_file_is_a_crumb() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.rglob("*.py")}
    small = {path for path, size in lines.items() if size < MIN_LINES and not path.stem.startswith("__")}
    found = {path.relative_to(SOURCE).as_posix() for path in small}
    assert found == {*SMALL_FILES}, "put it into the file whose idea it belongs to, and shorten the list"


def test_no_test_imports_another() -> None:
    """What several tests use is in ``tests/helpers``, and a helper needs no test."""
    for path in (ROOT / "tests").rglob("*.py"):
        found = re.findall(r"^\s*(?:from|import) +(?:[\w.]+\.)?(test_\w+)", path.read_text(encoding="utf-8"), re.M)
        assert not found, f"{path.relative_to(ROOT)} imports {found}"
