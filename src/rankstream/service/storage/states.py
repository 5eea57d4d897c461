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

from rankstream.service.storage.log import connect, is_damage, run_script, transaction, version_of

NAME = "learned.sqlite3"
VERSION = 1
OF_MARKETS = ("learned", "served", "course", "problems", "listings")
MAX_COURSE_POINTS = 400  # points of a course that are kept of a market; not tuned, more than a chart can show
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
CREATE TABLE IF NOT EXISTS listings (market INTEGER PRIMARY KEY, content TEXT NOT NULL)
"""
"""What came later than the first version, which does without: a file can go back and forth between the two."""


class Learned(NamedTuple):
    """The state of a market, and the position of the last record that is in it."""

    epoch: int
    position: int
    state: bytes


class PublishedModel(NamedTuple):
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
        if not is_damage(error):
            raise
    put_aside(folder, "damaged")
    return _opened(folder)


def put_aside(folder: Path, why: str) -> str:
    """Rename the second file, so that a new one is made; its new name."""
    aside = f"{NAME}.{int(time.time())}.{why}"
    for ending in ("", "-wal", "-shm"):
        path = folder / f"{NAME}{ending}"
        if path.exists():
            path.rename(folder / f"{aside}{ending}")
    return aside


def _opened(folder: Path) -> sqlite3.Connection:
    connection = connect(folder / NAME)
    try:
        with transaction(connection):
            if version_of(connection) != VERSION:
                run_script(connection, f"DROP TABLE IF EXISTS learned; DROP TABLE IF EXISTS served; {TABLES}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
            run_script(connection, LATER)
    except BaseException:
        connection.close()
        raise
    return connection


def positions(connection: sqlite3.Connection) -> dict[int, tuple[int, int]]:
    """For every market, the epoch and the position up to which it was learned."""
    rows = connection.execute("SELECT market, epoch, position FROM learned")
    return {market: (epoch, at) for market, epoch, at in rows}


def load_market(connection: sqlite3.Connection, market: int) -> Learned | None:
    """The state of a market, if there is one."""
    row = connection.execute("SELECT epoch, position, state FROM learned WHERE market = ?", (market,)).fetchone()
    return None if row is None else Learned(*row)


def save_market(
    connection: sqlite3.Connection,
    market: int,
    state: Learned,
    model: str | None,
    facts: dict[str, Any] | None,
    point: CoursePoint | None = None,
    listing: dict[str, Any] | None = None,
) -> None:
    """State, position, model and course of a market, at once; a model that is the same is not written again.

    Nor is one that knows fewer records, with the same settings, than the one that is given out. A ``point`` of the
    course takes the place of one at the same position, and ``listing`` are the items of the market, for pages.
    """
    with transaction(connection):
        connection.execute("INSERT OR REPLACE INTO learned VALUES (?, ?, ?, ?)", (market, *state))
        connection.execute("DELETE FROM problems WHERE market = ?", (market,))
        if model is not None:
            digest, told = sha256(model.encode()).hexdigest()[:32], json.dumps(facts)
            rows = connection.execute("SELECT epoch, digest, facts FROM served WHERE market = ?", (market,))
            before = rows.fetchone() or (0, "", "{}")
            is_older = before[0] == state.epoch and json.loads(before[2])["position"] > (facts or {})["position"]
            if not is_older and before[:2] == (state.epoch, digest):
                connection.execute("UPDATE served SET facts = ? WHERE market = ?", (told, market))
            elif not is_older:
                row = (market, state.epoch, digest, model, told)
                connection.execute("INSERT OR REPLACE INTO served VALUES (?, ?, ?, ?, ?)", row)
        if point is not None:
            append_point(connection, market, state.epoch, point)
        if listing is not None:
            connection.execute("INSERT OR REPLACE INTO listings VALUES (?, ?)", (market, json.dumps(listing)))


def forget(connection: sqlite3.Connection, market: int) -> None:
    """Remove all that was learned of a market."""
    for table in OF_MARKETS:
        connection.execute(f"DELETE FROM {table} WHERE market = ?", (market,))


def forget_unfinished(connection: sqlite3.Connection) -> None:
    """Let the learner have the markets of files whose model was still being fitted when the server ended."""
    connection.execute("DELETE FROM learned WHERE state = x'' AND market NOT IN (SELECT market FROM served)")


def append_point(connection: sqlite3.Connection, market: int, epoch: int, point: CoursePoint) -> None:
    """Another point of a course; one of other settings, or of a log that was longer, begins anew."""
    connection.execute(
        "DELETE FROM course WHERE market = ? AND (epoch <> ? OR position > ?)", (market, epoch, point.position)
    )
    connection.execute("INSERT OR REPLACE INTO course VALUES (?, ?, ?, ?, ?, ?, ?)", (market, epoch, *point))
    found = [at for (at,) in connection.execute("SELECT position FROM course WHERE market = ?", (market,))]
    if len(found) > MAX_COURSE_POINTS:
        kept = set(thin(found))
        gone = [(market, at) for at in found if at not in kept]
        connection.executemany("DELETE FROM course WHERE market = ? AND position = ?", gone)


def thin(found: Sequence[int], bins: int = MAX_COURSE_POINTS // 4, latest: int = MAX_COURSE_POINTS // 4) -> list[int]:
    """Fewer points of a course, however long it is: the first, the latest, and others evenly among the records.

    Thinning what was thinned before, with more points behind it, leaves it as even as thinning all at once.

    >>> thin(range(1, 101), bins=5, latest=3)
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


