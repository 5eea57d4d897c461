"""Following a growing file, or standard input: whole lines only, with the place after each, so that one can resume."""

import json
import os
import select
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rankstream.data.forgetting import as_seconds
from rankstream.streams.live import Record

PAUSE = 0.1


class Line(NamedTuple):
    """A whole line, its number, and the place in bytes behind it."""

    text: bytes
    number: int
    end: int


def lines(source: str, start: int, number: int, to_end: bool) -> Iterator[Line | None]:
    """The lines behind a place; None whenever there is nothing more for now, until asked again (or the end, if wanted).

    A last line without a newline waits for the rest; at a definite end it counts if it is whole JSON.
    """
    if source == "-":
        yield from _piped(number)
        return
    path = Path(source)
    if not path.is_file():
        raise ValueError(f"There is no file {source} to follow: make it, or name '-' for standard input.")
    if path.stat().st_size < start:
        raise ValueError(f"{source} is shorter than what was read of it before: name the file that went on.")
    with path.open("rb") as file:
        file.seek(start)
        yield from _behind(file, start, number, to_end)


def _behind(file: BinaryIO, place: int, number: int, to_end: bool) -> Iterator[Line | None]:
    rest = b""
    while True:
        more = file.readline()
        rest += more
        if rest.endswith(b"\n"):
            place, number = place + len(rest), number + 1
            yield Line(rest, number, place)
            rest = b""
        elif not more:
            if to_end:
                if _is_json(rest):
                    yield Line(rest, number + 1, place + len(rest))
                return
            yield None
            time.sleep(PAUSE)


def _piped(number: int) -> Iterator[Line | None]:
    """Standard input, without waiting for a line to come before telling that there is none."""
    place, rest = 0, b""
    try:
        source = sys.stdin.fileno()
    except (OSError, ValueError):  # not a real file: all of it is there
        yield from _behind(sys.stdin.buffer, 0, number, to_end=True)
        return
    while True:
        if not select.select([source], [], [], PAUSE)[0]:
            yield None
            continue
        more = os.read(source, 2**16)
        *whole, rest = (rest + more).split(b"\n")
        if not more and rest:
            whole, rest = [*whole, rest], b""
        for text in whole:
            place, number = place + len(text) + 1, number + 1
            yield Line(text + b"\n", number, place)
        if not more:
            return


def _is_json(text: bytes) -> bool:
    """Whether a last line without a newline is whole all the same."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def record_of(text: bytes) -> Record | None:
    """A record from a line such as {"offered": ["tea", "pie"], "chosen": "tea", "count": 2}; None from an empty one."""
    if not text.strip():
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON ({error}): write one object in every line") from None
    if not isinstance(content, dict) or "offered" not in content or "chosen" not in content:
        raise ValueError('it has no "offered" and "chosen": write {"offered": [...], "chosen": ...}')
    offered, chosen, count = content["offered"], content["chosen"], content.get("count", 1)
    items = offered.split(";") if isinstance(offered, str) else offered
    if not isinstance(items, list) or not items or not all(_is_item(item) for item in items):
        raise ValueError(f"its offer {offered!r} is not a list of texts or numbers")
    if len(set(items)) < len(items):
        raise ValueError(f"its offer {offered!r} holds an item twice")
    if not _is_item(chosen) or chosen not in items:
        raise ValueError(f"its choice {chosen!r} is not in its offer {offered!r}")
    if isinstance(count, bool) or not isinstance(count, int | float) or not 0 <= count < 1e15:
        raise ValueError(f"its count {count!r} is not a number >= 0")
    return Record(tuple(items), chosen, float(count), _moment(content.get("time")))


def _moment(value: object) -> float | None:
    """Seconds since 1970, from a number or a date; None where it cannot be read, which matters only to who needs it."""
    if not isinstance(value, str | int | float):
        return None
    try:
        return float(as_seconds(datetime.fromisoformat(value) if isinstance(value, str) else value))
    except (ValueError, OverflowError):
        return None


def _is_item(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
