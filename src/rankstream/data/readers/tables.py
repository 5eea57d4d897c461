"""Files and data frames, each as a table for DuckDB to group and as rows with their places."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rankstream.data.readers import lines
from rankstream.data.readers.lines import Row

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BUFFER = 8_000_000
BATCH = 10_000


class Source(Protocol):
    """A table of records: quickly grouped by DuckDB where ``table`` has an answer, and slowly walked through."""

    name: str
    columns: list[str]
    count_if_missing: bool

    def table(self, connection: "DuckDBPyConnection") -> str | None:
        """What to select from; None where only walking is safe."""

    def scalar(self, column: str) -> str:
        """The SQL of a column as a plain value, to be cast."""

    def decode(self, cell: Any) -> Any:
        """A cell that came from the table as what it stands for."""

    def rows(self) -> Iterator[Row]:
        """All records, with their places."""


class Table:
    """What most sources share."""

    name: str
    columns: list[str]
    count_if_missing = False

    def scalar(self, column: str) -> str:
        """The SQL of a column as a plain value."""
        return identifier(column)

    def decode(self, cell: Any) -> Any:
        """A cell as it came."""
        return cell


class CsvFiles(Table):
    """CSV files with the same header, gzipped or not."""

    def __init__(self, name: str, paths: Sequence[Path]) -> None:
        self.name, self.paths = name, paths
        headers = [lines.csv_header(path) for path in paths]
        self.columns, self.delimiter, _ = headers[0]
        for path, (columns, delimiter, _) in zip(paths, headers, strict=True):
            if (columns, delimiter) != (self.columns, self.delimiter):
                raise ValueError(f"{path} has other columns than {paths[0]}: read them one after the other.")
        self.plain = all(on_top for *_, on_top in headers) and not any(map(is_glob, paths))

    def table(self, connection: "DuckDBPyConnection") -> str | None:
        """The files as text, in one scan with a small buffer."""
        if not self.plain:
            return None
        for path in self.paths:
            lines.check_packed(path)
        columns = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in self.columns)
        return (
            f"read_csv({_listed(self.paths)}, auto_detect=false, header=true, delim={literal(self.delimiter)}, "
            f"""quote='"', escape='"', columns={{{columns}}}, buffer_size={BUFFER})"""
        )

    def rows(self) -> Iterator[Row]:
        """All records, by Python's own reader."""
        for path in self.paths:
            yield from lines.csv_rows(path, self.delimiter, len(self.columns))


class JsonFiles(Table):
    """Files with one JSON object per line, gzipped or not; the columns are all keys that occur."""

    count_if_missing = True

    def __init__(self, name: str, paths: Sequence[Path]) -> None:
        self.name, self.paths = name, paths
        self.columns = self._keys()

    def _keys(self) -> list[str]:
        import duckdb

        if not any(map(is_glob, self.paths)):
            query = f"SELECT DISTINCT unnest(json_keys(json)) FROM read_ndjson_objects({_listed(self.paths)})"
            try:
                with connected() as connection:
                    return sorted(key for (key,) in connection.execute(query).fetchall())
            except duckdb.Error:
                pass
        return sorted({key for path in self.paths for key in lines.json_keys(path)})

    def table(self, connection: "DuckDBPyConnection") -> str | None:
        """The files with every value still as JSON."""
        if any(map(is_glob, self.paths)):
            return None
        for path in self.paths:
            lines.check_packed(path)
        columns = ", ".join(f"{literal(column)}: 'JSON'" for column in self.columns)
        return f"read_json({_listed(self.paths)}, format='newline_delimited', columns={{{columns}}})"

    def scalar(self, column: str) -> str:
        """The value as text, without quotes."""
        return f"({identifier(column)} ->> '$')"

    def decode(self, cell: Any) -> Any:
        """The value that the JSON text stands for."""
        return json.loads(cell) if isinstance(cell, str) else cell

    def rows(self) -> Iterator[Row]:
        """All records, line by line."""
        for path in self.paths:
            yield from lines.json_rows(path, self.columns)


