"""JSON files as a table, in which every value stays JSON until it is decoded."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.sources import lines
from rankstream.data.readers.sources.database import FETCH_ROWS, connected, identifier, listed, literal, speakable
from rankstream.data.readers.sources.lines import UTF8, RawRow, loads
from rankstream.data.readers.sources.tables import ScannedFiles

MIN_NESTED_BYTES = 1000  # a shorter line cannot be nested too deeply for Python
MAX_DEPTH = 200  # brackets of a line; Python's parser goes to about 1,000, and records need two or three
PEEK_CHARACTERS = 4096  # in which a file's first bracket is looked for; a page of memory
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


def _is_array(path: Path, encoding: str = UTF8) -> bool:
    """Return whether a file is an array of records, instead of one record per line."""
    with lines.opened(path, encoding) as file:
        return file.read(PEEK_CHARACTERS).lstrip().startswith("[")


def _objects(path: Path, encoding: str) -> Iterator[Found]:
    if _is_array(path, encoding):
        yield from _elements(path, encoding)
        return
    with lines.opened(path, encoding) as file:
        for number, line in enumerate(lines.limited(path, file), 1):
            if line.strip():
                yield "line", number, line.rstrip(), _parsed(line, encoding)


def _parsed(words: str, encoding: str) -> dict[str, Any] | BadRecordError:
    try:
        found = loads(words)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return BadRecordError("malformed", "this is not a JSON object: write one record per line.")
    if isinstance(found, lines.Twice):
        return BadRecordError("malformed", "this JSON object has a key twice: remove one.")
    if not lines.is_text(words):
        return BadRecordError("malformed", lines.not_text("a JSON object", encoding))
    return found


def _elements(path: Path, encoding: str) -> Iterator[Found]:
    """Yield the elements of an array, as DuckDB divides it: its text need not fit into memory."""
    import duckdb

    if encoding != UTF8 or not speakable([path]):
        raise ValueError(f"{path} is one JSON array: save it in UTF-8, or write one record per line.")
    form = f"format='array', maximum_object_size={lines.MAX_LINE_BYTES}, compression="
    form += "'gzip'" if path.name.lower().endswith(".gz") else "'none'"
    number = 0
    try:
        with connected() as connection:
            result = connection.execute(f"SELECT json FROM read_json_objects({listed([path])}, {form})")
            while batch := result.fetchmany(FETCH_ROWS):
                for (words,) in batch:
                    number += 1
                    yield "record", number, words, _parsed(words, encoding)
    except duckdb.Error as error:
        reason = str(error).strip().splitlines()[0].rpartition('", ')[2].rstrip(".")
        raise ValueError(f"{path}: the JSON array is broken ({reason}): write one record per line.") from None
