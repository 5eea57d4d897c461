"""Files of JSON: an object on each line, or all of them in one array."""

import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.sources.lines import (
    MAX_LINE_BYTES,
    UTF8,
    RawRow,
    binary,
    is_text,
    limited,
    not_text,
    opened,
)

PEEK_CHARACTERS = 4096
MAX_INTEGER_DIGITS = 4000  # Python makes no number of more
JOINT = re.compile(r"\s*(,?)\s*")


class Twice(dict[str, Any]):
    """An object in which a key occurs twice."""


def loads(words: str) -> Any:
    """What JSON stands for; whole numbers beyond all bounds stay text, an object with a key twice is a ``Twice``."""
    return json.loads(words, object_pairs_hook=_object, parse_int=_whole)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Twice(found)


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) < MAX_INTEGER_DIGITS else digits


def is_array(path: Path, encoding: str = UTF8) -> bool:
    """Whether a file begins as an array of all records, where others have one record per line."""
    with opened(path, encoding) as file:
        return file.read(PEEK_CHARACTERS).lstrip().startswith("[")


def json_rows(path: Path, columns: list[str], encoding: str = UTF8) -> Iterator[RawRow]:
    """The records of a file; a key that is not there is None."""
    for where, number, words, found in _objects(path, encoding):
        if isinstance(found, BadRecordError):
            yield RawRow(f"{path}, {where}", number, (words,), found)
        else:
            yield RawRow(f"{path}, {where}", number, [found.get(name) for name in columns])


def json_keys(path: Path, encoding: str = UTF8) -> Iterator[str]:
    """The keys of all records."""
    for *_, found in _objects(path, encoding):
        if isinstance(found, dict):
            yield from found


Found = tuple[str, int, str, dict[str, Any] | BadRecordError]


def _objects(path: Path, encoding: str) -> Iterator[Found]:
    with opened(path, encoding) as file:
        start = file.read(PEEK_CHARACTERS)
        if start.lstrip().startswith("["):
            yield from _elements(path, file, start, encoding)
            return
    with opened(path, encoding) as file:
        for number, line in enumerate(limited(path, file), 1):
            if not line.strip():
                continue
            try:
                found = loads(line)
            except (ValueError, RecursionError):
                found = None
            yield "line", number, line.rstrip(), _checked(found, line, encoding)


def _checked(found: Any, words: str, encoding: str) -> dict[str, Any] | BadRecordError:
    if not isinstance(found, dict):
        return BadRecordError("malformed", "this is not a JSON object: write one record per line.")
    if isinstance(found, Twice):
        return BadRecordError("malformed", "this JSON object has a key twice: remove one.")
    if not is_text(words):
        return BadRecordError("malformed", not_text("a JSON object", encoding))
    return found


def _elements(path: Path, file: TextIO, start: str, encoding: str) -> Iterator[Found]:
    """The elements of an array, read in pieces: little more than one is in memory, none beyond ``MAX_LINE_BYTES``."""
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole)
    rest, number = start.lstrip()[1:], 0
    for more in chain([""], iter(lambda: file.read(MAX_LINE_BYTES), "")):
        rest, place = rest + more, 0
        if "\0" in rest:
            raise binary(path)
        while (joint := JOINT.match(rest, place)) is not None and joint.end() < len(rest):
            if rest[joint.end()] == "]" and not joint[1]:
                for piece in chain([rest[joint.end() + 1 :]], iter(lambda: file.read(MAX_LINE_BYTES), "")):
                    if piece.strip():
                        raise ValueError(
                            f"{path} continues after its JSON array: write one record per line, or all in one array."
                        )
                return
            if (number > 0) != bool(joint[1]):
                raise _broken(path, number)
            try:
                found, end = decoder.raw_decode(rest, joint.end())
            except (ValueError, RecursionError):
                break  # as it seems, the element goes on in the next piece
            if end == len(rest) and not isinstance(found, dict):
                break  # a number may go on, too
            number += 1
            words = rest[joint.end() : end]
            yield "record", number, words, _checked(found, words, encoding)
            place = end
        rest = rest[place:]
        if len(rest) > 2 * MAX_LINE_BYTES:
            break
    raise _broken(path, number)


def _broken(path: Path, number: int) -> ValueError:
    return ValueError(f"{path}, record {number + 1}: the JSON array is broken here: write one record per line.")
