"""What was learned: state, position, served model and course of every market, in a second SQLite file.

It can be computed again from the log; what the log has dropped by then is only here.
"""

import json
import sqlite3
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from rankstream.service.log import MarketRow, connect, version_of

NAME = "learned.sqlite3"
VERSION = 1
MOST_POINTS = 400
"""Points of a course that are kept of a market."""
TABLES = """
CREATE TABLE learned (
    market INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, position INTEGER NOT NULL, state BLOB NOT NULL
);
CREATE TABLE served (
    market INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, digest TEXT NOT NULL, model TEXT NOT NULL, facts TEXT NOT NULL
);
"""
LATER = """
CREATE TABLE IF NOT EXISTS course (
    market INTEGER NOT NULL, epoch INTEGER NOT NULL, position INTEGER NOT NULL, made REAL NOT NULL,
    choices REAL NOT NULL, distance REAL, gap REAL, PRIMARY KEY (market, position)
) WITHOUT ROWID
"""
"""What came later than the first version, which does without: a file can go back and forth between the two."""


class Learned(NamedTuple):
    """The state of a market, and the position of the last record that is in it."""

    epoch: int
    position: int
    state: bytes


class ServedModel(NamedTuple):
    """A model that is given out: its text, the digest of it, and what is known about it."""

    epoch: int
    digest: str
    facts: dict[str, Any]


class CoursePoint(NamedTuple):
    """A market at a record: when that was learned, the choices so far, and the served model's distance and gap."""

    position: int
    made: float
    choices: float
    distance: float | None
    gap: float | None


def open_store(folder: Path) -> sqlite3.Connection:
    """The second file of a folder, made if absent; a damaged one, or one of another version, is put aside."""
    try:
        return _opened(folder)
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
    aside = f"{NAME}.{int(time.time())}.damaged"
    for ending in ("", "-wal", "-shm"):
        path = folder / f"{NAME}{ending}"
        if path.exists():
            path.rename(folder / f"{aside}{ending}")
    return _opened(folder)


