"""Run the service: make the application, bind the address, handle signals, start and stop."""

import asyncio
import gc
import ipaddress
import json
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from html import escape
from threading import Event
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from rankstream._core.files import own_folder, write_whole
from rankstream._core.version import VERSION
from rankstream._core.watch import handling
from rankstream.service.http.guard import Guard, refusal
from rankstream.service.http.read_routes import answering_routes
from rankstream.service.http.write_routes import watching_routes, writing_routes
from rankstream.service.hub import Options, Service
from rankstream.service.journal import LogLines, note
from rankstream.service.limits import RefusedError
from rankstream.service.page.market import Pages
from rankstream.service.page.routes import HEADERS, header_of, page_routes, part_routes, upload_routes
from rankstream.service.processes.supervisor import Supervisor
from rankstream.service.storage.database import Place
from rankstream.service.storage.log import open_log

SENTENCES = {404: "Not found: see /openapi.json.", 405: "Method not allowed: see /openapi.json."}
MIN_COMPRESSED_BYTES = 1000  # shorter answers fit into one packet anyway
COLLECTED_BYTES = 100_000
"""Size of a rejected request above which its memory is freed at once (benchmarks/attack_service.py)."""
DRAIN = 4  # seconds that requests have to finish after a signal; the learner saves meanwhile, Docker waits for 10
REPEAT_SECONDS = 5.0  # the same failure of the event loop is logged once in this time
MAX_HEAD_SECONDS = 10.0  # time limit for the head of a request; not tuned


def limited(n_connections: int) -> type[asyncio.Protocol]:
    """Return a protocol for uvicorn that limits open connections, by closing the oldest one without a token."""

    class LimitedProtocol(H11Protocol):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            super().__init__(*arguments, **keywords)
            self.is_trusted, self.began = False, self.loop.time()
            self.app_state = {**self.app_state, "connection": self}  # for the guard

        def connection_made(self, transport: Any) -> None:
            """Make room for a new connection, or reject it if all others are trusted."""
            super().connection_made(transport)
            self.loop.call_later(MAX_HEAD_SECONDS, self.close_idle)
            if len(self.connections) > n_connections:
                known: list[Any] = [other for other in self.connections if isinstance(other, LimitedProtocol)]
                untrusted = [other for other in known if not other.is_trusted and other is not self]
                min(untrusted, key=lambda other: float(other.began), default=self).transport.abort()

        def close_idle(self) -> None:
            """Close a connection that has not sent the head of a request in time."""
            if not self.headers:
                self.transport.abort()

    return LimitedProtocol


class Server(uvicorn.Server):
    """A server that ends event streams and exits with code 0 after a signal."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle the signals to end while the server runs."""
        with handling(self.handle_exit, signal.SIGINT, signal.SIGTERM):
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop accepting requests; a second Ctrl-C does not wait for those in progress."""
        self.service.is_closing = True
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let the learner save while requests end."""
        self.service.supervisor.ask_to_end()
        await super().shutdown(sockets)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, and log failures of the event loop, such as a connection that cannot be accepted."""
        last: dict[str, float] = {}

        def noted(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            words, now = str(context.get("message")).partition(" at ")[0], time.monotonic()
            if now - last.get(words, -REPEAT_SECONDS) >= REPEAT_SECONDS:
                last[words] = now
                note("the event loop failed", what=words, kind=type(context.get("exception")).__name__)

        asyncio.get_running_loop().set_exception_handler(noted)
        await super().serve(sockets)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("shop.example")
    (True, True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def run(place: Place, host: str, port: int, options: Options, ready: Callable[[str], None]) -> None:
    """Serve until a signal, then save; call ``ready`` with the address as soon as requests are accepted.

    Creates the folder if it is missing. Port 0 picks a free one. A server of a database does not learn.
    """
    if not isinstance(place, str) and not place.exists():
        place.mkdir(parents=True, mode=0o700)  # customer data: readable by the owner only
    remedy = "stop it first, or choose another folder"
    with nullcontext() if isinstance(place, str) else own_folder(place, remedy=remedy):
        service = Service(place, options)
        try:
            if not is_loopback(host) and not service.tokens.any:
                raise ValueError(
                    f"{host} is open to others, and there are no tokens: create one with 'rankstream serve "
                    f"token create {place} --market NAME --may write,read', or serve on 127.0.0.1."
                )
            with listening(host, port) as (listener, address):
                _serve(service, listener, address, ready)
        finally:
            service.close()
    note("everything is saved")


def learn(url: str, ready: Callable[[], None]) -> None:
    """Learn markets of a database until a signal, then save; a learner that dies is started again."""
    open_log(url).close()  # says at once what is wrong
    supervisor, stop = Supervisor(url), Event()
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, lambda *_: stop.set())
    supervisor.begin()
    try:
        ready()
        stop.wait()
    finally:
        supervisor.end()
    note("everything is saved")


def _serve(service: Service, listener: socket.socket, address: str, ready: Callable[[str], None]) -> None:
    if service.options.learns and not service.reading.is_shared:
        service.supervisor.begin()
    write_whole(service.folder / "running.json", json.dumps({"pid": os.getpid(), "url": address}), sync=False)
    config = uvicorn.Config(
        make_app(service), log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=DRAIN,
        lifespan="on", proxy_headers=False, http=limited(service.limits.connections),
    )  # fmt: skip
    logging.getLogger().addHandler(LogLines(logging.WARNING))
    ready(address)
    asyncio.run(Server(config, service).serve(sockets=[listener]))


@contextmanager
def listening(host: str, port: int) -> Iterator[tuple[socket.socket, str]]:
    """Bind a socket; yield it and its URL."""
    kind, _, _, _, where = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
    # asyncio disables Nagle's algorithm only for sockets that are explicitly TCP; else small answers take 40 ms longer
    with socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(where)
        except OSError as error:
            raise ValueError(f"{host}:{port} is not available ({error.strerror}): choose another port.") from None
        listener.listen(1024)
        name = f"[{where[0]}]" if kind == socket.AF_INET6 else where[0]
        yield listener, f"http://{name}:{listener.getsockname()[1]}"


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
