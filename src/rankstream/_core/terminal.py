"""Terminal output: answers go to standard output, notes and progress to standard error."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from typing import Any, TextIO

from rich.cells import cell_len

from rankstream._core.watch import Progress, during

CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that a terminal interprets (escape sequences, new lines, text direction) or cannot show."""

_LEFTWARD = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
LEFTWARD = re.compile(f"[{_LEFTWARD}](?:[{_LEFTWARD}\\d\\s'\"-]*[{_LEFTWARD}])?")
"""Words written from right to left, with spaces, digits and punctuation between two of them."""


def visible(text: str, keep: str = "\n") -> str:
    r"""Escape control characters, so that the name of an item or a file cannot control the terminal.

    ``keep`` are the characters to leave alone: new lines by default, none for a name within a line.

    >>> print(visible("tea\x1b[31m\r, pie"))
    tea\x1b[31m\r, pie
    """

    def escape(match: re.Match[str]) -> str:
        return match[0] if match[0] in keep else match[0].encode("unicode_escape").decode()

    return CONTROLS.sub(escape, text)


def shown(name: Any) -> str:
    """Return a name with all control characters escaped, to print it within a line."""
    return visible(str(name), keep="")


def isolated(text: str) -> str:
    r"""Put right-to-left words between Unicode isolates, so that they do not reorder the text around them.

    >>> isolated("tea > \u05e9\u05dc\u05d5\u05dd (5 %)").encode("unicode_escape").decode()
    'tea > \\u2068\\u05e9\\u05dc\\u05d5\\u05dd\\u2069 (5 %)'
    """
    return LEFTWARD.sub(lambda match: f"\u2068{match[0]}\u2069", text)


def plural(number: float, noun: str) -> str:
    """Return a number and its noun, in the plural where needed.

    >>> plural(1, "market"), plural(1200, "choice"), plural(2.5, "choice")
    ('1 market', '1,200 choices', '2.5 choices')
    """
    return f"{round(number, 2):,.12g} {noun}{'' if number == 1 else 's'}"


@dataclass
class Headed:
    """A title to print before the first line of output; JSON documents are collected instead of printed."""

    title: str
    printed: bool = False
    documents: list[Any] = field(default_factory=list)


_HEADED: ContextVar[Headed | None] = ContextVar("headed", default=None)


def headed(title: str) -> AbstractContextManager[Headed]:
    """Print the output of the block below a title."""
    return during(_HEADED, Headed(title))


def print_plain(text: str) -> None:
    """Print text to standard output, with control characters escaped."""
    heading = _HEADED.get()
    if heading is not None and not heading.printed:
        heading.printed = True
        title = shown(heading.title)
        _write_line(sys.stdout, f"{title}\n{'-' * cell_len(title)}")
    _write_line(sys.stdout, visible(text))


def print_note(text: str) -> None:
    """Print a note to standard error, so that standard output stays clean for pipes."""
    _write_line(sys.stderr, visible(text))


def _write_line(stream: TextIO | None, text: str) -> None:
    if stream is not None:  # as it is where the shell closed it
        stream.write(text + "\n")
        stream.flush()


def as_json(content: Any, indent: int | None = 2) -> str:
    r"""Return JSON that every parser accepts: plain ASCII, and null where a number is not finite.

    >>> as_json({"log-likelihood": float("-inf"), "item": "Käse"}, indent=None)
    '{"log-likelihood": null, "item": "K\\u00e4se"}'
    """
    return json.dumps(_finite(content), indent=indent, allow_nan=False)


def print_json(content: Any) -> None:
    """Print one JSON document to standard output; below a title, add it to the title's documents instead."""
    heading = _HEADED.get()
    if heading is not None:
        heading.documents.append(content)
        return
    _write_line(sys.stdout, as_json(content))


def print_answer(as_json: bool, content: Any, text: str) -> None:
    """Print an answer as JSON for programs, or as text for people."""
    if as_json:
        print_json(content)
    else:
        print_plain(text)


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {str(key): _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not isfinite(content) else content


@contextmanager
def progress(text: str) -> Iterator[Progress]:
    """Show a progress bar, if standard error is a terminal, and yield the function that updates it."""
    from rich import progress as bars  # most commands finish before they need one
    from rich.console import Console

    screen = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
    columns = bars.TextColumn("{task.description}"), bars.BarColumn()
    with bars.Progress(*columns, console=screen, disable=not screen.is_terminal, transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda text, done: bar.update(task, description=text, completed=done, total=1.0 if done else None)


def as_time(seconds: float) -> str:
    """Return a Unix time as a date, with the time of day unless it is midnight; other numbers as they are."""
    if not 0.0 <= seconds < 1e11:
        return f"{seconds:g}"
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.date().isoformat() if (moment.hour, moment.minute) == (0, 0) else moment.strftime("%Y-%m-%dT%H:%M")
