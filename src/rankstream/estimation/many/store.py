"""The folder of a run: a model file per market, index.parquet, and the state for a rerun."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankstream._core.files import LOCK, own_folder, write_whole
from rankstream.data.readers.sources.database import read_parquet, write_parquet
from rankstream.estimation.many.markets import COLUMNS, Market, MarketFit, bytes_digest

INDEX, JOURNAL, SETTINGS, COUNTS, POOL = "index.parquet", "journal.jsonl", "settings.json", "counts.npz", "pool.json"
FORMAT, VERSION = "rankstream-markets", 1


class MarketStore:
    """A folder of markets: each fitted market is written at once, the index at the end.

    Until then a journal has a line for each market, so that a killed run can be continued.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.settings = self._read_settings()
        self.rows: dict[Market, MarketFit] = {}
        if (self.folder / INDEX).is_file():
            found = [MarketFit.from_row(row) for row in read_parquet(self.folder / INDEX, COLUMNS)]
            self.rows = {row.key: row for row in found}
        self.rows |= {row.key: row for row in self._journal()}

    def _read_settings(self) -> dict[str, Any] | None:
        path = self.folder / SETTINGS
        if not path.is_file():
            return None
        try:
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if content["format"] != FORMAT or not isinstance(content["by"], list):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path} is damaged: choose another folder, or remove {self.folder}.") from None
        if content["version"] > VERSION:
            raise ValueError(f"{path} has version {content['version']}: update rankstream.")
        return content

    def _journal(self) -> Iterator[MarketFit]:
        path = self.folder / JOURNAL
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError, KeyError, TypeError):  # the last line of a killed run may be incomplete
                    yield MarketFit.from_row(json.loads(line))

    def check(self, settings: dict[str, Any]) -> None:
        """Raise a ValueError if the folder has other files, or markets with other settings."""
        if self.settings is None:
            others = [path.name for path in self.folder.iterdir() if path.name != LOCK]
            if others:
                raise ValueError(
                    f"{self.folder} contains {others[0]!r} and is not a folder of markets: choose an empty one."
                )
            return
        for name, value in settings.items():
            if self.settings.get(name) != value:
                raise ValueError(
                    f"{self.folder} has markets with {name} {self.settings.get(name)!r}, but this run has "
                    f"{value!r}: choose another folder, or remove this one."
                )

    def settle(self, settings: dict[str, Any]) -> None:
        """Write the settings of a run."""
        self.settings = {"format": FORMAT, "version": VERSION, **settings}
        write_whole(self.folder / SETTINGS, json.dumps(self.settings) + "\n")

    def is_done(self, key: Market, digest: str) -> bool:
        """Return whether a market was fitted to the same counts with the same settings, and its file is intact."""
        row = self.rows.get(key)
        if row is None or row.error is not None or row.digest != digest or row.file is None:
            return False
        with suppress(OSError):
            return bytes_digest((self.folder / row.file).read_bytes()) == row.written
        return False

    def put(self, row: MarketFit, text: str | None) -> None:
        """Store a market: its model file, then a line in the journal."""
        old = self.rows.get(row.key)
        if row.file is not None and text is not None:
            write_whole(self.folder / row.file, text, sync=False)
        elif old is not None and old.file is not None:
            (self.folder / old.file).unlink(missing_ok=True)
        self.rows[row.key] = row
        with (self.folder / JOURNAL).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row.to_row()) + "\n")

    def touch(self, key: Market) -> None:
        """Mark a market of an earlier run as done if it is in the data again, unchanged."""
        if self.rows[key].status == "absent":
            self.rows[key] = replace(self.rows[key], status="done")

    def finish(self, present: set[Market] | None = None) -> None:
        """Write the index; markets of earlier runs that are no longer in the data stay, marked as absent."""
        if present is not None:
            gone = [row for key, row in self.rows.items() if key not in present]
            for row in gone:
                if row.status == "done":
                    self.rows[row.key] = replace(row, status="absent")
                elif row.status == "failed":
                    del self.rows[row.key]
        rows = [self.rows[key].to_row() for key in sorted(self.rows)]
        write_parquet(self.folder / INDEX, rows, COLUMNS)
        (self.folder / JOURNAL).unlink(missing_ok=True)


@contextmanager
def opened(folder: str | os.PathLike[str]) -> Iterator[MarketStore]:
    """Lock and open a folder of markets; after bad input, remove a folder that was created here."""
    path = Path(folder)
    new = not path.exists()
    try:
        with own_folder(path):
            yield MarketStore(path)
    except ValueError:
        if new and path.is_dir() and {entry.name for entry in path.iterdir()} <= {LOCK}:
            (path / LOCK).unlink(missing_ok=True)
            path.rmdir()
        raise
