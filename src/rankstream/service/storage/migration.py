"""Move or copy a whole service between a folder and a database."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from rankstream._core.files import own_folder
from rankstream.service.storage import log, tokens
from rankstream.service.storage import states as store
from rankstream.service.storage.database import COLUMNS, Database, Place, transaction
from rankstream.service.storage.leases import learners_alive

AT_ONCE = 200  # batches in memory; not tuned
TABLES = {
    "markets": log.COLUMNS,
    "offers": "market, number, items",
    "batches": "market, position, records, arrived, body, checksum",
    **{
        name: ", ".join(" ".join(COLUMNS[name]).split())
        for name in ("keys", "preferences", *store.OF_MARKETS)
        if name != "leases"
    },
    "tokens": "id, digest, markets, may, made, name, expires",
}
"""The tables of a service, with their columns; leases and learners stay behind."""
OF_LOG = ("markets", "offers", "batches", "keys", "preferences")


def migrate(source: Place, target: Place) -> int:
    """Move a service between a folder and a database, and retire the source; return the number of records.

    The target must be empty. Nothing is lost if this is interrupted: the source is retired after the last step.
    """
    with ExitStack() as stack:
        if not isinstance(source, str):
            log.existing_log(source).close()
            stack.enter_context(own_folder(source, remedy="stop the server first"))
        if not isinstance(target, str):
            target.mkdir(parents=True, exist_ok=True, mode=0o700)
        before, after = opened(source, stack), opened(target, stack)
        old, new = before["markets"], after["markets"]
        if log.identity_of(old) == log.identity_of(new):
            raise ValueError(f"{target} is the service of {source}, or a copy of it: name an empty target.")
        if old.is_shared and learners_alive(old):
            raise ValueError(f"Learners of {source} are running: stop them, and then its servers.")
        with transaction(old):
            if old.is_shared:
                old.execute("LOCK TABLE markets")  # servers that still run wait, and are then refused
            copy(before, after, target)
            old.execute("UPDATE identity SET log = ?", (f"{log.MOVED} {target}",))
            if old.is_shared:
                old.execute("ALTER TABLE markets RENAME TO moved_markets")
        return int(new.execute("SELECT coalesce(sum(records), 0) FROM markets").fetchone()[0])


def opened(place: Place, stack: ExitStack) -> dict[str, Database]:
    """Return the database of each table; those of PostgreSQL have one connection, for a consistent copy."""
    of_log = stack.enter_context(closing(log.open_log(place)))
    if of_log.is_shared:
        of_log.execute("SET idle_in_transaction_session_timeout = 0")  # while the other side writes
        return dict.fromkeys(TABLES, of_log)
    learned, known = (stack.enter_context(closing(one)) for one in (store.open_store(place), tokens.opened(place)))
    return dict.fromkeys(TABLES, learned) | dict.fromkeys(OF_LOG, of_log) | {"tokens": known}


def copy_database(url: str, folder: Path) -> None:
    """Copy a database as of one moment to an empty folder."""
    with ExitStack() as stack:
        source = opened(url, stack)
        source["markets"].begin(writes=False)
        copy(source, opened(folder, stack), folder)
        source["markets"].execute("COMMIT")


def copy(source: dict[str, Database], target: dict[str, Database], place: Place) -> None:
    """Copy all tables and the identity of the log, which is committed last."""
    old, new = source["markets"], target["markets"]
    with ExitStack() as stack:
        for database in dict.fromkeys([new, *target.values()]):
            stack.enter_context(transaction(database))
        for name, columns in TABLES.items():
            if target[name].execute(f"SELECT count(*) FROM {name}").fetchone()[0]:
                raise ValueError(f"{place} is not empty: name another place.")
            insert = f"INSERT INTO {name} ({columns}) VALUES ({', '.join('?' * len(columns.split()))})"
            for rows in _rows(source[name], name, columns):
                target[name].executemany(insert, rows)
        new.execute("UPDATE identity SET log = ?", (log.identity_of(old),))
        target["tokens"].set_version(tokens.NAME, source["tokens"].version(tokens.NAME))
        if new.is_shared:
            new.execute("SELECT setval(pg_get_serial_sequence('markets', 'id'), max(id)) FROM markets")


def _rows(database: Database, table: str, columns: str) -> Iterator[list[Any]]:
    """Yield all rows of a table, the batches in parts."""
    if table != "batches":
        yield database.execute(f"SELECT {columns} FROM {table}").fetchall()
        return
    query = f"SELECT {columns} FROM batches WHERE (market, position) > (?, ?) ORDER BY market, position LIMIT {AT_ONCE}"
    last = (0, 0)
    while rows := database.execute(query, last).fetchall():
        yield rows
        last = rows[-1][:2]
