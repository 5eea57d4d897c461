"""The log: on disk before it is answered, whole or not at all, of a version, and no larger than it needs to be."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from local_service import CAFE, CAKE, PIE, TEA, Shop, error, shop
from rankstream.service.limits import RefusedError
from rankstream.service.storage import log
from rankstream.service.storage import states as store
from rankstream.service.storage.database import Database, SqliteDatabase, connect
from rankstream.service.storage.writer import Writer, reason
from waits import LONG

FULL = "The disk is full: nothing of this was stored; send it again later."


def pages(opened: Shop, more: int | None) -> None:
    """Let the log grow by some pages only, as on a disk that is nearly full."""

    def limit(connection: Database) -> None:
        (now,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {2**30 if more is None else now + more}")

    opened.service.writer.submit(limit).result()


def test_what_is_acknowledged_is_synced(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        ask = opened.service.writer.connection.execute
        assert ask("PRAGMA journal_mode").fetchone() == ("wal",)
        assert ask("PRAGMA synchronous").fetchone() == (2,)  # FULL
        opened.send("cafe", [TEA])
        with closing(sqlite3.connect(tmp_path / log.NAME)) as another:
            assert another.execute("SELECT position, records FROM batches").fetchall() == [(1, 1)]


LOOK_IN = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(*c.execute('PRAGMA user_version')); c.close()"


def test_a_process_that_looks_in_takes_nothing_from_the_others(tmp_path: Path) -> None:
    """SQLite's locks end with any closing of the file in a process; the next to leave would delete what is written."""
    with closing(log.open_log(tmp_path)) as first, closing(log.open_log(tmp_path)) as second:
        first.execute("INSERT INTO keys VALUES (1, 'a', 'b', x'00', '{}', 0.0)")
        asked = [sys.executable, "-c", LOOK_IN, str(tmp_path / log.NAME)]
        assert f"({log.VERSION},)" in subprocess.run(asked, check=True, capture_output=True, text=True).stdout
        assert (tmp_path / f"{log.NAME}-wal").exists()
        second.execute("DELETE FROM keys")
        assert first.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_log_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / log.NAME).mkdir(mode=0o755)
    with pytest.raises(ValueError, match=r"log.sqlite3 cannot be written .*: check who owns it"):
        log.open_log(tmp_path)
    assert (tmp_path / log.NAME).stat().st_mode & 0o777 == 0o755


