"""Preferences entered on the page (margins, today's offer, currency): in a file of the folder, or in the database."""

import json
import sqlite3
from pathlib import Path
from typing import Any

from rankstream._core.files import write_whole
from rankstream.service.limits import RefusedError
from rankstream.service.storage.database import Database, Place, upsert

NAME = "preferences.json"
AWAY = "The database cannot be reached: try again in a second."


class PreferenceFile:
    """Preferences in a file that only one server writes; an unreadable file is empty."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME

    @property
    def _known(self) -> dict[str, dict[str, Any]]:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            content = {}
        return content if isinstance(content, dict) else {}

    def of(self, market: str) -> dict[str, Any]:
        """Return the preferences of a market."""
        return self._known.get(market, {})

    def keep(self, market: str, content: dict[str, Any]) -> dict[str, Any]:
        """Save the preferences of a market, or delete them if they are empty."""
        known = {name: one for name, one in (self._known | {market: content}).items() if one}
        write_whole(self.path, json.dumps(known), mode=0o600)  # as the databases
        return content


class SharedPreferences:
    """Preferences in a database, which every server reads and writes."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def of(self, market: str) -> dict[str, Any]:
        """Return the preferences of a market."""
        try:
            row = self.database.execute("SELECT content FROM preferences WHERE market = ?", (market,)).fetchone()
        except sqlite3.Error:
            raise RefusedError(503, AWAY, Retry_After="1") from None
        return {} if row is None else dict(json.loads(row[0]))

    def keep(self, market: str, content: dict[str, Any]) -> dict[str, Any]:
        """Save the preferences of a market, and return them."""
        try:
            upsert(self.database, "preferences", (market, json.dumps(content)))
        except sqlite3.Error:
            raise RefusedError(503, AWAY, Retry_After="1") from None
        return content


def preferences_of(place: Place, log: Database) -> PreferenceFile | SharedPreferences:
    """Return the preferences of a folder, or of a database."""
    return SharedPreferences(log) if isinstance(place, str) else PreferenceFile(place)
