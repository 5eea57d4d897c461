"""What was learned: state, position and served model of every market, in a second SQLite file.

It can be computed again from the log; what the log has dropped by then is only here.
"""

import json
import sqlite3
import time
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from rankstream.service.log import MarketRow, connect, version_of

NAME = "learned.sqlite3"
VERSION = 1
TABLES = """
CREATE TABLE learned (
    market INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, position INTEGER NOT NULL, state BLOB NOT NULL
);
CREATE TABLE served (
    market INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, digest TEXT NOT NULL, model TEXT NOT NULL, facts TEXT NOT NULL
);
"""


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
    connection: sqlite3.Connection, market: int, state: Learned, model: str | None, facts: dict[str, Any] | None
) -> None:
    """State, position and model of a market, at once; a model that is the same is not written again."""
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
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def drop_others(connection: sqlite3.Connection, markets: set[int]) -> None:
    """Forget markets that are gone."""
    for table in ("learned", "served"):
        for (market,) in connection.execute(f"SELECT market FROM {table}").fetchall():
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
