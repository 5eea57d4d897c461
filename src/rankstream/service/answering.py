"""What can be asked: markets, models, predictions, offers to make, customer types, drift, certificates, events."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from rankstream.service import events, schemas
from rankstream.service.child import Worker
from rankstream.service.hub import Service
from rankstream.service.limits import RefusedError
from rankstream.service.log import MarketRow
from rankstream.service.routes import Market, problems, sender
from rankstream.service.store import ServedModel

FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"example": {"format": "rankstream-entropy-model", "version": 1}}}}
}
TAGGED: dict[int | str, dict[str, Any]] = {304: {"description": "The model is the one whose ETag was given."}}
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"example": 'event: gap\ndata: {"gap": 0.004}\n\n'}}}
}


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


def as_key(offer: list[Any] | dict[str, float | None]) -> tuple[Any, ...]:
    """An offer by which its prediction is remembered: the names of its items, or names with prices.

    >>> as_key(["tea ", 7]), as_key({"tea": 3.5})
    (('tea', '7'), (('tea', 3.5),))
    """
    if isinstance(offer, dict):
        return tuple((item.strip(), price) for item, price in offer.items())
    return tuple(str(item).strip() for item in offer)


def answering_routes(service: Service) -> APIRouter:
    """The routes of questions."""
    router = APIRouter(prefix="/v1/markets")

    def found(request: Request, market: str) -> tuple[MarketRow, ServedModel]:
        service.tokens.check(sender(request), "read", market)
        row = service.row(market)
        return row, service.served(row)

    def headed(row: MarketRow, served: ServedModel) -> dict[str, Any]:
        return {"market": row.name, "model": service.about(row, served)}

    async def asked(worker: Worker, row: MarketRow, served: ServedModel, kind: str, **more: Any) -> Any:
        return await service.ask(worker, {"kind": kind, "market": row.id, "digest": served.digest, **more})

    @router.get("", response_model=schemas.MarketList, responses=problems(), summary="All markets")
    async def get_markets(request: Request) -> dict[str, Any]:
        """The markets that the token may read, and how far they are."""
        holder = service.tokens.holder(sender(request))
        return {"markets": [one for one in service.markets() if holder.allows("read", one.market)]}

    @router.get("/{market}/model", responses={**problems(404, 409), **FILE, **TAGGED}, summary="The model file")
    async def get_model(request: Request, market: Market) -> Response:
        """The served model as a file that ``rankstream predict`` and ``rs.load_model`` read."""
        row, served = found(request, market)
        about, tag = service.about(row, served), f'"{served.digest}"'
        headers = {"ETag": tag, "Rankstream-Position": str(about.position), "Rankstream-Age": f"{about.age:g}"}
        if tag in [one.strip() for one in request.headers.get("if-none-match", "").split(",")]:
            return Response(status_code=304, headers=headers)
        text = service.published.text(row, served.digest)
        if text is None:
            raise RefusedError(503, "The model has just been replaced: ask again.", Retry_After="1")
        return Response(text, media_type="application/json", headers=headers)

    @router.post(
        "/{market}/predict", response_model=schemas.Predictions, responses=problems(404, 409, 413, 415, 429),
        summary="Predict shares",
    )  # fmt: skip
    async def predict(request: Request, market: Market, body: schemas.PredictBody) -> dict[str, Any]:
        """The share of customers who choose each item of an offer, seen before or not."""
        row, served = found(request, market)
        service.limits.check_asked(len(body.offers))
        shares = await service.predict(row, served, [as_key(offer) for offer in body.offers])
        predictions = [
            {"offer": [str(item) for item in offer], "shares": one}
            for offer, one in zip(body.offers, shares, strict=True)
        ]
        return {**headed(row, served), "predictions": predictions}

    @router.post(
        "/{market}/decide", response_model=schemas.Decided, responses=problems(404, 409, 413, 415, 429),
        summary="The best offer",
    )  # fmt: skip
    async def decide(request: Request, market: Market, body: schemas.DecideBody) -> dict[str, Any]:
        """The offer that earns most under constraints, and what is proven of that."""
        row, served = found(request, market)
        decision = await asked(service.slow, row, served, "decide", constraints=body.model_dump())
        return {**headed(row, served), "decision": decision}

    @router.post(
        "/{market}/next-offer", response_model=schemas.Decided, responses=problems(404, 409, 413, 415, 429),
        summary="The next offer",
    )  # fmt: skip
    async def next_offer(request: Request, market: Market, body: schemas.NextBody) -> dict[str, Any]:
        """The offer to show to the next customers, to learn and to earn; ask with another seed each time."""
        row, served = found(request, market)
        decision = await asked(service.slow, row, served, "next_offer", constraints=body.model_dump())
        return {**headed(row, served), "decision": decision}

    @router.get(
        "/{market}/segments", response_model=schemas.SegmentsAnswer, responses=problems(404, 409, 429),
        summary="Customer types",
    )  # fmt: skip
    async def segments(
        request: Request, market: Market, top: Annotated[int, Query(ge=1, le=1000)] = 10
    ) -> dict[str, Any]:
        """The largest customer types."""
        row, served = found(request, market)
        return {**headed(row, served), **await asked(service.quick, row, served, "segments", top=top)}

    @router.get(
        "/{market}/substitution", response_model=schemas.SubstitutionAnswer, responses=problems(404, 409, 429),
        summary="Who gains",
    )  # fmt: skip
    async def substitution(request: Request, market: Market) -> dict[str, Any]:
        """Each item's share of everything, and who gains when it is gone."""
        row, served = found(request, market)
        return {**headed(row, served), "items": await asked(service.quick, row, served, "substitution")}

    @router.get(
        "/{market}/drift", response_model=schemas.DriftAnswer, responses=problems(404, 409, 429), summary="What changed"
    )
    async def drift(
        request: Request,
        market: Market,
        last: Annotated[int, Query(ge=2, le=200_000, description="How many of the latest records.")] = 20_000,
        level: Annotated[float, Query(gt=0, lt=1, description="How often the test may be wrong.")] = 0.05,
    ) -> dict[str, Any]:
        """What changed between the earlier and the later half of the latest records in the log."""
        service.tokens.check(sender(request), "read", market)
        row = service.row(market)
        question = {
            "kind": "drift", "market": row.id, "records": row.records, "last": last, "level": level,
            "price_levels": row.settings.get("price_levels"),
        }  # fmt: skip
        return {"market": market, **await service.ask(service.slow, question)}

    @router.get(
        "/{market}/certificate", response_model=schemas.CertificateAnswer, responses=problems(404, 409),
        summary="What is proven",
    )  # fmt: skip
    async def certificate(request: Request, market: Market) -> dict[str, Any]:
        """The model's distance from the data, and what is proven about that; changes that were noticed."""
        row, served = found(request, market)
        proven = {name: served.facts[name] for name in ("distance", "least", "gap", "choices", "alarms")}
        return {**headed(row, served), **proven}

    @router.get(
        "/{market}/events", responses={**problems(404, 429), **STREAM}, response_class=EventStream, summary="Events"
    )
    async def get_events(request: Request, market: Market) -> EventStream:
        """Records, the gap and alarms as they happen, as server-sent events."""
        service.tokens.check(sender(request), "read", market)
        service.row(market)
        service.limits.check_events(service.listeners)
        return EventStream(events.stream(service, market))

    return router
