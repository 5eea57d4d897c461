"""One list of tests for every store: SQLite in a folder, the store of the fault simulator, and PostgreSQL."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Thread
from typing import Any
from zipfile import ZipFile

import pytest

from fault_world import World, simulated
from local_service import CAKE, PIE, TEA
from postgres_server import PostgresServer, postgres_server, why_not
from rankstream.service.limits import RefusedError, ServiceLimits
from rankstream.service.storage import log, maintenance, migration, tokens
from rankstream.service.storage import states as store
from rankstream.service.storage.database import Database, Place, transaction
from rankstream.service.storage.ingest import Ingest, Sent
from rankstream.service.storage.leases import LEASE_SECONDS, Leases, learners_alive
from rankstream.service.storage.log import MarketRow
from rankstream.service.storage.publication import Published
from waits import LONG


class Store:
    """An empty store, and connections to it."""

    def __init__(self, place: Place, stack: ExitStack) -> None:
        self.place, self.stack, self.ingest = place, stack, Ingest(ServiceLimits())
        self.log, self.learned = self.open_log(), self.open_learned()

    def open_log(self) -> Database:
        return self.stack.enter_context(closing(log.open_log(self.place)))

    def open_learned(self) -> Database:
        return self.stack.enter_context(closing(store.open_store(self.place)))

    def leases(self) -> Leases:
        return Leases(self.open_learned(), self.log)

    def send(self, *records: Any, market: str = "cafe", key: str | None = None, **more: Any) -> dict[str, Any]:
        """Append a batch in a transaction, as the writer does."""
        sent = Sent(market, list(records), "token", key, more.get("digest", b"digest"))
        with transaction(more.get("database", self.log)):
            return dict(more.get("ingest", self.ingest).store(more.get("database", self.log), sent))

    def row(self, market: str = "cafe") -> MarketRow:
        row = log.market_row(self.log, market)
        assert row is not None
        return row

    def read(self, position: int = 0, most: int = 1000) -> list[tuple[int, list[str]]]:
        """Return the batches after a position: their ends, and what was chosen."""
        batches = log.batches_after(self.log, self.row().id, position, {}, most)
        return [(batch.position, [str(record.chosen) for record in batch.records]) for batch in batches]

    def save(self, position: int, model: str | None = "model", epoch: int = 1, **more: Any) -> None:
        """Save a state and a model of the market, as the learner does."""
        state = store.Learned(epoch, position, f"state {position}".encode())
        point = store.CoursePoint(position, 1.0, float(position), 0.5, None)
        facts = {"position": position}
        store.save_market(more.pop("database", self.learned), self.row().id, state, model, facts, point, **more)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    if why_not():
        pytest.skip(why_not())
    with postgres_server() as running:
        yield running


@pytest.fixture(params=["sqlite", "simulated", "postgres"])
def one(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with ExitStack() as stack:
        place: Place = tmp_path
        if request.param == "simulated":
            place = stack.enter_context(simulated(World(None, lambda _: None))).folder
        if request.param == "postgres":
            name = f"store_{time.monotonic_ns()}"
            place = request.getfixturevalue("server").make(name)
        yield Store(place, stack)


def test_a_batch_is_appended_once_by_its_key(one: Store) -> None:
    first = one.send(TEA, PIE, key="a")
    assert first == {"market": "cafe", "position": 2, "records": 2}
    assert one.send(TEA, PIE, key="a") == first
    another = one.open_log()
    assert one.send(TEA, PIE, key="a", database=another, ingest=Ingest(ServiceLimits())) == first
    assert one.read() == [(2, ["tea", "pie"])]
    with pytest.raises(RefusedError, match="another body"):
        one.send(TEA, key="a", digest=b"other")
    assert one.send(TEA, key="b")["position"] == 3


def test_a_batch_is_stored_whole_or_not_at_all(one: Store) -> None:
    one.send(TEA)
    with pytest.raises(RefusedError, match="Record 1 is wrong"):
        one.send(TEA, {"offered": ["tea"], "chosen": "pie"}, key="a")

    def fail() -> None:
        with transaction(one.log):
            one.ingest.store(one.log, Sent("cafe", [PIE], "token", "b"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    one.ingest.forget()  # as the writer does
    assert one.read() == [(1, ["tea"])]
    assert one.send(CAKE, key="b")["position"] == 2  # its key was not stored either


def test_records_are_read_from_a_position_in_parts(one: Store) -> None:
    for records in ([TEA, PIE], [CAKE], [PIE, PIE, TEA], [TEA]):
        one.send(*records)
    assert one.read() == [(2, ["tea", "pie"]), (3, ["cake"]), (6, ["pie", "pie", "tea"]), (7, ["tea"])]
    assert one.read(3) == one.read()[2:]
    assert [end for end, _ in one.read(0, most=1)] == [2]
    assert [end for end, _ in one.read(0, most=3)] == [2, 3]
    assert [end for end, _ in one.read(2, most=2)] == [3, 6]
    assert one.read(7) == []
    with transaction(one.log):  # as a sweep does
        one.log.execute("DELETE FROM batches WHERE market = ? AND position <= 3", (one.row().id,))
    assert [end for end, _ in one.read(0, most=1)] == [6]


def test_a_damaged_batch_is_told(one: Store) -> None:
    one.send(TEA, PIE)
    one.log.execute("UPDATE batches SET body = '[[0,0],[0,0]]'")
    with pytest.raises(log.DamagedBatchError, match="record 2"):
        one.read()


def test_two_servers_number_the_records_of_a_market_without_gaps(one: Store) -> None:
    """Both cache the market and its offers, and the other one's new offers and settings arrive all the same."""
    servers = [(one.log, one.ingest), (one.open_log(), Ingest(ServiceLimits()))]
    coffee = {"offered": ["coffee", "nothing"], "chosen": "coffee"}
    for number, record in enumerate((TEA, TEA, CAKE, coffee, coffee, PIE)):
        database, ingest = servers[number % 2]
        assert one.send(record, database=database, ingest=ingest)["position"] == number + 1
    assert [chosen for _, (chosen,) in one.read()] == ["tea", "tea", "cake", "coffee", "coffee", "pie"]
    with transaction(one.log):
        one.ingest.change_settings(one.log, "cafe", {"window": 10})
    database, ingest = servers[1]
    with pytest.raises(RefusedError, match="window"):
        one.send(TEA | {"count": 1.5}, database=database, ingest=ingest)
    assert one.row().epoch == 2
    assert sorted(log.offers_of(one.log, one.row().id)) == [0, 1, 2]


