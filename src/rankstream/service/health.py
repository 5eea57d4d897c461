"""Whether the service can do its work: what readiness rests on, and what is said while the log is damaged."""

import asyncio
import sqlite3
import time
from concurrent.futures import Future
from contextlib import suppress

from rankstream.service.limits import RefusedError
from rankstream.service.processes.supervisor import Supervisor
from rankstream.service.storage.log import DAMAGED
from rankstream.service.storage.publication import Published
from rankstream.service.storage.writer import Writer

PROBE_SECONDS = 5.0  # seconds for which the outcome of a write is remembered
PROBE_TIMEOUT = 5.0  # seconds after which a write that hangs has failed
PROBE_BYTES = 8192


def probe(connection: sqlite3.Connection) -> None:
    """Write what a batch writes, and take it back: new pages, the ends of tables and indexes, all markets."""
    connection.execute(
        "INSERT INTO batches (market, position, records, arrived, body) VALUES (0, 0, 0, 0, zeroblob(?))",
        (PROBE_BYTES,),
    )
    connection.execute("DELETE FROM batches WHERE market = 0")
    connection.execute("UPDATE markets SET records = records")


class Health:
    """Readiness, by a real write that is tried at most every 5 seconds; it names no market."""

    def __init__(self, writer: Writer, published: Published, supervisor: Supervisor) -> None:
        self.writer, self.published, self.supervisor = writer, published, supervisor
        self.read_damage = False
        self._probe: Future[None] | None = None
        self._began = 0.0

    def check_log(self) -> None:
        """Refuse everything while the log is damaged: neither writes nor answers can be relied on."""
        problem = None
        with suppress(RefusedError):  # what was learned is another matter
            problem = self.published.problem(None)
        if self.read_damage or self.writer.is_damaged or problem is not None:
            raise RefusedError(503, DAMAGED)

    async def check_ready(self) -> None:
        """Refuse unless choices can be written and all markets are learned."""
        self.check_log()
        if not self.supervisor.is_alive:
            raise RefusedError(503, "The learner is not running: try again in a moment.", Retry_After="1")
        if self._probe is None or (time.monotonic() - self._began >= PROBE_SECONDS and self._probe.done()):
            self._probe, self._began = self.writer.submit(probe), time.monotonic()
        try:
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._probe)), PROBE_TIMEOUT)
        except TimeoutError:
            raise RefusedError(503, "The log takes too long to write: try again later.", Retry_After="5") from None
        if self.writer.failure is not None:  # a batch, after the last probe
            raise self.writer.failure
        if self.published.any_problem():
            raise RefusedError(503, "A market cannot be learned: see /metrics, or the page of each market.")
