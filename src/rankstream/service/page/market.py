"""The panels of markets' pages: drawn by another process, at most once in a few seconds."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from rankstream.service.hub import Service
from rankstream.service.intervals import Intervals
from rankstream.service.limits import RefusedError
from rankstream.service.storage.log import MarketRow
from rankstream.service.storage.states import PublishedModel

WAIT = 5.0
"""Seconds that a page waits for its pictures."""
FRESH_SECONDS = 5.0
"""Seconds for which panels are given out again although there is a newer model."""


@dataclass
class Drawn:
    """The panels of a market: of which model, made when, and what they are."""

    digest: str
    made: float
    content: dict[str, Any] = field(default_factory=dict)


class Pages:
    """What pages show of a service; everything that takes long is done by processes of their own."""

    def __init__(self, service: Service) -> None:
        self.service, self.intervals = service, Intervals(service)
        self._drawn: dict[int, Drawn] = {}
        self._drawing: dict[int, asyncio.Task[dict[str, Any]]] = {}

    async def panels(self, row: MarketRow, published: PublishedModel) -> dict[str, Any]:
        """The sections of a market's page and its items; drawn at most once in a few seconds of a new model.

        Nobody waits long: meanwhile there are those of the model before, or a RefusedError that says so.
        """
        known, task = self._drawn.get(row.id), self._drawing.get(row.id)
        if task is None or task.done():
            if known is not None and (
                known.digest == published.digest or time.monotonic() - known.made < FRESH_SECONDS
            ):
                return known.content
            task = self._drawing[row.id] = asyncio.create_task(self._draw(row, published))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # whoever waited is gone
        done, _ = await asyncio.wait([task], timeout=WAIT)
        if done:
            return task.result()
        if known is None:
            raise RefusedError(503, "The pictures are being drawn: they will be here in a moment.")
        return known.content

    async def _draw(self, row: MarketRow, published: PublishedModel) -> dict[str, Any]:
        facts = published.facts
        question = {
            "kind": "panels", "market": row.id, "digest": published.digest, "records": row.records,
            "alarms": facts["alarms"], "proven": proven(facts), "no_choice": row.settings.get("no_choice"),
            "price_levels": row.settings.get("price_levels"),
            "follows": any(row.settings.get(name) for name in ("half_life", "window", "detect")),
        }  # fmt: skip
        content: dict[str, Any] = await self.service.ask(self.service.drawing, question)
        content |= {"position": facts["position"]}
        self._drawn[row.id] = Drawn(published.digest, time.monotonic(), content)
        return content


def proven(facts: dict[str, Any]) -> list[str]:
    """What is proven of a published model, in plain words.

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
