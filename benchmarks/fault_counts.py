"""Counting in the place of fitting, for ``simulate_faults.py``: a model is the number of records of each request."""

import json
from collections import Counter
from types import SimpleNamespace
from typing import Any, Self


class CountedMarket:
    """Stands in for ``BackgroundLive``: records by the request that sent them, and the position."""

    def __init__(self, settings: Any) -> None:
        self.position, self.known_since, self.counts = 0, 0.0, Counter[str]()
        self.due, self.is_catching_up, self.serves = None, False, "sparse"
        proof = SimpleNamespace(is_owed=False, is_paused=False)
        self.live = SimpleNamespace(proof=proof, effort=1.0, detector=None, counts=None)

    @property
    def ready(self) -> bool:
        """Whether there is a model."""
        return bool(self.counts)

    @property
    def model(self) -> Self:
        """The market is its own model."""
        return self

    def observe(self, batch: Any, position: int, arrived: float) -> None:
        """Count a batch."""
        self.counts.update(str(int(record.time)) for record in batch)
        self.position, self.known_since = position, arrived

    def publish(self) -> None:
        """Do nothing."""

    def to_text(self) -> str:
        """Return the counts."""
        return json.dumps(self.counts)

    def to_bytes(self) -> bytes:
        """Return the state."""
        return json.dumps([self.position, self.known_since, self.counts]).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Return the market of a state."""
        market = cls({})
        market.position, market.known_since, counts = json.loads(content)
        market.counts = Counter(counts)
        return market


def facts_of(market: CountedMarket) -> dict[str, Any]:
    """Return the facts about a model that storage and server need."""
    return {"kind": "sparse", "position": market.position, "distance": 0.0, "gap": 0.0, "since": market.known_since}
