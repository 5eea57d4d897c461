"""The service without its face: the log, what was learned, who asks, and the processes that do the work."""

import asyncio
import sqlite3
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from rankstream.service.child import Worker
from rankstream.service.ingest import KEYS_KEPT, Ingest
from rankstream.service.limits import RefusedError, ServiceLimits
from rankstream.service.log import MarketRow, market_row, market_rows, open_log
from rankstream.service.metrics import Metrics
from rankstream.service.schemas import MarketFacts, ServedFacts
from rankstream.service.store import Published, ServedModel
from rankstream.service.supervisor import Supervisor
from rankstream.service.tokens import Tokens
from rankstream.service.writing import Work, Writer

R = TypeVar("R")
SWEEP = 60.0
PATIENCE = 60.0
"""Seconds after which a question is given up."""
REFITS = 300.0
"""Seconds after which refits for intervals are given up."""
REMEMBERED = 20_000


@dataclass(frozen=True)
class Options:
    """How a service is run.

    Attributes
    ----------
    limits : ServiceLimits
        The most of everything.
    new_markets : bool
        Whether a market may be made by its first batch.
    keep : float or None
        Seconds for which learned records stay in the log; None for ever.
    hosts : tuple of names
        The names that the server is called by, besides those of this machine for itself.
    seed : int
        The seed of markets that are made.

    """

    limits: ServiceLimits = field(default_factory=ServiceLimits)
    new_markets: bool = True
    keep: float | None = None
    hosts: tuple[str, ...] = ()
    seed: int = 0


class Service:
    """Everything that a server needs of a folder; the folder must be this process's own."""

    def __init__(self, folder: Path, options: Options) -> None:
        self.folder, self.options, self.limits = folder, options, options.limits
        self.ingest = Ingest(options.limits, options.new_markets, options.seed)
        self.writer = Writer(open_log(folder), self.ingest.forget)
        self.reading = open_log(folder)
        self.published, self.tokens = Published(folder), Tokens(folder)
        self.supervisor = Supervisor(folder)
        self.quick, self.slow = (Worker("asking", str(folder), patience=PATIENCE) for _ in range(2))
        self.drawing = Worker("page.working", str(folder), patience=PATIENCE)
        self.refitting = Worker("page.working", str(folder), patience=REFITS)
        self.metrics = Metrics(self._look)
        self.listeners = 0
        self.is_closing = False
        self._predicted: dict[tuple[int, str, tuple[Any, ...]], dict[str, float]] = {}

    def close(self) -> None:
        """Write what waits, let the learner save, and let go of everything."""
        self.is_closing = True
        for worker in (self.quick, self.slow, self.drawing, self.refitting):
            worker.close()
        self.writer.close()
        if self.supervisor.process is not None:
            self.supervisor.end()
        for one in (self.reading, self.published, self.tokens):
            one.close()

    async def write(self, work: Work[R]) -> R:
        """Have something written to the log, and wait until it is on disk."""
        self.limits.check_waiting(self.writer.waiting)
        return await asyncio.wrap_future(self.writer.submit(work))

    def row(self, name: str) -> MarketRow:
        """The market of that name."""
        row = market_row(self.reading, name)
        if row is None:
            raise RefusedError(404, "There is no such market: send choices to it first.")
        return row

    def served(self, row: MarketRow) -> ServedModel:
        """The model that is given out of a market."""
        found = self.published.of(row)
        if found is None and self.published.learned(row) < row.records:
            raise RefusedError(503, "The market is being learned: ask again in a second.", Retry_After="1")
        if found is None:
            raise RefusedError(409, "The market has no model yet: send more choices.")
        return found

    def about(self, row: MarketRow, served: ServedModel) -> ServedFacts:
        """What every answer says of the model behind it."""
        return ServedFacts(
            position=served.facts["position"],
            records=row.records,
            learned=self.published.learned(row),
            age=age_of(served),
            kind=served.facts["kind"],
            gap=served.facts["gap"],
        )

    def markets(self) -> list[MarketFacts]:
        """All markets."""
        return [self.facts(row) for row in market_rows(self.reading)]

    def facts(self, row: MarketRow) -> MarketFacts:
        """How far a market is."""
        served = self.published.of(row)
        known: dict[str, Any] = {"offers": 0, "items": 0, "kind": None} if served is None else served.facts
        return MarketFacts(
            market=row.name,
            records=row.records,
            learned=self.published.learned(row),
            dropped=row.dropped,
            offers=known["offers"],
            items=known["items"],
            model_age=None if served is None else age_of(served),
            kind=known["kind"],
        )

    def _look(self) -> tuple[list[MarketFacts], int, int, int]:
        return self.markets(), self.supervisor.restarts, self.writer.waiting, self.listeners

    async def ask(self, worker: Worker, question: dict[str, Any]) -> Any:
        """Ask a process that can compute, and wait for the answer."""
        self.limits.check_questions(worker.waiting)
        try:
            status, content = await asyncio.wrap_future(worker.submit(question))
        except ChildProcessError:
            raise RefusedError(503, "The answer could not be computed: ask again later.", Retry_After="1") from None
        if status != 200:
            raise RefusedError(status, content)
        return content

    async def predict(
        self, row: MarketRow, served: ServedModel, offers: list[tuple[Any, ...]]
    ) -> list[dict[str, float]]:
        """The shares of offers; those that were asked for before are remembered as long as the model is the same."""
        keys = [(row.id, served.digest, offer) for offer in offers]
        known = {key: self._predicted[key] for key in keys if key in self._predicted}
        missing = [key for key in dict.fromkeys(keys) if key not in known]
        if missing:
            asked = [key[2] for key in missing]
            question = {"kind": "predict", "market": row.id, "digest": served.digest, "offers": asked}
            known.update(zip(missing, await self.ask(self.quick, question), strict=True))
            if len(self._predicted) + len(missing) > REMEMBERED:
                self._predicted.clear()
            self._predicted.update((key, known[key]) for key in missing)
        return [known[key] for key in keys]

    def sweep(self, connection: sqlite3.Connection) -> int:
        """Drop old keys, and learned records that need not be kept; how many records were dropped."""
        now, dropped = time.time(), 0
        connection.execute("DELETE FROM keys WHERE made < ?", (now - KEYS_KEPT,))
        if self.options.keep is None:
            return 0
        for row in market_rows(connection):
            which = "FROM batches WHERE market = ? AND position <= ? AND arrived < ?"
            limits = (row.id, self.published.learned(row), now - self.options.keep)
            (number,) = connection.execute(f"SELECT coalesce(sum(records), 0) {which}", limits).fetchone()
            if number:
                connection.execute(f"DELETE {which}", limits)
                connection.execute("UPDATE markets SET dropped = dropped + ? WHERE id = ?", (number, row.id))
                dropped += number
        return dropped

    async def sweep_forever(self) -> None:
        """Sweep once a minute."""
        while True:
            with suppress(RefusedError):  # a full disk: the next time
                await asyncio.wrap_future(self.writer.submit(self.sweep))
            await asyncio.sleep(SWEEP)


def age_of(served: ServedModel) -> float:
    """Seconds since the model was current."""
    return max(0.0, round(time.time() - float(served.facts["since"]), 3))
