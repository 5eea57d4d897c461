"""Where the choices of many markets come from: a file, a folder of partitions, a frame or a relation of DuckDB."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rankstream._core.watch import Progress
from rankstream.data.readers.markets import (
    is_relation,
    parts_of_folder,
    read_markets,
    spill_relation,
    unused_in_parts,
)
from rankstream.data.readers.options import ReadOptions
from rankstream.data.readers.tallies import Tallies
from rankstream.estimation.many.engine import in_parallel
from rankstream.estimation.many.work import read_part


def checked_columns(by: str | Sequence[str]) -> tuple[str, ...]:
    """The columns that name a market."""
    columns: tuple[Any, ...] = (by,) if isinstance(by, str) else tuple(by)
    if not columns or not all(isinstance(column, str) and column for column in columns):
        raise ValueError(f"by is {by!r}: give the columns that define a market, such as ['store', 'category'].")
    if len(set(columns)) < len(columns):
        raise ValueError(f"by names a column twice ({', '.join(columns)}): list each once.")
    return columns


def gather(
    source: Any,
    by: tuple[str, ...],
    how: ReadOptions,
    on_error: str,
    n_jobs: int,
    tell: Progress,
) -> Tallies:
    """What was chosen in every market of a source.

    One GROUP BY of DuckDB, which goes to disk where memory is short. The files of a folder whose names have key=value
    folders are read by the workers, each its own; what cannot be read fails the markets it is of.
    """
    tell("reading", 0.0)
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        parts = parts_of_folder(source, by)
        if len(parts) == 1 and not parts[0].partitions:
            return read_markets([str(path) for path in parts[0].paths], by, how, on_error)
        found = Tallies(by, how, "")
        work = partial(read_part, by=by, how=how, on_error=on_error)
        for done, some in enumerate(in_parallel(work, parts, n_jobs)):
            found.update(some)
            found.notes = tuple(dict.fromkeys((*found.notes, *some.notes)))
            tell(f"{done + 1:,} of {len(parts):,} parts read", (done + 1) / len(parts))
        if not found.markets:
            raise ValueError(f"No part of {source} can be read: {next(iter(found.failed.values()))}")
        found.unused = unused_in_parts([part for part in parts if part.market(by) not in found.failed], by, how)
        return found
    if is_relation(source):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "relation.parquet"
            spill_relation(source, path)
            return read_markets(path, by, how, on_error)
    return read_markets(source, by, how, on_error)
