"""Columns that are names of folders, as in store=north/day-1.parquet: only where the user names them."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from urllib.parse import unquote

NOTHING = "__HIVE_DEFAULT_PARTITION__"


def partition_values(path: Path, partitions: Sequence[str]) -> tuple[str, ...]:
    """What the folders above a file say of some columns; the innermost folder counts.

    >>> partition_values(Path("sales/store=north/day=7/part.csv"), ["day", "store"])
    ('7', 'north')
    """
    told = dict(part.split("=", 1) for part in path.absolute().parts[:-1] if "=" in part)
    for column in partitions:
        if column not in told:
            raise ValueError(f"{path} lies in no folder {column}=...: leave {column!r} out of the partitions.")
    return tuple("" if told[column] == NOTHING else unquote(told[column]) for column in partitions)


def runs(paths: Sequence[Path], partitions: Sequence[str]) -> list[tuple[tuple[str, ...], list[Path]]]:
    """Neighbouring files with the same values together, so that the order of the files stays."""
    return [
        (values, list(same)) for values, same in groupby(paths, key=lambda path: partition_values(path, partitions))
    ]