def is_file(connection: sqlite3.Connection, market: int) -> bool:
    """Whether a market was made of a file: its state is its log, in which records are summed up by time."""
    row = connection.execute("SELECT length(state) FROM learned WHERE market = ?", (market,)).fetchone()
    return row is not None and not row[0]


def listing_of(connection: sqlite3.Connection, market: int) -> dict[str, Any] | None:
    """The items of a market, if they are known."""
    row = connection.execute("SELECT content FROM listings WHERE market = ?", (market,)).fetchone()
    return None if row is None else dict(json.loads(row[0]))


def drop_others(connection: sqlite3.Connection, markets: set[int]) -> None:
    """Forget markets that are gone."""
    for table in OF_MARKETS:
        for (market,) in connection.execute(f"SELECT DISTINCT market FROM {table}").fetchall():
            if market and market not in markets:
                forget(connection, market)


def published_models(connection: sqlite3.Connection) -> dict[int, PublishedModel]:
    """What is given out of every market, without the models themselves."""
    rows = connection.execute("SELECT market, epoch, digest, facts FROM served").fetchall()
    return {market: PublishedModel(epoch, digest, json.loads(facts)) for market, epoch, digest, facts in rows}


def model_text(connection: sqlite3.Connection, market: int, digest: str) -> str | None:
    """The model of a digest; None where another has taken its place."""
    row = connection.execute("SELECT model FROM served WHERE market = ? AND digest = ?", (market, digest)).fetchone()
    return None if row is None else str(row[0])


def file_of(folder: Path) -> tuple[int, int]:
    """Which file the second one is now: another where it was replaced; nothing where it is gone."""
    try:
        found = (folder / NAME).stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_dev, found.st_ino


def problems(connection: sqlite3.Connection) -> dict[int, tuple[int, str]]:
    """Markets that cannot be learned: in which epoch, and a sentence of what to do; market 0 stands for the log."""
    rows = connection.execute("SELECT market, epoch, sentence FROM problems")
    return {market: (epoch, said) for market, epoch, said in rows}


def set_problem(connection: sqlite3.Connection, market: int, epoch: int, sentence: str | None) -> None:
    """Say why a market cannot be learned, or that it can be."""
    connection.execute("DELETE FROM problems WHERE market = ?", (market,))
    if sentence is not None:
        connection.execute("INSERT INTO problems VALUES (?, ?, ?)", (market, epoch, sentence))
