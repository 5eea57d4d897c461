"""Intervals of predictions, from bootstrap refits in the background; for the API and for pages."""

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from rankstream.service.hub import Service
from rankstream.service.limits import RefusedError
from rankstream.service.storage.log import MarketRow
from rankstream.service.storage.states import PublishedModel

REFIT_PAUSE = 60.0  # minimum seconds between two refits of a market; not tuned
MAX_WAIT_SECONDS = 0.5  # seconds that an answer waits for intervals; not tuned
MAX_REMEMBERED = 1000  # cached questions, for all markets together; not tuned, bounds memory
NOT_YET = "not yet"
RETRY_SECONDS = 300.0  # seconds after which refits that took too long are tried again: a file has no other model
GIVEN_UP = "not available: computing them took too long; ask again in five minutes"
Key = tuple[int, float, tuple[tuple[Any, ...], ...], tuple[tuple[str, float], ...]]


@dataclass
class Refits:
    """The refits of a market: the model, when they were made, and why there are none."""

    digest: str = ""
    made: float = -1e9
    sentence: str = ""


class Intervals:
    """Intervals from refits, which are started when needed; requests do not wait for them to finish."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._refits: dict[int, Refits] = defaultdict(Refits)
        self._ends: dict[Key, dict[str, Any]] = {}
        self._asked: asyncio.Task[None] | None = None

    async def of(
        self,
        row: MarketRow,
        published: PublishedModel,
        offers: list[tuple[Any, ...]],
        level: float = 0.95,
        margins: dict[str, float] | None = None,
    ) -> tuple[dict[str, Any] | None, str]:
        """Return the ends of intervals by item for each offer and their source, or None and the reason.

        With margins, also the value of each offer. While the refitting process is busy, the reason is "not yet".
        """
        refits = self._refits[row.id]
        key = (row.id, level, tuple(offers), tuple(sorted((margins or {}).items())))
        if not self._knows(key) and (self._asked is None or self._asked.done()):
            given_up = refits.sentence == GIVEN_UP
            pause = RETRY_SECONDS if given_up and refits.digest == published.digest else REFIT_PAUSE
            if (given_up or refits.digest != published.digest) and time.monotonic() - refits.made > pause:
                refits.digest, refits.sentence = published.digest, ""
                self._asked = asyncio.create_task(self._refit(row, published, refits))
            elif not refits.sentence:
                self._asked = asyncio.create_task(self._find_ends(key, refits))
            if self._asked is not None:
                await asyncio.wait([self._asked], timeout=MAX_WAIT_SECONDS)
        if not self._knows(key):
            return None, refits.sentence or NOT_YET
        known = self._ends[key]
        return known, f"from refits of the model at record {known['position']:,}"

    def _knows(self, key: Key) -> bool:
        return key in self._ends and self._ends[key]["made"] == self._refits[key[0]].made

    async def _find_ends(self, key: Key, refits: Refits) -> None:
        market, level, offers, margins = key
        question = {"kind": "interval", "market": market, "level": level, "offers": offers, "margins": margins}
        try:
            content = await self.service.ask(self.service.refitting, question)
        except RefusedError:
            refits.digest, refits.made = "", -1e9  # a newer item, or a restarted process: refit
            return
        if len(self._ends) >= MAX_REMEMBERED:
            self._ends.clear()
        self._ends[key] = content | {"made": refits.made}

    async def _refit(self, row: MarketRow, published: PublishedModel, refits: Refits) -> None:
        question = {
            "kind": "refit", "market": row.id, "digest": published.digest, "position": published.facts["position"],
        }  # fmt: skip
        try:
            await self.service.ask(self.service.refitting, question)
        except RefusedError as refused:
            current = self.service.published.of(row)
            if current is not None and current.digest != published.digest:
                refits.digest = ""  # the model was replaced: the next question refits the new one
                return
            refits.sentence = refused.sentence if refused.status == 409 else GIVEN_UP
        refits.made = time.monotonic()
