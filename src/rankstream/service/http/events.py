"""Server-sent events: the progress of a market, its certified gap, and detected changes."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from rankstream.service.hub import Service
from rankstream.service.limits import RefusedError

PAUSE = 0.5  # seconds between two looks at the published model; feels immediate to a reader
SILENCE = 15.0  # seconds after which a comment line is sent; nginx closes a silent connection after 60


def event(name: str, content: dict[str, Any]) -> str:
    r"""Format an event.

    >>> event("gap", {"gap": 0.1})
    'event: gap\ndata: {"gap": 0.1}\n\n'
    """
    return f"event: {name}\ndata: {json.dumps(content)}\n\n"


def look(service: Service, market: str) -> dict[str, Any]:
    """Return the current state of a market by the name of the event; "alarm" lists all alarms so far."""
    row = service.row(market)
    state: dict[str, Any] = {"records": {"records": row.records, "learned": service.published.learned(row)}}
    published = service.published.of(row)
    if published is not None:
        state["gap"] = {name: published.facts[name] for name in ("gap", "distance", "position")}
        state["alarm"] = published.facts["alarms"]
        return state
    progress = (service.published.listing(row) or {}).get("progress")
    return state if progress is None else state | {"progress": progress}


async def stream(service: Service, market: str) -> AsyncIterator[str]:
    """Yield the current state, then changes, until the client or the server is gone."""
    before: dict[str, Any] = {}
    quiet = 0.0
    while not service.is_closing:
        try:
            now = look(service, market)
        except RefusedError:  # it was purged
            return
        changed = [name for name in ("records", "gap", "progress") if name in now and now[name] != before.get(name)]
        for name in changed:
            yield event(name, now[name])
        for alarm in now.get("alarm", [])[len(before.get("alarm", ())) :]:
            yield event("alarm", alarm)
        quiet = 0.0 if changed else quiet + PAUSE
        if quiet >= SILENCE:
            yield ": nothing new\n\n"
            quiet = 0.0
        before = now
        await asyncio.sleep(PAUSE)


class EventStream(StreamingResponse):
    """The event stream of one client, which is counted at once because many may connect together."""

    media_type = "text/event-stream"

    def __init__(self, service: Service, market: str, status_code: int = 200) -> None:
        service.limits.check("events", service.listeners + 1)
        service.listeners += 1
        self.service = service
        super().__init__(stream(service, market), status_code)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client or the server is gone."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.service.listeners -= 1
