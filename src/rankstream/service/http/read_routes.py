"""Routes that read: markets, models, predictions, offers to make, customer types, drift, certificates, events."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from time import monotonic
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from rankstream.service.http import schemas
from rankstream.service.http.write_routes import ASK_CODES, READ_CODES, SEND_CODES, Market, problems, sender
from rankstream.service.hub import Service, in_order
from rankstream.service.intervals import Intervals
from rankstream.service.limits import RefusedError
from rankstream.service.processes.worker import Worker
from rankstream.service.storage.log import MarketRow
from rankstream.service.storage.states import PublishedModel

PAUSE = 0.5  # seconds between two looks at the published model; feels immediate to a reader
SILENCE = 15.0  # seconds after which a comment line is sent; nginx closes a silent connection after 60
FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"example": {"format": "rankstream-entropy-model", "version": 1}}}}
}
TAGGED: dict[int | str, dict[str, Any]] = {304: {"description": "Not modified: the ETag is that of the current model."}}
LINES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/x-ndjson": {"example": '{"offered": ["tea"], "chosen": "tea", "count": 3}\n'}}}
}
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"example": 'event: gap\ndata: {"gap": 0.004}\n\n'}}}
}


def event(name: str, content: dict[str, Any]) -> str:
    r"""Format an event.

    >>> event("gap", {"gap": 0.1})
    'event: gap\ndata: {"gap": 0.1}\n\n'
    """
    return f"event: {name}\ndata: {json.dumps(content)}\n\n"


def look(service: Service, header: str | None, market: str) -> dict[str, Any]:
    """Return the current state of a market by the name of the event; "alarm" lists all alarms so far."""
    row = service.readable(header, market)
    state: dict[str, Any] = {"records": {"records": row.records, "learned": service.published.learned(row)}}
    published = service.published.of(row)
    if published is not None:
        state["gap"] = {name: published.facts[name] for name in ("gap", "distance", "position")}
        state["alarm"] = published.facts["alarms"]
        return state
    progress = (service.published.listing(row) or {}).get("progress")
    return state if progress is None else state | {"progress": progress}


async def stream(service: Service, header: str | None, market: str) -> AsyncIterator[str]:
    """Yield the current state, then changes, until the client, its token or the server is gone."""
    before: dict[str, Any] = {}
    quiet = 0.0
    while not service.is_closing:
        try:
            now = look(service, header, market)
        except RefusedError:  # the market was purged, or the token was revoked
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
    """The event stream of one client, which may read; it is counted at once because many may connect together."""

    media_type = "text/event-stream"

    def __init__(self, service: Service, header: str | None, market: str, status_code: int = 200) -> None:
        service.readable(header, market)
        service.limits.check("events", service.listeners + 1)
        service.listeners += 1
        self.service = service
        super().__init__(stream(service, header, market), status_code)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client or the server is gone."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.service.listeners -= 1


def as_key(offer: list[Any] | dict[str, float | None]) -> tuple[Any, ...]:
    """Return an offer as the key of its prediction in the cache: the names of its items, or names with prices.

    >>> as_key(["tea ", 7]), as_key({"tea": 3.5})
    (('tea', '7'), (('tea', 3.5),))
    """
    if isinstance(offer, dict):
        return tuple((item.strip(), price) for item, price in offer.items())
    return tuple(str(item).strip() for item in offer)


class Questions:
    """Helpers that the read routes share: find the model of a market, and ask a worker about it."""

    def __init__(self, service: Service, sender: Callable[[Request], str | None]) -> None:
        self.service, self.sender = service, sender

    def find(self, request: Request, market: str) -> tuple[MarketRow, PublishedModel]:
        """Return a market and its published model, if the sender may read it."""
        row = self.service.readable(self.sender(request), market)
        return row, self.service.model_of(row)

    def head(self, row: MarketRow, published: PublishedModel) -> dict[str, Any]:
        """Return the fields of every answer from a model."""
        return {"market": row.name, "model": self.service.about(row, published)}

    async def ask(self, request: Request, market: str, worker: Worker, kind: str, **more: Any) -> tuple[Any, Any]:
        """Ask a worker a question about the model of a market; return the head of the answer, and its content."""
        row, published = self.find(request, market)
        question = {"kind": kind, "market": row.id, "digest": published.digest, "asked": monotonic(), **more}
        return self.head(row, published), await self.service.ask(worker, question)


def answering_routes(
    service: Service,
    intervals: Intervals,
    prefix: str = "/v1/markets",
    sender: Callable[[Request], str | None] = sender,
) -> APIRouter:
    """Return the read routes: for programs, or for our own page, whose ``sender`` reads the cookie."""
    router = APIRouter(prefix=prefix, include_in_schema=prefix.startswith("/v1/"))
    questions = Questions(service, sender)
    _add_model_routes(router, questions)
    _add_prediction_routes(router, questions, intervals)
    _add_customer_routes(router, questions)
    _add_history_routes(router, questions)
    return router


def _add_model_routes(router: APIRouter, questions: Questions) -> None:
    service = questions.service

    @router.get("", response_model=schemas.MarketList, responses=problems(), summary="All markets")
    async def get_markets(request: Request) -> dict[str, Any]:
        """The markets that the token may read, with their progress."""
        holder = service.tokens.holder(questions.sender(request))
        return {"markets": [market for market in service.markets() if holder.allows("read", market.market)]}

    @router.get("/{market}/model", responses={**READ_CODES, **FILE, **TAGGED}, summary="The model file")
    async def get_model(request: Request, market: Market) -> Response:
        """The published model as a file that ``rankstream predict`` and ``rs.load_model`` read."""
        row, published = questions.find(request, market)
        about, tag = service.about(row, published), f'"{published.digest}"'
        headers = {
            "Cache-Control": "no-cache",
            "ETag": tag,
            "Rankstream-Position": str(about.position),
            "Rankstream-Age": f"{about.age:g}",
        }
        if tag in map(str.strip, request.headers.get("if-none-match", "").split(",")):
            return Response(status_code=304, headers=headers)
        text = service.published.text(row, published.digest)
        if text is None:
            raise RefusedError(503, "The model has just been replaced: try again.", Retry_After="1")
        return Response(text, media_type="application/json", headers=headers)


def _add_prediction_routes(router: APIRouter, questions: Questions, intervals: Intervals) -> None:
    service = questions.service

    @router.post(
        "/{market}/predict", response_model=schemas.Predictions, responses=SEND_CODES, summary="Predict shares",
        response_model_exclude_unset=True,
    )  # fmt: skip
    async def predict(request: Request, market: Market, body: schemas.PredictBody) -> dict[str, Any]:
        """The share of customers who choose each item of an offer, with intervals if requested.

        Intervals come from bootstrap refits that start with the first request; until they finish, ``intervals`` is
        "not yet".
        """
        row, published = questions.find(request, market)
        service.limits.check("asked", len(body.offers))
        if body.items is not None and body.interval is not None:
            raise RefusedError(422, "There are no intervals for candidates yet: leave out interval, or items.")
        offers = [as_key(offer) for offer in body.offers]
        predictions = await service.predict(row, published, offers, body.items)
        answer = questions.head(row, published)
        answer["provisional"] = answer["model"].provisional
        if body.margins:
            for prediction in predictions:
                shares = prediction["shares"].items()
                prediction["worth"] = sum(body.margins.get(item, 0.0) * share for item, share in shares)
        if body.interval is not None:
            ends, answer["intervals"] = await intervals.of(row, published, offers, body.interval, body.margins)
            for place, prediction in enumerate(predictions):
                prediction["intervals"] = None
                if ends is not None:
                    prediction["intervals"] = in_order(prediction["shares"], ends["ends"][place])
                if ends is not None and ends["worth"]:
                    worth = ends["worth"][place]
                    prediction |= {"worth_interval": worth["worth"][1:], "gain": worth["gain"][1:]}
        return {**answer, "predictions": predictions}

    @router.post("/{market}/decide", response_model=schemas.Decided, responses=SEND_CODES, summary="The best offer")
    async def decide(request: Request, market: Market, body: schemas.DecideBody) -> dict[str, Any]:
        """The offer that earns most under constraints, and whether that is proven."""
        said = {"items": body.items, "constraints": body.model_dump(exclude={"items"})}
        head, decision = await questions.ask(request, market, service.search, "decide", **said)
        return {**head, "decision": decision}

    @router.post("/{market}/next-offer", response_model=schemas.Decided, responses=SEND_CODES, summary="The next offer")
    async def next_offer(request: Request, market: Market, body: schemas.NextBody) -> dict[str, Any]:
        """The offer to show to the next customers, to learn and to earn; use a new seed each time."""
        head, found = await questions.ask(request, market, service.search, "next_offer", constraints=body.model_dump())
        return {**head, "decision": found}


def _add_customer_routes(router: APIRouter, questions: Questions) -> None:
    service = questions.service

    @router.get(
        "/{market}/segments", response_model=schemas.SegmentsAnswer, responses=ASK_CODES, summary="Customer types"
    )
    async def segments(
        request: Request, market: Market, top: Annotated[int, Query(ge=1, le=1000)] = 10
    ) -> dict[str, Any]:
        """The largest customer types."""
        head, content = await questions.ask(request, market, service.quick, "segments", top=top)
        return {**head, **content}

    @router.get(
        "/{market}/substitution", response_model=schemas.SubstitutionAnswer, responses=ASK_CODES,
        summary="What sells instead when an item is gone",
    )  # fmt: skip
    async def substitution(request: Request, market: Market) -> dict[str, Any]:
        """Each item's share if all are offered, and what sells instead when it is gone."""
        head, content = await questions.ask(request, market, service.quick, "substitution")
        return {**head, **content}

    @router.get("/{market}/counts", response_class=Response, responses={**ASK_CODES, **LINES}, summary="The counts")
    async def counts(request: Request, market: Market) -> Response:
        """How often each item of each offer was chosen, as JSON Lines that ``rankstream fit`` reads."""
        _, lines = await questions.ask(request, market, service.slow, "counts")
        return Response("".join(f"{json.dumps(line)}\n" for line in lines), media_type="application/x-ndjson")


