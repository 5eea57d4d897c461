"""The face of the service: routes, what is said where something is wrong, and the documentation at /openapi.json."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from rankstream._core.version import VERSION
from rankstream.service.answering import answering_routes
from rankstream.service.guard import Guard, refusal
from rankstream.service.hub import Service
from rankstream.service.limits import RefusedError
from rankstream.service.page.market import Pages
from rankstream.service.page.routes import page_routes
from rankstream.service.routes import watching_routes, writing_routes

SENTENCES = {404: "There is nothing at this address: see /openapi.json.", 405: "This address takes another method."}


def make_app(service: Service) -> FastAPI:
    """An application over a service; whoever made the service closes it."""
    pages = Pages(service)
    app = FastAPI(
        title="rankstream", version=VERSION, docs_url=None, redoc_url=None, lifespan=_lifespan(service),
        description="Choices in, a current model with its certificate out.",
        swagger_ui_oauth2_redirect_url=None,
    )  # fmt: skip
    for routes in (writing_routes, answering_routes, watching_routes):
        app.include_router(routes(service))
    app.include_router(page_routes(pages))
    app.add_middleware(Guard, limits=service.limits, metrics=service.metrics, hosts=service.options.hosts)
    app.add_exception_handler(RefusedError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    return app


def _lifespan(service: Service) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def sweeping(_: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(service.sweep_forever())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    return sweeping


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RefusedError)
    return refusal(error)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    """What is wrong with a question, and where."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part)[:50] for part in first["loc"])
    return refusal(RefusedError(422, f"The request is wrong at {where}: {first['msg']}."))


async def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    sentence = SENTENCES.get(error.status_code, "The request cannot be read: see /openapi.json.")
    return refusal(RefusedError(error.status_code, sentence, **(error.headers or {})))
