"""The rows of the study on disk: a journal that survives a crash, and tables whose bytes depend on the runs alone."""

import csv
import io
import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.fits import StudyRow
from experiments.settings import COLUMNS, StudyRun
from rankstream._core.files import write_whole
from rankstream._core.version import VERSION

SETTINGS = [*COLUMNS, "version"]


class Store:
    """The rows so far in a folder; what is there is not run again, and every row is safe once it is added.

    ``journal.jsonl`` has a line per run, in the order in which runs ended; a line that a crash cut off is left out,
    as are lines of other versions. ``runs.csv`` and ``times.csv`` are made from it, in the order of the settings.
    """

    def __init__(self, folder: Path) -> None:
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is a file: give a folder for the results with --out.")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._journal = folder / "journal.jsonl"
        self._rows: dict[StudyRun, list[StudyRow]] = {}
        self._read()

    def _read(self) -> None:
        if not self._journal.exists():
            return
        try:
            text = self._journal.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{self._journal} is damaged: delete it, or choose another folder with --out.") from None
        whole = text[: text.rfind("\n") + 1]
        if len(whole) < len(text):
            write_whole(self._journal, whole)
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                entry = json.loads(line)
                if entry["version"] == VERSION:
                    run = StudyRun(**entry["run"])
                    rows = [StudyRow(run, results, times) for results, times in entry["rows"]]
                    if not rows or any("rounds" not in row.results for row in rows):
                        raise ValueError("rows without results")
                    self._rows[run] = rows
            except (KeyError, TypeError, ValueError):
                raise ValueError(
                    f"Line {number} of {self._journal} is damaged: delete the line, or choose another folder with "
                    "--out."
                ) from None

    def __contains__(self, run: StudyRun) -> bool:
        return run in self._rows

    def add(self, rows: Iterable[StudyRow]) -> None:
        """Keep rows; they are on disk when this returns."""
        found: dict[StudyRun, list[StudyRow]] = {}
        for row in rows:
            found.setdefault(row.run, []).append(row)
        lines = [
            json.dumps({"version": VERSION, "run": asdict(run), "rows": [(row.results, row.times) for row in group]})
            for run, group in found.items()
        ]
        with self._journal.open("a", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
        self._rows.update(found)

    def rows(self, runs: Iterable[StudyRun]) -> list[StudyRow]:
        """The rows of these runs, in the order of their settings; runs that are not there are left out."""
        return [row for run in sorted(set(runs)) for row in self._rows.get(run, [])]

    def write_tables(self, runs: Iterable[StudyRun]) -> None:
        """``runs.csv`` with what depends on the settings alone, and ``times.csv`` with the seconds."""
        rows = self.rows(runs)
        write_whole(self.folder / "runs.csv", _table(rows, [row.results for row in rows]))
        write_whole(self.folder / "times.csv", _table(rows, [row.times for row in rows]))


def _table(rows: list[StudyRow], values: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for entry in values for name in entry))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*SETTINGS, *names])
    for row, entry in zip(rows, values, strict=True):
        settings = [*asdict(row.run).values(), VERSION]
        writer.writerow([*settings, *(shown(entry.get(name, "")) for name in names)])
    return out.getvalue()


def shown(value: Any) -> str:
    """A number as it stands in a table: ten digits, which is what survives another order of summation."""
    return f"{value:.10g}" if isinstance(value, float) else str(value)
