"""What the server knows for its pages: drawn panels, the course of every market, and how far refits are."""

import asyncio
import sqlite3
import time
from collections import defaultdict, deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rankstream.service.hub import Service
from rankstream.service.limits import RefusedError
from rankstream.service.log import MarketRow, market_rows
from rankstream.service.store import ServedModel

LOOK = 1.0
"""Seconds between looks at the course of markets."""
FRESH = 5.0
"""Seconds for which panels are given out again although there is a newer model."""
REFIT = 60.0
"""Seconds for which intervals are of a former model before it is refitted again."""
POINTS = 500
"""Points of a course that are kept."""
PATIENT = 0.5
"""Seconds that an answer waits for intervals."""
REMEMBERED = 1000
NOT_YET = "not yet"

Row = tuple[int, float | None, float | None]


@dataclass
class Refits:
    """How far the refits of a market are: of which model, made when, and why there are none."""

    digest: str = ""
    made: float = -1e9
    sentence: str = ""


@dataclass
class Drawn:
    """The panels of a market: of which model, made when, and what they are."""

    digest: str
    made: float
    content: dict[str, Any] = field(default_factory=dict)


class Pages:
    """What pages show of a service; everything that takes long is done by processes of their own."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.courses: dict[int, deque[Row]] = defaultdict(lambda: deque(maxlen=POINTS))
        self._drawn: dict[int, Drawn] = {}
        self._locks: dict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._refits: dict[int, Refits] = defaultdict(Refits)
        self._ends: dict[tuple[int, tuple[str, ...]], dict[str, Any]] = {}
        self._asked: asyncio.Task[None] | None = None

    def look(self) -> None:
        """Note error and gap of every market whose model is another one by now."""
        for row in market_rows(self.service.reading):
            served = self.service.published.of(row)
            if served is not None:
                self._note(row, served)

    def _note(self, row: MarketRow, served: ServedModel) -> None:
        course, facts = self.courses[row.id], served.facts
        if not course or course[-1][0] != facts["position"]:
            course.append((facts["position"], facts["distance"], facts["gap"]))

    async def look_forever(self) -> None:
        """Look once a second."""
        while True:
            with suppress(sqlite3.Error):  # a disk that is full: the next time
                self.look()
            await asyncio.sleep(LOOK)

    async def panels(self, row: MarketRow, served: ServedModel) -> dict[str, Any]:
        """The sections of a market's page and its items; at most once in a few seconds of a new model."""
        async with self._locks[row.id]:
            known = self._drawn.get(row.id)
            if known is not None and (known.digest == served.digest or time.monotonic() - known.made < FRESH):
                return known.content
            self._note(row, served)
            facts = served.facts
            question = {
                "kind": "panels", "market": row.id, "digest": served.digest, "records": row.records,
                "course": list(self.courses[row.id]), "alarms": facts["alarms"], "proven": proven(facts),
                "no_choice": row.settings.get("no_choice"), "price_levels": row.settings.get("price_levels"),
            }  # fmt: skip
            content = await self.service.ask(self.service.drawing, question)
            content |= {"position": facts["position"]}
            self._drawn[row.id] = Drawn(served.digest, time.monotonic(), content)
            return dict(content)

    async def intervals(self, row: MarketRow, served: ServedModel, offer: list[str]) -> tuple[dict[str, Any], str]:
        """The ends of intervals by item, and where there are none, why; refits are begun where there are none.

        Nobody waits for refits: while the process that makes them is busy, with whatever market, it is not yet.
        """
        refits, key = self._refits[row.id], (row.id, tuple(offer))
        known = self._ends.get(key)
        if known is not None and known["made"] == refits.made:
            return known["ends"], f"by refits of the model of record {known['position']:,}"
        if self._asked is not None and not self._asked.done():
            return {}, NOT_YET
        if refits.digest != served.digest and time.monotonic() - refits.made > REFIT:
            refits.digest, refits.sentence = served.digest, ""
            self._asked = asyncio.create_task(self._refit(row, served, refits))
        elif refits.sentence:
            return {}, refits.sentence
        else:
            self._asked = asyncio.create_task(self._find_ends(key, refits))
        await asyncio.wait([self._asked], timeout=PATIENT)
        known = self._ends.get(key)
        if known is not None and known["made"] == refits.made:
            return known["ends"], f"by refits of the model of record {known['position']:,}"
        return {}, refits.sentence or NOT_YET

    async def _find_ends(self, key: tuple[int, tuple[str, ...]], refits: Refits) -> None:
        question = {"kind": "interval", "market": key[0], "offer": list(key[1])}
        try:
            content = await self.service.ask(self.service.refitting, question)
        except RefusedError:
            refits.digest, refits.made = "", -1e9  # an item that came later, or a process that was started again
            return
        if len(self._ends) >= REMEMBERED:
            self._ends.clear()
        self._ends[key] = content | {"made": refits.made}

    async def _refit(self, row: MarketRow, served: ServedModel, refits: Refits) -> None:
        question = {
            "kind": "refit", "market": row.id, "digest": served.digest, "position": served.facts["position"],
        }  # fmt: skip
        try:
            await self.service.ask(self.service.refitting, question)
        except RefusedError as refused:
            refits.sentence = refused.sentence
        finally:
            refits.made = time.monotonic()


def proven(facts: dict[str, Any]) -> list[str]:
    """What is proven of a served model, in plain words.

    >>> proven({"choices": 1200.0, "distance": 0.04, "least": 0.03, "gap": 0.01})[1]
    'The distance from the observed shares is 0.0400; 75 % of that is proven to be out of reach for any mixture of ...'
    """
    words = [f"The model is of {facts['choices']:,.0f} choices, as far as they are not forgotten."]
    distance, least = facts["distance"], facts["least"]
    if distance is None or least is None:
        return [*words, "Nothing is proven about it yet."]
    part = 1.0 if distance <= 1e-9 else max(0.0, min(1.0, least / distance))
    return [
        *words,
        f"The distance from the observed shares is {distance:.4f}; {100 * part:.0f} % of that is proven to be out of "
        "reach for any mixture of rankings.",
    ]
