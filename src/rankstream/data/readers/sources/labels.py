"""Convert cells to labels: items, groups and names of observations as text, one or several in a cell."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from math import isnan
from typing import Any

from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.sources.lines import is_text, loads

ELEMENT = r"""(?:'[^'\\]*'|"[^"\\]*"|-?\d+(?:\.\d+)?)"""
PYTHON_LIST = re.compile(rf"\[\s*{ELEMENT}(?:\s*,\s*{ELEMENT})*\s*\]")  # as pandas writes a list into a CSV file


def text(value: Any) -> str:
    """Return a cell as a label: stripped, whole numbers without a point, empty for a missing value.

    Half a surrogate pair is an error, because a model with it could not be saved in UTF-8.

    >>> text(" tea "), text(3.0), text(None), text(float("nan"))
    ('tea', '3', '', '')
    """
    words = value.strip() if isinstance(value, str) else _text(value)
    if not words.isascii() and not is_text(words):
        raise BadRecordError("malformed", f"{words!r} contains half a character: correct the record.")
    return words


def _text(value: Any) -> str:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if isnan(value):
            return ""
        return str(int(value)) if value.is_integer() else str(value)
    if isinstance(value, dict | list | tuple | set | frozenset):
        raise BadRecordError("malformed", f"{value!r} cannot be an item: use text or numbers.")
    try:
        if isinstance(value, bytes | bytearray):
            return value.decode().strip()
        if isinstance(value, datetime):
            moment = value.astimezone(UTC) if value.tzinfo else value
            return f"{moment:%Y-%m-%d %H:%M:%S}" + (f".{moment.microsecond:06}" if moment.microsecond else "")
        return str(value).strip()
    except (ValueError, OverflowError, NotImplementedError):  # not UTF-8, over 4,300 digits, or a year out of range
        kind = type(value).__name__
        raise BadRecordError("malformed", f"a value of type {kind} cannot be an item: use text or numbers.") from None


def text_or_nothing(value: Any) -> str:
    """Return a cell as a label; empty if it cannot be one."""
    try:
        return text(value)
    except BadRecordError:
        return ""


def order(label: str) -> tuple[int, int, str]:
    """Return the sort key of a label: whole numbers by value, then text alphabetically."""
    return (0, len(label), label) if label.isdecimal() else (1, 0, label)


def is_list(value: Any) -> bool:
    """Return whether a cell is a list."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | dict)


def list_in(words: str) -> list[Any] | None:
    """Parse a list written in JSON or Python; None if the text is not a list.

    >>> list_in('["tea", "pie"]'), list_in("['tea', 'pie']"), list_in("tea;pie")
    (['tea', 'pie'], ['tea', 'pie'], None)
    """
    if not (words.startswith("[") and words.endswith("]")):
        return None
    try:
        found = loads(words)
    except (ValueError, RecursionError):
        if not PYTHON_LIST.fullmatch(words):
            return None
        return [element.strip("'\"") for element in re.findall(ELEMENT, words)]
    return found if isinstance(found, list) else None


def parts_of(value: Any, separator: str) -> list[Any]:
    """Return the elements of a cell: of a list, of a text with a list, or of a text split by the separator."""
    if is_list(value):
        return list(value)
    words = text(value)
    found = list_in(words)
    return words.split(separator) if found is None else found


def labels_of(value: Any, separator: str) -> tuple[str, ...]:
    """Return the items of an offer; an empty or repeated one is a BadRecordError."""
    labels = tuple(map(text, parts_of(value, separator)))
    if not any(labels):
        raise BadRecordError("empty", "the offer is empty: name its items.")
    shown = separator.join(labels)
    if "" in labels:
        remedy = f"put a single {separator!r} between items"
        raise BadRecordError("empty", f"the offer {shown!r} has an empty item: {remedy}.")
    if len(set(labels)) < len(labels):
        raise BadRecordError("repeated item", f"the offer {shown!r} lists an item twice: remove one.")
    return labels
