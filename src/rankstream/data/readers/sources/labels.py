"""Labels from cells: items, groups and names of observations as text, alone or many in one cell."""

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
    """A cell as a label: without spaces around it, whole numbers without a point, empty where there is nothing.

    Half a surrogate pair, which no file in UTF-8 can contain, is not a label: a model with it could not be saved.

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
    except (ValueError, OverflowError, NotImplementedError):  # no text, more than 4,300 digits, beyond all years
        kind = type(value).__name__
        raise BadRecordError("malformed", f"a value of type {kind} cannot be an item: use text or numbers.") from None


def text_or_nothing(value: Any) -> str:
    """A cell as a label, empty where it cannot be one."""
    try:
        return text(value)
    except BadRecordError:
        return ""


def order(label: str) -> tuple[int, int, str]:
    """Sort labels by this: whole numbers by value, then text by the alphabet."""
    return (0, len(label), label) if label.isdecimal() else (1, 0, label)


def is_list(value: Any) -> bool:
    """Whether a cell is a list by itself."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | dict)


def list_in(words: str) -> list[Any] | None:
    """The list that a text is written as, by JSON or by Python; None where it is not one.

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
    """What is in a cell: the elements of a list, or of a text that is one, or what the separator joins."""
    if is_list(value):
        return list(value)
    words = text(value)
    found = list_in(words)
    return words.split(separator) if found is None else found


def labels_of(value: Any, separator: str, what: str = "offer") -> tuple[str, ...]:
    """The items of an offer, written as a list or as text joined by the separator; each once, none empty."""
    labels = tuple(map(text, parts_of(value, separator)))
    if not any(labels):
        raise BadRecordError("empty", f"the {what} is empty: name its items.")
    shown = separator.join(labels)
    if "" in labels:
        remedy = f"put a single {separator!r} between items"
        raise BadRecordError("empty", f"the {what} {shown!r} has an empty item: {remedy}.")
    if len(set(labels)) < len(labels):
        raise BadRecordError("repeated item", f"the {what} {shown!r} lists an item twice: remove one.")
    return labels
