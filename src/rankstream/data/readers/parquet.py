"""Small tables of plain values as Parquet files, for others to read: written by DuckDB, whole or not at all."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rankstream._core.files import whole_file
from rankstream.data.readers.database import connected, identifier, listed, literal


def write_parquet(path: str | os.PathLike[str], rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    """Write rows of these columns, each with its type in SQL."""
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
    """The rows of a file that ``write_parquet`` wrote; a ValueError where it is not one."""
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
