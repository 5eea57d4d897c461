"""The state of a running service: its log, its published models, its tokens, its worker processes, and its health."""

import asyncio
import json
import pickle
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from rankstream.service.limits import RefusedError, ServiceLimits
from rankstream.service.metrics import Metrics
from rankstream.service.processes.batch_reader import check_lines, records_in
from rankstream.service.processes.supervisor import Supervisor
from rankstream.service.processes.worker import Worker
from rankstream.service.storage.database import Database, Place
from rankstream.service.storage.ingest import KEY_SECONDS, Ingest
from rankstream.service.storage.leases import learners_alive
from rankstream.service.storage.log import DAMAGED, DamagedLogError, MarketRow, market_row, market_rows, open_log
from rankstream.service.storage.publication import MarketAnswer, Published, PublishedAnswer, provisional_reason
from rankstream.service.storage.states import PublishedModel
from rankstream.service.storage.tokens import PageLink, Tokens
from rankstream.service.storage.writer import Work, Writer

R = TypeVar("R")
SWEEP_SECONDS = 60.0  # between two looks for records and keys that are too old; both are kept for days
QUESTION_SECONDS = 60.0  # time limit of a question: nobody waits longer
SLOW_SECONDS = 180.0  # time limit of slow questions: on a busy machine a process needs a minute to start
REFIT_SECONDS = 300.0  # time limit of the refits for intervals; they share the cores with the learner
NO_ANSWER = "The answer could not be computed: try again later."
UPLOAD_TIMES = (SLOW_SECONDS, None)  # time limits to examine an uploaded file, and to import it
CACHE_ENTRY_BYTES = 250  # overhead of a cache entry
PROBE_SECONDS = 5.0  # how long the outcome of a test write is cached, however often readiness is asked for
PROBE_TIMEOUT = 5.0  # seconds after which a test write counts as failed
PROBE_BYTES = 8192  # more than a page of the database, so that a full disk refuses it
MAX_INLINE_BYTES = 65_536  # bytes of a batch above which another process parses it (benchmarks/attack_service.py)


@dataclass(frozen=True)
class Options:
    """Options of a service."""

    limits: ServiceLimits = field(default_factory=ServiceLimits)
    new_markets: bool = True  # whether the first batch of a market creates it
    keep: float | None = None  # seconds for which learned records stay in the log; None: for ever
    hosts: tuple[str, ...] = ()  # host names under which clients reach the server, besides those of this machine
    seed: int = 0  # of new markets
    learns: bool = True  # whether a learner follows the log; imported files need none
    link: PageLink | None = None  # a link that opens the page once


def probe(connection: Database) -> None:
    """Test that a batch could be written: write to the same tables and indexes, and undo it."""
    connection.execute(
        "INSERT INTO batches (market, position, records, arrived, body) VALUES (0, 0, 0, 0, ?)", ("0" * PROBE_BYTES,)
    )
    connection.execute("DELETE FROM batches WHERE market = 0")
    if not connection.is_shared:  # it would wait for all markets
        connection.execute("UPDATE markets SET records = records")


