"""JSON files as a table, in which every value stays JSON until it is decoded."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.sources import lines
from rankstream.data.readers.sources.database import connected, identifier, listed, literal, speakable
from rankstream.data.readers.sources.lines import UTF8, RawRow, loads
from rankstream.data.readers.sources.tables import ScannedFiles

MIN_NESTED_BYTES = 1000  # a shorter line cannot be nested too deeply for Python
MAX_DEPTH = 200  # brackets of a line; Python's parser goes to about 1,000, and records need two or three
PEEK_CHARACTERS = 4096  # in which a file's first bracket is looked for; a page of memory
JOINT = re.compile(r"\s*(,?)\s*")
Found = tuple[str, int, str, dict[str, Any] | BadRecordError]


class JsonFiles(ScannedFiles):
    """Files with one JSON object per line or in one array, gzipped or not; the columns are all keys that occur."""

    count_if_missing = True

    def columns_of_files(self) -> list[str]:
        """All keys, by DuckDB where the files are plain."""
        self.plain = (
            speakable(self.paths)
            and self.encoding == UTF8
            and not any(map(_is_array, self.paths))
            and all(map(lines.is_plain_json, self.paths))
        )
        keys = self._quick_keys() if self.plain else None
        self.plain = keys is not None
        if keys is None:
            keys = set()
            for path in self.paths:
                for *_, record in _objects(path, self.encoding):
                    keys.update(record if isinstance(record, dict) else ())
                    if len(keys) > lines.MOST_COLUMNS:
                        break
        if not keys:  # report the first bad record, if there is one
            self.own = []
            first = next((row for path in self.paths for row in self.rows_of(path, None, None)), None)
            if first is not None and first.wrong is not None:
                raise ValueError(f"{first.place}: {first.wrong}")
        return sorted(keys)

    def _quick_keys(self) -> set[str] | None:
        """Return the keys, or None if Python might read some lines differently than DuckDB."""
        import duckdb

        brackets = "strlen(json) - strlen(replace(replace(json, '[', ''), '{', ''))"
        flat = f"CASE WHEN strlen(json) < {MIN_NESTED_BYTES} THEN true ELSE {brackets} < {MAX_DEPTH} END"
        query = f"SELECT json_keys(json) AS keys, bool_and({flat}) FROM {self._objects()} GROUP BY keys"
        found = set[str]()
        try:
            with connected() as connection:
                result = connection.execute(query)
                while row := result.fetchone():
                    keys, is_good = row
                    if not is_good or not keys or len(set(keys)) < len(keys) or "" in keys:
                        return None  # without keys, it may not be an object
                    found.update(keys)
                    if len(found) > lines.MOST_COLUMNS:
                        return found
        except (duckdb.Error, UnicodeError):
            return None
        return found

    def _objects(self) -> str:
        return f"read_ndjson_objects({listed(self.paths)}, hive_partitioning=false)"

    def constant(self, value: str) -> str:
        """Return the value of a partition in SQL, as JSON."""
        return f"CAST({literal(json.dumps(value))} AS JSON)"

    def scan(self, paths: Sequence[Path]) -> str:
        """Return the SQL of the files, with every value as JSON."""
        columns = ", ".join(f"{literal(column)}: 'JSON'" for column in self.own)
        form = "format='newline_delimited', hive_partitioning=false"
        return f"read_json({listed(paths)}, {form}, columns={{{columns}}})"

    def scalar(self, column: str) -> str:
        """The value as text, without quotes."""
        return f"({identifier(column)} ->> '$')"

    def name_of(self, column: str) -> str:
        """Return the SQL of a value as text, NULL for fractions and lists, which Python writes differently."""
        kinds = "('VARCHAR', 'UBIGINT', 'BIGINT', 'BOOLEAN')"
        return f"CASE WHEN json_type({identifier(column)}) IN {kinds} THEN {self.scalar(column)} END"

    def decode(self, cell: Any) -> Any:
        """The value that the JSON text stands for."""
        try:
            return loads(cell) if isinstance(cell, str) else cell
        except (ValueError, RecursionError):
            raise BadRecordError("malformed", "this is not JSON: correct it.") from None

    def rows_of(self, path: Path, needed: Sequence[str] | None, most: int | None) -> Iterator[RawRow]:
        """The records, line by line or as the array has them; a key that is not there is None."""
        for where, number, words, found in _objects(path, self.encoding):
            if isinstance(found, BadRecordError):
                yield RawRow(f"{path}, {where}", number, (words,), found)
            else:
                yield RawRow(f"{path}, {where}", number, [found.get(name) for name in self.own])


def _is_array(path: Path) -> bool:
    """Return whether a file is an array of records, instead of one record per line."""
    with lines.opened(path) as file:
        return file.read(PEEK_CHARACTERS).lstrip().startswith("[")


def _objects(path: Path, encoding: str) -> Iterator[Found]:
    with lines.opened(path, encoding) as file:
        start = file.read(PEEK_CHARACTERS)
        if start.lstrip().startswith("["):
            yield from _elements(path, file, start, encoding)
            return
    with lines.opened(path, encoding) as file:
        for number, line in enumerate(lines.limited(path, file), 1):
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
    if isinstance(found, lines.Twice):
        return BadRecordError("malformed", "this JSON object has a key twice: remove one.")
    if not lines.is_text(words):
        return BadRecordError("malformed", lines.not_text("a JSON object", encoding))
    return found


def _elements(path: Path, file: TextIO, start: str, encoding: str) -> Iterator[Found]:
    """Yield the elements of an array, read in pieces so that memory stays bounded."""
    rest, number = start.lstrip()[1:], 0
    for more in chain([""], iter(lambda: file.read(lines.MAX_LINE_BYTES), "")):
        rest, place = rest + more, 0
        if "\0" in rest:
            raise lines.binary(path)
        while (joint := JOINT.match(rest, place)) is not None and joint.end() < len(rest):
            if rest[joint.end()] == "]" and not joint[1]:
                for piece in chain([rest[joint.end() + 1 :]], iter(lambda: file.read(lines.MAX_LINE_BYTES), "")):
                    if piece.strip():
                        raise ValueError(
                            f"{path} continues after its JSON array: write one record per line, or all in one array."
                        )
                return
            if (number > 0) != bool(joint[1]):
                raise _broken(path, number)
            try:
                found, end = lines.DECODER.raw_decode(rest, joint.end())
            except (ValueError, RecursionError):
                break  # the element probably continues in the next piece
            if end == len(rest) and not isinstance(found, dict):
                break  # a number may continue as well
            number += 1
            words = rest[joint.end() : end]
            yield "record", number, words, _checked(found, words, encoding)
            place = end
        rest = rest[place:]
        if len(rest) > 2 * lines.MAX_LINE_BYTES:
            break
    raise _broken(path, number)


def _broken(path: Path, number: int) -> ValueError:
    return ValueError(f"{path}, record {number + 1}: the JSON array is broken here: write one record per line.")
