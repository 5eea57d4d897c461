"""Text files row by row, with their line numbers: slower than a GROUP BY, but exact about what is wrong where.

Nothing here reads on into what is not text: a NUL byte, a line beyond ``MAX_LINE_BYTES`` or a record beyond
``MAX_RECORD_LINES`` ends the file with an error, so that no disk image and no forgotten quote fills the memory.

DuckDB reads a file quickly, but gets it only where it is sure to see the same records. A look at all bytes decides that
(``is_plain_csv``), which takes about a second for each gigabyte, two or three with quotes or of JSON.
"""

import csv
import gzip
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO, cast

from rankstream.data.readers.problems import BadRecordError

MAX_LINE_BYTES = 1_000_000  # an offer of 10,000 items of 100 characters; a disk image has no line ends
MAX_RECORD_LINES = 10  # cells with line breaks have a few; beyond, a quote is not closed
MAX_INTEGER_DIGITS = 4000  # Python makes no number of more than 4,300
MOST_COLUMNS = 10_000  # a wide table has one per item; beyond, rows and columns are most likely swapped
UTF8 = "utf-8"
BOM = b"\xef\xbb\xbf"
COMMA = re.compile(rb",\s*[}\]]")
NUMBERS = re.compile(rb"[:,\[\s+-](nan|inf|infinity)\s*[,}\]]")


class RawRow(NamedTuple):
    """Where a record is, its cells in the order of the columns, what is wrong with it as a whole, and how many lines.

    Only what is wrong counts by lines, since nobody knows how many records are lost in it.
    """

    where: str
    number: int
    cells: Sequence[Any]
    wrong: BadRecordError | None = None
    lines: int = 1

    @property
    def place(self) -> str:
        """Such as "choices.csv, line 7"."""
        return f"{self.where} {self.number}"


