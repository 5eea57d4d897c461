"""Files of JSON as a table, with every value still as JSON until it is decoded."""

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.roles import MOST_COLUMNS
from rankstream.data.readers.sources.database import connected, identifier, listed, literal, speakable
from rankstream.data.readers.sources.json_lines import is_array, json_keys, json_rows, loads
from rankstream.data.readers.sources.lines import UTF8, RawRow
from rankstream.data.readers.sources.scan import is_plain_json
from rankstream.data.readers.sources.tables import ScannedFiles

MIN_NESTED_BYTES = 1000  # bytes that a line has at least if it is nested deeper than Python goes
MAX_DEPTH = 200


class JsonFiles(ScannedFiles):
    """Files with one JSON object per line or in one array, gzipped or not; the columns are all keys that occur."""

    count_if_missing = True

    def columns_of_files(self) -> list[str]:
        """All keys, by DuckDB where the files are plain."""
        self.plain = (
            speakable(self.paths)
            and self.encoding == UTF8
            and not any(is_array(path) for path in self.paths)
            and all(map(is_plain_json, self.paths))
        )
        found = self._quick_keys() if self.plain else None
        self.plain = found is not None
        if found is None:
            found = set()
            for path in self.paths:
                for key in json_keys(path, self.encoding):
                    found.add(key)
                    if len(found) > MOST_COLUMNS:
                        break
        if not found:  # not even the first record may be one
            first = next((row for path in self.paths for row in json_rows(path, [], self.encoding)), None)
            if first is not None and first.wrong is not None:
                raise ValueError(f"{first.place}: {first.wrong}")
        return sorted(found)

    def _quick_keys(self) -> set[str] | None:
        """The keys, or None where not all lines are objects that Python would read in the same way."""
        import duckdb

        opened = "strlen(json) - strlen(replace(replace(json, '[', ''), '{', ''))"
        flat = f"CASE WHEN strlen(json) < {MIN_NESTED_BYTES} THEN true ELSE {opened} < {MAX_DEPTH} END"
        query = f"SELECT json_keys(json) AS keys, bool_and({flat}) FROM {self._objects()} GROUP BY keys"
        found: set[str] = set()
        try:
            with connected() as connection:
                result = connection.execute(query)
                while row := result.fetchone():
                    keys, is_good = row
                    if not is_good or not keys or len(set(keys)) < len(keys) or "" in keys:
                        return None  # without keys, it may not be an object
                    found.update(keys)
                    if len(found) > MOST_COLUMNS:
                        return found
        except (duckdb.Error, UnicodeError):
            return None
        return found

    def _objects(self) -> str:
        return f"read_ndjson_objects({listed(self.paths)}, hive_partitioning=false)"

    def is_plain(self, needed: Collection[str]) -> bool:
        """Whether there is one object on each line, and no doubt about any."""
        return self.plain

    def constant(self, value: str) -> str:
        """The SQL of the columns that are folders, as JSON."""
        return f"CAST({literal(json.dumps(value))} AS JSON)"

    def scan(self, paths: Sequence[Path]) -> str:
        """The files with every value still as JSON."""
        columns = ", ".join(f"{literal(column)}: 'JSON'" for column in self.own)
        form = "format='newline_delimited', hive_partitioning=false"
        return f"read_json({listed(paths)}, {form}, columns={{{columns}}})"

    def scalar(self, column: str) -> str:
        """The value as text, without quotes."""
        return f"({identifier(column)} ->> '$')"

    def name_of(self, column: str) -> str:
        """The value as text where that is what Python would make of it; fractions and lists are not."""
        kinds = "('VARCHAR', 'UBIGINT', 'BIGINT', 'BOOLEAN')"
        return f"CASE WHEN json_type({identifier(column)}) IN {kinds} THEN {self.scalar(column)} END"

    def decode(self, cell: Any) -> Any:
        """The value that the JSON text stands for."""
        try:
            return loads(cell) if isinstance(cell, str) else cell
        except (ValueError, RecursionError):
            raise BadRecordError("malformed", "this is not JSON: correct it.") from None

    def rows_of(self, path: Path, needed: Sequence[str] | None, most: int | None) -> Iterator[RawRow]:
        """The records, line by line or as the array has them."""
        return json_rows(path, self.own, self.encoding)
