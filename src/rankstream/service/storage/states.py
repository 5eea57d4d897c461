"""The learner's results in a second SQLite file: state, position, published model and history of every market.

They can be rebuilt from the log, except for records that the log has dropped.
"""

import json
import sqlite3
import time
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from rankstream.service.storage.database import Database, Place, connect, open_shared, run_script, transaction, upsert
from rankstream.service.storage.log import is_damage

NAME = "learned.sqlite3"
VERSION = 1
OF_MARKETS = ("leases", "learned", "served", "course", "problems", "listings")  # locked in the order of a save
IMPORTS = 7208616  # of PostgreSQL's advisory locks: the markets that are being imported
MAX_COURSE_POINTS = 400  # stored points of a market's history; not tuned, more than a chart can show
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
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS identity (log TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS problems (market INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, sentence TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS listings (market INTEGER PRIMARY KEY, content TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS learners (holder TEXT PRIMARY KEY, until REAL NOT NULL);
CREATE TABLE IF NOT EXISTS leases (market INTEGER PRIMARY KEY, holder TEXT NOT NULL, fence INTEGER NOT NULL)
"""
"""Tables that the first version lacks and does not need: a file can go back and forth between the two versions."""


class Learned(NamedTuple):
    """The state of a market, and the position of its last record."""

    epoch: int
    position: int
    state: bytes


class PublishedModel(NamedTuple):
    """A published model: the epoch of its settings, the digest of its text, and facts about it."""

    epoch: int
    digest: str
    facts: dict[str, Any]


class CoursePoint(NamedTuple):
    """A point in the history of a market: a learned record, its time, the choices so far, and distance and gap."""

    position: int
    made: float
    choices: float
    distance: float | None
    gap: float | None


class LeaseLostError(Exception):
    """Another learner has the lease of a market."""


def open_store(place: Place) -> Database:
    """Open the file of a folder, or a database; create the file if it is missing, and rename a damaged one."""
    if isinstance(place, str):
        return open_shared(place)
    try:
        return _opened(place)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
    put_aside(place, "damaged")
    return _opened(place)


def put_aside(folder: Path, why: str) -> str:
    """Rename the file, so that a new one is created; return its new name."""
    aside = f"{NAME}.{int(time.time())}.{why}"
    for ending in ("", "-wal", "-shm"):
        path = folder / f"{NAME}{ending}"
        if path.exists():
            path.rename(folder / f"{aside}{ending}")
    return aside


def _opened(folder: Path) -> Database:
    connection = connect(folder / NAME)
    try:
        with transaction(connection):
            if connection.version(NAME) != VERSION:
                run_script(connection, f"DROP TABLE IF EXISTS learned; DROP TABLE IF EXISTS served; {TABLES}")
                connection.set_version(NAME, VERSION)
            run_script(connection, LATER)
    except BaseException:
        connection.close()
        raise
    return connection


def positions(connection: Database) -> dict[int, tuple[int, int]]:
    """Return the epoch and the learned position of every market."""
    rows = connection.execute("SELECT market, epoch, position FROM learned")
    return {market: (epoch, at) for market, epoch, at in rows}


def load_market(connection: Database, market: int) -> Learned | None:
    """Return the state of a market, or None."""
    row = connection.execute("SELECT epoch, position, state FROM learned WHERE market = ?", (market,)).fetchone()
    return None if row is None else Learned(*row)


def save_market(
    connection: Database,
    market: int,
    state: Learned,
    model: str | None,
    facts: dict[str, Any] | None,
    point: CoursePoint | None = None,
    listing: dict[str, Any] | None = None,
    fence: int | None = None,
) -> None:
    """Save state, position, model and history of a market in one transaction.

    A model is not written if it is unchanged, or older than the published one with the same settings. A ``point`` of
    the history replaces one at the same position; ``listing`` is the list of items, for pages. With the ``fence`` of a
    lease, a LeaseLostError is raised if another learner has taken the lease since.
    """
    with transaction(connection):
        if fence is not None:
            query = f"SELECT fence FROM leases WHERE market = ?{connection.lock}"
            if connection.execute(query, (market,)).fetchone() != (fence,):
                raise LeaseLostError
        upsert(connection, "learned", (market, *state))
        connection.execute("DELETE FROM problems WHERE market = ?", (market,))
        if model is not None:
            digest, facts_text = sha256(model.encode()).hexdigest()[:32], json.dumps(facts)
            rows = connection.execute("SELECT epoch, digest, facts FROM served WHERE market = ?", (market,))
            before = rows.fetchone() or (0, "", "{}")
            is_older = before[0] == state.epoch and json.loads(before[2])["position"] > (facts or {})["position"]
            if not is_older and before[:2] == (state.epoch, digest):
                connection.execute("UPDATE served SET facts = ? WHERE market = ?", (facts_text, market))
            elif not is_older:
                upsert(connection, "served", (market, state.epoch, digest, model, facts_text))
        if point is not None:
            append_point(connection, market, state.epoch, point)
        if listing is not None:
            upsert(connection, "listings", (market, json.dumps(listing)))


def forget(connection: Database, market: int) -> None:
    """Delete everything about a market."""
    for table in OF_MARKETS:
        connection.execute(f"DELETE FROM {table} WHERE market = ?", (market,))


def forget_unfinished(connection: Database) -> None:
    """Reset imported markets whose model was not finished when the server ended, so that the learner fits them."""
    is_over = f"pg_try_advisory_xact_lock({IMPORTS}, market::int)" if connection.is_shared else "true"
    unfinished = f"length(state) = 0 AND market NOT IN (SELECT market FROM served) AND {is_over}"
    for row in connection.execute(f"SELECT market FROM learned WHERE {unfinished}").fetchall():
        connection.execute("DELETE FROM learned WHERE market = ?", row)


def append_point(connection: Database, market: int, epoch: int, point: CoursePoint) -> None:
    """Add a point to a market's history; drop points of other settings or of a longer log."""
    connection.execute(
        "DELETE FROM course WHERE market = ? AND (epoch <> ? OR position > ?)", (market, epoch, point.position)
    )
    upsert(connection, "course", (market, point.position, epoch, *point[1:]))
    known = {at for (at,) in connection.execute("SELECT position FROM course WHERE market = ?", (market,))}
    if len(known) > MAX_COURSE_POINTS:
        gone = [(market, at) for at in known - set(thin(known))]
        connection.executemany("DELETE FROM course WHERE market = ? AND position = ?", gone)


def thin(points: Iterable[int], bins: int = MAX_COURSE_POINTS // 4, latest: int = MAX_COURSE_POINTS // 4) -> list[int]:
    """Thin out the points of a history: keep the first, the latest, and others evenly among the records.

    Thinning repeatedly while points are added gives as even a result as thinning once.

    >>> thin(range(1, 101), bins=5, latest=3)
    [1, 19, 39, 59, 79, 97, 98, 99, 100]
    """
    order = sorted(points)
    older, width = order[:-latest], order[-1] / bins
    last_of = {int(at / width): at for at in older}
    return sorted({order[0], *last_of.values(), *order[-latest:]})


def course_points(connection: Database, market: int) -> list[CoursePoint]:
    """Return the history of a market, from its first model on."""
    rows = connection.execute(
        "SELECT position, made, choices, distance, gap FROM course WHERE market = ? ORDER BY position", (market,)
    )
    return [CoursePoint(*row) for row in rows]


def is_file(connection: Database, market: int) -> bool:
    """Return whether a market was imported from a file; it then has no state, and records are summed up by time."""
    row = connection.execute("SELECT length(state) FROM learned WHERE market = ?", (market,)).fetchone()
    return row is not None and not row[0]


def listing_of(connection: Database, market: int) -> dict[str, Any] | None:
    """Return the list of items of a market, or None."""
    row = connection.execute("SELECT content FROM listings WHERE market = ?", (market,)).fetchone()
    return None if row is None else dict(json.loads(row[0]))


def drop_others(connection: Database, markets: set[int]) -> None:
    """Delete all markets but these."""
    for table in OF_MARKETS:
        for (market,) in connection.execute(f"SELECT DISTINCT market FROM {table}").fetchall():
            if market and market not in markets:
                forget(connection, market)


def published_models(connection: Database) -> dict[int, PublishedModel]:
    """Return the published model of every market, without its text."""
    rows = connection.execute("SELECT market, epoch, digest, facts FROM served").fetchall()
    return {market: PublishedModel(epoch, digest, json.loads(facts)) for market, epoch, digest, facts in rows}


def model_text(connection: Database, market: int, digest: str) -> str | None:
    """Return the text of a published model; None if it was replaced."""
    row = connection.execute("SELECT model FROM served WHERE market = ? AND digest = ?", (market, digest)).fetchone()
    return None if row is None else str(row[0])


def file_of(place: Place) -> tuple[int, int]:
    """Return the device and inode of the file, to notice that it was replaced; zeros if there is none."""
    if isinstance(place, str):
        return 0, 0
    try:
        status = (place / NAME).stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_dev, status.st_ino


def problems(connection: Database) -> dict[int, tuple[int, str]]:
    """Return the epoch and a message for each market that cannot be learned; market 0 stands for the log."""
    rows = connection.execute("SELECT market, epoch, sentence FROM problems")
    return {market: (epoch, sentence) for market, epoch, sentence in rows}


def set_problem(connection: Database, market: int, epoch: int, sentence: str | None) -> None:
    """Record why a market cannot be learned; None clears the problem."""
    if sentence is None:
        connection.execute("DELETE FROM problems WHERE market = ?", (market,))
    else:
        upsert(connection, "problems", (market, epoch, sentence))