def test_a_full_disk_loses_nothing_and_needs_no_restart(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", [TEA], **{"Idempotency-Key": "first"})
        pages(opened, 1)
        answers = [opened.send("cafe", [PIE] * 500, **{"Idempotency-Key": f"k{number}"}) for number in range(20)]
        taken = [answer for answer in answers if answer.status_code == 202]
        refused = [answer for answer in answers if answer.status_code != 202]
        assert refused
        assert {error(answer) for answer in refused} == {(503, FULL)}
        assert all("Retry-After" in answer.headers for answer in refused)
        assert opened.get("").json()["markets"][0]["records"] == 1 + 500 * len(taken)
        assert opened.send("cafe", [TEA], **{"Idempotency-Key": "first"}).json()["position"] == 1
        pages(opened, None)
        for number in range(20):
            assert opened.send("cafe", [PIE] * 500, **{"Idempotency-Key": f"k{number}"}).status_code == 202
        facts = opened.get("").json()["markets"][0]
        assert facts["records"] == 1 + 500 * 20
        opened.learn()
        assert opened.get("").json()["markets"][0]["learned"] == facts["records"]


def test_a_new_offer_that_was_not_stored_is_new_the_next_time(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", [TEA])
        pages(opened, 0)
        long = [{"offered": [f"{number:0150}", "x"], "chosen": "x"} for number in range(60)]
        assert error(opened.send("cafe", long)) == (503, FULL)
        pages(opened, None)
        assert opened.send("cafe", [CAKE, *long]).json()["position"] == 62
        offers = log.offers_of(opened.service.reading, 1)
        assert (len(offers), offers[1]) == (62, ("cake", "nothing"))


def echo(connection: Database, number: int) -> Any:
    return connection.execute("SELECT ?", (number,)).fetchone()[0]


def refuse(_: Database) -> None:
    raise RefusedError(422, "No.")


def test_batches_that_wait_are_committed_together(tmp_path: Path) -> None:
    connection = log.open_log(tmp_path)
    said: list[str] = []
    assert isinstance(connection, SqliteDatabase)
    connection.set_trace_callback(said.append)
    go_on = Event()
    writer = Writer(connection, lambda: None)
    first = writer.submit(lambda _: go_on.wait(LONG))
    rest = [writer.submit(partial(echo, number=number)) for number in range(5)]
    refused = writer.submit(refuse)
    go_on.set()
    assert first.result(LONG)
    assert [one.result(LONG) for one in rest] == list(range(5))
    with pytest.raises(RefusedError, match=r"No\."):
        refused.result(LONG)
    writer.close()
    assert said.count("COMMIT") <= 2


def test_a_transaction_that_fails_refuses_all_that_were_in_it(tmp_path: Path) -> None:
    undone: list[int] = []
    go_on = Event()
    writer = Writer(log.open_log(tmp_path), lambda: undone.append(1))
    writer.submit(lambda _: go_on.wait(LONG))
    row = "INSERT INTO keys VALUES (1, '', ?, '', '', 0)"
    good = writer.submit(lambda connection: connection.execute(row, ("good",)))
    bad = writer.submit(lambda connection: connection.execute("INSERT INTO nowhere VALUES (1)"))
    go_on.set()
    for one in (good, bad):
        with pytest.raises(RefusedError, match="The log cannot be written") as refused:
            one.result(LONG)
        assert refused.value.status == 503
    assert writer.submit(lambda c: c.execute("SELECT count(*) FROM keys").fetchone()).result(LONG) == (0,)
    writer.close()
    assert undone == [1]


def test_a_busy_log_says_so(tmp_path: Path) -> None:
    with closing(log.open_log(tmp_path)) as first, closing(connect(tmp_path / log.NAME, wait=0.01)) as second:
        first.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError) as locked:
            second.execute("BEGIN IMMEDIATE")
        assert reason(locked.value).sentence.startswith("The log is busy")
        first.execute("ROLLBACK")


def test_a_log_of_the_version_before_is_brought_up(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", [TEA, PIE])
    with closing(sqlite3.connect(tmp_path / log.NAME)) as old:
        old.executescript(
            "ALTER TABLE markets DROP COLUMN dropped; ALTER TABLE batches DROP COLUMN checksum; DROP TABLE identity;"
            "PRAGMA user_version = 1"
        )
    with closing(sqlite3.connect(tmp_path / store.NAME)) as old:
        old.execute("DROP TABLE identity")
    with shop(tmp_path) as opened:
        facts = opened.get("").json()["markets"][0]
        assert (facts["records"], facts["dropped"]) == (2, 0)
        assert opened.send("cafe", [CAKE]).json()["position"] == 3
        assert opened.service.reading.version(log.NAME) == log.VERSION


def test_a_log_of_a_later_version_or_another_file_is_left_alone(tmp_path: Path) -> None:
    log.open_log(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / log.NAME)) as new:
        new.execute(f"PRAGMA user_version = {log.VERSION + 1}")
    with pytest.raises(ValueError, match="this rankstream reads up to 3: update rankstream"):
        log.open_log(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / log.NAME).write_text("this is a text" * 100)
    with pytest.raises((ValueError, sqlite3.DatabaseError), match="not a database"):
        log.open_log(tmp_path / "other")
    with pytest.raises(ValueError, match="There is no service in"):
        log.existing_log(tmp_path / "nowhere")


def test_learned_records_are_dropped_after_a_while(tmp_path: Path) -> None:
    with shop(tmp_path, keep=3600.0) as opened:
        opened.send("cafe", CAFE)
        opened.settle("cafe", served="sparse")
        submit = opened.service.writer.submit

        def age(connection: Database) -> None:
            connection.execute("UPDATE batches SET arrived = arrived - 7200")

        submit(age).result()
        assert submit(opened.service.sweep).result() == 0  # not learned yet
        opened.learn()
        opened.send("cafe", [TEA])
        assert submit(opened.service.sweep).result() == len(CAFE)
        facts = opened.get("").json()["markets"][0]
        assert (facts["records"], facts["learned"], facts["dropped"]) == (len(CAFE) + 1, len(CAFE), len(CAFE))
        opened.learn()
        facts = opened.get("").json()["markets"][0]
        assert facts["learned"] == len(CAFE) + 1
        assert opened.get("/cafe/certificate").json()["choices"] == len(CAFE) + 1


def test_without_a_time_everything_is_kept(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", [TEA])
        opened.service.writer.submit(lambda c: c.execute("UPDATE batches SET arrived = 0")).result()
        assert opened.service.writer.submit(opened.service.sweep).result() == 0
        assert opened.service.reading.execute("SELECT count(*) FROM batches").fetchone() == (1,)


def test_what_was_learned_can_be_computed_again(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE)
        opened.settle("cafe", served="sparse")
        opened.learn()
        before = opened.get("/cafe/certificate").json()["choices"]
    (tmp_path / store.NAME).write_bytes(b"no database at all" * 100)
    for ending in ("-wal", "-shm"):
        (tmp_path / f"{store.NAME}{ending}").unlink(missing_ok=True)
    began = int(time.time())
    with shop(tmp_path) as opened:
        assert opened.get("").json()["markets"][0]["learned"] == 0
        opened.learn()
        assert opened.get("/cafe/certificate").json()["choices"] == before == len(CAFE)
    (aside,) = tmp_path.glob("*.damaged")
    assert int(aside.name.split(".")[2]) >= began
