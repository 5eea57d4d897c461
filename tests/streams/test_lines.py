"""Whole records from lines as they arrive: places, numbers, records of several lines, and pipes."""

import os
import sys
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from rankstream.streams.sources import lines
from rankstream.streams.sources.lines import Line, PipedSource, _next_record
from rankstream.streams.sources.parser import LineReader
from rankstream.streams.sources.rotation import Place

pytestmark = pytest.mark.quick


def csv() -> LineReader:
    reader = LineReader("choices.csv")
    reader.is_csv = True
    return reader


@pytest.mark.parametrize(
    ("buffer", "start", "final", "expected"),
    [
        (b"a\nb\n", 0, False, (2, 1)), (b"a\nb\n", 2, False, (4, 1)), (b"a\nb", 2, False, None),
        (b"a\nb", 2, True, (3, 1)),
        (b"a\n", 2, True, None), (b'"a\nb"\nc\n', 0, False, (6, 2)), (b'"a\nb', 0, False, None), (b"", 0, True, None),
        (b'"a\nb"', 0, True, (5, 2)), (b'"a\nb', 0, True, (3, 1)), (b'"a\n', 0, True, (3, 1)), (b'"a', 0, True, (2, 1)),
        (b"\nx\n", 0, False, (1, 1)),
    ],
)  # fmt: skip
def test_records_end_where_quotes_are_closed(buffer: bytes, start: int, final: bool, expected: Any) -> None:
    assert _next_record(buffer, start, csv(), final) == expected


def test_a_record_that_does_not_end_is_cut_after_its_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_RECORD_LINES", 3)
    assert _next_record(b'"a\nb\nc"\nd\n', 0, csv(), False) == (8, 3)
    assert _next_record(b'"a\nb\nc\nd"\n', 0, csv(), False) == (3, 1)
    assert _next_record(b'"a\nb\nc', 0, csv(), False) is None


def piped(monkeypatch: pytest.MonkeyPatch, *parts: bytes, place: Place | None = None) -> tuple[PipedSource, list[Line]]:
    """What arrives through a pipe in these parts, until its end."""
    read, write = os.pipe()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(fileno=lambda: read))
    source = PipedSource(LineReader("-"), place or Place())
    iterator, found, left = source.lines(to_end=False), list[Line](), list(parts)
    while left:
        os.write(write, left.pop(0))
        while (line := next(iterator)) is not None:  # None whenever nothing more is there for now
            found.append(line)
    os.close(write)
    monkeypatch.setattr(lines, "PAUSE_SECONDS", 0.01)
    rest = list(islice(iterator, 3000))  # a reader that misses the end would wait for ever
    assert len(rest) < 3000
    found += [line for line in rest if line is not None]
    os.close(read)
    return source, found


def test_a_pipe_gives_whole_lines_whatever_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    source, found = piped(monkeypatch, b'{"a": 1}\n{"b"', b": 2}\n\n", b'{"c": 3}', place=Place(70, 10))
    assert found == [
        Line(b'{"a": 1}\n', "-", 11), Line(b'{"b": 2}\n', "-", 12), Line(b"\n", "-", 13), Line(b'{"c": 3}', "-", 14),
    ]  # fmt: skip
    assert source.place() == Place(9 + 9 + 1 + 8, 14)
    assert source.place(before=True) == Place(19, 13)


def test_a_header_is_no_record_and_places_before_the_first_one_are_of_the_file_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, found = piped(monkeypatch, b"offered,chosen\n", b"a;b,a\n")
    assert found == [Line(b"a;b,a\n", "-", 2)]
    assert source.place(before=True) == Place()
    assert source.place() == Place(21, 2)
    assert piped(monkeypatch, b"offered,chosen\n")[0].place() == Place()


def test_bytes_without_a_line_break_are_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_BYTES_WITHOUT_BREAK", 5)
    assert len(piped(monkeypatch, b"{}\n{234", b"}\n")[1]) == 2
    with pytest.raises(ValueError, match="-, line 2: there is no line break within 5 bytes"):
        piped(monkeypatch, b"{}\n{23456", b"}\n")


def test_standard_input_that_is_no_file_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_file() -> int:
        raise OSError

    content = SimpleNamespace(fileno=no_file, buffer=SimpleNamespace(read=lambda: b"{}\n{}"))
    monkeypatch.setattr(sys, "stdin", content)
    assert [line.text for line in PipedSource(LineReader("-"), Place()).lines(to_end=False) if line] == [b"{}\n", b"{}"]
