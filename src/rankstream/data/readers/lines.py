"""Text files row by row, with their line numbers: slower than a GROUP BY, but exact about what is wrong where."""

import csv
import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from rankstream.data.readers.problems import BadRecordError


class Row(NamedTuple):
    """Where a record is, its cells in the order of the columns, and what is wrong with it as a whole."""

    where: str
    number: int
    cells: Sequence[Any]
    wrong: BadRecordError | None = None

    @property
    def place(self) -> str:
        """Such as "choices.csv, line 7"."""
        return f"{self.where} {self.number}"


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """A text file, unpacked if need be; bytes that are no UTF-8 are kept apart, to be found by ``is_text``."""
    try:
        if path.name.lower().endswith(".gz"):
            with gzip.open(path, "rt", newline="", encoding="utf-8-sig", errors="surrogateescape") as unpacked:
                yield unpacked
        else:
            with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is no whole gzip file ({error}): pack it again.") from None


def check_packed(path: Path) -> None:
    """Unpack a gzipped file once for its checksum, which DuckDB does not look at; other files are as they are."""
    if path.name.lower().endswith(".gz"):
        with opened(path) as file:
            unpacked = file.buffer
            while unpacked.read(1 << 20):
                pass


def is_text(words: str) -> bool:
    """Whether text read by ``opened`` was UTF-8."""
    return words.isascii() or not any("\udc80" <= letter <= "\udcff" for letter in words)


def csv_header(path: Path) -> tuple[list[str], str, bool]:
    """The names of the columns, the delimiter, and whether they are where a plain reader expects them: on line 1."""
    with opened(path) as file:
        first = file.readline(1 << 20)
        delimiter = next((mark for mark in ",\t;|" if mark in first), ",")
    with opened(path) as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True, skipinitialspace=True)
        try:
            header = next((row for row in reader if row), [])
        except csv.Error as error:
            raise ValueError(f"{path} is not a CSV file in UTF-8 ({error}): save it as one.") from None
        if not all(map(is_text, header)):
            raise ValueError(f"{path} is not a CSV file in UTF-8: save it as one.")
        return [name.strip() for name in header], delimiter, reader.line_num == 1


def csv_rows(path: Path, delimiter: str, width: int) -> Iterator[Row]:
    """The records of a CSV file after its header, each with the line it begins on."""
    with opened(path) as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True, skipinitialspace=True)
        where, header = f"{path}, line", False
        while True:
            number = reader.line_num + 1
            try:
                for cells in reader:
                    if len(cells) == width + 1 and cells[-1] == "":
                        cells.pop()
                    if header and len(cells) == width and "".join(cells).isascii():
                        yield Row(where, number, cells)
                    elif cells and header:
                        yield Row(where, number, cells, _shape(cells, width))
                    header = header or bool(cells)
                    number = reader.line_num + 1
            except csv.Error as error:
                bad = BadRecordError("malformed", f"this is not CSV ({error}): correct the quotes.")
                yield Row(where, number, (), bad)
            else:
                return


def _shape(cells: list[str], width: int) -> BadRecordError | None:
    if len(cells) != width:
        few = "fewer" if len(cells) < width else "more"
        return BadRecordError("malformed", f"there are {few} values than columns: quote what holds a comma.")
    if not is_text("".join(cells)):
        return BadRecordError("malformed", "this is not a CSV file in UTF-8: save it as one.")
    return None


def json_rows(path: Path, columns: list[str]) -> Iterator[Row]:
    """The records of a file with one JSON object per line; a key that is not there is None."""
    for number, line, found in _objects(path):
        if isinstance(found, BadRecordError):
            yield Row(f"{path}, line", number, (line,), found)
        else:
            yield Row(f"{path}, line", number, [found.get(name) for name in columns])


def json_keys(path: Path) -> Iterator[str]:
    """The keys of all records."""
    for _, _, found in _objects(path):
        if isinstance(found, dict):
            yield from found


def _objects(path: Path) -> Iterator[tuple[int, str, dict[str, Any] | BadRecordError]]:
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, dict) and is_text(line):
                yield number, line, found
            else:
                bad = BadRecordError("malformed", "this is not a JSON object in UTF-8: write one record per line.")
                yield number, line.rstrip(), bad
