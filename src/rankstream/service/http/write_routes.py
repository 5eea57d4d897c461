"""Routes that write (choices and settings), and routes for monitoring."""

from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import AfterValidator

from rankstream.service.http import schemas
from rankstream.service.hub import Service
from rankstream.service.storage.ingest import Sent
from rankstream.service.storage.tokens import check_name

Market = Annotated[
    str, AfterValidator(check_name), Path(max_length=64, description="The name of a market.", examples=["cafe"])
]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", max_length=200, pattern=r"^[!-~]+$",
        description="A batch with the same key is stored once.", examples=["4f1c2e9a"],
    ),
]  # fmt: skip
RECORD = {
    "type": "object",
    "required": ["offered", "chosen"],
    "properties": {
        "offered": {
            "oneOf": [
                {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 1},
                {"type": "object", "additionalProperties": {"type": ["number", "null"]}, "minProperties": 1},
            ],
            "description": "The items, or the price of each item if the market has price levels.",
        },
        "chosen": {"type": ["string", "integer", "null"]},
        "count": {"type": "number", "minimum": 0},
        "time": {"type": ["string", "number", "null"]},
    },
    "example": schemas.OFFERED,
}
CHOICES = {
    "type": "object",
    "required": ["records"],
    "additionalProperties": False,
    "properties": {"records": {"type": "array", "minItems": 1, "items": RECORD}},
    "example": {"records": [schemas.OFFERED]},
}
BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": CHOICES,
                "examples": {
                    "items": {"value": {"records": [schemas.OFFERED]}},
                    "prices": {"value": {"records": [schemas.PRICED, schemas.AS_TEXT]}},
                },
            },
            "application/x-ndjson": {
                "schema": {"type": "string", "example": '{"offered": ["tea", "pie"], "chosen": "tea"}\n'}
            },
        },
    }
}


MEANINGS = {
    400: "The request cannot be read.",
    401: "Token missing or unknown.",
    403: "The token lacks this permission.",
    404: "Unknown market.",
    409: "The market is not ready for this request, or has reached a limit.",
    413: "Request body too large.",
    415: "The body must be JSON or NDJSON.",
    421: "The Host header does not match this server (see --allow-host).",
    422: "The request is invalid.",
    429: "Too many requests are waiting: try again later.",
    500: "Internal server error.",
    503: "Temporarily unavailable: try again later.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of a route, for the documentation."""
    known = sorted((400, 401, 403, 421, 422, 500, 503, *statuses))
    # refer to the schema: given the model itself, FastAPI builds a validator for every status of every route
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/ProblemAnswer"}}}
    return {status: {"content": content, "description": MEANINGS[status]} for status in known}


READ_CODES, ASK_CODES, SEND_CODES = problems(404, 409), problems(404, 409, 429), problems(404, 409, 413, 415, 429)
"""Error responses of requests that need a model, that a worker answers, and that have a body."""


def sender(request: Request) -> str | None:
    """Return the header with the token."""
    return request.headers.get("authorization")


def writing_routes(service: Service) -> APIRouter:
    """Return the routes of choices and settings."""
    router = APIRouter(prefix="/v1/markets/{market}")

    @router.post(
        "/choices", status_code=202, response_model=schemas.Acknowledged, openapi_extra=BODY, responses=SEND_CODES,
        summary="Send choices",
    )  # fmt: skip
    async def send_choices(request: Request, market: Market, key: Key = None) -> JSONResponse:
        """Write a batch to the log, and answer when it is on disk. Without a key, a retry counts twice."""
        holder = service.tokens.check(sender(request), "write", market)
        kind, body = request.headers.get("content-type", ""), await request.body()
        digest = sha256(kind.partition(";")[0].encode() + b"\n" + body).digest()
        async with service.records_in(body, "ndjson" in kind) as records:
            sent = Sent(market, records, holder.id, key, digest)
            answer = await service.write(lambda connection: service.ingest.store(connection, sent), market)
        service.metrics.records.inc(len(records))
        return JSONResponse(answer, 202)

    @router.put("/settings", response_model=schemas.SettingsAnswer, responses=SEND_CODES, summary="Change settings")
    async def put_settings(request: Request, market: Market, body: schemas.SettingsBody) -> dict[str, Any]:
        """Change some settings of a market, null to the default; the model is rebuilt from the log.

        Setting price levels creates the market if it does not exist.
        """
        service.tokens.check(sender(request), "manage", market)
        content = body.model_dump(exclude_unset=True)
        settings = await service.write(lambda log: service.ingest.change_settings(log, market, content), market)
        return {"market": market, **settings}

    @router.get("/settings", response_model=schemas.SettingsAnswer, responses=problems(404), summary="Read settings")
    async def get_settings(request: Request, market: Market) -> dict[str, Any]:
        """The settings of a market."""
        return {"market": market, **service.readable(sender(request), market).settings}

    return router


def watching_routes(service: Service) -> APIRouter:
    """Return the routes for monitoring."""
    problem = {"model": schemas.ProblemAnswer, "description": MEANINGS[503]}  # the schema that the others refer to
    router = APIRouter(responses=problems() | {503: problem})

    @router.get("/healthz", response_model=schemas.HealthAnswer, summary="Check that the server runs")
    async def healthz() -> dict[str, str]:
        """Whether the server answers."""
        return {"status": "alive"}

    @router.get("/readyz", response_model=schemas.HealthAnswer, summary="Check that choices are stored and learned")
    async def readyz() -> dict[str, str]:
        """Whether choices can be written and are learned; this tests a real write, at most every five seconds."""
        await service.check_ready()
        return {"status": "ready"}

    @router.get(
        "/metrics", response_class=PlainTextResponse, summary="Metrics",
        responses={200: {"content": {"text/plain": {"example": "rankstream_records_total 1250.0\n"}}}},
    )  # fmt: skip
    async def metrics(request: Request) -> Response:
        """Metrics for Prometheus; the token must be valid for all markets."""
        service.tokens.check(sender(request), "read", None)
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router
