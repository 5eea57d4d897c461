"""A store as its tests use it: SQLite in a folder, PostgreSQL, or the one of the fault simulator."""

from contextlib import ExitStack, closing
from typing import Any

from rankstream.service.limits import ServiceLimits
from rankstream.service.storage import log
from rankstream.service.storage import states as store
from rankstream.service.storage.database import Database, Place, transaction
from rankstream.service.storage.ingest import Ingest, Sent
from rankstream.service.storage.leases import Leases
from rankstream.service.storage.log import MarketRow


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
