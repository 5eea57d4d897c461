"""The web application: routes, error responses, and the documentation at /openapi.json."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from html import escape
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from rankstream._core.version import VERSION
from rankstream.service.http.guard import Guard, refusal
from rankstream.service.http.read_routes import answering_routes
from rankstream.service.http.write_routes import watching_routes, writing_routes
from rankstream.service.hub import Service
from rankstream.service.limits import RefusedError
from rankstream.service.page.market import Pages
from rankstream.service.page.routes import HEADERS, header_of, page_routes, part_routes, upload_routes

SENTENCES = {404: "Not found: see /openapi.json.", 405: "Method not allowed: see /openapi.json."}
MIN_COMPRESSED_BYTES = 1000  # shorter answers fit into one packet anyway
COLLECTED_BYTES = 100_000
"""Size of a rejected request above which its memory is freed at once (benchmarks/attack_service.py)."""


def make_app(service: Service) -> FastAPI:
    """Return the application of a service; the caller closes the service."""
    pages = Pages(service)

    @asynccontextmanager
    async def sweeping(_: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(service.sweep_forever())
        gc.freeze()  # so that the collections after large requests do not scan the modules
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    app = FastAPI(
        title="rankstream", version=VERSION, docs_url=None, redoc_url=None, lifespan=sweeping,
        description="Choices in, a current model with its certificate out.",
        swagger_ui_oauth2_redirect_url=None,
    )  # fmt: skip
    answering = answering_routes(service, pages.intervals)
    for routes in (writing_routes(service), answering, watching_routes(service), page_routes(pages)):
        app.include_router(routes)
    app.include_router(part_routes(pages))
    app.include_router(upload_routes(service))
    app.include_router(answering_routes(service, pages.intervals, "/page", header_of))
    app.add_api_route(
        "/docs", lambda: HTMLResponse(_endpoints(app.openapi()), headers=HEADERS), include_in_schema=False
    )
    app.add_middleware(GZipMiddleware, minimum_size=MIN_COMPRESSED_BYTES)
    app.add_middleware(Guard, service=service)
    for kind in (RefusedError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _refused)
    return app


def _endpoints(content: dict[str, Any]) -> str:
    """Return a page that lists all endpoints, without scripts or requests to other sites."""
    lines = [
        f"<li><code>{method.upper()} {escape(path)}</code>: {escape(about['summary'])}</li>"
        for path, methods in content["paths"].items()
        for method, about in methods.items()
    ]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>rankstream: endpoints</title><h1>Endpoints</h1>'
        f'<ul>{"".join(lines)}</ul><p>All fields, with examples: <a href="/openapi.json">/openapi.json</a>.</p></html>'
    )


async def _refused(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, RefusedError):
        return refusal(error)
    if isinstance(error, HTTPException):
        sentence = SENTENCES.get(error.status_code, "The request cannot be read: see /openapi.json.")
        return refusal(RefusedError(error.status_code, sentence, **(error.headers or {})))
    assert isinstance(error, RequestValidationError)
    first, size = error.errors()[0], request.headers.get("content-length", "")
    if size.isdecimal() and int(size) > COLLECTED_BYTES:
        gc.collect()  # the error and its traceback form a cycle that keeps the whole parsed body
    where, sentence = ".".join(str(part)[:50] for part in first["loc"]), first["msg"].removeprefix("Value error, ")
    if where == "path.market" and first["type"] == "value_error":
        return refusal(RefusedError(422, sentence))
    return refusal(RefusedError(422, f"Invalid request at {where}: {sentence}."))
