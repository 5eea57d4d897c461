"""Open sources of records: files by path, list or glob, and data frames."""

import codecs
import os
from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import Any

from rankstream.data.readers.sources.excel import ExcelFiles
from rankstream.data.readers.sources.json import JsonFiles
from rankstream.data.readers.sources.lines import UTF8
from rankstream.data.readers.sources.preflib import ENDINGS, Ballots
from rankstream.data.readers.sources.tables import CsvFiles, Frame, ParquetFiles, Source

JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
NO_FILES = ("idna", "punycode", "raw-unicode-escape", "unicode-escape", "utf-7")  # codecs that no file is in
OTHERS = {
    (".zip", ".7z", ".rar", ".tar", ".tgz", ".bz2", ".xz", ".zst"): "is compressed: decompress it, or use gzip",
    (".xls", ".xlsb", ".ods"): "is a spreadsheet: save it as CSV or .xlsx",
    (".dta", ".sav", ".sas7bdat", ".feather", ".arrow", ".pkl"): "is not text: read it with pandas, pass the frame",
    (".rda", ".rdata", ".rds"): "is an R file: save it as CSV with write.csv",
}


def open_source(
    source: Any, *, partitions: str | Sequence[str] = (), encoding: str | None = None, sheet: str | None = None
) -> Source:
    """Open a path, a glob, a list of paths, or a data frame; the options are those of ``read``."""
    folders = (partitions,) if isinstance(partitions, str) else tuple(partitions)
    coding = _encoding(encoding)
    if hasattr(source, "__dataframe__") or hasattr(source, "__arrow_c_stream__") or hasattr(source, "collect_schema"):
        if folders:
            raise ValueError(f"A data frame has no folder {folders[0]}=...: leave out partitions.")
        return Frame(source)
    names = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(names, list | tuple) or not all(isinstance(name, str | os.PathLike) for name in names):
        raise ValueError(
            f"Cannot read a {type(source).__name__}: give a path, a glob, a list of paths or a data frame."
        )
    paths = [path for name in names for path in _matches(os.fspath(name))]
    kinds = {_kind(path): path for path in paths}
    if len(kinds) != 1:
        shown = " and ".join(str(path) for path in kinds.values()) or "nothing"
        raise ValueError(f"Cannot read {shown} together: give files of one kind.")
    shown = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    kind = next(iter(kinds))
    if sheet is not None and kind is not ExcelFiles:
        raise ValueError(f"{paths[0]} is not an Excel workbook, so it has no sheet {sheet!r}: leave out sheet.")
    files: Source = kind(shown, paths, partitions=folders, encoding=coding, sheet=sheet)
    return files


def _encoding(encoding: str | None) -> str:
    try:
        name = codecs.lookup(encoding or UTF8).name
        "".encode(name)  # fails for codecs between bytes
        if name in NO_FILES:
            raise LookupError(name)
    except (LookupError, TypeError, ValueError):
        raise ValueError(f"Unknown encoding {encoding!r}: the usual ones are 'utf-8' and 'latin-1'.") from None
    return UTF8 if name in (UTF8, "utf-8-sig") else name


def _kind(path: Path) -> Any:
    name = path.name.lower().removesuffix(".gz")
    for endings, remedy in OTHERS.items():
        if name.endswith(endings):
            raise ValueError(f"{path} {remedy}.")
    if name.endswith(ENDINGS):
        return Ballots
    if name.endswith((".parquet", ".pq")):
        return ParquetFiles
    if name.endswith((".xlsx", ".xlsm")):
        return ExcelFiles
    return JsonFiles if name.endswith(JSON_ENDINGS) else CsvFiles


def _matches(name: str) -> list[Path]:
    path = Path(name)
    if "\0" not in name and path.is_file():
        return [path]
    if "\0" not in name and path.is_dir():
        raise ValueError(f"{name} is a folder: give its files, such as {path / '*.csv'}.")
    is_glob = any(mark in name for mark in "*?[") and "\0" not in name
    matches = sorted(glob(name, recursive=True)) if is_glob else []  # noqa: PTH207, for patterns from the root
    matches = [match for match in matches if Path(match).is_file()]
    if not matches:
        raise ValueError(f"There is no file {name}: give a file of choices, or a glob such as 'day-*.csv'.")
    return [Path(match) for match in matches]
