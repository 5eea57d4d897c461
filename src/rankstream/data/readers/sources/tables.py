"""Files and data frames as sources: a table for DuckDB, and rows with their places for Python."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rankstream.data.readers.sources import database, lines
from rankstream.data.readers.sources.database import Connection, identifier, listed, literal
from rankstream.data.readers.sources.lines import UTF8, RawRow

CSV_BUFFER_BYTES = 8_000_000  # of each thread, and room for the longest line; benchmarks/reading.py times the whole
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""The name of a folder for a missing value, as in store=__HIVE_DEFAULT_PARTITION__/."""
LISTS = {"list", "ndarray"}  # names of types of cells, as data frames have them
PLAIN = {"str", "bool", "float", "date", "datetime", "Timestamp"}
NOTHING = {"NoneType", "NAType", "NaTType"}


class Source(ABC):
    """A table of records: grouped by DuckDB through ``table``, or read row by row through ``rows``.

    Both must see the same records; ``table`` returns None if that is not certain.
    """

    name: str
    columns: list[str]
    count_if_missing = False

    def table(self, connection: Connection, needed: Sequence[str]) -> str | None:
        """Return the SQL of a table with the needed columns; None if the source must be read row by row."""
        return None

    def scalar(self, column: str) -> str:
        """Return the SQL of a column as a plain value that can be cast."""
        return identifier(column)

    def name_of(self, column: str) -> str:
        """Return the SQL of a column of names, so that equal names are equal values."""
        return self.scalar(column)

    def decode(self, cell: Any) -> Any:
        """Return the value of a cell that came from the table."""
        return cell

    @abstractmethod
    def rows(self, needed: Sequence[str] | None = None, most: int | None = None) -> Iterator[RawRow]:
        """Yield the first records, or all, with their places; cells that are not needed may be None."""


class Files(Source):
    """Files that form one table; ``partitions`` are columns given by the names of their folders."""

    def __init__(
        self, name: str, paths: Sequence[Path], partitions: Sequence[str], encoding: str, sheet: str | None
    ) -> None:
        self.name, self.paths, self.partitions = name, paths, tuple(partitions)
        self.encoding, self.sheet = encoding, sheet
        self.values = [partition_values(path, self.partitions) for path in paths]
        self.own = self.columns_of_files()
        for column in self.partitions:
            if column in self.own:
                raise ValueError(
                    f"{name} has a column {column!r} of its own: leave it out of the partitions, or rename it."
                )
        self.columns = [*self.own, *self.partitions]

    @abstractmethod
    def columns_of_files(self) -> list[str]:
        """Return the columns of the files; raise a ValueError if they differ."""

    def check_same(self, headers: Sequence[Any]) -> None:
        """Raise a ValueError if files have different columns."""
        for path, header in zip(self.paths, headers, strict=True):
            if header != headers[0]:
                raise ValueError(f"{path} has different columns than {self.paths[0]}: read them separately.")

    @abstractmethod
    def rows_of(self, path: Path, needed: Sequence[str] | None, most: int | None) -> Iterator[RawRow]:
        """Yield the records of one file."""

    def rows(self, needed: Sequence[str] | None = None, most: int | None = None) -> Iterator[RawRow]:
        """All records, file by file."""
        return islice(self._all_rows(needed, most), most)

    def _all_rows(self, needed: Sequence[str] | None, most: int | None) -> Iterator[RawRow]:
        for path, values in zip(self.paths, self.values, strict=True):
            for row in self.rows_of(path, needed, most):
                yield row if not values or row.wrong is not None else row._replace(cells=(*row.cells, *values))


def partition_values(path: Path, partitions: Sequence[str]) -> tuple[str, ...]:
    """Return the values of some columns in the names of a file's folders; the innermost folder counts.

    >>> partition_values(Path("sales/store=north/day=7/part.csv"), ["day", "store"])
    ('7', 'north')
    """
    values = dict(part.split("=", 1) for part in path.absolute().parts[:-1] if "=" in part)
    for column in partitions:
        if column not in values:
            raise ValueError(f"{path} is in no folder {column}=...: leave {column!r} out of the partitions.")
    return tuple("" if values[column] == NO_VALUE else unquote(values[column]) for column in partitions)


class ScannedFiles(Files):
    """Files that DuckDB can read as well, if they are plain enough for it to see the same records."""

    plain: bool

    @abstractmethod
    def scan(self, paths: Sequence[Path]) -> str:
        """The SQL of some of the files as a table."""

    def is_plain(self, needed: Collection[str]) -> bool:
        """Return whether DuckDB sees the same records as ``rows``."""
        return self.plain

    def constant(self, value: str) -> str:
        """Return the value of a partition in SQL; it is decoded like a cell."""
        return literal(value)

    def table(self, connection: Connection, needed: Sequence[str]) -> str | None:
        """Return the files in one scan, or in one for each set of folders."""
        if not self.is_plain(needed):
            return None
        if not self.partitions:
            return self.scan(self.paths)
        selected = []
        # only neighbours share a scan, so that the order of the files is kept
        for values, paths in groupby(self.paths, key=lambda path: partition_values(path, self.partitions)):
            pairs = zip(values, self.partitions, strict=True)
            constants = ", ".join(f"{self.constant(value)} AS {identifier(column)}" for value, column in pairs)
            selected.append(f"SELECT *, {constants} FROM {self.scan(list(paths))}")
        return f"({' UNION ALL '.join(selected)})"