class ParquetFiles(Table):
    """Parquet files with the same columns."""

    def __init__(self, name: str, paths: Sequence[Path]) -> None:
        self.name, self.paths = name, paths
        for path in filter(is_glob, paths):
            raise ValueError(f"{path} has a *, ? or [ in its name: rename the file.")
        with connected() as connection:
            columns = [list(_described(connection, f"read_parquet({_listed([path])})")) for path in paths]
        self.columns = columns[0]
        for path, others in zip(paths, columns, strict=True):
            if set(others) != set(self.columns):
                raise ValueError(f"{path} has other columns than {paths[0]}: read them one after the other.")

    def table(self, connection: "DuckDBPyConnection") -> str:
        """The files in one scan."""
        return f"read_parquet({_listed(self.paths)})"

    def rows(self) -> Iterator[Row]:
        """All records, numbered within their file from 0."""
        for path in self.paths:
            with connected() as connection:
                yield from _numbered(str(path), connection, f"read_parquet({_listed([path])})", self.columns)


class Frame(Table):
    """A pandas or polars frame, or an Arrow table."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame.read_all() if hasattr(frame, "read_next_batch") else frame
        self.name = f"The {type(frame).__module__.split('.')[0]} {type(frame).__name__}"
        if hasattr(frame, "collect_schema"):
            names = frame.collect_schema().names()
        else:
            names = frame.columns if hasattr(frame, "iloc") else frame.schema.names
        self.columns = [str(column) for column in names]

    def table(self, connection: "DuckDBPyConnection") -> str:
        """The frame where it lies, without a copy."""
        connection.register("frame", self.frame)
        return "frame"

    def rows(self) -> Iterator[Row]:
        """All records, numbered from 0."""
        if hasattr(self.frame, "iloc"):
            cells = zip(*(self.frame.iloc[:, place] for place in range(len(self.columns))), strict=True)
            for number, row in enumerate(cells):
                yield Row(f"{self.name}, row", number, row)
            return
        with connected() as connection:
            yield from _numbered(self.name, connection, self.table(connection), self.columns)


def connected(memory: str | None = None) -> "DuckDBPyConnection":
    """A connection of its own, which leaves what does not fit into memory in the folder for temporary files."""
    import tempfile

    import duckdb

    config: dict[str, Any] = {"temp_directory": str(Path(tempfile.gettempdir()) / f"rankstream-{os.getpid()}")}
    config |= {"autoinstall_known_extensions": False} | ({} if memory is None else {"memory_limit": memory})
    try:
        connection = duckdb.connect(config=config)
    except duckdb.Error:
        raise ValueError(f"The memory {memory!r} is no size: write it as '1GB'.") from None
    connection.execute("SET enable_progress_bar = false").fetchall()
    with suppress(duckdb.Error):  # it knows no zones but UTC then
        connection.execute("SET TimeZone = 'UTC'").fetchall()
    return connection


def identifier(name: str) -> str:
    """A name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(words: str) -> str:
    """A text in SQL."""
    return "'" + words.replace("'", "''") + "'"


def _listed(paths: Sequence[Path]) -> str:
    return "[" + ", ".join(literal(str(path)) for path in paths) + "]"


def is_glob(path: Path) -> bool:
    """Whether a path would be taken for a pattern."""
    return any(mark in str(path) for mark in "*?[")


def _described(connection: "DuckDBPyConnection", table: str) -> dict[str, str]:
    """The columns of a table, and their types."""
    return {row[0]: str(row[1]) for row in connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()}


def _numbered(name: str, connection: "DuckDBPyConnection", table: str, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a table, times with a zone in UTC."""
    zoned = {column for column, kind in _described(connection, table).items() if kind.endswith("WITH TIME ZONE")}
    wanted = [f"CAST({identifier(name)} AS TIMESTAMP)" if name in zoned else identifier(name) for name in columns]
    found = connection.execute(f"SELECT {', '.join(wanted)} FROM {table}")
    number = 0
    while batch := found.fetchmany(BATCH):
        for cells in batch:
            yield Row(f"{name}, row", number, cells)
            number += 1
