"""Bad records: counted by kind and reported with their lines, never dropped silently."""

import csv
import json
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankstream._core.files import check_target
from rankstream._core.terminal import plural

MAX_EXAMPLES = 3  # of each kind of problem; the file of rejects has all
MAX_MESSAGE_LENGTH = 600  # characters, so that a damaged cell does not fill the terminal


def shown(value: object, limit: int = 80) -> str:
    """Return the ``repr`` of a value for a message, truncated if it is long.

    >>> shown("tea"), shown("9" * 1000, 10)
    ("'tea'", "'999999999...")
    """
    words = repr(value)
    return words if len(words) <= limit else f"{words[:limit]}..."


class BadRecordError(ValueError):
    """A problem with one record; ``kind`` is a word or two for it, such as "empty", "unknown item" or "price"."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message if len(message) <= MAX_MESSAGE_LENGTH else f"{message[:200]} ... {message[-200:]}")
        self.kind = kind


@dataclass(frozen=True)
class Problem:
    """One bad record: its place (file and line), the kind of problem, and a sentence about it."""

    place: str
    kind: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class Problems:
    """The bad records of one reading: counts and examples by kind, and optionally a file with all of them.

    Examples
    --------
    >>> problems = Problems("skip")
    >>> problems.add("choices.csv, line 7", BadRecordError("empty", "the offer is empty."), ["", "tea"])
    >>> print(problems.summary())
    1 record was skipped.
      1 record: choices.csv, line 7: the offer is empty.
    """

    def __init__(self, on_error: str = "stop", rejects: str | os.PathLike[str] | None = None) -> None:
        if on_error not in ("stop", "skip"):
            raise ValueError(f"on_error is {on_error!r}: it must be 'stop' or 'skip'.")
        if rejects is not None and on_error == "stop":
            raise ValueError(
                "A file of rejects needs on_error='skip': with 'stop' the first bad record ends the reading."
            )
        self.on_error = on_error
        self.by_kind: Counter[str] = Counter()
        self.first: list[Problem] = []
        self._rejects = None if rejects is None else Path(rejects)
        self._stack = ExitStack()
        self._writer: Any = None

    def __enter__(self) -> "Problems":
        if self._rejects is not None:
            check_target(self._rejects, "the rejects")
            file = self._stack.enter_context(
                self._rejects.open("w", newline="", encoding="utf-8", errors="backslashreplace")
            )
            self._writer = csv.writer(file)
            self._writer.writerow(["place", "kind", "problem", "record"])
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._writer = None

    def add(self, place: str, bad: BadRecordError, record: Sequence[Any], lines: int = 1) -> None:
        """Raise the problem as a ValueError, or count it and write the record to the rejects.

        A bad record of several lines may be several records, so it counts once for each line.
        """
        problem = Problem(place, bad.kind, str(bad))
        if self.on_error == "stop":
            raise ValueError(str(problem))
        self.by_kind[bad.kind] += lines
        if sum(known.kind == bad.kind for known in self.first) < MAX_EXAMPLES:
            self.first.append(problem)
        if self._writer is not None:
            self._writer.writerow([place, bad.kind, str(bad), json.dumps(record, default=str)])

    @property
    def writes(self) -> bool:
        """Whether a file of rejects is open."""
        return self._writer is not None

    @property
    def total(self) -> int:
        """How many records were skipped."""
        return self.by_kind.total()

    def summary(self) -> str:
        """Return how many records were skipped, by kind, with examples; empty without any."""
        if not self.total:
            return ""
        lines = [f"{self.total:,} record{' was' if self.total == 1 else 's were'} skipped."]
        for kind, number in self.by_kind.most_common():
            shown = [problem for problem in self.first if problem.kind == kind]
            such = plural(number, "record") + (": " if number == 1 else ", such as ")
            lines.append(f"  {such}{shown[0]}")
            lines += [
                f"    {one.place}: the same" if one.message == shown[0].message else f"    {one}" for one in shown[1:]
            ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Problems({dict(self.by_kind)})"
