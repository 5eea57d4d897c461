"""The log: every acknowledged batch, in a SQLite file from which everything else can be rebuilt."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from rankstream._core.types import Label
from rankstream.service.storage.database import Database, Place, connect, open_shared, run_script, transaction, upsert
from rankstream.streams.record import Record

Offered = tuple[Label, ...] | dict[Label, Any]
"""An offer: items, or a mapping from items to prices."""
NAME = "log.sqlite3"
VERSION = 3
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
PREFERENCES = "CREATE TABLE IF NOT EXISTS preferences (market TEXT PRIMARY KEY, content TEXT NOT NULL)"
OLD_PREFERENCES = "preferences.json"  # the file that had them before that table


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


MOVED = "moved to"  # instead of the identity of a log that was moved, before the place
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


class Batch(NamedTuple):
    """Records of one request, and the position after the last one."""

    position: int
    arrived: float
    records: list[Record]


def open_log(place: Place) -> Database:
    """Open the log of a folder or a database; create it if it is missing, and upgrade an older version."""
    if isinstance(place, str):
        return _checked(open_shared(place), place)
    folder, connection = place, connect(place / NAME)
    try:
        with transaction(connection):
            version = connection.version(NAME)
            if not 0 <= version <= VERSION:
                remedy = "update rankstream" if version > 0 else "restore a backup"
                raise ValueError(
                    f"The log in {folder} has version {version}, this rankstream reads up to {VERSION}: {remedy}."
                )
            run_script(connection, "".join(MIGRATIONS[step] for step in range(version, VERSION if version else 1)))
            connection.set_version(NAME, VERSION)
            connection.execute(PREFERENCES)
            _take_preferences(connection, folder / OLD_PREFERENCES)
        (folder / OLD_PREFERENCES).unlink(missing_ok=True)
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.DatabaseError):
            raise ValueError(f"The log in {folder} cannot be read ({error}): restore a backup.") from None
        raise
    return _checked(connection, folder)


def _checked(connection: Database, place: Place) -> Database:
    """Return a log, unless it was moved."""
    identity = identity_of(connection)
    if identity.startswith(MOVED):
        connection.close()
        raise ValueError(f"The service in {place} was {identity}: use that.")
    return connection


def _take_preferences(connection: Database, path: Path) -> None:
    """Copy the preferences of an older version; an unreadable file is empty."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        for market, content in json.loads(path.read_text(encoding="utf-8")).items():
            keep_preferences(connection, market, dict(content))


def identity_of(connection: Database) -> str:
    """Return the unique id of this log; copies have the same."""
    return str(connection.execute("SELECT log FROM identity").fetchone()[0])


def existing_log(place: Place) -> Database:
    """Open the log of a folder, which must exist, or of a database."""
    if not isinstance(place, str) and not (place / NAME).is_file():
        raise ValueError(f"There is no service in {place}: start one there with 'rankstream serve run {place}'.")
    return open_log(place)


COLUMNS = ", ".join(MarketRow._fields)


@named_damage()
def market_rows(connection: Database) -> list[MarketRow]:
    """All markets, by name."""
    return [_market(row) for row in connection.execute(f"SELECT {COLUMNS} FROM markets ORDER BY name").fetchall()]


@named_damage()
def market_row(connection: Database, name: str, lock: bool = False) -> MarketRow | None:
    """Return the market of that name, or None; if it is locked, others wait until the transaction ends."""
    query = f"SELECT {COLUMNS} FROM markets WHERE name = ?{connection.lock if lock else ''}"
    row = connection.execute(query, (name,)).fetchone()
    return None if row is None else _market(row)


def _market(row: Any) -> MarketRow:
    return MarketRow(*row)._replace(settings=json.loads(row[8]))


@named_damage()
def preferences_of(connection: Database, market: str) -> dict[str, Any]:
    """Return what was entered on the pages of a market: margins, today's offer, currency."""
    row = connection.execute("SELECT content FROM preferences WHERE market = ?", (market,)).fetchone()
    return {} if row is None else dict(json.loads(row[0]))


def keep_preferences(connection: Database, market: str, content: dict[str, Any]) -> dict[str, Any]:
    """Save the preferences of a market, and return them."""
    upsert(connection, "preferences", (market, json.dumps(content)))
    return content


def offers_of(connection: Database, market: int, after: int = -1) -> dict[int, Offered]:
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
    connection: Database, market: int, position: int, offers: dict[int, Offered], most: int
) -> list[Batch]:
    """Return the batches after a position, up to about ``most`` records; new offers are added to ``offers``."""
    batches, rows = list[Batch](), list[Any]()
    which = "FROM batches WHERE market = ? AND position > ?"
    connection.begin(writes=False)  # for a consistent view of batches and offers
    try:
        first = connection.execute(f"SELECT position - records {which} ORDER BY position LIMIT 1", (market, position))
        if (begin := first.fetchone()) is not None:
            rows = connection.execute(
                f"SELECT position, arrived, records, body, checksum {which} AND position - records < ? "
                "ORDER BY position",
                (market, position, begin[0] + most),
            ).fetchall()
        offers.update(offers_of(connection, market, max(offers, default=-1)))
    finally:
        connection.execute("COMMIT")
    for end, arrived, number, body, written in rows:
        try:
            records = unpacked(body, offers) if written in (None, checksum(body)) else []
        except (ValueError, LookupError, TypeError, AttributeError):
            records = []
        if len(records) != number:
            raise DamagedBatchError(f"The batch of the log that ends at record {end:,} is damaged.")
        batches.append(Batch(end, arrived, records))
    return batches
