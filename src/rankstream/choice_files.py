"""Choices from a file for the commands, which tell on standard error what was skipped."""

from pathlib import Path
from typing import Any

from rankstream._core.terminal import print_note
from rankstream.data.readers import Reading, read


def read_choices(path: Path, **reading: Any) -> Reading:
    """Read with the options of ``readers.read``; nothing is skipped silently."""
    found = read(path, **reading)
    if found.problems.total:
        print_note(found.problems.summary())
    return found
