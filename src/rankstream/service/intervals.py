"""Intervals of predictions, from refits that another process makes in the background; for the API and pages alike."""

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from rankstream.service.hub import Service
from rankstream.service.limits import RefusedError
from rankstream.service.storage.log import MarketRow
from rankstream.service.storage.states import PublishedModel

REFIT_PAUSE = 60.0  # seconds for which intervals are of a former model before it is refitted again
MAX_WAIT_SECONDS = 0.5  # seconds that an answer waits for intervals
MAX_REMEMBERED = 1000  # offers whose intervals are remembered, of all markets together
NOT_YET = "not yet"
RETRY_SECONDS = 300.0  # seconds after which refits that took too long are tried again: a file has no other model
GIVEN_UP = "not available: computing them took too long; ask again in five minutes"
Key = tuple[int, float, tuple[tuple[Any, ...], ...], tuple[tuple[str, float], ...]]


@dataclass
class Refits:
    """How far the refits of a market are: of which model, made when, and why there are none."""

    digest: str = ""
    made: float = -1e9
    sentence: str = ""


class Intervals:
    """Answers from refits, which it has made where there are none; nobody waits for them."""

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
        """The ends of intervals by item for each offer, with where they come from; or nothing, and why.

        With margins, also what offers are worth.

        While the process that makes refits is busy, with whatever market, the answer is "not yet".
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
            refits.digest, refits.made = "", -1e9  # an item that came later, or a process that was started again
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
                refits.digest = ""  # replaced meanwhile: the next question asks for refits of the new model
                return
            refits.sentence = refused.sentence if refused.status == 409 else GIVEN_UP
        refits.made = time.monotonic()
