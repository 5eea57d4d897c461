"""A service, its learner and a client in one process, on a simulated clock, disk and network.

The code of ingest, log, learner, sweep and client is the real one; SQLite runs on files in memory. Only the model is
replaced: ``CountedMarket`` counts the records of every batch, so that each record can be traced to its request.
"""

import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import httpx

from fault_counts import CountedMarket, facts_of
from rankstream.service import client, hub
from rankstream.service.client import Client
from rankstream.service.hub import Options, Service
from rankstream.service.limits import RefusedError
from rankstream.service.processes import learner
from rankstream.service.processes.batch_reader import records_in
from rankstream.service.processes.learner import LogLearner
from rankstream.service.storage import database, ingest, leases, log, publication, states, writer
from rankstream.service.storage.database import SqliteDatabase
from rankstream.service.storage.ingest import Ingest, Sent
from rankstream.service.storage.leases import Leases
from rankstream.service.storage.publication import Published
from rankstream.service.storage.writer import Writer

PROCESSES = ("server", "learner", "second")
WRITES = ("INSERT", "UPDATE", "DELETE", "COMMIT")
PAUSE_SECONDS = 6.0  # longer than a lease
START_TIME = 1_700_000_000.0
TICK = 0.02  # seconds that pass with every look at the clock, so that turns of the learner end
ERRORS = {"failed write": sqlite3.SQLITE_IOERR, "full disk": sqlite3.SQLITE_FULL}
SHARED_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Crash(BaseException):
    """The end of a simulated process: no handler of errors may run on."""


class Clock:
    """The simulated time; ``wall`` may jump, ``steady`` may not."""

    def __init__(self) -> None:
        self.wall, self.steady = START_TIME, 1000.0

    def time(self) -> float:
        """Return the time of day."""
        return self.wall

    def monotonic(self) -> float:
        """Return the steady time."""
        self.sleep(TICK)
        return self.steady

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.wall, self.steady = self.wall + seconds, self.steady + seconds


class NoThread:
    """A thread that never runs: the simulator decides when the writer works."""

    def __init__(self, **_: Any) -> None:
        pass

    def start(self) -> None:
        """Do nothing."""


