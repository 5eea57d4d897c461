"""Lets the examples in docstrings, which have no fences around them, appear as code in the reference."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class FencedExamples(griffe.Extension):
    """Puts a fence around every block that begins with a prompt."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change a docstring after it was read, before it is rendered."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    r"""The text with a fence around each example; an example ends at an empty line.

    >>> fenced("Adds:\n>>> 1 + 1\n2\n\nThe end.").splitlines()
    ['Adds:', '', '```pycon', '>>> 1 + 1', '2', '```', '', 'The end.']
    """
    return EXAMPLE.sub(lambda found: f"\n```pycon\n{found[0]}\n```", text)
