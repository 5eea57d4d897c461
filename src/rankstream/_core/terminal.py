"""What the commands print: answers to standard output, notes and progress to standard error."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from rankstream._core.watch import Progress

CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal obeys instead of showing it (escape sequences, new lines, directions), and what it cannot show."""

_LEFTWARD = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
LEFTWARD = re.compile(f"[{_LEFTWARD}](?:[{_LEFTWARD}\\d\\s'\"-]*[{_LEFTWARD}])?")
"""Words that are written from right to left, with what may stand between two of them."""


def visible(text: str, keep: str = "\n") -> str:
    r"""Text with control characters written out, so that no name of an item or a file can command a terminal.

    ``keep`` are those that stay; names in a line or a sentence keep none.

    >>> print(visible("tea\x1b[31m\r, pie"))
    tea\x1b[31m\r, pie
    """
    escaped = "unicode_escape"
    return CONTROLS.sub(lambda found: found[0] if found[0] in keep else found[0].encode(escaped).decode(), text)


def shown(name: Any) -> str:
    """How a name reads in a line."""
    return visible(str(name), keep="")


def isolated(text: str) -> str:
    r"""Text in which names from right to left turn nothing around them: each stands between isolating marks.

    >>> isolated("tea > \u05e9\u05dc\u05d5\u05dd (5 %)").encode("unicode_escape").decode()
    'tea > \\u2068\\u05e9\\u05dc\\u05d5\\u05dd\\u2069 (5 %)'
    """
    return LEFTWARD.sub(lambda found: f"\u2068{found[0]}\u2069", text)


def plural(number: float, noun: str) -> str:
    """A number with its noun.

    >>> plural(1, "market"), plural(1200, "choice"), plural(2.5, "choice")
    ('1 market', '1,200 choices', '2.5 choices')
    """
    return f"{number:,.12g} {noun}{'' if number == 1 else 's'}"


def console(stderr: bool = False) -> Console:
    """Text as it is: no colours by guess, no markup, and lines as long as they are."""
    return Console(stderr=stderr, highlight=False, soft_wrap=True, markup=False, emoji=False)


@dataclass
class Headed:
    """What is printed below a title: the title comes with the first line; JSON documents are kept, not printed."""

    title: str
    printed: bool = False
    documents: list[Any] = field(default_factory=list)


_HEADED: ContextVar[Headed | None] = ContextVar("headed", default=None)


@contextmanager
def headed(title: str) -> Iterator[Headed]:
    """Print what follows below a title."""
    found = Headed(title)
    token = _HEADED.set(found)
    try:
        yield found
    finally:
        _HEADED.reset(token)


def print_plain(text: str) -> None:
    """To standard output, as it is but for control characters."""
    above = _HEADED.get()
    if above is not None and not above.printed:
        above.printed = True
        title = visible(above.title, keep="")
        console().print(f"{title}\n{'-' * cell_len(title)}")
    console().print(visible(text))


def print_note(text: str) -> None:
    """To standard error, where it is in nobody's way."""
    console(stderr=True).print(visible(text))


def as_json(content: Any, indent: int | None = 2) -> str:
    r"""JSON that every reader takes: plain ASCII, and null where a number is not finite.

    >>> as_json({"log-likelihood": float("-inf"), "item": "Käse"}, indent=None)
    '{"log-likelihood": null, "item": "K\\u00e4se"}'
    """
    return json.dumps(_finite(content), indent=indent, allow_nan=False)


def print_json(content: Any) -> None:
    """One document on standard output; below a title it is kept for whoever set that."""
    above = _HEADED.get()
    if above is not None:
        above.documents.append(content)
        return
    sys.stdout.write(as_json(content) + "\n")
    sys.stdout.flush()


def print_answer(as_json: bool, content: Any, text: str) -> None:
    """Print an answer for programs or for people."""
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
    """A function to tell what is going on and how much of it is done; seen on a terminal only."""
    from rich import progress as bars  # most commands are done before there is any

    shown = console(stderr=True)
    columns = bars.TextColumn("{task.description}"), bars.BarColumn()
    with bars.Progress(*columns, console=shown, disable=not shown.is_terminal, transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda text, done: bar.update(task, description=text, completed=done, total=1.0 if done else None)


def as_time(seconds: float) -> str:
    """A time as people write it: a date, or the number itself where it cannot be one."""
    if not 0.0 <= seconds < 1e11:
        return f"{seconds:g}"
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.date().isoformat() if (moment.hour, moment.minute) == (0, 0) else moment.strftime("%Y-%m-%dT%H:%M")