def _add_history_routes(router: APIRouter, questions: Questions) -> None:
    service = questions.service

    @router.get("/{market}/drift", response_model=schemas.DriftAnswer, responses=ASK_CODES, summary="What changed")
    async def drift(
        request: Request,
        market: Market,
        last: Annotated[int, Query(ge=2, le=200_000, description="Number of latest records to compare.")] = 20_000,
        level: Annotated[float, Query(gt=0, lt=1, description="False-alarm rate.")] = 0.05,
    ) -> dict[str, Any]:
        """What changed between the earlier and the later half of the latest records in the log."""
        row = service.readable(questions.sender(request), market)
        question = {
            "kind": "drift", "market": row.id, "records": row.records, "last": last, "level": level,
            "price_levels": row.settings.get("price_levels"),
        }  # fmt: skip
        return {"market": market, **await service.ask(service.slow, question)}

    @router.get(
        "/{market}/certificate",
        response_model=schemas.CertificateAnswer,
        responses=READ_CODES,
        summary="The certificate",
    )
    async def certificate(request: Request, market: Market) -> dict[str, Any]:
        """The model's distance from the data, the proven bound, and detected changes."""
        row, published = questions.find(request, market)
        proven = {name: published.facts[name] for name in ("distance", "gap", "choices", "alarms")}
        return {**questions.head(row, published), "proven_least_distance": published.facts["least"], **proven}

    @router.get(
        "/{market}/events", responses={**problems(404, 429), **STREAM}, response_class=EventStream, summary="Events"
    )
    async def get_events(request: Request, market: Market) -> EventStream:
        """Records, the gap and alarms as they happen, as server-sent events."""
        return EventStream(service, questions.sender(request), market)
