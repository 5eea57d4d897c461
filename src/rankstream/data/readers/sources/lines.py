"""Read text files row by row with line numbers: slower than a GROUP BY, but exact about errors.

Memory is bounded: a NUL byte, a line longer than ``MAX_LINE_BYTES`` or a record of more than ``MAX_RECORD_LINES`` is an
error, so that a disk image or a forgotten quote is not read to its end.

DuckDB is faster, but only used if it is sure to see the same records. ``is_plain_csv`` and ``is_plain_json`` check that
by a scan of all bytes, which takes about a second per gigabyte, two or three with quotes or for JSON.
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
MAX_INTEGER_DIGITS = 4000  # Python converts at most 4,300 digits to an integer
MOST_COLUMNS = 10_000  # a wide table has one per item; beyond, rows and columns are most likely swapped
UTF8 = "utf-8"
BOM = b"\xef\xbb\xbf"
COMMA = re.compile(rb",\s*[}\]]")
NUMBERS = re.compile(rb"[:,\[\s+-](nan|inf|infinity)\s*[,}\]]")


class RawRow(NamedTuple):
    """A record: its place, its cells in the order of the columns, what is wrong with it, and its number of lines.

    ``lines`` matters only for bad records, which may hide as many records as they have lines.
    """

    where: str
    number: int
    cells: Sequence[Any]
    wrong: BadRecordError | None = None
    lines: int = 1

    @property
    def place(self) -> str:
        """The place in words, such as "choices.csv, line 7"."""
        return f"{self.where} {self.number}"


@contextmanager
def unpacked(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressed if its name ends in .gz."""
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
    """Open a text file, decompressed if needed; bytes that are not UTF-8 are escaped, so that ``is_text`` sees them."""
    name = "utf-8-sig" if encoding == UTF8 else encoding
    try:
        with unpacked(path) as file, TextIOWrapper(file, name, "surrogateescape", newline="") as text:
            yield text
    except UnicodeError as error:
        raise ValueError(f"{path} is not text in {encoding} ({error}): set encoding=... to its encoding.") from None


def is_text(words: str) -> bool:
    """Return whether text from ``opened`` was valid in its encoding."""
    return words.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in words)


def limited(path: Path, file: TextIO) -> Iterator[str]:
    """Yield the lines of a text file; raise a ValueError at a NUL byte or a line that is too long."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if "\0" in line:
            raise binary(path)
        if 4 * len(line) > MAX_LINE_BYTES and len(line.encode("utf-8", "surrogatepass")) > MAX_LINE_BYTES:
            raise too_long(path, number)
        yield line


def too_long(path: Path, number: int) -> ValueError:
    """Return the error for a line beyond the limit."""
    return ValueError(
        f"{path}, line {number}: the line is longer than {MAX_LINE_BYTES:,} bytes: end each record with a line break."
    )


def binary(path: Path) -> ValueError:
    """Return the error for NUL bytes, which text in UTF-8 never has."""
    with unpacked(path) as file:
        mark = file.read(2)
    if mark in (b"\xff\xfe", b"\xfe\xff"):
        return ValueError(f"{path} is in UTF-16: set encoding='utf-16', or save it in UTF-8.")
    return ValueError(f"{path} contains NUL bytes, so it is not text: give a CSV, JSON Lines or Parquet file.")


def not_text(kind: str, encoding: str) -> str:
    """Return the message for bytes that are not text."""
    if encoding == UTF8:
        return f"this is not {kind} in UTF-8: save it in UTF-8, or set its encoding, such as encoding='latin-1'."
    return f"this is not {kind} in {encoding}: set encoding=... to its encoding."


class CsvReader:
    """A reader of CSV records with line numbers; a record has at most ``MAX_RECORD_LINES`` lines."""

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
            self._counted(chain(head, lines)), delimiter=delimiter, strict=True, skipinitialspace=True
        )

    def _counted(self, lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            self.line += 1
            if self.line - self._start > MAX_RECORD_LINES:
                raise ValueError(
                    f"{self.path}, line {self._start + 1}: a record does not end within "
                    f"{MAX_RECORD_LINES} lines: close its quote."
                )
            yield line

    def records(self) -> Iterator[tuple[int, list[str] | BadRecordError]]:
        """Yield the first line of each record, and its cells or an error; ``line`` is the last line."""
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
    """Return the names of the columns, the delimiter, and whether the header is on line 1."""
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
    """Return what is wrong with a row as a whole, or None."""
    if len(cells) != width:
        few = "fewer" if len(cells) < width else "more"
        return BadRecordError("malformed", f"there are {few} values than columns: quote values with a comma.")
    if not is_text("".join(cells)):
        return BadRecordError("malformed", not_text("a CSV file", encoding))
    return None


class Twice(dict[str, Any]):
    """An object in which a key occurs twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    return unique if len(unique) == len(pairs) else Twice(unique)


DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=lambda digits: int(digits) if len(digits) < MAX_INTEGER_DIGITS else digits
)
loads = DECODER.decode
"""Parse JSON; huge integers stay text, and an object with a repeated key is a ``Twice``."""


def is_plain_csv(path: Path, delimiter: str, width: int) -> bool:
    """Return whether a file is UTF-8 with quotes only around cells of one line, and only line feeds between lines."""
    mark = ord(delimiter)
    for part in _parts(path):
        if part is None or (b'"' in part and not _well_quoted(part, mark)):
            return False
        if width == 1 and (part.startswith((b"\n", b"\r\n")) or b"\n\n" in part or b"\n\r\n" in part):
            return False  # DuckDB would take a blank line for a record
    return True


def is_plain_json(path: Path) -> bool:
    """Return whether a file is UTF-8 without anything that only DuckDB accepts as JSON.

    DuckDB accepts other blanks, a comma before the end of an object or list, and other words for NaN and infinity.
    """
    return all(part is not None and not _is_lenient(part) for part in _parts(path))


def _is_lenient(part: bytes) -> bool:
    if part.startswith(BOM) or b"\x0b" in part or b"\x0c" in part or COMMA.search(part):
        return True
    small = part.lower()
    return (b"nan" in small or b"inf" in small) and NUMBERS.search(small) is not None


def _parts(path: Path) -> Iterator[bytes | None]:
    """Yield the file in parts of whole lines; None for a part that must be read row by row."""
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
            first = chunk.find(b"\n")
            limit = MAX_LINE_BYTES + (len(BOM) if number == 1 and chunk.startswith(BOM) else 0)
            if first >= limit or (first < 0 and len(chunk) > limit):
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
    r"""Return whether quotes are only around whole cells or doubled within them, and no cell has a line break.

    >>> [_well_quoted(part, ord(",")) for part in (b'"a""b",c\n', b'a"b,c\n', b'"a" ,c\n', b'"a\nb"\n', b'"a",b"c"\n')]
    [True, False, False, False, False]
    """
    import numpy as np  # not at the top: processes that only read requests need no numpy

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