class Service:
    """All state of one running service. Only one process may open a folder, and any number a database.

    A server of a database has a ``folder`` of its own for uploads only, which it may lose.
    """

    def __init__(self, folder: Place, options: Options) -> None:
        self.options, self.limits = options, options.limits
        self.ingest = Ingest(options.limits, options.new_markets, options.seed)
        self.writer = Writer(open_log(folder), self.ingest.forget)
        self.reading = open_log(folder)
        try:
            self.published, self.tokens = Published(folder, self.reading), Tokens(folder)
        except BaseException as error:
            self.writer.close()
            self.reading.close()
            if isinstance(error, DamagedLogError):
                raise ValueError(f"The log in {folder} is damaged: restore a backup.") from None
            raise
        self._scratch = TemporaryDirectory(prefix="rankstream-") if isinstance(folder, str) else None
        self.folder = folder if isinstance(folder, Path) else Path(str(self._scratch and self._scratch.name))
        self.supervisor = Supervisor(folder)
        self.read_damage = False  # whether a read has found the log damaged
        self._probe: Future[None] | None = None  # the last test write, and its time
        self._probed = 0.0
        self.quick = Worker("processes.batch_reader", str(folder), timeout=QUESTION_SECONDS)
        limits = SLOW_SECONDS, SLOW_SECONDS, QUESTION_SECONDS
        self.slow, self.search, self.reading_large = (Worker(beside=self.quick, timeout=one) for one in limits)
        self.refitting = Worker("processes.refits", str(folder), timeout=REFIT_SECONDS)
        self.looking, self.importing = (Worker("processes.importer", str(folder), timeout=t) for t in UPLOAD_TIMES)
        self.fitting = Worker(beside=self.importing)
        rmtree(self.uploads, ignore_errors=True)  # left by a server that was killed
        self._turn = asyncio.Lock()
        self.metrics = Metrics(self._look)
        self.listeners, self.is_closing = 0, False
        self._predicted: dict[bytes, bytes] = {}
        self._predicted_bytes = 0

    def close(self) -> None:
        """Write what is queued, let the learner save, and close everything."""
        self.is_closing = True
        workers = (self.quick, self.slow, self.search, self.refitting, self.reading_large)
        for worker in (*workers, self.looking, self.importing, self.fitting):
            worker.close()
        rmtree(self.uploads, ignore_errors=True)
        self.writer.close()
        self.supervisor.end()
        for database in (self.reading, self.published, self.tokens):
            database.close()
        if self._scratch is not None:
            self._scratch.cleanup()

    def check_log(self) -> None:
        """Reject all requests while the log is damaged."""
        problem = None
        with suppress(RefusedError):  # unreadable models are a different problem
            problem = self.published.problem(None)
        if self.read_damage or self.writer.is_damaged or problem is not None:
            raise RefusedError(503, DAMAGED)

    async def check_ready(self) -> None:
        """Raise a RefusedError unless choices can be written and all markets are being learned."""
        self.check_log()
        shared = self.reading.is_shared
        if not (self.from_log(lambda: learners_alive(self.reading)) if shared else self.supervisor.is_alive):
            raise RefusedError(503, "The learner is not running: try again in a moment.", Retry_After="1")
        if self._probe is None or (time.monotonic() - self._probed >= PROBE_SECONDS and self._probe.done()):
            self._probe, self._probed = self.writer.submit(probe), time.monotonic()
        try:
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._probe)), PROBE_TIMEOUT)
        except TimeoutError:
            raise RefusedError(503, "The log takes too long to write: try again later.", Retry_After="5") from None
        if self.writer.failure is not None:  # of a batch since the last test write
            raise self.writer.failure
        if self.published.any_problem():
            raise RefusedError(503, "A market cannot be learned: see /metrics, or the page of each market.")

    @property
    def uploads(self) -> Path:
        """The folder of uploaded files that are not imported yet."""
        return self.folder / "uploads"

    async def write(self, work: Work[R], market: str) -> R:
        """Write to a market in the log, and wait until it is on disk."""
        self.check_log()
        self.limits.check("waiting", self.writer.waiting + 1)
        return await asyncio.wrap_future(self.writer.submit(work, market))

    @asynccontextmanager
    async def records_in(self, body: bytes, lines: bool) -> AsyncIterator[list[Any]]:
        """Parse the records of a body; large bodies wait for each other, and small ones overtake them."""
        if len(body) <= MAX_INLINE_BYTES:
            yield records_in(body, lines, self.limits)
            return
        check_lines(body, lines, self.limits)
        async with self._turn:
            question = body, lines, self.limits
            content = await self.ask(self.reading_large, question, "The batch could not be read: send it again later.")
            records: list[Any] = []
            for part in content:
                records += pickle.loads(part)
                await asyncio.sleep(0)
            yield records

    def row(self, name: str) -> MarketRow:
        """Return the market of that name, or raise a RefusedError."""
        row = self.from_log(lambda: market_row(self.reading, name))
        if row is None:
            raise RefusedError(404, "Unknown market: send choices to it first.")
        return row

    def readable(self, header: str | None, name: str) -> MarketRow:
        """Return the market of that name, if the token in this header may read it."""
        self.tokens.check(header, "read", name)
        return self.row(name)

    def from_log(self, read: Callable[[], R]) -> R:
        """Read the log, unless it is damaged."""
        self.check_log()
        try:
            return read()
        except DamagedLogError:
            self.read_damage = True
            raise RefusedError(503, DAMAGED) from None
        except sqlite3.Error:
            raise RefusedError(503, "The log cannot be read: try again later.", Retry_After="5") from None

    def model_of(self, row: MarketRow) -> PublishedModel:
        """Return the published model of a market, or raise a RefusedError with the reason."""
        model = self.published.of(row)
        if model is not None:
            return model
        problem = self.published.problem(row)
        if problem is not None:
            raise RefusedError(503, problem)
        if self.published.learned(row) < row.records:
            raise RefusedError(503, "This market's model is still being built. Try again in a second.", Retry_After="1")
        raise RefusedError(409, "The market has no model yet: send more choices.")

    def about(self, row: MarketRow, published: PublishedModel) -> PublishedAnswer:
        """Return the facts about the model that are part of every answer."""
        return PublishedAnswer(
            **{name: published.facts[name] for name in ("position", "kind", "gap")},
            records=row.records,
            learned=self.published.learned(row),
            age=age_of(published),
            provisional=bool(provisional_reason(row, published.facts)),
        )

    def markets(self) -> list[MarketAnswer]:
        """All markets."""
        return [self.facts(row) for row in self.rows()]

    def rows(self) -> list[MarketRow]:
        """The rows of all markets in the log."""
        return self.from_log(lambda: market_rows(self.reading))

    def facts(self, row: MarketRow) -> MarketAnswer:
        """Progress of one market: records received, processed and dropped."""
        published = self.published.of(row)
        known: dict[str, Any] = {"offers": 0, "items": 0, "kind": None} if published is None else published.facts
        return MarketAnswer(
            market=row.name,
            records=row.records,
            learned=self.published.learned(row),
            dropped=row.dropped,
            **{name: known[name] for name in ("offers", "items", "kind")},
            model_age=None if published is None else age_of(published),
            problem=self.published.problem(row),
        )

    def last_arrival(self, row: MarketRow) -> float | None:
        """Return when the last batch of a market arrived; None if the log has none."""
        query = "SELECT arrived FROM batches WHERE market = ? ORDER BY position DESC LIMIT 1"
        batch = self.from_log(lambda: self.reading.execute(query, (row.id,)).fetchone())
        return None if batch is None else float(batch[0])

    def _look(self) -> tuple[list[MarketAnswer], int, int, int]:
        markets: list[MarketAnswer] = []
        with suppress(RefusedError):  # a damaged log: the other figures are still known
            markets = self.markets()
        return markets, self.supervisor.restarts, self.writer.waiting, self.listeners

    async def ask(self, worker: Worker, question: Any, sentence: str = NO_ANSWER) -> Any:
        """Ask a worker process, and wait for the answer; ``sentence`` is the error message if the process dies."""
        self.limits.check("questions", worker.waiting + 1)
        try:
            status, content = await asyncio.wrap_future(worker.submit(question))
        except ChildProcessError:
            raise RefusedError(503, sentence, Retry_After="1") from None
        if status != 200:
            raise RefusedError(status, content)
        return content

    async def predict(
        self, row: MarketRow, published: PublishedModel, offers: list[tuple[Any, ...]], items: Any = None
    ) -> list[dict[str, Any]]:
        """Return predictions, from the cache if the model and the candidates beside its items are the same."""
        ordered = [tuple(sorted(offer, key=str)) for offer in offers]
        keys = [sha256(repr((row.id, published.digest, offer, items)).encode()).digest() for offer in ordered]
        known = {key: self._predicted[key] for key in keys if key in self._predicted}
        missing = {key: offer for key, offer in zip(keys, ordered, strict=True) if key not in known}
        if missing:
            question = {"kind": "predict", "market": row.id, "digest": published.digest}
            answers = await self.ask(self.quick, question | {"offers": list(missing.values()), "items": items})
            for key, content in zip(missing, answers, strict=True):
                known[key] = json.dumps(content).encode()
                self._remember(key, known[key])
        predictions = [json.loads(known[key]) for key in keys]
        for offer, content in zip(offers, predictions, strict=True):
            content["offer"] = [item if isinstance(item, str) else item[0] for item in offer]
            content["shares"] = in_order(content["offer"], content["shares"])
        return predictions

    def _remember(self, key: bytes, content: bytes) -> None:
        """Cache a prediction, and drop the oldest ones beyond the limit in bytes."""
        if key not in self._predicted:
            self._predicted[key] = content
            self._predicted_bytes += len(content) + CACHE_ENTRY_BYTES
        while self._predicted_bytes > self.limits.cache:
            self._predicted_bytes -= len(self._predicted.pop(next(iter(self._predicted)))) + CACHE_ENTRY_BYTES

    def sweep(self, connection: Database) -> int:
        """Delete old keys, and learned records older than ``keep``; return the number of deleted records."""
        now, dropped = connection.now(), 0
        connection.execute("DELETE FROM keys WHERE made < ?", (now - KEY_SECONDS,))
        if self.options.keep is None:
            return 0
        for row in market_rows(connection):
            which = "market = ? AND position <= ? AND arrived < ?"
            limits = (row.id, self.published.learned(row), now - self.options.keep)
            gone = connection.execute(f"DELETE FROM batches WHERE {which} RETURNING records", limits).fetchall()
            if number := sum(records for (records,) in gone):  # those of this server: others sweep, too
                connection.execute("UPDATE markets SET dropped = dropped + ? WHERE id = ?", (number, row.id))
                dropped += number
        return dropped

    async def sweep_forever(self) -> None:
        """Sweep once a minute."""
        while True:
            with suppress(RefusedError):  # such as a full disk: try again in a minute
                await asyncio.wrap_future(self.writer.submit(self.sweep))
            await asyncio.sleep(SWEEP_SECONDS)


def in_order(names: Iterable[str], values: dict[str, Any]) -> dict[str, Any]:
    """Sort values in the order of the names; other values come last.

    >>> in_order(("tea", "pie"), {"pie": 0.4, "nothing": 0.1, "tea": 0.5})
    {'tea': 0.5, 'pie': 0.4, 'nothing': 0.1}
    """
    return {name: values[name] for name in names if name in values} | values


def age_of(published: PublishedModel) -> float:
    """Return the seconds since the model was current."""
    return max(0.0, round(time.time() - float(published.facts["since"]), 3))