def test_writers_at_once_lose_nothing(one: Store) -> None:
    """Each thread is a server, and sends to two markets that it makes if they are not there."""

    def send(number: int) -> None:
        database, ingest = one.open_log(), Ingest(ServiceLimits())
        for batch in range(10):
            for market in ("bar", "cafe"):
                more: Any = {"market": market, "key": f"{number} {batch}", "database": database, "ingest": ingest}
                try:
                    one.send(TEA, **more)
                except RefusedError:  # another server made it at the same time
                    one.send(TEA, **more)

    threads = [Thread(target=send, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    for market in ("bar", "cafe"):
        assert one.row(market).records == 30
        ends = [batch.position for batch in log.batches_after(one.log, one.row(market).id, 0, {}, 1000)]
        assert ends == list(range(1, 31))


def test_markets_and_their_settings_are_listed(one: Store) -> None:
    assert log.market_rows(one.log) == []
    one.send(TEA, market="cafe")
    one.send(CAKE, market="bar")
    assert [(row.name, row.records, row.epoch) for row in log.market_rows(one.log)] == [("bar", 1, 1), ("cafe", 1, 1)]
    with transaction(one.log):
        changed = one.ingest.change_settings(one.log, "cafe", {"window": 7})
        same = one.ingest.change_settings(one.log, "cafe", {"window": 7})
    assert (changed["window"], changed == same, one.row().epoch, one.row().settings) == (7, True, 2, changed)
    assert log.market_row(one.log, "pub") is None


def test_priced_offers_keep_their_prices(one: Store) -> None:
    with transaction(one.log):
        one.ingest.change_settings(one.log, "cafe", {"price_levels": {"tea": [3, 4]}})
    one.send({"offered": {"tea": 3.1, "nothing": None}, "chosen": "tea"})
    assert log.offers_of(one.log, one.row().id) == {0: {"tea": 3.1, "nothing": None}}


def test_state_model_and_course_are_saved_together(one: Store) -> None:
    one.send(TEA, PIE, CAKE)
    market = one.row().id
    one.save(2, listing={"items": ["tea"]})
    assert store.load_market(one.learned, market) == store.Learned(1, 2, b"state 2")
    model = store.published_models(one.learned)[market]
    assert (model.epoch, model.facts) == (1, {"position": 2})
    assert store.model_text(one.learned, market, model.digest) == "model"
    assert store.positions(one.learned) == {market: (1, 2)}
    assert store.listing_of(one.learned, market) == {"items": ["tea"]}
    one.save(3, "newer")
    assert store.published_models(one.learned)[market].facts == {"position": 3}
    assert store.model_text(one.learned, market, model.digest) is None
    assert store.course_points(one.learned, market) == [
        store.CoursePoint(2, 1.0, 2.0, 0.5, None),
        store.CoursePoint(3, 1.0, 3.0, 0.5, None),
    ]


def test_an_older_model_is_not_published(one: Store) -> None:
    one.send(TEA, PIE, CAKE)
    one.save(3, "newer")
    one.save(2, "older")
    assert store.published_models(one.learned)[one.row().id].facts == {"position": 3}
    one.save(1, "of other settings", epoch=2)
    assert store.published_models(one.learned)[one.row().id].epoch == 2


def test_the_course_is_thinned(one: Store) -> None:
    one.send(TEA)
    with transaction(one.learned):
        for position in range(1, store.MAX_COURSE_POINTS + 3):
            point = store.CoursePoint(position, 1.0, float(position), None, None)
            store.append_point(one.learned, one.row().id, 1, point)
    points = store.course_points(one.learned, one.row().id)
    assert len(points) < store.MAX_COURSE_POINTS + 2
    assert (points[0].position, points[-1].position) == (1, store.MAX_COURSE_POINTS + 2)


def test_the_course_has_points_of_these_settings_and_this_log(one: Store) -> None:
    one.send(TEA)
    market = one.row().id

    def added(epoch: int, *positions: int) -> list[int]:
        with transaction(one.learned):
            for position in positions:
                store.append_point(one.learned, market, epoch, store.CoursePoint(position, 1.0, 1.0, None, None))
        return [point.position for point in store.course_points(one.learned, market)]

    assert added(1, 2, 4, 6) == [2, 4, 6]
    assert added(1, 6) == [2, 4, 6]
    assert added(1, 5) == [2, 4, 5]  # what was learned of a longer log is gone
    assert added(2, 5) == [5]  # and what was learned with other settings


def test_problems_are_told_and_cleared(one: Store) -> None:
    store.set_problem(one.learned, 1, 2, "It fails.")
    store.set_problem(one.learned, 1, 2, "It fails again.")
    assert store.problems(one.learned) == {1: (2, "It fails again.")}
    store.set_problem(one.learned, 1, 2, None)
    assert store.problems(one.learned) == {}


def sees(look: Callable[[], bool]) -> bool:
    """Return whether something happens soon."""
    limit = time.monotonic() + LONG
    while not look() and time.monotonic() < limit:
        time.sleep(0.01)
    return look()


def test_a_reader_sees_what_a_learner_saves(one: Store) -> None:
    one.send(TEA)
    published = Published(one.place, one.log)
    assert published.of(one.row()) is None
    one.save(1)
    row = one.row()
    assert sees(lambda: published.of(row) is not None)
    assert published.learned(row) == 1
    published.close()


def test_tokens_take_effect_and_end_elsewhere(one: Store) -> None:
    known = tokens.Tokens(one.place)
    assert known.holder(None) == tokens.ANYBODY
    secret = tokens.create(one.place, ["cafe"], ["read"], "till")
    header = f"Bearer {secret}"
    assert sees(lambda: known.any)
    assert known.check(header, "read", "cafe").markets == {"cafe"}
    with pytest.raises(RefusedError, match="may not write"):
        known.check(header, "write", "cafe")
    (listed,) = tokens.listed(one.place)
    assert (listed["name"], listed["markets"], listed["expires"]) == ("till", ["cafe"], None)
    tokens.revoke(one.place, listed["id"])
    assert sees(lambda: not known.any)
    with pytest.raises(RefusedError, match="needs a token"):  # it stays closed
        known.holder(None)
    known.close()


def test_preferences_are_kept(one: Store) -> None:
    other = one.open_log()
    assert log.preferences_of(other, "cafe") == {}
    for currency in "€$":
        log.keep_preferences(one.log, "cafe", {"currency": currency})
    assert [log.preferences_of(other, market) for market in ("cafe", "bar")] == [{"currency": "$"}, {}]


def test_a_market_that_is_purged_is_gone(one: Store) -> None:
    one.send(TEA, key="a")
    one.save(1)
    before = one.row().id
    log.keep_preferences(one.log, "cafe", {"currency": "€"})
    assert maintenance.purge(one.place, "cafe") == 1
    assert log.preferences_of(one.log, "cafe") == {}
    assert (log.market_rows(one.log), store.positions(one.learned)) == ([], {})
    assert one.send(PIE, key="a")["position"] == 1
    assert one.row().id > before
    assert one.read() == [(1, ["pie"])]


def test_an_export_has_every_record(one: Store, tmp_path: Path) -> None:
    one.send(TEA, PIE)
    assert maintenance.export(one.place, "cafe", tmp_path / "cafe.jsonl") == 2
    assert len((tmp_path / "cafe.jsonl").read_text().splitlines()) == 2
    with pytest.raises(ValueError, match="There is no market 'pub'"):
        maintenance.export(one.place, "pub", tmp_path / "pub.jsonl")


def kill(one: Store, learner: Leases) -> None:
    """Let a learner die: it gives no sign of life any more."""
    one.learned.execute("UPDATE learners SET until = 0 WHERE holder = ?", (learner.holder,))


def test_a_market_has_one_learner_at_a_time(one: Store) -> None:
    for number in range(8):
        one.send(TEA, market=f"cafe{number}")
    first, second = one.leases(), one.leases()
    first.beat()
    assert len(first.held) == 8
    second.beat()
    assert second.held == {}  # the first learner must release them
    first.beat()
    second.beat()
    assert 0 < len(first.held) < 8
    assert sorted([*first.held, *second.held]) == [row.id for row in log.market_rows(one.log)]
    second.end()
    first.beat()
    assert len(first.held) == 8


def test_a_dead_learner_is_replaced_and_cannot_overwrite(one: Store) -> None:
    one.send(TEA, PIE, CAKE)
    market = one.row().id
    first, second = one.leases(), one.leases()
    first.beat()
    (fence,) = first.held.values()
    one.save(1, fence=fence)
    kill(one, first)
    assert learners_alive(one.learned) == set()
    second.beat()
    assert second.held == {market: fence + 1}
    one.save(3, "newer", fence=fence + 1)
    with pytest.raises(store.LeaseLostError):  # the paused one wakes up
        one.save(2, "older", fence=fence)
    assert store.load_market(one.learned, market) == store.Learned(1, 3, b"state 3")
    assert store.published_models(one.learned)[market].facts == {"position": 3}
    second.end()
    first.beat()
    assert first.held[market] > fence + 1  # it must read the state again
    with pytest.raises(store.LeaseLostError):
        one.save(3, fence=-1)


def test_a_lease_ends_with_its_time(one: Store) -> None:
    first = one.leases()
    first.beat()
    alive_until = one.learned.execute("SELECT until FROM learners").fetchone()[0]
    assert alive_until == pytest.approx(one.learned.now() + LEASE_SECONDS, abs=LEASE_SECONDS)
    assert learners_alive(one.learned, alive_until - 0.01) == {first.holder}
    assert learners_alive(one.learned, alive_until + 0.01) == set()
    assert learners_alive(one.learned, alive_until - 3 * LEASE_SECONDS) == set()  # the clock was set back


def test_a_newer_version_is_refused(one: Store) -> None:
    name = "tables" if one.log.is_shared else log.NAME
    one.log.set_version(name, 99)
    with pytest.raises(ValueError, match=r"version 99, this rankstream reads up to \d: update"):
        log.open_log(one.place)


def test_errors_are_those_of_sqlite(one: Store) -> None:
    with pytest.raises(sqlite3.OperationalError):
        one.log.execute("SELECT * FROM nowhere")
    with pytest.raises(sqlite3.OperationalError), transaction(one.log):
        one.log.execute("INSERT INTO nowhere VALUES (1)")
    assert not one.log.in_transaction
    assert log.market_rows(one.log) == []


def filled(one: Store) -> tuple[Any, ...]:
    """Fill a store with something of everything, and return what must be elsewhere after a move."""
    for number in range(3):
        one.send(TEA, PIE, key=f"key {number}")
    one.send(CAKE, market="bar")
    one.save(4, listing={"items": ["tea"]})
    tokens.create(one.place, ["cafe"], ["read"], "till")
    log.keep_preferences(one.log, "cafe", {"currency": "€"})
    return content(one)


def content(one: Store) -> tuple[Any, ...]:
    market = one.row().id
    return (
        log.identity_of(one.log), log.market_rows(one.log), one.read(), store.load_market(one.learned, market),
        store.published_models(one.learned), store.course_points(one.learned, market),
        store.listing_of(one.learned, market), tokens.listed(one.place), log.preferences_of(one.log, "cafe"),
    )  # fmt: skip


def test_a_service_is_moved_and_its_source_retired(one: Store, tmp_path: Path) -> None:
    before, folder = filled(one), tmp_path / "moved"
    with pytest.raises(ValueError, match="is both source and target"):
        migration.migrate(one.place, one.place)
    assert migration.migrate(one.place, folder) == 7
    with ExitStack() as stack:
        moved = Store(folder, stack)
        assert content(moved) == before
        assert moved.send(TEA, PIE, key="key 2") == {"market": "cafe", "position": 6, "records": 2}  # sent before
        assert moved.send(PIE, key="new")["position"] == 7
        moved.send(TEA, market="pub")
        assert moved.row("pub").id == 3
    with pytest.raises(ValueError, match=f"was moved to {folder}: use that"):
        log.open_log(one.place)
    if one.log.is_shared:  # a server that still runs stores nothing
        with pytest.raises(sqlite3.OperationalError):
            one.send(PIE)


def test_a_service_is_moved_to_an_empty_place_only(one: Store, tmp_path: Path) -> None:
    filled(one)
    with ExitStack() as stack:
        (tmp_path / "other").mkdir()
        other = Store(tmp_path / "other", stack)
        other.send(PIE)
        with pytest.raises(ValueError, match="is not empty"):
            migration.migrate(one.place, other.place)
        before = content(one)
        with pytest.raises(ValueError, match="is not empty"):
            migration.migrate(other.place, one.place)
        assert (content(one), other.row().records) == (before, 1)


def test_a_folder_is_moved_to_a_store(one: Store, tmp_path: Path) -> None:
    with ExitStack() as stack:
        (tmp_path / "before").mkdir()
        folder = Store(tmp_path / "before", stack)
        before = filled(folder)
        assert migration.migrate(folder.place, one.place) == 7
        assert content(one) == before
        assert one.send(TEA, market="pub")["position"] == 1
        assert one.row("pub").id == 3


def test_a_backup_is_restored_as_a_folder(one: Store, tmp_path: Path) -> None:
    before = filled(one)
    assert maintenance.backup(one.place, tmp_path / "shop.zip") > 0
    one.send(PIE)
    with ZipFile(tmp_path / "shop.zip") as archive:
        archive.extractall(tmp_path / "restored")
    with ExitStack() as stack:
        assert content(Store(tmp_path / "restored", stack)) == before
