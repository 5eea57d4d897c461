"""Maintenance of a service's folder, whether the service runs or not: backup, export, purge, rebuild."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

from rankstream._core.files import own_folder, whole_file
from rankstream.data.readers.sources.database import write_parquet
from rankstream.service.storage import log, migration, tokens
from rankstream.service.storage import states as store
from rankstream.service.storage.database import Database, Place, connect, transaction

AT_ONCE = 10_000  # records in memory while a market is exported; not tuned
COLUMNS = {"offered": "VARCHAR[]", "chosen": "VARCHAR", "count": "DOUBLE", "time": "DOUBLE", "arrived": "DOUBLE"}


def backup(place: Place, out: Path) -> int:
    """Copy everything to one zip file, atomically; return its size.

    The models are copied before the log, so that the log has every record behind them, and maybe more, which are
    learned after a restore. A database is copied as of one moment, in the form of a folder. To restore, unzip into an
    empty folder, and move that to a database with ``migrate``.
    """
    log.existing_log(place).close()
    with (
        whole_file(out, mode=0o600) as temporary,  # contains digests of tokens
        TemporaryDirectory(dir=out.parent, prefix=".rankstream-") as copies,
        ZipFile(temporary, "w") as archive,
    ):
        copied = Path(copies)
        if isinstance(place, str):
            migration.copy_database(place, copied)
        for name in (store.NAME, log.NAME, tokens.NAME):
            if isinstance(place, Path) and (place / name).is_file():
                with closing(connect(place / name)) as source, closing(sqlite3.connect(copied / name)) as target:
                    source.backup(target)
            if (copied / name).is_file():
                archive.write(copied / name, name)
    return out.stat().st_size


def export(folder: Place, market: str, out: Path) -> int:
    """Write the records of a market in the log to Parquet or JSON Lines; return how many.

    Offers with prices are written in the form of ``--price-columns offered``.
    """
    if out.suffix.lower() not in (".parquet", ".jsonl", ".ndjson"):
        raise ValueError(f"{out} is neither .parquet nor .jsonl: use a name that ends in one of these.")
    with closing(log.existing_log(folder)) as connection:
        row = _row(connection, folder, market)
        number = count()
        seen = (record for record, _ in zip(records_of(connection, row), number, strict=False))
        if out.suffix.lower() == ".parquet":
            write_parquet(out, seen, COLUMNS)
        else:
            with whole_file(out) as temporary, temporary.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(record) + "\n" for record in seen)
    return next(number)


def records_of(connection: Database, row: log.MarketRow) -> Iterator[dict[str, Any]]:
    """Yield the records of a market in order, up to the current last one."""
    offers: dict[int, log.Offered] = {}
    position = 0
    while position < row.records:
        batches = log.batches_after(connection, row.id, position, offers, AT_ONCE)
        for batch in batches:
            for offered, chosen, times, moment in batch.records:
                yield {
                    "offered": _written(offered),
                    "chosen": str(chosen),
                    "count": times,
                    "time": moment,
                    "arrived": batch.arrived,
                }
        position = batches[-1].position if batches else row.records


def _written(offered: Any) -> list[str]:
    """Return the items of an offer in the form that ``rankstream fit`` reads, with prices as in tea@3.5."""
    if isinstance(offered, dict):
        return [str(item) if price is None else f"{item}@{price!r}" for item, price in offered.items()]
    return [str(item) for item in offered]


def purge(folder: Place, market: str) -> int:
    """Delete a market and all of its data, and overwrite it on disk; return its number of records."""
    with closing(log.existing_log(folder)) as connection, closing(store.open_store(folder)) as learned:
        files = () if connection.is_shared else (connection, learned)
        for database in files:
            database.execute("PRAGMA secure_delete = ON")
        with transaction(connection):
            row = _row(connection, folder, market)
            for table in ("batches", "offers", "keys"):
                connection.execute(f"DELETE FROM {table} WHERE market = ?", (row.id,))
            connection.execute("DELETE FROM markets WHERE id = ?", (row.id,))
            connection.execute("DELETE FROM preferences WHERE market = ?", (market,))
            if connection.is_shared:
                store.forget(connection, row.id)
        store.forget(learned, row.id)
        for database in files:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return row.records


def rebuild(folder: Place) -> tuple[str, int, int]:
    """Rename the file of models, so that the next server rebuilds them from the log.

    Return the new name of the file, and how many records are in the log and were dropped from it.
    """
    if isinstance(folder, str):
        raise ValueError("Log and models of a database always belong together: there is nothing to rebuild.")
    with closing(log.existing_log(folder)) as connection, own_folder(folder, remedy="stop the server first"):
        rows = log.market_rows(connection)
        dropped = sum(row.dropped for row in rows)
        return store.put_aside(folder, "old"), sum(row.records for row in rows) - dropped, dropped


def _row(connection: Database, folder: Place, market: str) -> log.MarketRow:
    row = log.market_row(connection, market, lock=connection.in_transaction)
    if row is None:
        known = ", ".join(other.name for other in log.market_rows(connection)[:20]) or "none"
        raise ValueError(f"There is no market {market!r} in {folder}: it has {known}.")
    return row