class Connection(SqliteDatabase):
    """A connection of a simulated process, whose writes can fail."""

    world: "World"
    owner: str
    only_reads = False  # whether the transaction is one of BEGIN without IMMEDIATE, whose COMMIT writes nothing

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        """Execute a statement, unless a fault occurs."""
        run = super().execute
        return self.world.disk.execute(self, sql, lambda: run(sql, *parameters))

    def executemany(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        """Execute a statement for many rows, unless a fault occurs."""
        run = super().executemany
        return self.world.disk.execute(self, sql, lambda: run(sql, *parameters))


class Disk:
    """Faults of writes: each is due at the n-th write of a process from when it was set."""

    def __init__(self, world: "World") -> None:
        self.world, self.due, self.is_full = world, list[dict[str, Any]](), False

    def execute(self, connection: Connection, sql: str, run: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
        """Run a statement, or the fault that is due."""
        if connection.owner in self.world.dead:
            raise Crash
        word = sql.split(None, 1)[0].upper()
        if word == "BEGIN":
            connection.only_reads = "IMMEDIATE" not in sql
        is_write = word in WRITES and not (word == "COMMIT" and connection.only_reads)
        for fault in list(self.due):
            fits = word == "BEGIN" if fault["kind"] == "pause" else is_write
            if fits and fault["process"] == connection.owner:
                fault["after"] -= 1
                if fault["after"] < 0:
                    self.due.remove(fault)
                    self.world.faults[fault["kind"]] += 1
                    self._occur(fault, run)
        if self.is_full and is_write:
            raise failure("full disk")
        return run()

    def _occur(self, fault: dict[str, Any], run: Callable[[], sqlite3.Cursor]) -> None:
        kind = fault["kind"]
        if kind == "pause":
            self.world.clock.sleep(PAUSE_SECONDS)
            self.world.run_others(fault["steps"])
        elif kind == "full disk":
            self.is_full = True
        elif kind == "failed write":
            raise failure("failed write")
        else:
            before = self.world.wal_sizes()
            if fault["late"]:  # the write is done, but nobody is told
                run()
            if kind == "power loss":
                self.world.lose_power(before, fault["cut"])
            raise Crash


def failure(kind: str) -> sqlite3.OperationalError:
    """Return SQLite's error for a failed write."""
    error = sqlite3.OperationalError(kind)
    error.sqlite_errorcode = ERRORS[kind]
    return error


class Server(Service):
    """The real service without its worker processes and its HTTP server."""

    def __init__(self, folder: Path, keep: float | None) -> None:
        self.folder, self.options = folder, Options(keep=keep)
        self.limits, self.read_damage = self.options.limits, False
        self.ingest = Ingest(self.limits)
        self.writer = Writer(log.open_log(folder), self.ingest.forget)
        self.reading = log.open_log(folder)
        self.published = Published(folder, self.reading)

    def run(self, works: list[Any]) -> list[Any]:
        """Write everything in one transaction, as the thread of the writer does; return answers or errors."""
        results = [self.writer.submit(work) for work in works]
        self.writer._queue.put(None)
        self.writer._run()
        return [result.exception() or result.result() for result in results]

    def work(self, request: httpx.Request) -> Any:
        """Return what a request writes, or why it is refused; as the route for choices does."""
        try:
            self.check_log()
            body, key = request.content, request.headers.get("Idempotency-Key")
            records = records_in(body, False, self.limits)
        except RefusedError as refused:
            return refused
        kind = request.headers.get("Content-Type", "").partition(";")[0]
        digest = sha256(kind.encode() + b"\n" + body).digest()
        sent = Sent(request.url.path.split("/")[3], records, "", key, digest)
        return lambda connection: self.ingest.store(connection, sent)


class OneTurn:
    """An event that is set after the first look, so that the learner's loop runs once."""

    def __init__(self) -> None:
        self.looks = 0

    def is_set(self) -> bool:
        """Return whether the turn is over."""
        self.looks += 1
        return self.looks > 1

    def wait(self, seconds: float = 0.0) -> None:
        """Return at once."""


class World:
    """The folder, the processes, the network and the clock of one run."""

    def __init__(self, keep: float | None, run_others: Callable[[int], None]) -> None:
        self.clock, self.disk, self.keep, self.run_others = Clock(), Disk(self), keep, run_others
        self.root = Path(tempfile.mkdtemp(prefix="rankstream-faults-", dir=SHARED_MEMORY))
        self.folder = self.root / "0"
        self.folder.mkdir()
        self.faults, self.dead = Counter[str](), set[str]()
        self.connections: list[Connection] = []
        self.running = ""
        self.server: Server | None = None
        self.learners: dict[str, LogLearner] = {}
        self.late: list[httpx.Request] = []
        self.fates: list[str] = []
        self.deliveries: list[tuple[httpx.Request, Any]] = []  # requests that came, and the answers
        self.client = Client("http://service", retries=2, transport=httpx.MockTransport(self.exchange))
        self.copies, self.busy = 0, set[str]()

    def connect(self, path: Path, **options: Any) -> Connection:
        """Open a database for the process that runs."""
        connection: Connection = sqlite3.connect(path, **options | {"factory": Connection})
        connection.world, connection.owner = self, self.running
        self.connections.append(connection)
        return connection

    @contextmanager
    def process(self, name: str) -> Iterator[None]:
        """Run a block as a process, which ends if it crashes."""
        before, self.running = self.running, name
        try:
            yield
        except Crash:
            self.end(name)
        finally:
            self.running = before
            if "both" in self.dead and not before:
                for process in PROCESSES:
                    self.end(process)
                self.dead.clear()

    def end(self, name: str) -> None:
        """End a process; SQLite rolls back what it has not committed."""
        for connection in self.connections:
            if connection.owner == name:
                connection.close()
        self.connections = [connection for connection in self.connections if connection.owner != name]
        if name == "server":
            self.server = None
        elif name in self.learners:
            self.learners.pop(name)._threads.shutdown()

    def wal_sizes(self) -> dict[str, int]:
        """Return the sizes of the write-ahead logs."""
        return {path.name: path.stat().st_size for path in self.folder.glob("*-wal")}

    def lose_power(self, before: dict[str, int], cut: float) -> None:
        """Continue from copies of the files, without a part of what the last write added to them."""
        self.copies += 1
        folder = self.root / str(self.copies)
        folder.mkdir()
        for path in self.folder.iterdir():
            if path.is_file() and not path.name.endswith("-shm"):
                shutil.copy(path, folder)
        for name, size in before.items():
            after = (folder / name).stat().st_size
            if after > size:
                self.faults["torn write"] += cut < 1.0
                os.truncate(folder / name, size + int(cut * (after - size)))
        self.folder = folder
        self.dead |= {*PROCESSES, "both"}

    def exchange(self, request: httpx.Request) -> httpx.Response:
        """Carry a request to the server and its answer to the client, as the next fate says."""
        fate = self.fates.pop(0) if self.fates else "fine"
        if fate != "fine":
            self.faults[fate] += 1
        if fate in ("late", "lost request"):
            self.late += [request] * (fate == "late")
            raise httpx.ReadTimeout(fate)
        answers = self.deliver([request] * (2 if fate == "doubled" else 1))
        if not answers or fate == "lost answer":
            raise httpx.ReadTimeout(fate)
        refused = answers[0]
        if isinstance(refused, RefusedError):
            return httpx.Response(refused.status, json={"error": str(refused)})
        return httpx.Response(202, json=refused)

    def deliver(self, requests: list[httpx.Request]) -> list[Any]:
        """Let the server answer requests, and late ones with them; none if it crashes."""
        requests, self.late = requests + self.late, []
        answers: list[Any] = []
        with self.process("server"):
            if not self._serves():
                return []
            assert self.server is not None
            works = [self.server.work(request) for request in requests]
            done = iter(self.server.run([work for work in works if callable(work)]))
            answers = [next(done) if callable(work) else work for work in works]
        self.deliveries += list(zip(requests, answers or [None] * len(requests), strict=True))
        return answers

    def _serves(self) -> bool:
        """Start the server if it is down; return whether it runs."""
        if self.server is None:
            try:
                self.server = Server(self.folder, self.keep)
            except (ValueError, sqlite3.Error, RefusedError):
                self.end("server")
        return self.server is not None

    def write(self, work: Callable[[Server], Any]) -> None:
        """Let the server write something other than choices."""
        with self.process("server"):
            if self._serves():
                assert self.server is not None
                self.server.run([work(self.server)])

    def ask(self, market: str) -> tuple[int, int, int] | None:
        """Return market, epoch and position of the model that the server answers with; None without one."""
        with self.process("server"), suppress(RefusedError):
            if self._serves():
                assert self.server is not None
                row = self.server.row(market)
                model = self.server.model_of(row)
                return row.id, model.epoch, model.facts["position"]
        return None

    def learn(self, name: str, is_leased: bool) -> None:
        """Let a learner run once, unless it is paused; with leases, there may be two."""
        if name in self.busy or not (self.folder / log.NAME).is_file():
            return
        self.busy.add(name)
        with self.process(name):
            try:
                if name not in self.learners:
                    self.learners[name] = self._learner(is_leased)
                running = self.learners[name]
                if running.leases is not None:
                    running.leases.beat()
                with ExitStack() as stack:
                    learner._follow(running, stack, OneTurn())  # type: ignore[arg-type]
                    stack.pop_all()  # the learner stays open
            except (ValueError, sqlite3.Error):
                self.end(name)
        self.busy.remove(name)

    def _learner(self, is_leased: bool) -> LogLearner:
        running = LogLearner(self.folder, lambda _: None)
        if is_leased:
            running.leases = Leases(running.store, running.log)
        return running

    def close(self) -> None:
        """Delete everything."""
        for process in PROCESSES:
            self.end(process)
        self.client.close()
        shutil.rmtree(self.root)


@contextmanager
def simulated(world: World) -> Iterator[World]:
    """Put clock, disk and counting in the place of the real ones."""
    keys, names = iter(range(10**9)), iter(range(10**9))
    library = SimpleNamespace(**{**vars(sqlite3), "connect": world.connect})
    with ExitStack() as stack:
        for module in (ingest, hub, learner, states, client, database):
            stack.enter_context(patch.object(module, "time", world.clock))
        for module, name, new in (
            (database, "sqlite3", library),
            (writer, "Thread", NoThread),
            (leases, "token_hex", lambda _: f"learner {next(names)}"),
            (client, "token_hex", lambda _: f"key {next(keys)}"),
            (learner, "BackgroundLive", CountedMarket),
            (learner, "facts_of", facts_of),
            (learner, "make_listing", lambda *_: {}),
            (learner, "resident_memory", lambda: 0),
            (learner, "IN_MEMORY", 1),
            (learner, "BATCH_RECORDS", 3),
            (learner, "note", lambda *_, **__: None),
            (publication, "note", lambda *_, **__: None),
        ):
            stack.enter_context(patch.object(module, name, new))
        stack.callback(world.close)
        yield world
