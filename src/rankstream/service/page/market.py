"""What the server knows for its pages: drawn panels, and how far refits for intervals are."""

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from rankstream.service.hub import Service
from rankstream.service.limits import RefusedError
from rankstream.service.log import MarketRow
from rankstream.service.store import ServedModel

WAIT = 5.0
"""Seconds that a page waits for its pictures."""
FRESH = 5.0
"""Seconds for which panels are given out again although there is a newer model."""
REFIT = 60.0
"""Seconds for which intervals are of a former model before it is refitted again."""
PATIENT = 0.5
"""Seconds that an answer waits for intervals."""
REMEMBERED = 1000
NOT_YET = "not yet"
GIVEN_UP = "none: the refits were given up; they are tried again with the next model"


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
        self._drawn: dict[int, Drawn] = {}
        self._drawing: dict[int, asyncio.Task[dict[str, Any]]] = {}
        self._refits: dict[int, Refits] = defaultdict(Refits)
        self._ends: dict[tuple[int, tuple[str, ...]], dict[str, Any]] = {}
        self._asked: asyncio.Task[None] | None = None

    async def panels(self, row: MarketRow, served: ServedModel) -> dict[str, Any]:
        """The sections of a market's page and its items; drawn at most once in a few seconds of a new model.

        Nobody waits long: meanwhile there are those of the model before, or a RefusedError that says so.
        """
        known, task = self._drawn.get(row.id), self._drawing.get(row.id)
        if task is None or task.done():
            if known is not None and (known.digest == served.digest or time.monotonic() - known.made < FRESH):
                return known.content
            task = self._drawing[row.id] = asyncio.create_task(self._draw(row, served))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # whoever waited is gone
        done, _ = await asyncio.wait([task], timeout=WAIT)
        if done:
            return task.result()
        if known is None:
            raise RefusedError(503, "The pictures are being drawn: they will be here in a moment.")
        return known.content

    async def _draw(self, row: MarketRow, served: ServedModel) -> dict[str, Any]:
        facts = served.facts
        question = {
            "kind": "panels", "market": row.id, "digest": served.digest, "records": row.records,
            "alarms": facts["alarms"], "proven": proven(facts), "no_choice": row.settings.get("no_choice"),
            "price_levels": row.settings.get("price_levels"),
            "follows": any(row.settings.get(name) for name in ("half_life", "window", "detect")),
        }  # fmt: skip
        content: dict[str, Any] = await self.service.ask(self.service.drawing, question)
        content |= {"position": facts["position"]}
        self._drawn[row.id] = Drawn(served.digest, time.monotonic(), content)
        return content

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
            refits.sentence = refused.sentence if refused.status == 409 else GIVEN_UP
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
    if distance <= 1e-9:
        return [*words, "It fits what was observed exactly."]
    part = max(0.0, min(1.0, least / distance))
    return [
        *words,
        f"The distance from the observed shares is {distance:.4f}; {100 * part:.0f} % of that is proven to be out of "
        "reach for any mixture of rankings.",
    ]
