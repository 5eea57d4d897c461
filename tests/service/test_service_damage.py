"""What is said where files of a service are damaged, cut, replaced or full, and what resolves it."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from local_service import CAFE, PIE, TEA, Shop, drawn, error, shop
from rankstream.service import hub
from rankstream.service.hub import Options, Service
from rankstream.service.limits import RefusedError
from rankstream.service.processes import learner
from rankstream.service.processes.learner import LogLearner
from rankstream.service.storage import log
from rankstream.service.storage import maintenance as folders
from rankstream.service.storage import publication as pairing
from rankstream.service.storage import states as store
from rankstream.service.storage.database import Database, SqliteDatabase, connect
from rankstream.streams.background import BackgroundLive, refreshed
from waits import LONG

SPARSE = {"served": "sparse"}


def filled(folder: Path, *markets: str) -> None:
    """A folder in which everything is learned."""
    with shop(folder) as opened:
        for market in markets or ("cafe",):
            opened.send(market, CAFE)
            opened.settle(market, **SPARSE)
        opened.learn()


def copy(folder: Path, to: Path) -> None:
    """A copy of the log, as it is now."""
    with closing(sqlite3.connect(folder / log.NAME)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)


def replace_log(folder: Path, by: Path | None) -> None:
    for ending in ("", "-wal", "-shm"):
        (folder / f"{log.NAME}{ending}").unlink(missing_ok=True)
    if by is not None:
        shutil.copy(by, folder / log.NAME)


def refusal(folder: Path) -> str:
    with pytest.raises(pairing.PairingError) as refused:
        Service(folder, Options())
    with pytest.raises(pairing.PairingError):
        LogLearner(folder, refreshed)
    return str(refused.value)


def test_a_log_that_is_older_than_the_state_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    copy(tmp_path, tmp_path / "older")
    with shop(tmp_path) as opened:
        opened.send("cafe", [TEA] * 5)
        opened.learn()
    replace_log(tmp_path, tmp_path / "older")
    said = refusal(tmp_path)
    assert said.startswith(
        f"The log of market 'cafe' ends at record {len(CAFE)}, but {len(CAFE) + 5} were learned: 5 are"
    )
    assert said.endswith(f"with 'rankstream serve rebuild {tmp_path}'.")
    name, records, dropped = folders.rebuild(tmp_path)
    assert ((tmp_path / name).is_file(), records, dropped) == (True, len(CAFE), 0)
    with shop(tmp_path) as opened:
        opened.send("cafe", [PIE])
        opened.learn()
        assert opened.get("/cafe/certificate").json()["choices"] == len(CAFE) + 1


def test_a_log_whose_wal_was_removed_is_refused(tmp_path: Path) -> None:
    with shop(tmp_path) as opened:
        opened.send("cafe", CAFE)
        opened.settle("cafe", **SPARSE)
        opened.service.reading.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        opened.send("cafe", [TEA] * 7)
        opened.learn()
        shutil.copytree(tmp_path, tmp_path / "killed")  # as after SIGKILL: the last batches are in the WAL alone
    (tmp_path / "killed" / f"{log.NAME}-wal").unlink()
    assert f"but {len(CAFE) + 7} were learned: 7 are missing" in refusal(tmp_path / "killed")


def test_another_log_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        filled(tmp_path / name)
    replace_log(tmp_path / "one", tmp_path / "two" / log.NAME)
    assert refusal(tmp_path / "one").startswith("learned.sqlite3 belongs to another log.")
    replace_log(tmp_path / "two", None)  # an empty one is another one
    assert refusal(tmp_path / "two").startswith("learned.sqlite3 belongs to another log.")


def test_older_settings_are_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    copy(tmp_path, tmp_path / "older")
    with shop(tmp_path) as opened:
        opened.settle("cafe", window=10, **SPARSE)
        opened.learn()
    replace_log(tmp_path, tmp_path / "older")
    assert "lacks settings that were in use" in refusal(tmp_path)


def before_identities(folder: Path) -> None:
    """What 0.3 wrote."""
    with closing(sqlite3.connect(folder / log.NAME)) as old:
        old.executescript("ALTER TABLE batches DROP COLUMN checksum; DROP TABLE identity; PRAGMA user_version = 2")
    with closing(sqlite3.connect(folder / store.NAME)) as old:
        old.executescript("DROP TABLE identity; DROP TABLE problems")


def test_a_folder_of_the_version_before_adopts_an_identity(tmp_path: Path) -> None:
    filled(tmp_path)
    before_identities(tmp_path)
    with shop(tmp_path) as opened:
        own = log.identity_of(opened.service.reading)
        assert len(own) == 32
        assert opened.service.published.connection.execute("SELECT log FROM identity").fetchall() == [(own,)]
        opened.send("cafe", [TEA])
        opened.learn()
        assert opened.get("/cafe/certificate").json()["choices"] == len(CAFE) + 1
    with shop(tmp_path) as opened:
        assert log.identity_of(opened.service.reading) == own


def test_a_folder_of_the_version_before_whose_log_is_gone_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    before_identities(tmp_path)
    replace_log(tmp_path, None)
    assert refusal(tmp_path).startswith(f"The log lacks a market of which {len(CAFE)} records were learned.")


def test_dropped_rows_and_purged_markets_are_not_missing(tmp_path: Path) -> None:
    filled(tmp_path, "cafe", "bar")
    with shop(tmp_path, keep=3600.0) as opened:
        opened.service.writer.submit(lambda c: c.execute("UPDATE batches SET arrived = 0")).result()
        assert opened.service.writer.submit(opened.service.sweep).result() == 2 * len(CAFE)
    with closing(log.existing_log(tmp_path)) as one:
        one.execute("DELETE FROM markets WHERE name = 'bar'")  # a purge that was killed before it came to the state
    with shop(tmp_path) as opened:
        opened.send("cafe", [TEA])
        opened.learn()
        assert opened.get("/cafe/certificate").json()["choices"] == len(CAFE) + 1
    assert folders.rebuild(tmp_path)[1:] == (1, len(CAFE))


def test_a_purge_leaves_nothing(tmp_path: Path) -> None:
    filled(tmp_path, "cafe", "bar")
    known = {market: {"margins": {"tea": 1.0}} for market in ("cafe", "bar")}
    (tmp_path / log.OLD_PREFERENCES).write_text(json.dumps(known))
    with closing(store.open_store(tmp_path)) as learned, closing(log.open_log(tmp_path)) as kept:
        store.set_problem(learned, 1, 1, "Something.")
        folders.purge(tmp_path, "cafe")
        assert not (tmp_path / log.OLD_PREFERENCES).exists()
        assert [log.preferences_of(kept, market) for market in ("cafe", "bar")] == [{}, {"margins": {"tea": 1.0}}]
        for table in ("learned", "served", "course", "problems"):
            assert learned.execute(f"SELECT count(*) FROM {table} WHERE market = 1").fetchone() == (0,), table
        assert learned.execute("SELECT count(*) FROM course WHERE market = 2").fetchone() != (0,)


@pytest.mark.parametrize("change", ["x'00ff'", "substr(body, 1, 40)", "replace(body, '[0,0]', '[0,1]')"])
def test_a_market_with_a_damaged_batch_is_named_with_what_to_do(tmp_path: Path, change: str) -> None:
    with shop(tmp_path) as opened:
        for market in ("bad", "good"):
            opened.send(market, CAFE)
            opened.settle(market, **SPARSE)
        opened.service.writer.submit(
            lambda c: c.execute(f"UPDATE batches SET body = {change} WHERE market = 1")
        ).result()
        opened.learn()
        status, sentence = error(opened.get("/bad/certificate"))
        assert status == 503
        assert sentence.startswith(
            f"This market cannot be learned: The batch of the log that ends at record {len(CAFE)} is"
        )
        assert "Restore a backup, or remove the market" in sentence
        assert opened.get("/good/certificate").status_code == 200
        facts = opened.get("").json()["markets"]
        assert [one["problem"] for one in facts] == [sentence, None]
        text = opened.http.request("GET", "/metrics").text
        assert 'rankstream_market_stuck{market="bad"} 1.0' in text
        assert 'rankstream_market_stuck{market="good"} 0.0' in text
        assert error(opened.get("/bad/drift"))[0] == 503
        with pytest.raises(ValueError, match=r"The batch of the log that ends at record"):
            folders.export(tmp_path, "bad", tmp_path / "bad.jsonl")


def test_a_market_that_needs_too_much_memory_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(*_: Any) -> None:
        raise MemoryError

    with shop(tmp_path) as opened:
        drawn(opened)
        opened.send("cafe", CAFE)
        opened.settle("cafe", **SPARSE)
        one = LogLearner(tmp_path, refreshed)
        with monkeypatch.context() as little:
            little.setattr(BackgroundLive, "observe", greedy)
            one.step(at_once=True)
        assert "not enough memory" in error(opened.get("/cafe/certificate"))[1]
        assert "not enough memory" in opened.http.request("GET", "/markets/cafe").text
        assert "cannot be learned" in opened.http.request("GET", "/").text
        assert not one.step(at_once=True)
        monkeypatch.setattr(learner, "STUCK_SECONDS", 0.0)
        assert one.step(at_once=True)
        assert one.markets[1].learning.settings["served"] == "sparse"  # from its own start, not from what got stuck
        one.close()
        assert opened.get("/cafe/certificate").json()["choices"] == len(CAFE)
        assert opened.get("").json()["markets"][0]["problem"] is None


def alive(opened: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(opened.service.supervisor), "is_alive", True)
    monkeypatch.setattr(hub, "PROBE_TIMEOUT", LONG)  # a busy machine writes late


def ready(opened: Shop) -> Any:
    return opened.http.request("GET", "/readyz")


def test_a_full_disk_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop(tmp_path) as opened:
        alive(opened, monkeypatch)
        monkeypatch.setattr(hub, "PROBE_SECONDS", LONG)
        opened.send("cafe", CAFE)

        def limit(connection: Database, most: int | None = None) -> None:
            (now,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {2**30 if most is None else now + most}")

        opened.service.writer.submit(lambda c: limit(c, 0)).result()
        assert error(ready(opened)) == (503, "The disk is full: nothing of this was stored; send it again later.")
        opened.service.writer.submit(limit).result()
        assert ready(opened).status_code == 503  # as it was before
        monkeypatch.setattr(hub, "PROBE_SECONDS", 0.0)
        assert ready(opened).json() == {"status": "ready"}


def test_the_write_behind_readiness_is_real_and_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop(tmp_path) as opened:
        alive(opened, monkeypatch)
        opened.send("cafe", [TEA])
        said: list[str] = []
        assert isinstance(opened.service.writer.connection, SqliteDatabase)
        opened.service.writer.connection.set_trace_callback(said.append)
        monkeypatch.setattr(hub, "PROBE_SECONDS", LONG)
        for _ in range(5):
            assert ready(opened).json() == {"status": "ready"}
        assert said.count("COMMIT") == 1
        assert sum("INSERT INTO batches" in one for one in said) == 1
        assert opened.service.reading.execute("SELECT market FROM batches").fetchall() == [(1,)]


def test_a_batch_that_failed_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop(tmp_path) as opened:
        alive(opened, monkeypatch)
        opened.send("cafe", [TEA])
        assert ready(opened).status_code == 200
        writer = opened.service.writer
        with pytest.raises(RefusedError):
            writer.submit(lambda c: c.execute("INSERT INTO nowhere VALUES (1)")).result()
        assert error(ready(opened))[0] == 503
        assert opened.send("cafe", [TEA]).status_code == 202
        assert ready(opened).status_code == 200


def test_a_log_that_cannot_be_written_in_time_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop(tmp_path) as opened:
        alive(opened, monkeypatch)
        monkeypatch.setattr(hub, "PROBE_TIMEOUT", 0.05)
        with closing(connect(tmp_path / log.NAME)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert error(ready(opened)) == (503, "The log takes too long to write: try again later.")
            other.execute("ROLLBACK")


def test_a_market_that_is_stuck_is_not_ready_and_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop(tmp_path) as opened:
        alive(opened, monkeypatch)
        opened.send("cafe", [TEA])
        with closing(store.open_store(tmp_path)) as learned:
            store.set_problem(learned, 1, 1, "This market cannot be learned.")
        assert error(ready(opened)) == (503, "A market cannot be learned: see /metrics, or the page of each market.")


def damage(path: Path, table: str) -> None:
    """Overwrite the first page of a table."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with path.open("rb+") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


