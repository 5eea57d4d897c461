"""The tiers of the tests: every package has quick ones, and what needs a browser or a server says so."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
FOLDERS = {"_core": "core"}
pytestmark = pytest.mark.quick


def packages() -> list[str]:
    found = (ROOT / "src" / "rankstream").iterdir()
    return sorted(path.stem for path in found if path.suffix in ("", ".py") and not path.stem.startswith("__"))


@pytest.mark.parametrize("package", packages())
def test_every_package_has_a_quick_test(package: str) -> None:
    files = (TESTS / FOLDERS.get(package, package)).glob("test_*.py")
    assert [path for path in files if "pytest.mark.quick" in path.read_text(encoding="utf-8")]


def test_what_needs_a_browser_or_a_server_says_so() -> None:
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if "from browser_pages import" in text:
            assert "pytestmark = needs_browser" in text, path
        elif "from service import" in text:
            assert "pytestmark = pytest.mark.server" in text, path
