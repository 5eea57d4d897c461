"""Lets docstrings, which are plain text, appear in the reference as they are meant: examples as code, < as itself."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
CODE_OR_LESS = re.compile(r"(`+)(?:.|\n)*?\1|<")


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
    """
    shown = EXAMPLE.sub(lambda found: f"\n```pycon\n{found[0]}\n```", text)
    return CODE_OR_LESS.sub(lambda found: "&lt;" if found[0] == "<" else found[0], shown)