@pytest.mark.parametrize("table", ["batches", "markets"])
def test_a_damaged_log_refuses_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    filled(tmp_path)
    damage(tmp_path / log.NAME, table)
    if table == "markets":
        with pytest.raises(ValueError, match=r"The log in .* is damaged: restore a backup"):
            Service(tmp_path, Options())
        return
    with shop(tmp_path) as opened:
        alive(opened, monkeypatch)
        assert opened.get("/cafe/certificate").status_code == 200  # nobody has noticed yet
        assert error(ready(opened)) == (503, log.DAMAGED)
        for answer in (opened.send("cafe", [TEA]), opened.get("/cafe/certificate"), opened.get(""), ready(opened)):
            assert error(answer) == (503, log.DAMAGED)
        assert "rankstream_batches_waiting" in opened.http.request("GET", "/metrics").text
        assert opened.http.request("GET", "/healthz").status_code == 200


def test_damage_that_the_learner_meets_refuses_everything(tmp_path: Path) -> None:
    filled(tmp_path)
    with shop(tmp_path) as opened:
        with closing(store.open_store(tmp_path)) as learned:
            store.set_problem(learned, 0, 0, log.DAMAGED)
        assert error(opened.send("cafe", [TEA])) == (503, log.DAMAGED)
        assert error(opened.get("/cafe/certificate")) == (503, log.DAMAGED)


