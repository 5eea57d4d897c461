"""A PostgreSQL database as the service uses it: SQL with ``?``, the errors of sqlite3, and connections that return."""

import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from rankstream.service.limits import LostCommitError

R = TypeVar("R")
VERSION = 1
LOOK_SECONDS = 1.0  # after which readers look again even if no message came; settings may take two seconds
KEPT_ALIVE = {"connect_timeout": 5, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
SESSION: dict[str, Any] = {"tcp_user_timeout": 10_000, **KEPT_ALIVE, "application_name": "rankstream"}
LIMITS = "SET client_encoding = 'UTF8'; SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '5s'"
MIGRATION = "postgres_{}.sql"  # beside this file: it upgrades a database to this version
CODES = {
    "53100": sqlite3.SQLITE_FULL, "58030": sqlite3.SQLITE_IOERR, "40P01": sqlite3.SQLITE_BUSY,
    "55P03": sqlite3.SQLITE_BUSY, "XX001": sqlite3.SQLITE_CORRUPT, "XX002": sqlite3.SQLITE_CORRUPT,
}  # fmt: skip
"""The codes of SQLite's errors for those of PostgreSQL."""


class UnreachableError(ValueError, sqlite3.OperationalError):
    """The database cannot be reached, or not be used by this user; it may be later."""


class PostgresDatabase:
    """A connection that is made again when it was lost, outside of transactions only.

    ``lock`` is what a SELECT ends with that locks its rows until the transaction ends.
    """

    is_shared, lock = True, " FOR UPDATE"

    def __init__(self, url: str) -> None:
        self.url, self.total_changes = url, 0
        self.in_transaction = self._listens = False
        self._messages = 0
        try:
            self._guarded(self._connect)
            try:
                self._migrate()
            except BaseException:
                self.close()
                raise
        except sqlite3.OperationalError as error:
            raise UnreachableError(f"The database cannot be used ({error}): check its URL and its user.") from None

    def _connect(self) -> None:
        self._connection = psycopg.connect(self.url, autocommit=True, **SESSION)
        self._connection.execute(LIMITS)
        self._listens = False
        self._messages += 1  # some may have been lost

    def _migrate(self) -> None:
        """Make or upgrade the tables; refuse those of a newer version."""
        if self.version("tables") == VERSION:
            return
        if self.execute("SHOW server_encoding").fetchone() != ("UTF8",):
            raise ValueError("The database has another encoding than UTF8: create one with ENCODING 'UTF8'.")
        self.execute("BEGIN")
        self.execute("SELECT pg_advisory_xact_lock(7208615)")  # others wait until the tables are there
        self.execute("CREATE TABLE IF NOT EXISTS versions (name TEXT PRIMARY KEY, version BIGINT NOT NULL)")
        version = self.version("tables")
        if version > VERSION:
            raise ValueError(
                f"The database has version {version}, this rankstream reads up to {VERSION}: update rankstream."
            )
        for step in range(version, VERSION):
            self.execute(Path(__file__).with_name(MIGRATION.format(step + 1)).read_text(encoding="utf-8"))
        self.set_version("tables", VERSION)
        self.execute("COMMIT")

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        """Run a statement; again, if the connection was lost before it and this makes no difference."""
        word = sql.split(None, 1)[0]
        if self._connection.closed and (word == "ROLLBACK" or not self.in_transaction):
            self.in_transaction = False
            self._guarded(self._connect)
        try:
            cursor = self._run(sql, parameters)
        except sqlite3.Error:
            is_lost = self._connection.closed and not self.in_transaction
            self.in_transaction = self.in_transaction and word != "COMMIT"
            if word == "COMMIT" and self._connection.closed:
                raise LostCommitError from None
            if not is_lost or word not in ("SELECT", "BEGIN"):
                raise
            self._guarded(self._connect)
            cursor = self._run(sql, parameters)
        if word in ("BEGIN", "COMMIT", "ROLLBACK"):
            self.in_transaction = word == "BEGIN"
        elif word != "SELECT":
            self.total_changes += max(0, cursor.rowcount)
        return cursor

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Any:
        """Run a statement for each of several rows."""
        cursor = self._guarded(self._connection.cursor)
        self._guarded(lambda: cursor.executemany(as_psycopg(sql), parameters))
        self.total_changes += max(0, cursor.rowcount)
        return cursor

    def _run(self, sql: str, parameters: Sequence[Any]) -> Any:
        return self._guarded(lambda: self._connection.execute(as_psycopg(sql), parameters or None))

    def _guarded(self, run: Callable[[], R]) -> R:
        """Run a function, and raise its errors as those of SQLite."""
        try:
            return run()
        except psycopg.Error as error:
            problem = sqlite3.OperationalError(reason_of(error))
            problem.sqlite_errorcode = CODES.get(error.sqlstate or "", sqlite3.SQLITE_ERROR)
            raise problem from None

    def begin(self, *, writes: bool) -> None:
        """Begin a transaction; one that only reads sees a consistent state."""
        # a transaction that has waited for a lock must see what was written under it, whatever the database's default
        level = "READ COMMITTED" if writes else "REPEATABLE READ READ ONLY"
        self.execute(f"BEGIN ISOLATION LEVEL {level}")

    def changes(self) -> int:
        """Return a number that changes after a message that something was written, and every second."""
        with suppress(sqlite3.Error):  # it is lost
            self._messages += self._guarded(lambda: len(list(self._connection.notifies(timeout=0.0))))
        if self._connection.closed or not self._listens:
            self.execute("SELECT 1")  # on a new connection, if it was lost
            self.execute("LISTEN rankstream")
            self._listens = True
            self._messages += 1
        return self._messages * 1_000_000 + int(time.monotonic() / LOOK_SECONDS) % 1_000_000

    def now(self) -> float:
        """Return the time of the database server."""
        return float(self.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()[0])

    def version(self, name: str) -> int:
        """Return the version of some tables; 0 without any."""
        if self.execute("SELECT to_regclass('versions')::text").fetchone()[0] is None:
            return 0
        row = self.execute("SELECT version FROM versions WHERE name = ?", (name,)).fetchone()
        return 0 if row is None else int(row[0])

    def set_version(self, name: str, version: int) -> None:
        """Set the version of some tables."""
        statement = "INSERT INTO versions VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET version = excluded.version"
        self.execute(statement, (name, version))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def as_psycopg(sql: str) -> bytes:
    """Return a statement with the placeholders of psycopg.

    >>> as_psycopg("SELECT name FROM markets WHERE id = ?")
    b'SELECT name FROM markets WHERE id = %s'
    """
    return sql.replace("?", "%s").encode()


def reason_of(error: psycopg.Error) -> str:
    r"""Return the first line of an error.

    >>> reason_of(psycopg.OperationalError("connection refused\nis the server running?"))
    'connection refused'
    """
    return str(error).partition("\n")[0]