class CsvFiles(ScannedFiles):
    """CSV files with the same header, gzipped or not."""

    def columns_of_files(self) -> list[str]:
        """The header."""
        headers = []
        for path in self.paths:
            with lines.opened(path, self.encoding) as file:
                headers.append(lines.header_in(path, file, self.encoding))
        columns, self.delimiter, _ = headers[0]
        self.check_same([(names, delimiter) for names, delimiter, _ in headers])
        self.on_top = all(on_top for *_, on_top in headers)
        return columns

    @cached_property
    def plain(self) -> bool:  # type: ignore[override]
        """Whether DuckDB sees the same records (``is_plain_csv``); gzipped files are decompressed once for that."""
        plain = database.speakable(self.paths) and self.on_top and self.encoding == UTF8
        return plain and all(lines.is_plain_csv(path, self.delimiter, len(self.own)) for path in self.paths)

    def scan(self, paths: Sequence[Path]) -> str:
        """The files as text, in one scan with a small buffer."""
        columns = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in self.own)
        return (
            f"read_csv({listed(paths)}, auto_detect=false, header=true, delim={literal(self.delimiter)}, "
            f"""quote='"', escape='"', columns={{{columns}}}, """
            f"buffer_size={CSV_BUFFER_BYTES}, hive_partitioning=false)"
        )

    def rows_of(self, path: Path, needed: Sequence[str] | None, most: int | None) -> Iterator[RawRow]:
        """Yield the records by Python's own reader."""
        return lines.csv_rows(path, self.delimiter, len(self.own), self.encoding)


class ParquetFiles(ScannedFiles):
    """Parquet files with the same columns."""

    def columns_of_files(self) -> list[str]:
        """Return the columns; where their types differ, files are read row by row."""
        for path in self.paths:
            if not database.speakable([path]):
                raise ValueError(f"The name of {path} is not Unicode: rename the file.")
        with database.connected() as connection:
            self.kinds = [database.described(connection, self.scan([path])) for path in self.paths]
        self.check_same([kinds.keys() for kinds in self.kinds])
        return list(self.kinds[0])

    def is_plain(self, needed: Collection[str]) -> bool:
        """Return whether the needed columns have the same types in all files, so that nothing is cast."""
        return len({tuple(kinds.get(column) for column in needed) for kinds in self.kinds}) == 1

    def scan(self, paths: Sequence[Path]) -> str:
        """The files in one scan."""
        return f"read_parquet({listed(paths)}, hive_partitioning=false)"

    def rows_of(self, path: Path, needed: Sequence[str] | None, most: int | None) -> Iterator[RawRow]:
        """The records, numbered within their file from 0."""
        with database.connected() as connection:
            yield from database.numbered(str(path), connection, self.scan([path]), self.own, needed, most)


class Frame(Source):
    """A pandas or polars frame, or an Arrow table."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame.read_all() if hasattr(frame, "read_next_batch") else frame
        self.name = f"The {type(frame).__module__.split('.')[0]} {type(frame).__name__}"
        if hasattr(frame, "collect_schema"):
            names = frame.collect_schema().names()
        else:
            names = frame.columns if hasattr(frame, "iloc") else frame.schema.names
        self.columns = [str(column) for column in names]

    def table(self, connection: Connection, needed: Sequence[str]) -> str | None:
        """Register the frame without a copy; return None if a column has objects of several types."""
        if hasattr(self.frame, "iloc"):
            series = [self.frame.iloc[:, self.columns.index(column)] for column in needed]
            if not all(map(_is_plain, series)):
                return None
        connection.register("frame", self.frame)
        return "frame"

    def rows(self, needed: Sequence[str] | None = None, most: int | None = None) -> Iterator[RawRow]:
        """The records, numbered from 0."""
        if hasattr(self.frame, "iloc"):
            cells = zip(*(self.frame.iloc[:, place] for place in range(len(self.columns))), strict=True)
            for number, row in enumerate(islice(cells, most)):
                yield RawRow(f"{self.name}, row", number, row)
            return
        with database.connected() as connection:
            connection.register("frame", self.frame)
            yield from database.numbered(self.name, connection, "frame", self.columns, None, most)


def _is_plain(column: Any) -> bool:
    """Return whether the objects of a pandas column have one type; DuckDB would convert others to text."""
    if column.dtype.name == "category":
        return _types(column.cat.categories) <= {"str"}
    if column.dtype != object:
        return True
    types = _types(column)
    if types <= LISTS:
        types = _types(list(chain.from_iterable(cell for cell in column if type(cell).__name__ in LISTS)))
    return len(types) < 2 and types <= PLAIN


def _types(cells: Sequence[Any]) -> set[str]:
    types = {kind.__name__ for kind in set(map(type, cells))} - NOTHING
    if len(types) > 1 and not any(type(cell) is float and cell == cell for cell in cells):
        types.discard("float")
    return types