def test_a_replaced_state_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("shop", "other"):
        filled(tmp_path / name)
    folder = tmp_path / "shop"
    copied = tmp_path / "copy"
    with closing(sqlite3.connect(folder / store.NAME)) as source, closing(sqlite3.connect(copied)) as target:
        source.backup(target)
    with shop(folder) as opened:
        alive(opened, monkeypatch)
        learning = LogLearner(folder, refreshed)
        opened.send("cafe", [TEA])
        opened.learn()
        assert opened.get("/cafe/certificate").json()["choices"] == len(CAFE) + 1
        for ending in ("-wal", "-shm"):
            (folder / f"{store.NAME}{ending}").unlink(missing_ok=True)
        copied.replace(folder / store.NAME)
        with pytest.raises(ValueError, match="was replaced"):
            learning.step()
        learning.close()
        assert opened.get("/cafe/certificate").json()["choices"] == len(CAFE)  # what the copy knows
        assert opened.post("/cafe/predict", {"offers": [["tea", "pie"]]}).status_code == 200
        opened.learn()
        assert opened.get("/cafe/certificate").json()["choices"] == len(CAFE) + 1
        for ending in ("", "-wal", "-shm"):
            (folder / f"{store.NAME}{ending}").unlink(missing_ok=True)
        shutil.copy(tmp_path / "other" / store.NAME, folder / store.NAME)
        assert error(opened.get("/cafe/certificate"))[1].startswith("learned.sqlite3 belongs to another log.")
        assert error(ready(opened))[1].startswith("learned.sqlite3 belongs to another log.")
        assert opened.send("cafe", [TEA]).status_code == 202  # the log is whole


def test_a_damaged_state_is_put_aside_by_the_learner(tmp_path: Path) -> None:
    filled(tmp_path)
    damage(tmp_path / store.NAME, "served")
    with pytest.raises(sqlite3.DatabaseError, match="malformed"):
        learner.learn(tmp_path, refreshed, Event())
    assert list(tmp_path.glob("*.damaged"))


def test_a_log_of_no_version_is_a_sentence(tmp_path: Path) -> None:
    log.open_log(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / log.NAME)) as odd:
        odd.execute("PRAGMA user_version = -1")
    with pytest.raises(ValueError, match=r"has version -1, .*: restore a backup"):
        log.open_log(tmp_path)
