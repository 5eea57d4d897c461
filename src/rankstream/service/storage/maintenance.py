"""What can be done to the folder of a service from outside, whether it runs or not: backup, export, purge."""

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
from rankstream.service.storage import log, tokens
from rankstream.service.storage import states as store

AT_ONCE = 10_000  # records in memory while a market is exported; not tuned
COLUMNS = {"offered": "VARCHAR[]", "chosen": "VARCHAR", "count": "DOUBLE", "time": "DOUBLE", "arrived": "DOUBLE"}


def backup(folder: Path, out: Path) -> int:
    """Copy everything to one zip file, whole or not at all; its size.

    What was learned is copied before the log: so the log has every record that is in the state, and maybe more, which
    are learned when the copy is served. To restore, unpack it in an empty folder.
    """
    log.existing_log(folder).close()
    with (
        whole_file(out, mode=0o600) as temporary,  # it has the digests of tokens
        TemporaryDirectory(dir=out.parent, prefix=".rankstream-") as copies,
        ZipFile(temporary, "w") as archive,
    ):
        for name in (store.NAME, log.NAME, tokens.NAME):
            if (folder / name).is_file():
                copy = Path(copies) / name
                with closing(log.connect(folder / name)) as source, closing(sqlite3.connect(copy)) as target:
                    source.backup(target)
                archive.write(copy, name)
    return out.stat().st_size


def export(folder: Path, market: str, out: Path) -> int:
    """Write the records of a market that are in the log to a Parquet file, or to JSON lines; how many.

    Offers of items with prices are written as ``--price-columns offered`` reads them.
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


def records_of(connection: sqlite3.Connection, row: log.MarketRow) -> Iterator[dict[str, Any]]:
    """The records of a market up to the last one of now, in their order."""
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
    """The items of an offer as ``rankstream fit`` reads them, with their prices, if any, as in tea@3.5."""
    if isinstance(offered, dict):
        return [str(item) if price is None else f"{item}@{price!r}" for item, price in offered.items()]
    return [str(item) for item in offered]


def purge(folder: Path, market: str) -> int:
    """Remove a market and everything that is known of it, from the disk as well; how many records it had."""
    with closing(log.existing_log(folder)) as connection, closing(store.open_store(folder)) as learned:
        row = _row(connection, folder, market)
        for one in (connection, learned):
            one.execute("PRAGMA secure_delete = ON")
        with log.transaction(connection):
            for table in ("batches", "offers", "keys"):
                connection.execute(f"DELETE FROM {table} WHERE market = ?", (row.id,))
            connection.execute("DELETE FROM markets WHERE id = ?", (row.id,))
        store.forget(learned, row.id)
        for one in (connection, learned):
            one.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return row.records


def rebuild(folder: Path) -> tuple[str, int, int]:
    """Put aside what was learned, so that the next server learns the log again; what to say of it.

    That is the new name of the file, how many records are in the log, and how many were dropped from it.
    """
    with closing(log.existing_log(folder)) as connection, own_folder(folder, remedy="stop the server first"):
        rows = log.market_rows(connection)
        dropped = sum(row.dropped for row in rows)
        return store.put_aside(folder, "old"), sum(row.records for row in rows) - dropped, dropped


def _row(connection: sqlite3.Connection, folder: Path, market: str) -> log.MarketRow:
    row = log.market_row(connection, market)
    if row is None:
        known = ", ".join(one.name for one in log.market_rows(connection)[:20]) or "none"
        raise ValueError(f"There is no market {market!r} in {folder}: it has {known}.")
    return row