@contextmanager
def unpacked(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked if need be."""
    try:
        if path.name.lower().endswith(".gz"):
            with gzip.open(path, "rb") as file:
                yield cast("BinaryIO", file)
        else:
            with path.open("rb") as plain:
                yield plain
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is not a complete gzip file ({error}): compress it again.") from None


@contextmanager
def opened(path: Path, encoding: str = UTF8) -> Iterator[TextIO]:
    """A text file, unpacked if need be; bytes that are not UTF-8 are kept apart, for ``is_text`` to see."""
    name = "utf-8-sig" if encoding == UTF8 else encoding
    try:
        with unpacked(path) as file, TextIOWrapper(file, name, "surrogateescape", newline="") as text:
            yield text
    except UnicodeError as error:
        raise ValueError(f"{path} is not text in {encoding} ({error}): set encoding=... to its encoding.") from None


def is_text(words: str) -> bool:
    """Whether text read by ``opened`` was in the encoding that it was read in."""
    return words.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in words)


def limited(path: Path, file: TextIO) -> Iterator[str]:
    """The lines of a text file; a ValueError at what is binary or too long, before more of it is read."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if "\0" in line:
            raise binary(path)
        if 4 * len(line) > MAX_LINE_BYTES and len(line.encode("utf-8", "surrogatepass")) > MAX_LINE_BYTES:
            raise too_long(path, number)
        yield line


def too_long(path: Path, number: int) -> ValueError:
    """What to say of a line beyond the limit."""
    return ValueError(
        f"{path}, line {number}: the line is longer than {MAX_LINE_BYTES:,} bytes: end each record with a line break."
    )


def binary(path: Path) -> ValueError:
    """What to say of NUL bytes, which text in UTF-8 never has."""
    with unpacked(path) as file:
        mark = file.read(2)
    if mark in (b"\xff\xfe", b"\xfe\xff"):
        return ValueError(f"{path} is in UTF-16: set encoding='utf-16', or save it in UTF-8.")
    return ValueError(f"{path} contains NUL bytes, so it is not text: give a CSV, JSON Lines or Parquet file.")


def not_text(kind: str, encoding: str) -> str:
    """What to say of bytes that are not text."""
    if encoding == UTF8:
        return f"this is not {kind} in UTF-8: save it in UTF-8, or set its encoding, such as encoding='latin-1'."
    return f"this is not {kind} in {encoding}: set encoding=... to its encoding."


class CsvReader:
    """The records of a CSV file, each with the lines it stands on; at most ``MAX_RECORD_LINES`` of them."""

    def __init__(self, path: Path, file: TextIO, delimiter: str | None = None) -> None:
        if csv.field_size_limit() < MAX_RECORD_LINES * MAX_LINE_BYTES:
            csv.field_size_limit(MAX_RECORD_LINES * MAX_LINE_BYTES)
        self.path, self.line, self._start = path, 0, 0
        lines = limited(path, file)
        head: list[str] = []
        if delimiter is None:
            for line in lines:  # up to the first that is not blank
                head.append(line)
                if line.strip():
                    break
            first = head[-1] if head else ""
            delimiter = next((mark for mark in ",\t;|" if mark in first), ",")
        self.delimiter = delimiter
        self._reader = csv.reader(
            self._fed(chain(head, lines)), delimiter=delimiter, strict=True, skipinitialspace=True
        )

    def _fed(self, lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            self.line += 1
            if self.line - self._start > MAX_RECORD_LINES:
                raise ValueError(
                    f"{self.path}, line {self._start + 1}: a record does not end within "
                    f"{MAX_RECORD_LINES} lines: close its quote."
                )
            yield line

    def records(self) -> Iterator[tuple[int, list[str] | BadRecordError]]:
        """The line that each record begins on, and its cells or what is wrong; ``line`` is the one it ends on."""
        while True:
            try:
                for cells in self._reader:
                    yield self._start + 1, cells
                    self._start = self.line
            except csv.Error as error:
                bad = BadRecordError("malformed", f"this is not CSV ({error}): correct the quotes.")
                yield self._start + 1, bad
                self._start = self.line
            else:
                return


def header_in(path: Path, file: TextIO, encoding: str = UTF8) -> tuple[list[str], str, bool]:
    """The names of the columns, the delimiter, and whether they are where a plain reader expects them: on line 1."""
    reader = CsvReader(path, file)
    header: list[str] = []
    for _, cells in reader.records():
        if isinstance(cells, BadRecordError):
            raise ValueError(f"{path}: {cells}")
        if cells:
            header = cells
            break
    if not all(map(is_text, header)):
        raise ValueError(f"{path}: {not_text('a CSV file', encoding)}")
    return [name.strip() for name in header], reader.delimiter, reader.line == 1


def csv_rows(path: Path, delimiter: str, width: int, encoding: str = UTF8) -> Iterator[RawRow]:
    """The records of a CSV file after its header, each with the line it begins on."""
    with opened(path, encoding) as file:
        reader = CsvReader(path, file, delimiter)
        where, header = f"{path}, line", False
        for number, cells in reader.records():
            if isinstance(cells, BadRecordError):
                yield RawRow(where, number, (), cells, reader.line - number + 1)
                continue
            if len(cells) == width + 1 and cells[-1] == "":
                cells.pop()
            if header and len(cells) == width and "".join(cells).isascii():
                yield RawRow(where, number, cells)
            elif cells and header:
                wrong = row_problem(cells, width, encoding)
                yield RawRow(where, number, cells, wrong, 1 if wrong is None else reader.line - number + 1)
            header = header or bool(cells)


def row_problem(cells: list[str], width: int, encoding: str) -> BadRecordError | None:
    """What is wrong with a row as a whole, if anything is."""
    if len(cells) != width:
        few = "fewer" if len(cells) < width else "more"
        return BadRecordError("malformed", f"there are {few} values than columns: quote values with a comma.")
    if not is_text("".join(cells)):
        return BadRecordError("malformed", not_text("a CSV file", encoding))
    return None


class Twice(dict[str, Any]):
    """An object in which a key occurs twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Twice(found)


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) < MAX_INTEGER_DIGITS else digits


DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole)
loads = DECODER.decode
"""What JSON stands for; whole numbers beyond all bounds stay text, an object with a key twice is a ``Twice``."""


def is_plain_csv(path: Path, delimiter: str, width: int) -> bool:
    """Whether a file is UTF-8 in which all quotes open and close a cell of one line, and only line feeds end lines."""
    mark = ord(delimiter)
    for part in _parts(path):
        if part is None or (b'"' in part and not _well_quoted(part, mark)):
            return False
        if width == 1 and (part.startswith((b"\n", b"\r\n")) or b"\n\n" in part or b"\n\r\n" in part):
            return False  # DuckDB would take a blank line for a record
    return True


def is_plain_json(path: Path) -> bool:
    """Whether a file is UTF-8 without what DuckDB takes for JSON and Python does not.

    That is other blanks, a comma before the end of an object or list, and other words for NaN and infinity.
    """
    return all(part is not None and not _is_lenient(part) for part in _parts(path))


def _is_lenient(part: bytes) -> bool:
    if part.startswith(BOM) or b"\x0b" in part or b"\x0c" in part or COMMA.search(part):
        return True
    small = part.lower()
    return (b"nan" in small or b"inf" in small) and NUMBERS.search(small) is not None


def _parts(path: Path) -> Iterator[bytes | None]:
    """The file in parts of whole lines; None where only the slow way is sure what they are."""
    number, rest = 1, b""
    with unpacked(path) as file:
        while more := file.read(MAX_LINE_BYTES):
            if more.endswith(b"\r"):
                more += file.read(1)
            if b"\0" in more:
                raise binary(path)
            if b"\r" in more and more.count(b"\r") != more.count(b"\r\n"):
                yield None
            chunk = rest + more
            first, most = chunk.find(b"\n"), MAX_LINE_BYTES + (len(BOM) if number == 1 and chunk.startswith(BOM) else 0)
            if first >= most or (first < 0 and len(chunk) > most):
                raise too_long(path, number)
            end = chunk.rfind(b"\n") + 1
            part, rest = chunk[:end], chunk[end:]
            number += part.count(b"\n")
            yield part if _is_utf8(part) else None
    yield rest if _is_utf8(rest) else None


def _is_utf8(part: bytes) -> bool:
    if part.isascii():
        return True
    try:
        part.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _well_quoted(part: bytes, delimiter: int) -> bool:
    r"""Whether quotes stand only around whole cells, doubled within them, and no cell goes over lines.

    >>> [_well_quoted(part, ord(",")) for part in (b'"a""b",c\n', b'a"b,c\n', b'"a" ,c\n', b'"a\nb"\n', b'"a",b"c"\n')]
    [True, False, False, False, False]
    """
    import numpy as np  # for who reads lines and scans no file, such as a process that reads requests

    letters = np.frombuffer(part, np.uint8)
    quotes = np.flatnonzero(letters == ord('"'))
    if len(quotes) % 2:
        return False
    ends = np.flatnonzero(letters == ord("\n"))
    if (np.searchsorted(quotes, ends) % 2).any():
        return False
    opening, closing = quotes[::2], quotes[1::2]
    between = np.flatnonzero(opening[1:] != closing[:-1] + 1)  # where a cell ends, not a doubled quote
    before = letters[np.concatenate([opening[:1], opening[between + 1]]) - 1]
    after = letters[np.minimum(np.concatenate([closing[between], closing[-1:]]) + 1, len(letters) - 1)]
    at_start, at_end = opening[0] == 0, closing[-1] + 1 == len(letters)
    good_before = (before == delimiter) | (before == ord("\n"))
    good_after = (after == delimiter) | (after == ord("\n")) | (after == ord("\r"))
    good_before[0] |= at_start
    good_after[-1] |= at_end
    return bool(good_before.all() and good_after.all())
