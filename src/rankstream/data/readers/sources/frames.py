"""Data frames as tables: pandas, polars and Arrow."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

from rankstream.data.readers.sources.database import Connection, connected, numbered
from rankstream.data.readers.sources.lines import RawRow
from rankstream.data.readers.sources.tables import Source

LISTS = {"list", "ndarray"}
PLAIN = {"str", "bool", "float", "date", "datetime", "Timestamp"}
NOTHING = {"NoneType", "NAType", "NaTType"}


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
        with connected() as connection:
            connection.register("frame", self.frame)
            yield from numbered(self.name, connection, "frame", self.columns, None, most)


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
