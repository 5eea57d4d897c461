"""Where records come from: files by name, list or glob, and data frames."""

import os
from glob import glob
from pathlib import Path
from typing import Any

from rankstream.data.readers.preflib import ENDINGS, Ballots
from rankstream.data.readers.tables import CsvFiles, Frame, JsonFiles, ParquetFiles, Source, is_glob

JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
OTHERS = {
    (".zip", ".7z", ".rar", ".tar", ".tgz", ".bz2", ".xz", ".zst"): "is packed: unpack it, or pack it by gzip",
    (".xlsx", ".xls", ".ods"): "is a spreadsheet: save it as CSV, or read it by pandas and give the frame",
    (".dta", ".sav", ".sas7bdat", ".feather", ".arrow", ".pkl"): "is no text: read it by pandas and give the frame",
    (".rda", ".rdata", ".rds"): "is a file of R: save it as CSV by write.csv there",
}


def open_source(source: Any) -> Source:
    """The source that a user names: a path, a glob, a list of paths, or a frame."""
    if hasattr(source, "__dataframe__") or hasattr(source, "__arrow_c_stream__") or hasattr(source, "collect_schema"):
        return Frame(source)
    names = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(names, list | tuple) or not all(isinstance(name, str | os.PathLike) for name in names):
        raise ValueError(
            f"Cannot read a {type(source).__name__}: give a path, a glob, a list of paths or a data frame."
        )
    paths = [path for name in names for path in _found(os.fspath(name))]
    kinds = {_kind(path): path for path in paths}
    if len(kinds) != 1:
        shown = " and ".join(str(path) for path in kinds.values()) or "nothing"
        raise ValueError(f"There is {shown} to read together: give files of one kind.")
    shown = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    found: Source = next(iter(kinds))(shown, paths)
    return found


def _kind(path: Path) -> Any:
    name = path.name.lower().removesuffix(".gz")
    for endings, remedy in OTHERS.items():
        if name.endswith(endings):
            raise ValueError(f"{path} {remedy}.")
    if name.endswith(ENDINGS):
        return Ballots
    if name.endswith((".parquet", ".pq")):
        return ParquetFiles
    return JsonFiles if name.endswith(JSON_ENDINGS) else CsvFiles


def _found(name: str) -> list[Path]:
    path = Path(name)
    if "\0" not in name and path.is_file():
        return [path]
    if "\0" not in name and path.is_dir():
        raise ValueError(f"{name} is a folder: name its files, such as {path / '*.csv'}.")
    matches = sorted(glob(name, recursive=True)) if is_glob(path) else []  # noqa: PTH207, for patterns from the root
    if not matches:
        raise ValueError(f"There is no file {name}: name a file of choices, or several by a glob such as 'day-*.csv'.")
    return [Path(match) for match in matches]
