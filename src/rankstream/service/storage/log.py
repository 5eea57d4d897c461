"""The log: every acknowledged batch, in a SQLite file from which everything else can be rebuilt."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EISDIR
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from rankstream._core.types import Label
from rankstream.streams.record import Record

Offered = tuple[Label, ...] | dict[Label, Any]
"""An offer: items, or a mapping from items to prices."""
NAME = "log.sqlite3"
VERSION = 3
WAIT = 10.0  # seconds to wait for another process that writes; every write takes milliseconds
TABLES = """
CREATE TABLE markets (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, made REAL NOT NULL, epoch INTEGER NOT NULL,
    records INTEGER NOT NULL, untimed INTEGER NOT NULL, uneven INTEGER NOT NULL, large INTEGER NOT NULL,
    settings TEXT NOT NULL, dropped INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE offers (market INTEGER, number INTEGER, items TEXT NOT NULL, PRIMARY KEY (market, number)) WITHOUT ROWID;
CREATE TABLE batches (
    id INTEGER PRIMARY KEY, market INTEGER NOT NULL, position INTEGER NOT NULL, records INTEGER NOT NULL,
    arrived REAL NOT NULL, body TEXT NOT NULL, checksum INTEGER
);
CREATE UNIQUE INDEX batches_of_markets ON batches (market, position);
CREATE TABLE keys (
    market INTEGER, token TEXT, key TEXT, digest BLOB NOT NULL, answer TEXT NOT NULL, made REAL NOT NULL,
    PRIMARY KEY (market, token, key)
) WITHOUT ROWID;
CREATE INDEX keys_by_time ON keys (made);
"""
IDENTITY = """
CREATE TABLE identity (log TEXT NOT NULL);
INSERT INTO identity VALUES (lower(hex(randomblob(16))));
"""
MIGRATIONS = {
    0: TABLES + IDENTITY,
    1: "ALTER TABLE markets ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;",
    2: "ALTER TABLE batches ADD COLUMN checksum INTEGER;" + IDENTITY,
}
"""SQL that upgrades a log from each version to the next; 0 is an empty file. Version 1 did not count dropped records.
Version 2 had no identity and no checksums; its batches stay without one."""


class MarketRow(NamedTuple):
    """A market in the log; ``records`` is the position of its last record."""

    id: int
    name: str
    made: float
    epoch: int
    records: int
    untimed: int
    uneven: int
    large: int
    settings: dict[str, Any]
    dropped: int


DAMAGED = "The log is damaged. Stop the server, and restore a backup."


class DamagedBatchError(ValueError):
    """A batch in the log is damaged."""


class DamagedLogError(sqlite3.DatabaseError):
    """Pages of the log cannot be read."""


def is_damage(error: BaseException) -> bool:
    """Return whether an error means that a database is damaged, not just full, busy or out of reach."""
    code = getattr(error, "sqlite_errorcode", None) or 0
    return isinstance(error, DamagedLogError) or code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


@contextmanager
def named_damage() -> Iterator[None]:
    """Raise damage as a DamagedLogError, to tell the log from other databases."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise DamagedLogError(DAMAGED) from error
        raise


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a block in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with suppress(sqlite3.Error):  # on a damaged file
                connection.execute("ROLLBACK")
        raise


class Batch(NamedTuple):
    """Records of one request, and the position after the last one."""

    position: int
    arrived: float
    records: list[Record]


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


def connect(path: Path, wait: float = WAIT) -> sqlite3.Connection:
    """Open a database that several processes may use; commits are durable, and only the owner can read the file."""
    _make_private(path)
    connection = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def open_log(folder: Path) -> sqlite3.Connection:
    """Open the log of a folder; create it if it is missing, and upgrade an older version."""
    connection = connect(folder / NAME)
    try:
        with transaction(connection):
            version = version_of(connection)
            if version > VERSION:
                raise ValueError(
                    f"The log in {folder} has version {version}, this rankstream reads up to {VERSION}: update "
                    "rankstream."
                )
            if version < 0:
                raise ValueError(f"The log in {folder} has version {version}, which does not exist: restore a backup.")
            run_script(connection, "".join(MIGRATIONS[step] for step in range(version, VERSION if version else 1)))
            connection.execute(f"PRAGMA user_version = {VERSION}")
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.DatabaseError):
            raise ValueError(f"The log in {folder} cannot be read ({error}): restore a backup.") from None
        raise
    return connection


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Run statements within the current transaction, which ``executescript`` would commit."""
    for statement in script.split(";"):
        if statement.strip():
            connection.execute(statement)


def identity_of(connection: sqlite3.Connection) -> str:
    """Return the unique id of this log; copies have the same."""
    return str(connection.execute("SELECT log FROM identity").fetchone()[0])


def existing_log(folder: Path) -> sqlite3.Connection:
    """Open the log of a folder, which must exist."""
    if not (folder / NAME).is_file():
        raise ValueError(f"There is no service in {folder}: start one there with 'rankstream serve run {folder}'.")
    return open_log(folder)


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of the tables; 0 without any."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


COLUMNS = ", ".join(MarketRow._fields)


@named_damage()
def market_rows(connection: sqlite3.Connection) -> list[MarketRow]:
    """All markets, by name."""
    return [_market(row) for row in connection.execute(f"SELECT {COLUMNS} FROM markets ORDER BY name").fetchall()]


@named_damage()
def market_row(connection: sqlite3.Connection, name: str) -> MarketRow | None:
    """Return the market of that name, or None."""
    row = connection.execute(f"SELECT {COLUMNS} FROM markets WHERE name = ?", (name,)).fetchone()
    return None if row is None else _market(row)


def _market(row: Any) -> MarketRow:
    return MarketRow(*row)._replace(settings=json.loads(row[8]))


def offers_of(connection: sqlite3.Connection, market: int, after: int = -1) -> dict[int, Offered]:
    """Return the offers of a market by number, from number ``after`` + 1 on; with prices as they were sent."""
    rows = connection.execute(
        "SELECT number, items FROM offers WHERE market = ? AND number > ? ORDER BY number", (market, after)
    )
    return {number: offer_in(items) for number, items in rows}


def offer_text(offered: Offered) -> str:
    """Return an offer in the form of the log: items, or pairs of an item and its price.

    >>> offer_text(("tea", "nothing")), offer_text({"tea": 3.5, "nothing": None})
    ('["tea", "nothing"]', '[["tea", 3.5], ["nothing", null]]')
    """
    return json.dumps(list(offered.items()) if isinstance(offered, dict) else offered)


def offer_in(text: str) -> Offered:
    """Parse an offer that ``offer_text`` wrote."""
    items = json.loads(text)
    return dict(items) if items and isinstance(items[0], list) else tuple(items)


def packed(rows: list[tuple[int, int, float, float | None]]) -> str:
    """Return records in the form of the log: number of the offer, position of the choice, count and time if needed.

    >>> packed([(0, 1, 1.0, None), (0, 1, 2.5, None), (3, 0, 1.0, 7.5)])
    '[[0,1],[0,1,2.5],[3,0,1.0,7.5]]'
    """

    def short(row: tuple[int, int, float, float | None]) -> tuple[float | None, ...]:
        if row[3] is not None:
            return row
        return row[:3] if row[2] != 1.0 else row[:2]

    return json.dumps(list(map(short, rows)), separators=(",", ":"))


def checksum(body: str) -> int:
    """Return the checksum of a batch, which is stored with it."""
    return crc32(body.encode("utf-8", "surrogatepass"))


def unpacked(body: str, offers: dict[int, Offered]) -> list[Record]:
    """The records of a batch."""
    return [Record(offers[number], tuple(offers[number])[place], *more) for number, place, *more in json.loads(body)]


@named_damage()
def batches_after(
    connection: sqlite3.Connection, market: int, position: int, offers: dict[int, Offered], most: int
) -> list[Batch]:
    """Return the batches after a position, up to about ``most`` records; new offers are added to ``offers``."""
    batches: list[Batch] = []
    rows = connection.cursor()
    connection.execute("BEGIN")  # for a consistent view of batches and offers
    try:
        rows.execute(
            "SELECT position, arrived, records, body, checksum FROM batches WHERE market = ? AND position > ? "
            "ORDER BY position",
            (market, position),
        )
        offers.update(offers_of(connection, market, max(offers, default=-1)))
        while most > 0 and (row := rows.fetchone()) is not None:
            end, arrived, number, body, written = row
            try:
                records = unpacked(body, offers) if written in (None, checksum(body)) else []
            except (ValueError, LookupError, TypeError, AttributeError):
                records = []
            if len(records) != number:
                raise DamagedBatchError(f"The batch of the log that ends at record {end:,} is damaged.")
            batches.append(Batch(end, arrived, records))
            most -= number
    finally:
        rows.close()
        connection.execute("COMMIT")
    return batches
