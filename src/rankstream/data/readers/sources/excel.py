"""Excel workbooks, read with openpyxl (extra ``excel``)."""

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from rankstream.data.readers.problems import BadRecordError, shown
from rankstream.data.readers.sources.labels import text_or_nothing
from rankstream.data.readers.sources.lines import RawRow
from rankstream.data.readers.sources.tables import Files

MAX_UNPACKED_BYTES = 1_000_000_000  # a file of some kilobytes can unpack to more than memory holds
MAX_SHEET_ROWS = 1_048_576  # as many as Excel has


class WorkbookError(ValueError):
    """A problem with a workbook, with our own message."""


class ExcelFiles(Files):
    """Sheets whose first row with anything in it is the header."""

    def columns_of_files(self) -> list[str]:
        """The header, which must be the same in all files."""
        headers = [next((cells for _, cells in self._cells(path)), []) for path in self.paths]
        columns = [[text_or_nothing(cell) for cell in header] for header in headers]
        self.check_same(columns)
        return columns[0]

    def rows_of(self, path: Path, needed: Sequence[str] | None, most: int | None) -> Iterator[RawRow]:
        """The records after the header, numbered as Excel does; empty rows are left out."""
        width, where = len(self.own), f"{path}, row"
        for place, (number, cells) in enumerate(self._cells(path)):
            if place == 0:
                continue
            if len(cells) > width:
                bad = BadRecordError("malformed", "there are more values than columns: give every column a name.")
                yield RawRow(where, number, cells, bad)
            else:
                yield RawRow(where, number, [*cells, *[None] * (width - len(cells))])

    def _cells(self, path: Path) -> Iterator[tuple[int, list[Any]]]:
        """Yield the non-empty rows of the sheet with their numbers, without empty cells at the end."""
        with _workbook(path) as book:
            names = list(book.sheetnames)
            wanted = names[0] if self.sheet is None and len(names) == 1 else self.sheet
            if wanted not in names:
                remedy = "choose one with sheet=..." if wanted is None else f"there is none called {shown(wanted)}"
                raise WorkbookError(f"{path} has the sheets {', '.join(map(shown, names)) or 'none'}: {remedy}.")
            sheet = book[wanted]
            if not hasattr(sheet, "reset_dimensions"):
                raise WorkbookError(f"The sheet {shown(wanted)} of {path} is not a table: choose another sheet.")
            sheet.reset_dimensions()  # the file may state wrong ones
            for number, values in enumerate(sheet.iter_rows(values_only=True), 1):
                cells = list(values)
                while cells and cells[-1] in (None, ""):
                    cells.pop()
                if cells:
                    yield number, cells
                if number > MAX_SHEET_ROWS:
                    raise WorkbookError(
                        f"{path} has more than {MAX_SHEET_ROWS:,} rows, the limit of Excel: save it as CSV."
                    )


@contextmanager
def _workbook(path: Path) -> Iterator[Any]:
    """Open a workbook, and turn every error of the library into a ValueError of one sentence."""
    try:
        openpyxl = import_module("openpyxl")
    except ImportError:
        raise ValueError(
            f'{path} is an Excel workbook: install openpyxl (pip install ".[excel]" in a checkout), or save it as CSV.'
        ) from None
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(member.file_size for member in packed.infolist())
        if size > MAX_UNPACKED_BYTES:
            raise WorkbookError(f"{path} unpacks to {size:,} bytes, beyond {MAX_UNPACKED_BYTES:,}: save it as CSV.")
        with path.open("rb") as file:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about styles and the like
                book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            try:
                yield book
            finally:
                book.close()
    except (OSError, WorkbookError):
        raise
    except Exception as error:  # a library for XML and ZIP may raise anything at bytes that are neither
        raise ValueError(f"{path} is not a complete Excel workbook ({type(error).__name__}): save it again.") from None
