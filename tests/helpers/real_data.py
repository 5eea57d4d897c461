"""Real data sets, where RANKSTREAM_DATA (an environment variable) names their folder; no part of the project."""

import os
from pathlib import Path

import pytest

VARIABLE = "RANKSTREAM_DATA"


def files(word: str, *suffixes: str) -> list[Path]:
    """The files below the folder that have the word in their path, or in the first lines, and one of the endings."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return []
    found = [path for path in sorted(Path(folder).rglob("*")) if path.is_file() and path.name.endswith(suffixes)]
    return [path for path in found if word.lower() in _told(path, Path(folder)).lower()]


def needed(word: str, *suffixes: str) -> list[Path]:
    """The same; where there is none, the test is skipped, and says why."""
    found = files(word, *suffixes)
    if not found:
        pytest.skip(why_not(word))
    return found


def why_not(word: str) -> str:
    """Why a test without its data is skipped."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return f"{VARIABLE} does not name a folder of real data sets"
    return f"no file about {word} in the folder that {VARIABLE} names"


def _told(path: Path, folder: Path) -> str:
    opening = path.read_bytes()[:400].decode(errors="replace") if path.suffix in (".soi", ".soc") else ""
    return str(path.relative_to(folder)) + opening
