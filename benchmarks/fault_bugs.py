"""Known bugs that ``simulate_faults.py --bug NAME`` puts back, to prove that the simulator finds them."""

import json
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from rankstream.service.client import Client
from rankstream.service.processes.learner import LogLearner
from rankstream.service.storage import states
from rankstream.service.storage.database import Database, transaction
from rankstream.service.storage.ingest import Ingest, Sent
from rankstream.service.storage.log import MarketRow
from rankstream.service.storage.publication import Published


def key_apart() -> list[Any]:
    """Store the key of a batch in the next transaction instead of the same."""
    write, store, forget = Ingest._write, Ingest.store, Ingest.forget

    def write_without(self: Any, connection: Database, market: Any, rows: Any, sent: Sent) -> dict[str, Any]:
        answer = write(self, connection, market, rows, sent._replace(key=None))
        if sent.key is not None:
            row = (market.row.id, sent.token, sent.key, sent.digest, json.dumps(answer), 4e9)
            self.__dict__.setdefault("pending", []).append(row)
        return answer

    def store_after(self: Any, connection: Database, sent: Sent) -> dict[str, Any]:
        pending, self.pending = self.__dict__.get("pending", []), []
        for row in pending:
            connection.execute("INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?, ?)", row)
        return store(self, connection, sent)

    def forget_all(self: Any) -> None:
        self.pending = []  # the transaction failed
        forget(self)

    changes = {"_write": write_without, "store": store_after, "forget": forget_all}
    return [patch.object(Ingest, name, change) for name, change in changes.items()]


def _save_in_two(is_state_first: bool) -> list[Any]:
    """Save state and position in two transactions; the learner continues from the position."""
    save, resumed = states.save_market, LogLearner._resumed

    def save_twice(connection: Database, market: int, state: states.Learned, *more: Any, **others: Any) -> None:
        before = states.load_market(connection, market) or state._replace(position=0, state=b"[0, 0.0, {}]")
        half = before._replace(epoch=state.epoch)
        half = half._replace(state=state.state) if is_state_first else half._replace(position=state.position)
        with transaction(connection):
            connection.execute("INSERT OR REPLACE INTO learned VALUES (?, ?, ?, ?)", (market, *half))
        save(connection, market, state, *more, **others)

    def resume(self: LogLearner, row: MarketRow) -> Any:
        learning, saved = resumed(self, row), states.load_market(self.store, row.id)
        if learning is not None and saved is not None:
            learning.position = saved.position
        return learning

    return [patch.object(states, "save_market", save_twice), patch.object(LogLearner, "_resumed", resume)]


def state_first() -> list[Any]:
    """Save the state before the position."""
    return _save_in_two(True)


def position_first() -> list[Any]:
    """Save the position before the state."""
    return _save_in_two(False)


def sweep_unlearned() -> list[Any]:
    """Sweep records whether they are learned or not."""

    def everything(_: Published, row: MarketRow) -> int:
        return row.records

    return [patch.object(Published, "learned", everything)]


def retry_without_key() -> list[Any]:
    """Send a batch again after a timeout, without a key."""
    request = Client._request

    def request_without(self: Client, method: str, path: str, body: str | None = None, *_: Any) -> Any:
        return request(self, method, path, body)

    return [patch.object(Client, "_request", request_without)]


def lease_without_fence() -> list[Any]:
    """Save without a look at the lease, which another learner may have taken since."""
    save = states.save_market

    def save_anyway(*given: Any, **_: Any) -> None:
        save(*given[:7])

    return [patch.object(states, "save_market", save_anyway)]


BUGS: dict[str, Callable[[], list[Any]]] = {
    "key-apart": key_apart,
    "state-first": state_first,
    "position-first": position_first,
    "sweep-unlearned": sweep_unlearned,
    "retry-without-key": retry_without_key,
    "lease-without-fence": lease_without_fence,
}
