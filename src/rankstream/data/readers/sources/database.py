"""DuckDB: databases and connections, quoting for SQL, and small Parquet files."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Any, TypeAlias

from rankstream._core.files import whole_file
from rankstream._core.watch import during
from rankstream.data.readers.sources.lines import RawRow

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Connection: TypeAlias = "DuckDBPyConnection"
FETCH_ROWS = 10_000  # that Python has in memory at once; benchmarks/reading.py times the whole
BLANKS = "".join(letter for letter in map(chr, range(0x3001)) if letter.isspace())  # the characters of str.strip

_THREADS: ContextVar[int | None] = ContextVar("threads", default=None)
_DATABASES: dict[tuple[int, int | None], Connection] = {}


def one_thread() -> AbstractContextManager[int]:
    """Limit DuckDB to one thread within a ``with`` block, for use in one of several processes."""
    return during(_THREADS, 1)


def own_database(memory: str | None = None) -> Connection:
    """Open a new in-memory database, which spills to the folder for temporary files."""
    import duckdb

    config: dict[str, Any] = {"temp_directory": str(Path(gettempdir()) / f"rankstream-{token_hex(16)}")}
    config |= {} if _THREADS.get() is None else {"threads": _THREADS.get()}
    config |= {"autoinstall_known_extensions": False} | ({} if memory is None else {"memory_limit": memory})
    try:
        return _configured(duckdb.connect(config=config))
    except duckdb.Error:
        raise ValueError(f"The memory {memory!r} is not a size: write it as '1GB'.") from None


def connected() -> Connection:
    """Return a connection to the database of this process, with its own temporary tables and views.

    Opening a database takes 20 ms, a connection to it 0.3 ms, and reading a file needs several connections.
    """
    import duckdb

    key = os.getpid(), _THREADS.get()  # threads of a database do not survive a fork
    try:
        return _configured(_DATABASES[key].cursor())
    except (KeyError, duckdb.Error):  # a fatal error in any query ends the whole database
        _DATABASES[key] = own_database()
        return _configured(_DATABASES[key].cursor())


def _configured(connection: Connection) -> Connection:
    import duckdb

    connection.execute("SET enable_progress_bar = false").fetchall()
    with suppress(duckdb.Error):  # without time zone support, UTC is the only zone anyway
        connection.execute("SET TimeZone = 'UTC'").fetchall()
    return connection


def identifier(name: str) -> str:
    """Quote the name of a column for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(words: str) -> str:
    """Quote a text for SQL."""
    return "'" + words.replace("'", "''") + "'"


def double(number: float) -> str:
    """Return a number in SQL, exact to the last bit."""
    return f"CAST('{number!r}' AS DOUBLE)"


def stripped(words: str) -> str:
    """Return the SQL that strips a text as Python does; ``trim`` alone strips only spaces.

    >>> with connected() as connection:
    ...     connection.execute("SELECT " + stripped(literal(chr(9) + "tea" + chr(160)))).fetchall()
    [('tea',)]
    """
    plain = f"regexp_full_match({words}, '[!-~]([ -~]*[!-~])?')"  # true of almost all texts; the trim is far slower
    return f"CASE WHEN {plain} THEN {words} ELSE trim({words}, {literal(BLANKS)}) END"


def listed(paths: Sequence[Path]) -> str:
    """Return files as a list in SQL: absolute, because "~" and "file:" are special, and with globs escaped.

    >>> listed([Path("/data/a[1].csv")])
    "['/data/a[[]1].csv']"
    """
    return "[" + ", ".join(literal(re.sub(r"([*?\[])", r"[\1]", str(path.absolute()))) for path in paths) + "]"


def speakable(paths: Sequence[Path]) -> bool:
    """Return whether all paths are Unicode, as DuckDB needs."""
    try:
        "".join(str(path.absolute()) for path in paths).encode()
    except UnicodeEncodeError:
        return False
    return True


def described(connection: Connection, table: str) -> dict[str, str]:
    """Return the type of each column of a table."""
    return {row[0]: str(row[1]) for row in connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()}


def unzoned(column: str, kind: str | None) -> str:
    """Return the SQL of a column; a time with a zone becomes one in UTC without a zone."""
    return f"CAST({identifier(column)} AS TIMESTAMP)" if str(kind).endswith("WITH TIME ZONE") else identifier(column)


def numbered(
    name: str,
    connection: Connection,
    table: str,
    columns: Sequence[str],
    needed: Sequence[str] | None = None,
    most: int | None = None,
) -> Iterator[RawRow]:
    """Yield the first rows of a table, or all, numbered from 0; cells that are not needed are None."""
    kinds = described(connection, table)
    wanted = [unzoned(column, kinds[column]) if needed is None or column in needed else "NULL" for column in columns]
    result = connection.execute(f"SELECT {', '.join(wanted)} FROM {table}" + ("" if most is None else f" LIMIT {most}"))
    number = 0
    while batch := result.fetchmany(FETCH_ROWS):
        for cells in batch:
            yield RawRow(f"{name}, row", number, cells)
            number += 1


def write_parquet(path: str | os.PathLike[str], rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    """Write rows of plain values to a Parquet file, atomically; ``columns`` are SQL types by name."""
    kinds = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in columns.items())
    with TemporaryDirectory() as folder, connected() as connection, whole_file(path) as temporary:
        lines = Path(folder) / "rows.jsonl"
        with lines.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps({name: row[name] for name in columns}) + "\n" for row in rows)
        if lines.stat().st_size:
            table = f"read_json({listed([lines])}, format='newline_delimited', columns={{{kinds}}})"
        else:
            nothing = ", ".join(f"CAST(NULL AS {kind}) AS {identifier(name)}" for name, kind in columns.items())
            table = f"(SELECT {nothing} LIMIT 0)"
        connection.execute(f"COPY (SELECT * FROM {table}) TO {literal(str(temporary.absolute()))} (FORMAT parquet)")


def read_parquet(path: str | os.PathLike[str], columns: Iterable[str]) -> list[dict[str, Any]]:
    """Return the rows of a file that ``write_parquet`` wrote, or raise a ValueError."""
    import duckdb

    names = list(columns)
    try:
        with connected() as connection:
            table = f"read_parquet({listed([Path(path)])}, hive_partitioning=false)"
            rows = connection.execute(f"SELECT {', '.join(map(identifier, names))} FROM {table}").fetchall()
    except duckdb.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"{path} cannot be read ({reason}): run estimate_many again.") from None
    return [dict(zip(names, row, strict=True)) for row in rows]
