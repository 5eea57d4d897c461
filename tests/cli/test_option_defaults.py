"""Defaults and ranges of every option, against a file: a changed default changes what users get without a word.

After a change that is meant, run ``python tests/cli/test_option_defaults.py`` and read the difference.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from rankstream.cli.app import make_app

pytestmark = pytest.mark.quick
DEFAULTS = Path(__file__).with_name("option_defaults.txt")


def options_of(command: Any, words: tuple[str, ...]) -> Iterator[str]:
    """Every option of a command and of those below it: its default, its range, and whether it may be repeated."""
    for name, own in getattr(command, "commands", {}).items():
        yield from options_of(own, (*words, name))
    for one in () if hasattr(command, "commands") else command.params:
        default = one.default() if callable(one.default) else one.default
        facts = "required" if one.required else repr(str(default) if isinstance(default, Path) else default or None)
        for end in ("min", "max"):  # older versions of typer have the range in the type
            limit = getattr(one, end, getattr(getattr(one, "type", None), end, None))
            facts += "" if limit is None else f", {end} {limit:g}"
        yield f"{' '.join(words)} {max(one.opts, key=len)}: {facts}{', repeated' if one.multiple else ''}"


def every_option() -> str:
    return "\n".join(sorted(options_of(typer.main.get_command(make_app()), ()))) + "\n"


def test_options_have_the_defaults_and_ranges_that_they_had() -> None:
    assert every_option() == DEFAULTS.read_text(encoding="utf-8")


if __name__ == "__main__":
    DEFAULTS.write_text(every_option(), encoding="utf-8")
