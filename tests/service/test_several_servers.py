"""Two servers and two learners of one PostgreSQL database, of which some are killed, paused or cut off."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx
import pytest

from local_service import CAKE, PIE, TEA
from postgres_server import PostgresServer, postgres_server, why_not
from rankstream.service.limits import LostCommitError, ServiceLimits
from rankstream.service.storage import log, tokens
from rankstream.service.storage import states as store
from rankstream.service.storage.database import transaction
from rankstream.service.storage.ingest import Ingest, Sent
from rankstream.service.storage.leases import LEASE_SECONDS, learners_alive, owner_of
from rankstream.service.storage.writer import reason
from shared_service import Member, started
from shell import run
from waits import LONG, wait_for

pytestmark = [pytest.mark.server, pytest.mark.skipif(bool(why_not()), reason=why_not())]
MARKETS = ("bar", "cafe", "pub")
RECORDS = [TEA, PIE, CAKE, TEA]
APART = 2.0  # seconds that servers may be apart
REPLACED = 10.0  # seconds after which the markets of a learner that died have another one


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    with postgres_server() as running:
        yield running


class Sender(Thread):
    """A client that sends batches to all markets, each with its key to one server after the other until it is told."""

    def __init__(self, number: int, servers: list[Member], stop: Event) -> None:
        super().__init__(daemon=True)
        self.number, self.servers, self.stop = number, servers, stop
        self.acknowledged: dict[str, dict[str, int]] = {market: {} for market in MARKETS}  # positions by key
        self.failures = 0

    def run(self) -> None:
        batch = 0
        while not self.stop.is_set():
            for market in MARKETS:
                key = f"{self.number}-{batch}"
                self.acknowledged[market][key] = self._send(market, key)
            batch += 1
            time.sleep(0.02)

    def _send(self, market: str, key: str) -> int:
        tries = self.number
        while True:
            tries += 1
            url = f"{self.servers[tries % 2].url}/v1/markets/{market}/choices"
            try:
                found = httpx.post(url, json={"records": RECORDS}, headers={"Idempotency-Key": key}, timeout=5.0)
            except httpx.HTTPError:
                self.failures += 1
            else:
                if found.status_code == 202:
                    return int(found.json()["position"])
                assert found.status_code in (500, 503), found.text
                self.failures += 1
            time.sleep(0.05)


class Watcher(Thread):
    """Asks one server for the model of every market; it must never be an older one than before.

    Nor may it be older than what any server answered ``APART`` seconds before it was asked: ``answered`` has the times
    and positions of all answers, by market, of all watchers.
    """

    def __init__(self, server: Member, stop: Event, answered: dict[str, list[tuple[float, int]]]) -> None:
        super().__init__(daemon=True)
        self.server, self.stop, self.seen, self.answers = server, stop, dict[str, int](), 0
        self.answered, self.steps_back, self.too_old = answered, list[Any](), list[Any]()

    def run(self) -> None:
        while not self.stop.is_set():
            for market in MARKETS:
                asked = time.monotonic()
                try:
                    found = httpx.get(f"{self.server.url}/v1/markets/{market}/certificate", timeout=5.0)
                except httpx.HTTPError:
                    continue
                if found.status_code == 200:
                    position, before = found.json()["model"]["position"], self.seen.get(market, 0)
                    self.answers += 1
                    if position < before:
                        self.steps_back.append((market, before, position))
                    self.seen[market] = position
                    known = [other for at, other in list(self.answered[market]) if at < asked - APART]
                    if position < max(known, default=0):
                        self.too_old.append((market, max(known), position))
                    self.answered[market].append((time.monotonic(), position))
            time.sleep(0.05)


class Deployment:
    """Everything that runs, and what is known of the database."""

    def __init__(self, database: PostgresServer, errors: Path) -> None:
        self.database, self.errors = database, errors
        self.place = database.make(f"shop_{time.monotonic_ns()}")
        self.log, self.learned = log.open_log(self.place), store.open_store(self.place)
        self.servers, self.learners = started(self.place, 2, 2, errors)

    def replace(self, members: list[Member], number: int, kind: str) -> None:
        """Start another server or learner in the place of one."""
        members[number] = Member(kind, self.place, self.errors).ready()

    def holders(self) -> dict[int, tuple[str, int]]:
        """Return the holder and the fence of each market."""
        rows = self.log.execute("SELECT market, holder, fence FROM leases").fetchall()
        return {market: (holder, fence) for market, holder, fence in rows}

    def divide(self) -> set[str]:
        """Wait until both learners hold markets, and return their names.

        As long as chance gives all markets to one of them, another learner takes the place of the first.
        """
        while True:
            wait_for(lambda: len(learners_alive(self.learned)) == 2)
            alive = learners_alive(self.learned)
            owners = {market: owner_of(market, alive) for market in self.holders()}
            if len(set(owners.values())) == 2:
                wait_for(lambda owners=owners: {of: one for of, (one, _) in self.holders().items()} == owners)  # type: ignore[misc]
                return alive
            assert self.learners[0].end() == 0
            self.replace(self.learners, 0, "learn")

    def behind(self) -> int:
        """Return how many records are not learned."""
        known = store.positions(self.learned)
        return sum(row.records - known.get(row.id, (0, 0))[1] for row in log.market_rows(self.log))

    def learns(self) -> None:
        """Wait until every market learns something more."""
        before = store.positions(self.learned)
        wait_for(lambda: all(at[1] > before.get(market, (0, 0))[1] for market, at in self._at(before)))

    def _at(self, before: Any) -> list[Any]:
        found = list(store.positions(self.learned).items())
        return found if len(found) == len(MARKETS) else [(0, (0, -1))]

    def close(self) -> None:
        for member in [*self.servers, *self.learners]:
            if member.process.poll() is None:
                member.signal(signal.SIGCONT)
                member.kill()
        self.log.close()
        self.learned.close()


@pytest.fixture
def shop(database: PostgresServer, tmp_path: Path) -> Iterator[Deployment]:
    opened = Deployment(database, tmp_path / "errors")
    try:
        yield opened
    finally:
        opened.close()


def test_each_acknowledged_batch_counts_once_whatever_fails(shop: Deployment) -> None:
    """Learners, servers, connections and the database fail while two clients send and two others watch."""
    stop = Event()
    for market in MARKETS:  # models that are made quickly
        httpx.post(f"{shop.servers[0].url}/v1/markets/{market}/choices", json={"records": RECORDS}, timeout=LONG)
        settings = f"{shop.servers[1].url}/v1/markets/{market}/settings"
        assert httpx.put(settings, json={"served": "sparse"}, timeout=LONG).status_code == 200
    shop.learns()
    senders = [Sender(number, shop.servers, stop) for number in range(2)]
    answered: dict[str, list[tuple[float, int]]] = {market: [] for market in MARKETS}
    watchers = [Watcher(server, stop, answered) for server in shop.servers]
    for thread in [*senders, *watchers]:
        thread.start()
    shop.learns()
    kill_learner(shop)
    pause_learner(shop)
    pause(shop, senders, shop.servers[1].signal)
    pause(shop, senders, shop.database.signal)
    shop.servers[0].kill()
    shop.replace(shop.servers, 0, "run")
    shop.learns()
    shop.database.cut()
    shop.learns()
    for how in (signal.SIGINT, signal.SIGQUIT):  # a fast stop, and one like a crash
        shop.database.stop(how)
        shop.database.start()
        shop.learns()
    stop.set()
    for thread in [*senders, *watchers]:
        thread.join(LONG)
        assert not thread.is_alive()
    wait_for(lambda: shop.behind() == 0)
    check(shop, senders, watchers)


def kill_learner(shop: Deployment) -> None:
    """Kill the first learner: its markets have another one within 10 seconds, of which the lease takes most."""
    holders = shop.divide()
    shop.learners[0].kill()
    began = time.monotonic()
    wait_for(lambda: len({holder for holder, _ in shop.holders().values()}) == 1)
    took = time.monotonic() - began
    assert {holder for holder, _ in shop.holders().values()} < holders
    sys.stdout.write(f"the markets of a learner that was killed have another one after {took:.1f} s\n")
    assert took < REPLACED
    shop.replace(shop.learners, 0, "learn")
    shop.learns()


def pause_learner(shop: Deployment) -> None:
    """Pause the second learner until its markets have another one, and let it go on."""
    shop.divide()
    before = shop.holders()
    shop.learners[1].signal(signal.SIGSTOP)
    wait_for(lambda: len({holder for holder, _ in shop.holders().values()}) == 1)
    shop.learns()
    shop.learners[1].signal(signal.SIGCONT)
    assert all(fence >= before[market][1] for market, (_, fence) in shop.holders().items())
    shop.learns()


def pause(shop: Deployment, senders: list[Sender], send_signal: Callable[[int], None]) -> None:
    """Pause a server or the whole database, whatever it is doing, until a request to it has failed."""
    before = sum(sender.failures for sender in senders)
    send_signal(signal.SIGSTOP)
    wait_for(lambda: sum(sender.failures for sender in senders) > before)
    send_signal(signal.SIGCONT)
    shop.learns()


def check(shop: Deployment, senders: list[Sender], watchers: list[Watcher]) -> None:
    """Compare what was acknowledged with what is in the log and in the counts behind the models."""
    for row in log.market_rows(shop.log):
        sent = [position for sender in senders for position in sender.acknowledged[row.name].values()]
        batches = log.batches_after(shop.log, row.id, 0, {}, row.records)
        assert [batch.position for batch in batches] == list(range(4, row.records + 4, 4))  # without gaps
        assert sorted(sent) == [batch.position for batch in batches][1:]  # the first one was sent before
        counts = httpx.get(f"{shop.servers[0].url}/v1/markets/{row.name}/counts", timeout=LONG)
        lines = [line for line in counts.text.splitlines() if line]
        assert counts.status_code == 200, counts.text
        assert sum(float(line.rpartition(":")[2].strip(" }")) for line in lines) == row.records
    assert sum(sender.failures for sender in senders) > 0
    for watcher in watchers:
        assert (watcher.steps_back, watcher.too_old, watcher.answers > 0) == ([], [], True)
    sys.stdout.write(
        f"batches {sum(len(keys) for sender in senders for keys in sender.acknowledged.values())}, failed requests "
        f"{sum(sender.failures for sender in senders)}, answers watched {[watcher.answers for watcher in watchers]}\n"
    )


def test_settings_and_tokens_take_effect_on_every_server(shop: Deployment) -> None:
    """A request that is sent two seconds after a change must see it, however slow the machine is."""
    first, second = (server.url for server in shop.servers)
    assert httpx.post(f"{first}/v1/markets/cafe/choices", json={"records": RECORDS}, timeout=LONG).status_code == 202
    assert httpx.get(f"{second}/v1/markets/cafe/settings", timeout=LONG).json()["window"] is None
    httpx.put(f"{first}/v1/markets/cafe/settings", json={"window": 50}, timeout=LONG)
    assert httpx.get(f"{second}/v1/markets/cafe/settings", timeout=LONG).json()["window"] == 50
    wait_for(lambda: httpx.get(f"{first}/readyz", timeout=LONG).status_code == 200)
    secret = tokens.create(shop.place, ["cafe"], ["read"])
    took = [seconds_until(url, None, 401) for url in (first, second)]
    mine = {"Authorization": f"Bearer {secret}"}
    assert httpx.get(f"{second}/v1/markets/cafe/settings", headers=mine, timeout=LONG).is_success
    with httpx.stream("GET", f"{second}/v1/markets/cafe/events", headers=mine, timeout=LONG) as events:
        lines = events.iter_lines()
        assert next(lines) == "event: records"
        tokens.revoke(shop.place, tokens.listed(shop.place)[0]["id"])
        took += [seconds_until(url, mine, 401) for url in (first, second)]
        assert list(lines)[-1:] == [""]  # it has ended
    assert max(took) < APART
    sys.stdout.write(f"tokens took effect on two servers in {', '.join(f'{each:.2f} s' for each in took)}\n")


def seconds_until(url: str, headers: dict[str, str] | None, status: int) -> float:
    """Ask until the answer has a status; return when the last request was sent that had another one."""
    began, sent = time.monotonic(), [0.0]

    def is_there() -> bool:
        at = time.monotonic() - began
        if httpx.get(f"{url}/v1/markets/cafe/settings", headers=headers, timeout=LONG).status_code == status:
            return True
        sent[0] = at
        return False

    wait_for(is_there)
    return sent[0]


def test_a_transaction_that_pauses_lets_others_go_on(database: PostgresServer) -> None:
    """A server that is stopped while it holds the row of a market, and wakes up."""
    place = database.make("paused")
    with closing(log.open_log(place)) as paused, closing(log.open_log(place)) as other:
        assert paused.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("5s",)
        ingest = Ingest(ServiceLimits())
        with transaction(other):
            ingest.store(other, Sent("cafe", [TEA]))
        paused.execute("SET idle_in_transaction_session_timeout = '300ms'")

        def send_both() -> None:
            with transaction(paused):
                Ingest(ServiceLimits()).store(paused, Sent("cafe", [TEA]))
                with transaction(other):  # waits for the row
                    assert ingest.store(other, Sent("cafe", [TEA]))["position"] == 2

        with pytest.raises(LostCommitError) as lost:
            send_both()
        assert "may be stored" in reason(lost.value).sentence
        with transaction(paused):  # on a new connection
            assert Ingest(ServiceLimits()).store(paused, Sent("cafe", [TEA]))["position"] == 3
        paused.begin(writes=False)
        database.cut()
        with pytest.raises(LostCommitError):
            paused.execute("COMMIT")
        row = log.market_row(paused, "cafe")
        assert row is not None
        assert row.records == 3
        messages = paused.changes() // 1_000_000
        database.cut()
        wait_for(lambda: paused.changes() // 1_000_000 > messages)  # no request fails after a restart of the database


def test_readiness_says_when_nobody_learns(shop: Deployment) -> None:
    url = shop.servers[0].url
    wait_for(lambda: httpx.get(f"{url}/readyz", timeout=LONG).status_code == 200)
    for learner in shop.learners:
        assert learner.end() == 0
    found = httpx.get(f"{url}/readyz", timeout=LONG)
    assert (found.status_code, "learner is not running" in found.text) == (503, True)
    assert not shop.learned.execute("SELECT * FROM learners").fetchall()  # they did not wait for their time
    assert LEASE_SECONDS <= 10.0


def test_a_password_in_a_url_is_refused(tmp_path: Path) -> None:
    urls = ("shop:secret@db/shop", "shop:se/secret@db/shop", "shop:se?secret@db/shop", "db/shop?password=secret")
    for command, url in (*(("learn", url) for url in urls), ("run", urls[0]), ("export", urls[0])):
        done = run("serve", command, f"postgresql://{url}", *["m", "x.jsonl"] * (command == "export"), cwd=tmp_path)
        assert (done.returncode, "PGPASSFILE" in done.stderr, "secret" in done.stderr) == (2, True, False)
    assert run("serve", "learn", "shop", cwd=tmp_path).returncode == 2
    done = run("serve", "rebuild", "postgresql://shop@db/shop", cwd=tmp_path)
    assert (done.returncode, "nothing to rebuild" in done.stderr) == (2, True)
    done = run("serve", "run", "mysql://shop@db/shop", cwd=tmp_path)
    assert (done.returncode, "mysql:// is not known" in done.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    done = run("serve", "learn", "postgresql://shop@127.0.0.1:1/shop", cwd=tmp_path)
    assert (done.returncode, "The database cannot be used" in done.stderr) == (2, True)
