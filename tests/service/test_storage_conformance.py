"""One list of tests for every store: SQLite in a folder, the store of the fault simulator, and PostgreSQL."""

import sqlite3
import time
from collections.abc import Callable
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from local_service import CAKE, PIE, TEA
from rankstream.service import hub
from rankstream.service.limits import RefusedError, ServiceLimits
from rankstream.service.storage import ingest, log, tokens
from rankstream.service.storage import states as store
from rankstream.service.storage.database import transaction
from rankstream.service.storage.ingest import Ingest, Sent
from rankstream.service.storage.leases import LEASE_SECONDS, Leases, learners_alive
from rankstream.service.storage.publication import Published
from storage_kinds import Store
from waits import LONG

pytest_plugins = ["store_fixtures"]


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


def test_servers_may_have_other_clocks(one: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is a year ahead knows the keys of others, and deletes none; nor does it delete young records."""
    first = one.send(TEA, key="a")
    one.save(1)
    ahead: Any = SimpleNamespace(time=lambda: time.time() + 366 * 86_400.0)
    for module in (ingest, hub):
        monkeypatch.setattr(module, "time", ahead)
    server: Any = SimpleNamespace(options=hub.Options(keep=3600.0), published=Published(one.place, one.log))
    with transaction(one.log):
        assert hub.Service.sweep(server, one.log) == 0
    server.published.close()
    assert one.send(TEA, key="a") == first
    assert one.send(PIE, key="b")["position"] == 2
    monkeypatch.undo()
    assert one.send(PIE, key="b")["position"] == 2
    assert one.read() == [(1, ["tea"]), (2, ["pie"])]


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
            one.send(TEA, market="pub", key=f"of all {batch}", database=database, ingest=ingest)

    one.send(PIE, market="pub")
    threads = [Thread(target=send, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    for market in ("bar", "cafe"):
        assert one.row(market).records == 30
        ends = [batch.position for batch in log.batches_after(one.log, one.row(market).id, 0, {}, 1000)]
        assert ends == list(range(1, 31))
    assert one.row("pub").records == 11  # the same batches from all


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
