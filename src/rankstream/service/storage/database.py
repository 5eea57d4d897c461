"""The databases of a service: SQLite files in a folder, or one PostgreSQL database for several servers and learners.

Both are used through the same SQL with ``?`` for parameters, the same few methods, and the errors of ``sqlite3``; a
connection belongs to one thread at a time. tests/service/test_storage_conformance.py has what they must do:

- A batch is appended in one transaction with its key. The row of its market is locked first, so that positions are
  given out in order, and a reader that has seen a position has seen all before it.
- The results of a learner (state, position, model, point of the history) are saved in one transaction. In PostgreSQL,
  this transaction also checks the learner's lease of the market (``leases``): a paused learner cannot overwrite.
- Readers look again when ``changes`` returns another number: at once, or after a second if a message was lost.
"""

import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EACCES, EISDIR
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from rankstream.service.storage.postgres import PostgresDatabase

WAIT = 10.0  # seconds to wait for another process that writes; every write takes milliseconds
SCHEMES = ("postgresql://", "postgres://")
PASSWORD = re.compile(r"\w+://[^@/]*:(?!\d*[,/])[^@]*@")  # also one with signs that belong in %-escapes
Database: TypeAlias = "SqliteDatabase | PostgresDatabase"
Place = Path | str
"""Where the data are: a folder, or the URL of a PostgreSQL database."""


class SqliteDatabase(sqlite3.Connection):
    """A SQLite file. ``lock`` is what a SELECT ends with that locks its rows: only one transaction writes anyway."""

    is_shared, lock = False, ""

    def begin(self, *, writes: bool) -> None:
        """Begin a transaction; one that only reads sees a consistent state."""
        self.execute("BEGIN IMMEDIATE" if writes else "BEGIN")

    def changes(self) -> int:
        """Return a number that changes when another connection has written to the file."""
        return int(self.execute("PRAGMA data_version").fetchone()[0])

    def now(self) -> float:
        """Return the time of this machine."""
        return time.time()

    def version(self, name: str) -> int:
        """Return the version of the tables in the file."""
        return int(self.execute("PRAGMA user_version").fetchone()[0])

    def set_version(self, name: str, version: int) -> None:
        """Set the version of the tables in the file."""
        self.execute(f"PRAGMA user_version = {version}")


def place_of(text: str) -> Place:
    """Return the folder or the URL that a command names.

    >>> place_of("shop"), place_of("postgresql://shop@db.example/shop")
    (PosixPath('shop'), 'postgresql://shop@db.example/shop')
    >>> place_of("postgresql://shop:secret@db.example/shop")
    Traceback (most recent call last):
    ValueError: The URL has a password, which other users of this machine can see: put it into the file that PGPASSFILE
    names, or into PGPASSWORD.
    """
    if not text.startswith(SCHEMES):
        if "://" in text:
            raise ValueError(
                f"{text.partition('://')[0]}:// is not known: name a folder, or postgresql://user@host/name."
            )
        return Path(text)
    if PASSWORD.match(text) or {"password", "sslpassword"} & parse_qs(text.partition("?")[2], True).keys():
        raise ValueError(
            "The URL has a password, which other users of this machine can see: put it into the file that PGPASSFILE "
            "names, or into PGPASSWORD."
        )
    return text


def open_shared(url: str) -> Database:
    """Connect to a PostgreSQL database."""
    try:
        from rankstream.service.storage.postgres import PostgresDatabase
    except ModuleNotFoundError:
        raise ValueError('PostgreSQL needs an extra package: run pip install ".[postgres]" in the checkout.') from None
    return PostgresDatabase(url)


@contextmanager
def transaction(database: Database) -> Iterator[None]:
    """Run a block in one transaction."""
    database.begin(writes=True)
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            with suppress(sqlite3.Error):  # on a damaged file
                database.execute("ROLLBACK")
        raise


def run_script(database: Database, script: str) -> None:
    """Run statements within the current transaction, which ``executescript`` would commit."""
    for statement in script.split(";"):
        if statement.strip():
            database.execute(statement)


COLUMNS = {
    "keys": ("market token key", "digest answer made"),
    "learned": ("market", "epoch position state"),
    "served": ("market", "epoch digest model facts"),
    "course": ("market position", "epoch made choices distance gap"),
    "problems": ("market", "epoch sentence"),
    "listings": ("market", "content"),
    "learners": ("holder", "until"),
    "preferences": ("market", "content"),
}
"""The key and the other columns of tables whose rows are replaced."""


def upsert(database: Database, table: str, row: Sequence[Any]) -> None:
    """Insert a row, or replace the one with the same key."""
    keys, others = (names.split() for names in COLUMNS[table])
    database.execute(
        f"INSERT INTO {table} ({', '.join(keys + others)}) VALUES ({', '.join('?' * len(row))}) "
        f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in others)}",
        row,
    )


def _make_private(path: Path) -> None:
    """Create the file if it is missing, readable by its owner only.

    An existing file must not be opened here: closing it would release the locks of all connections to it in this
    process, and the next process to disconnect would delete the write-ahead log.
    """
    try:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        problem = EISDIR if path.is_dir() else 0 if os.access(path, os.R_OK | os.W_OK) else EACCES
        if problem:
            raise OSError(problem, os.strerror(problem))
        if os.name == "posix" and path.stat().st_mode & 0o077:
            path.chmod(0o600)  # written by an older version
    except OSError as error:
        raise ValueError(f"{path} cannot be written ({error.strerror}): check who owns it and its folder.") from None


def connect(path: Path, wait: float = WAIT) -> SqliteDatabase:
    """Open a file that several processes may use; commits are durable, and only the owner can read the file."""
    _make_private(path)
    database: SqliteDatabase = sqlite3.connect(
        path, timeout=wait, isolation_level=None, check_same_thread=False, factory=SqliteDatabase
    )
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
    except BaseException:
        database.close()
        raise
    return database
