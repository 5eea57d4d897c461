"""What only PostgreSQL has: passwords, rights, encodings, messages that are lost, and imports of servers that ended."""

import sqlite3
import time
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from local_service import CAKE, TEA
from postgres_server import PostgresServer, why_not
from rankstream.service.processes import importer
from rankstream.service.processes.learner import LogLearner
from rankstream.service.storage import ingest, log, maintenance, migration, tokens
from rankstream.service.storage import postgres as connections
from rankstream.service.storage import states as store
from rankstream.service.storage.database import transaction, upsert
from rankstream.service.storage.leases import Leases
from rankstream.service.storage.publication import Published
from rankstream.service.storage.writer import reason
from rankstream.streams.background import refreshed
from shell import run
from storage_kinds import Store
from waits import LONG, wait_for

pytest_plugins = ["store_fixtures"]
pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())
PASSWORD = "se cret:1"


@pytest.fixture
def place(postgres: PostgresServer, request: pytest.FixtureRequest) -> str:
    return postgres.make(request.node.name.removeprefix("test_")[:60])


def test_a_password_comes_from_the_environment_or_a_file(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.make_locked("safe", PASSWORD)

    def listed() -> tuple[int, str]:
        done = run("serve", "token", "list", url, cwd=tmp_path)
        assert PASSWORD not in done.stdout + done.stderr
        return done.returncode, done.stderr

    code, problem = listed()
    assert (code, "no password supplied" in problem, problem.count("\n")) == (2, True, 1)
    monkeypatch.setenv("PGPASSWORD", "guessed")
    code, problem = listed()
    assert (code, "password authentication failed" in problem, problem.count("\n")) == (2, True, 1)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert listed() == (0, "")
    monkeypatch.delenv("PGPASSWORD")
    (tmp_path / "pgpass").write_text(f"127.0.0.1:{postgres.port}:safe:safe:{PASSWORD.replace(':', chr(92) + ':')}\n")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    assert listed() == (0, "")


def test_a_user_without_rights_is_refused(postgres: PostgresServer, place: str, tmp_path: Path) -> None:
    log.open_log(place).close()
    postgres.run("CREATE ROLE reader LOGIN")
    other = place.replace("shop@", "reader@")
    done = run("serve", "run", other, cwd=tmp_path)
    assert (done.returncode, "permission denied" in done.stderr, done.stderr.count("\n")) == (2, True, 1)
    postgres.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader", place.rpartition("/")[2])
    assert run("serve", "token", "list", other, cwd=tmp_path).returncode == 0
    done = run("serve", "token", "create", other, "--market", "cafe", cwd=tmp_path)
    assert (done.returncode, "permission denied for table tokens" in done.stderr) == (1, True)


def test_a_standby_that_only_reads_is_not_a_full_disk(place: str) -> None:
    with ExitStack() as stack:
        opened = Store(place, stack)
        opened.send(TEA)
        opened.log.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
        with pytest.raises(sqlite3.OperationalError, match="read-only") as refused:
            opened.send(TEA)
        assert reason(refused.value).sentence.startswith("The log cannot be written: nothing of this was stored")


def test_a_database_must_be_able_to_store_every_name(
    postgres: PostgresServer, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.run("CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
    done = run("serve", "token", "list", postgres.url("ascii"), cwd=tmp_path)
    assert (done.returncode, "another encoding than UTF8" in done.stderr) == (2, True)
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with ExitStack() as stack:
        opened = Store(place, stack)
        opened.send(TEA, market="市場")
        assert opened.row("市場").name == "市場"


def test_readers_look_again_though_no_message_came(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are for speed: without any, a server is a second behind at most."""
    now = [100.0]
    monkeypatch.setattr(connections, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with ExitStack() as stack:
        opened = Store(place, stack)
        opened.send(TEA)
        for table in ("served", "learned", "listings", "problems", "tokens"):
            opened.log.execute(f"ALTER TABLE {table} DISABLE TRIGGER announced")
        published, known = Published(place, opened.log), tokens.Tokens(place)
        stack.callback(published.close)
        stack.callback(known.close)
        row = opened.row()
        assert (published.of(row), known.any) == (None, False)
        opened.save(1)
        tokens.create(place, ["cafe"], ["read"])
        assert (published.of(row), known.any) == (None, False)
        now[0] += connections.LOOK_SECONDS
        assert (published.learned(row), known.any) == (1, True)
    assert connections.LOOK_SECONDS <= 1.0


def test_a_server_that_works_is_not_taken_for_a_paused_one(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It checks a large batch, and another server reads its offers, for longer than a transaction may pause."""
    add = ingest.KnownMarket.add

    def add_slowly(*given: Any) -> None:
        time.sleep(0.01)
        add(*given)

    monkeypatch.setattr(ingest, "AWAKE_STEPS", 10)
    monkeypatch.setattr(ingest.KnownMarket, "add", add_slowly)
    with ExitStack() as stack:
        opened = Store(place, stack)
        opened.log.execute("SET idle_in_transaction_session_timeout = '1s'")
        assert opened.send(*[{"offered": [f"tea {n}", "pie"], "chosen": "pie"} for n in range(150)])["position"] == 150
        opened.ingest.forget()
        assert opened.send(TEA)["position"] == 151


def test_an_import_of_a_server_that_ended_is_learned(place: str, tmp_path: Path) -> None:
    (tmp_path / "cafe.csv").write_text("offered,chosen\n" + "tea;pie;nothing,tea\n" * 40)
    parts = importer.read_markets(tmp_path / "cafe.csv", "cafe", [], {})
    with ExitStack() as stack:
        opened = Store(place, stack)
        with closing(log.open_log(place)) as server:
            importer.store_parts(server, opened.learned, parts)
            leases = Leases(opened.learned, opened.log)
            leases.beat()
            learner = stack.enter_context(closing(LogLearner(place, refreshed, leases=leases)))
            assert not learner.step(at_once=True)
            row = opened.row()
            assert store.load_market(opened.learned, row.id) == store.Learned(1, row.records, b"")
        wait_for(lambda: learner.step(at_once=True))  # PostgreSQL needs a moment to see that the server is gone
        wait_for(lambda: store.published_models(opened.learned) or learner.step(at_once=True) is None)
        saved = store.load_market(opened.learned, row.id)
        assert saved is not None
        assert (saved.position, saved.state != b"") == (row.records, True)


def test_a_purge_waits_for_a_learner_that_saves(postgres: PostgresServer, place: str) -> None:
    with ExitStack() as stack:
        opened = Store(place, stack)
        opened.send(TEA, TEA)
        leases = opened.leases()
        leases.beat()
        ((market, fence),) = leases.held.items()
        opened.save(1, fence=fence)
        with transaction(opened.learned):  # as in a save
            opened.learned.execute("SELECT fence FROM leases WHERE market = ? FOR UPDATE", (market,))
            purge = Thread(target=maintenance.purge, args=(place, "cafe"))
            purge.start()
            waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = '{}'"
            wait_for(lambda: postgres.run(waits.format(place.rpartition("/")[2])))
            upsert(opened.learned, "learned", (market, 1, 2, b"state"))
        purge.join(LONG)
        assert log.market_rows(opened.log) == []
        assert [table for table in store.OF_MARKETS if opened.log.execute(f"SELECT 1 FROM {table}").fetchone()] == []


def test_a_database_is_moved_to_another(postgres: PostgresServer, place: str) -> None:
    with ExitStack() as stack:
        before = Store(place, stack)
        before.send(TEA, TEA, key="a")
        before.send(CAKE, market="bar")
        before.save(2)
        target = postgres.make("another")
        assert migration.migrate(place, target) == 3
        after = Store(target, stack)
        assert after.read() == [(2, ["tea", "tea"])]
        assert after.send(TEA, TEA, key="a")["position"] == 2
        assert after.send(CAKE, market="pub")["position"] == 1
        assert store.positions(after.learned) == {after.row().id: (1, 2)}
        with pytest.raises(sqlite3.OperationalError):
            before.send(TEA)
        with pytest.raises(ValueError, match="use that"):
            migration.migrate(place, postgres.make("third"))
