import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import rankstream as rs

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_all_python_on_a_page_is_an_example_that_runs(page: Path) -> None:
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        assert block.startswith(">>> "), f"doctest does not see this:\n{block}"
        assert block.endswith("\n\n"), f"the fence would be part of the last answer:\n{block}"


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
    rows = re.findall(r"^\| .*\|$", (DOCS / "concepts.md").read_text(), re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`([a-zA-Z_]+\.[A-Za-z_.0-9]+)`", row)}
    assert len(names) > 20
    missing = {name for name in names - {"distance.lipschitz"} if not found(name)}
    assert not missing


def test_every_public_name_has_its_place_in_the_reference() -> None:
    text = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    modules = {name for name in rs.__all__ if isinstance(getattr(rs, name), ModuleType)}
    for name in set(rs.__all__) - modules:
        assert re.search(rf"^::: rankstream\..*\.{name}$", text, re.MULTILINE), f"{name} is on no page of the reference"
    for name in modules:
        assert f"::: {getattr(rs, name).__name__}." in text, f"nothing of {name} is on a page of the reference"
