"""Lets docstrings, which are plain text, appear in the reference as they are meant: examples as code, < as itself."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
CODE_OR_LESS = re.compile(r"(`+)(?:.|\n)*?\1|<")
PARAMETERS = re.compile(r"^(?:Parameters|Attributes)\n-+\n((?:.+\n?)+)", re.MULTILINE)
PARAMETER = re.compile(r"^(\S.*?) : (.+)\n((?: +.+\n?)+)", re.MULTILINE)


class PlainText(griffe.Extension):
    """Turns every docstring into Markdown that shows the same."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change a docstring after it was read, before it is rendered."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    r"""The text with a fence around each example, which ends at an empty line, and no < that could begin a tag.

    >>> as_markdown("Adds:\n>>> 1 < 2\nTrue\n\nIf <x, y> `<` 1.").splitlines()
    ['Adds:', '', '```pycon', '>>> 1 < 2', 'True', '```', '', 'If &lt;x, y> `<` 1.']

    Parameters and attributes become a list.

    >>> as_markdown("Waits.\n\nParameters\n----------\nlong : float\n    How long,\n    in seconds.\n").splitlines()
    ['Waits.', '', '- `long` (float): How long, in seconds.']
    """
    listed = PARAMETERS.sub(lambda block: PARAMETER.sub(_as_entry, block[1]), text)
    shown = EXAMPLE.sub(lambda example: f"\n```pycon\n{example[0]}\n```", listed)
    return CODE_OR_LESS.sub(lambda part: "&lt;" if part[0] == "<" else part[0], shown)


def _as_entry(parameter: re.Match[str]) -> str:
    return f"- `{parameter[1]}` ({parameter[2]}): {' '.join(parameter[3].split())}\n"
