"""Files and data frames, each as a table for DuckDB to group and as rows with their places."""

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
"""What a folder says of a column without a value, as in store=__HIVE_DEFAULT_PARTITION__/."""
LISTS = {"list", "ndarray"}  # names of types of cells, as data frames have them
PLAIN = {"str", "bool", "float", "date", "datetime", "Timestamp"}
NOTHING = {"NoneType", "NAType", "NaTType"}


class Source(ABC):
    """A table of records: quickly grouped by DuckDB where ``table`` has an answer, and slowly walked through.

    Both ways must see the same records, or ``table`` must have no answer.
    """

    name: str
    columns: list[str]
    count_if_missing = False

    def table(self, connection: Connection, needed: Sequence[str]) -> str | None:
        """What to select the needed columns from; None where only walking is safe, as it is for most files."""
        return None

    def scalar(self, column: str) -> str:
        """The SQL of a column as a plain value, to be cast."""
        return identifier(column)

    def name_of(self, column: str) -> str:
        """The SQL of a column that names things, so that equal names are equal values."""
        return self.scalar(column)

    def decode(self, cell: Any) -> Any:
        """A cell that came from the table as what it stands for."""
        return cell

    @abstractmethod
    def rows(self, needed: Sequence[str] | None = None, most: int | None = None) -> Iterator[RawRow]:
        """The first records, or all, with their places; of columns that are not needed there may be None."""


class Files(Source):
    """Files that make one table, with columns of their own and ``partitions`` that are their folders."""

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
        """The columns of the files, which must be the same, or a ValueError."""

    def check_same(self, headers: Sequence[Any]) -> None:
        """Refuse files that differ in their columns."""
        for path, header in zip(self.paths, headers, strict=True):
            if header != headers[0]:
                raise ValueError(f"{path} has different columns than {self.paths[0]}: read them separately.")

    @abstractmethod
    def rows_of(self, path: Path, needed: Sequence[str] | None, most: int | None) -> Iterator[RawRow]:
        """The records of one file."""

    def rows(self, needed: Sequence[str] | None = None, most: int | None = None) -> Iterator[RawRow]:
        """All records, file by file."""
        found = (
            row if not values or row.wrong is not None else row._replace(cells=(*row.cells, *values))
            for path, values in zip(self.paths, self.values, strict=True)
            for row in self.rows_of(path, needed, most)
        )
        return islice(found, most)


def partition_values(path: Path, partitions: Sequence[str]) -> tuple[str, ...]:
    """What the folders above a file say of some columns; the innermost folder counts.

    >>> partition_values(Path("sales/store=north/day=7/part.csv"), ["day", "store"])
    ('7', 'north')
    """
    told = dict(part.split("=", 1) for part in path.absolute().parts[:-1] if "=" in part)
    for column in partitions:
        if column not in told:
            raise ValueError(f"{path} is in no folder {column}=...: leave {column!r} out of the partitions.")
    return tuple("" if told[column] == NO_VALUE else unquote(told[column]) for column in partitions)


class ScannedFiles(Files):
    """Files that DuckDB can read, too, where they are plain enough for it to see the same records."""

    plain: bool

    @abstractmethod
    def scan(self, paths: Sequence[Path]) -> str:
        """The SQL of some of the files as a table."""

    def is_plain(self, needed: Collection[str]) -> bool:
        """Whether DuckDB sees the same records of the files as ``rows``."""
        return self.plain

    def constant(self, value: str) -> str:
        """The SQL of the columns that are folders, to be decoded as cells are."""
        return literal(value)

    def table(self, connection: Connection, needed: Sequence[str]) -> str | None:
        """The files in one scan, or in one for each set of folders."""
        if not self.is_plain(needed):
            return None
        if not self.partitions:
            return self.scan(self.paths)
        selected = []
        # neighbours with the same values in one scan, so that the order of the files stays
        for values, paths in groupby(self.paths, key=lambda path: partition_values(path, self.partitions)):
            told = zip(values, self.partitions, strict=True)
            constants = ", ".join(f"{self.constant(value)} AS {identifier(column)}" for value, column in told)
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
        """Whether the files are as plain as ``is_plain_csv`` says; gzipped ones are unpacked once for that."""
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
        """The records by Python's own reader."""
        return lines.csv_rows(path, self.delimiter, len(self.own), self.encoding)


class ParquetFiles(ScannedFiles):
    """Parquet files with the same columns."""

    def columns_of_files(self) -> list[str]:
        """The columns, whose types may differ where they are not needed, or else are walked through."""
        for path in self.paths:
            if not database.speakable([path]):
                raise ValueError(f"The name of {path} is not Unicode: rename the file.")
        with database.connected() as connection:
            self.kinds = [database.described(connection, self.scan([path])) for path in self.paths]
        self.check_same([kinds.keys() for kinds in self.kinds])
        return list(self.kinds[0])

    def is_plain(self, needed: Collection[str]) -> bool:
        """Whether the needed columns are of the same types in all files, so that nothing is cast."""
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
        """The frame where it lies, without a copy; none where a column has objects of several types."""
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
    """Whether the objects of a pandas column are of one type, or else DuckDB would make text of them in its own way."""
    if column.dtype.name == "category":
        return _types(column.cat.categories) <= {"str"}
    if column.dtype != object:
        return True
    types = _types(column)
    if types <= LISTS:
        types = _types(list(chain.from_iterable(cell for cell in column if type(cell).__name__ in LISTS)))
    return len(types) < 2 and types <= PLAIN


def _types(cells: Sequence[Any]) -> set[str]:
    """The types of what is there; what is missing has none."""
    types = {kind.__name__ for kind in set(map(type, cells))} - NOTHING
    if len(types) > 1 and not any(type(cell) is float and cell == cell for cell in cells):
        types.discard("float")
    return types