def _opened(folder: Path) -> sqlite3.Connection:
    connection = connect(folder / NAME)
    try:
        connection.execute("BEGIN IMMEDIATE")
        if version_of(connection) != VERSION:
            for statement in f"DROP TABLE IF EXISTS learned; DROP TABLE IF EXISTS served; {TABLES}".split(";"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute(LATER)
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def positions(connection: sqlite3.Connection) -> dict[int, tuple[int, int]]:
    """For every market, the epoch and the position up to which it was learned."""
    return {
        market: (epoch, at) for market, epoch, at in connection.execute("SELECT market, epoch, position FROM learned")
    }


def learned(connection: sqlite3.Connection, market: int) -> Learned | None:
    """The state of a market, if there is one."""
    row = connection.execute("SELECT epoch, position, state FROM learned WHERE market = ?", (market,)).fetchone()
    return None if row is None else Learned(*row)


def keep(
    connection: sqlite3.Connection,
    market: int,
    state: Learned,
    model: str | None,
    facts: dict[str, Any] | None,
    point: CoursePoint | None = None,
) -> None:
    """State, position, model and course of a market, at once; a model that is the same is not written again.

    Parameters
    ----------
    connection : Connection
        The second file.
    market : int
        Whose they are.
    state : Learned
        The state, and the position of the last record in it.
    model, facts : str and dict, or None
        What is given out, if there is a model yet.
    point : CoursePoint, optional
        The next point of the course; it takes the place of one at the same position.

    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("INSERT OR REPLACE INTO learned VALUES (?, ?, ?, ?)", (market, *state))
        if model is not None:
            digest, told = sha256(model.encode()).hexdigest()[:32], json.dumps(facts)
            before = connection.execute("SELECT epoch, digest FROM served WHERE market = ?", (market,)).fetchone()
            if before == (state.epoch, digest):
                connection.execute("UPDATE served SET facts = ? WHERE market = ?", (told, market))
            else:
                row = (market, state.epoch, digest, model, told)
                connection.execute("INSERT OR REPLACE INTO served VALUES (?, ?, ?, ?, ?)", row)
        if point is not None:
            _go_on(connection, market, state.epoch, point)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _go_on(connection: sqlite3.Connection, market: int, epoch: int, point: CoursePoint) -> None:
    """Another point of a course; one of other settings, or of a log that was longer, begins anew."""
    connection.execute(
        "DELETE FROM course WHERE market = ? AND (epoch <> ? OR position > ?)", (market, epoch, point.position)
    )
    connection.execute("INSERT OR REPLACE INTO course VALUES (?, ?, ?, ?, ?, ?, ?)", (market, epoch, *point))
    found = [at for (at,) in connection.execute("SELECT position FROM course WHERE market = ?", (market,))]
    if len(found) > MOST_POINTS:
        kept = set(thinned(found))
        gone = [(market, at) for at in found if at not in kept]
        connection.executemany("DELETE FROM course WHERE market = ? AND position = ?", gone)


def thinned(found: Sequence[int], bins: int = MOST_POINTS // 4, latest: int = MOST_POINTS // 4) -> list[int]:
    """Fewer points of a course, however long it is: the first, the latest, and others evenly among the records.

    Thinning what was thinned before, with more points behind it, leaves it as even as thinning all at once.

    >>> thinned(range(1, 101), bins=5, latest=3)
    [1, 19, 39, 59, 79, 97, 98, 99, 100]
    """
    order = sorted(found)
    older, width = order[:-latest], order[-1] / bins
    last_of = {int(at / width): at for at in older}
    return sorted({order[0], *last_of.values(), *order[-latest:]})


def course_points(connection: sqlite3.Connection, market: int) -> list[CoursePoint]:
    """The course of a market, from its first model on."""
    rows = connection.execute(
        "SELECT position, made, choices, distance, gap FROM course WHERE market = ? ORDER BY position", (market,)
    )
    return [CoursePoint(*row) for row in rows]


def drop_others(connection: sqlite3.Connection, markets: set[int]) -> None:
    """Forget markets that are gone."""
    for table in ("learned", "served", "course"):
        for (market,) in connection.execute(f"SELECT DISTINCT market FROM {table}").fetchall():
            if market not in markets:
                connection.execute(f"DELETE FROM {table} WHERE market = ?", (market,))


def served(connection: sqlite3.Connection) -> dict[int, ServedModel]:
    """What is given out of every market, without the models themselves."""
    rows = connection.execute("SELECT market, epoch, digest, facts FROM served").fetchall()
    return {market: ServedModel(epoch, digest, json.loads(facts)) for market, epoch, digest, facts in rows}


def model_text(connection: sqlite3.Connection, market: int, digest: str) -> str | None:
    """The model of a digest; None where another has taken its place."""
    row = connection.execute("SELECT model FROM served WHERE market = ? AND digest = ?", (market, digest)).fetchone()
    return None if row is None else str(row[0])


class Published:
    """What the server knows of all this: read again whenever the learner has written."""

    def __init__(self, folder: Path) -> None:
        self.connection = open_store(folder)
        self._version = -1
        self._served: dict[int, ServedModel] = {}
        self._positions: dict[int, tuple[int, int]] = {}

    def _read(self) -> None:
        version = self.connection.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version:
            self._served, self._positions = served(self.connection), positions(self.connection)
            self._version = version

    def of(self, row: MarketRow) -> ServedModel | None:
        """What is given out of a market; the model of former settings until there is one of the new."""
        self._read()
        return self._served.get(row.id)

    def learned(self, row: MarketRow) -> int:
        """The position up to which a market was learned, with its settings as they are."""
        self._read()
        epoch, position = self._positions.get(row.id, (0, 0))
        return position if epoch == row.epoch else 0

    def text(self, row: MarketRow, digest: str) -> str | None:
        """The text of a model."""
        return model_text(self.connection, row.id, digest)

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()
