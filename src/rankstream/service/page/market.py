"""The panels of markets' pages: made by another process, at most once in a few seconds; and what is there at once."""

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from rankstream.reports.blocks import ago, percent
from rankstream.service.hub import Service, age_of
from rankstream.service.intervals import Intervals
from rankstream.service.limits import RefusedError
from rankstream.service.storage.log import MarketRow
from rankstream.service.storage.publication import provisional_reason
from rankstream.service.storage.states import PublishedModel

PART_SECONDS = 20.0  # seconds that the script of a page waits for the panels before it asks again: below nginx's 60
FRESH_SECONDS = 5.0  # seconds for which panels are given out again although there is a newer model; not tuned


class Pages:
    """What pages show of a service; everything that takes long is done by processes of their own."""

    first_seconds = 0.3  # for which a page waits for what takes long: it is shown without, and its script asks for it

    def __init__(self, service: Service) -> None:
        self.service, self.intervals = service, Intervals(service)
        self._made: dict[tuple[int, str], tuple[str, float, dict[str, Any]]] = {}  # of which model, when, and what
        self._making: dict[tuple[int, str], asyncio.Task[dict[str, Any]]] = {}

    async def view(self, row: MarketRow, fields: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """What a market's page is filled with; ``fields`` are those of its address."""
        service, filled = self.service, overview_of(self.service, row)
        filled |= {"observed": filled["items"], "items": [], "model": None, "usual": [], "account": (), "choices": None}
        filled |= {"settings": row.settings, "sentence": "", "content": None}
        try:
            published = service.model_of(row)
        except RefusedError as refused:
            return filled | {"sentence": refused.sentence}
        question = {"kind": "listing", "market": row.id, "digest": published.digest}
        listing = service.published.listing(row) or await service.ask(service.quick, question)
        items, header = listed_items(row, listing, fields), model_header(row, published)
        filled |= {"items": items, "observed": items, "model": header, "usual": listing["usual"]}
        filled |= {"account": listing.get("account", ()), "choices": header["choices"] if header["is_file"] else None}
        parts = self.panels(row, published, self.first_seconds), add_shares(self, row, published, items)
        content, failed = await asyncio.gather(*parts, return_exceptions=True)
        for one in (content, failed):
            if isinstance(one, BaseException) and not isinstance(one, RefusedError):
                raise one
        return filled | ({"sentence": str(content)} if isinstance(content, RefusedError) else {"content": content})

    async def panels(
        self, row: MarketRow, published: PublishedModel, timeout: float, kind: str = "panels"
    ) -> dict[str, Any]:
        """The tabs of a market's page, or its ``summary``; made at most once in a few seconds of a new model.

        Nobody waits long: meanwhile there are those of the model before, or a RefusedError that says so.
        """
        digest, made, known = self._made.get((row.id, kind), ("", 0.0, None))
        task = self._making.get((row.id, kind))
        if task is None or task.done():
            if known is not None and (digest == published.digest or time.monotonic() - made < FRESH_SECONDS):
                return known
            task = self._making[row.id, kind] = asyncio.create_task(self._make(row, published, kind))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # whoever waited is gone
        done, _ = await asyncio.wait([task], timeout=timeout)
        if done:
            return task.result()
        if known is None:
            raise RefusedError(503, "This part of the page is being computed.", Retry_After="1")
        return known

    async def _make(self, row: MarketRow, published: PublishedModel, kind: str) -> dict[str, Any]:
        facts = published.facts
        question = {
            "kind": kind, "market": row.id, "digest": published.digest, "records": row.records,
            "alarms": facts["alarms"], "last": facts.get("last"), "facts": facts,
            "price_levels": row.settings.get("price_levels"),
            "follows": any(row.settings.get(name) for name in ("half_life", "window")) or facts.get("detects", False),
        }  # fmt: skip
        content: dict[str, Any] = await self.service.ask(self.service.slow, question)
        content |= {"position": facts["position"]}
        self._made[row.id, kind] = published.digest, time.monotonic(), content
        return content


def model_header(row: MarketRow, published: PublishedModel) -> dict[str, Any]:
    """What the header says about a model: how current it is, how well it fits, and whether it is provisional."""
    facts = published.facts
    known = {"behind": row.records - facts["position"], "reason": provisional_reason(row, facts)}
    return {"is_file": False, "noise": None} | facts | known | {"age": f"{ago(age_of(published))} ago"}


def overview_of(service: Service, row: MarketRow) -> dict[str, Any]:
    """A market in the list of all: choices, the last one, what sells most, and how well the model fits."""
    published, listing = service.published.of(row), service.published.listing(row) or {"items": []}
    facts = {} if published is None else published.facts
    total = sum(one["chosen"] for one in listing["items"])
    choices, is_file = facts.get("choices", total), facts.get("is_file")
    last = facts.get("last") if is_file else service.last_arrival(row)
    day = datetime.fromtimestamp(last or 0.0, UTC)
    when = "" if last is None else f"{day.day} {day:%b %Y}" if is_file else f"{ago(time.time() - last)} ago"
    return {
        "facts": service.facts(row), "choices": choices if choices < 1e9 else None, "last": last or 0, "when": when,
        "items": listing["items"], "total": total, "nothing": row.settings.get("no_choice") or listing.get("no_choice"),
        "model": None if published is None else model_header(row, published), "progress": listing.get("progress"),
    }  # fmt: skip


def listed_items(row: MarketRow, listing: dict[str, Any], fields: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """The items of a market, ticked and priced as an address says; without one, everything at its usual price."""
    given = list(fields)
    ticked, at = {value for name, value in given if name == "on"}, dict(given)
    nothing = row.settings.get("no_choice") or listing["no_choice"]
    found = []
    for item in listing["items"]:
        always, text = item["label"] == nothing, at.get(f"price-{item['key']}", "")
        place = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else -1
        level = place if 0 <= place < len(item["levels"]) else item["level"]  # the usual one where that is gone
        on = not ticked or item["key"] in ticked or always
        found.append(item | {"always": always, "on": on, "at": level, "share": ""})
    return found


async def add_shares(pages: Pages, row: MarketRow, published: PublishedModel, items: list[dict[str, Any]]) -> None:
    """Add the predicted shares of what is ticked, unless that takes longer than a page waits: its script asks again."""
    offer = [item for item in items if item["on"]]
    names = tuple(item["levels"][item["at"]].strip() for item in offer)
    if not offer:
        return
    predicting = asyncio.create_task(pages.service.predict(row, published, [names]))
    predicting.add_done_callback(lambda one: one.cancelled() or one.exception())
    with suppress(TimeoutError, RefusedError):
        (predicted,) = await asyncio.wait_for(asyncio.shield(predicting), pages.first_seconds)
        for item, name in zip(offer, names, strict=True):
            item["share"] = percent(predicted["shares"][name])
