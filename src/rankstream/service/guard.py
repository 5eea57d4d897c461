"""What every request passes first: the name it was sent to, its kind and its size; and what is noted about it."""

import time
from collections.abc import Iterable
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankstream.service.journal import note
from rankstream.service.limits import RefusedError, ServiceLimits
from rankstream.service.metrics import Metrics

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
KINDS = ("application/json", "application/x-ndjson")
"""No page of another site can send these without asking first, which is never allowed."""

FORM = "application/x-www-form-urlencoded"
"""What our own pages send; they check themselves which site a form comes from."""


def refusal(refused: RefusedError) -> JSONResponse:
    """The answer to a request that is refused."""
    return JSONResponse({"error": refused.sentence}, refused.status, refused.headers)


class Guard:
    """Lets requests in that were sent to this server by its name, and are not too large.

    Parameters
    ----------
    app : callable
        What answers.
    limits : ServiceLimits
        The most of everything.
    metrics : Metrics
        Where requests are counted.
    hosts : names
        The names that the server is called by, besides those of this machine for itself.

    """

    def __init__(self, app: ASGIApp, limits: ServiceLimits, metrics: Metrics, hosts: Iterable[str] = ()) -> None:
        self.app, self.limits, self.metrics = app, limits, metrics
        self.hosts = {host.lower() for host in (*LOOPBACK, *hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, await self._checked(scope, receive), sending)
        except RefusedError as refused:
            await refusal(refused)(scope, receive, sending)
        except Exception as error:
            note("a request failed", kind=type(error).__name__)
            if not status:
                failed = RefusedError(500, "The server failed over this request, and has noted it: ask again later.")
                await refusal(failed)(scope, receive, sending)
        took = time.perf_counter() - began
        route = getattr(scope.get("route"), "path", "other")
        self.metrics.took(route, status, took)
        note("request", method=scope["method"], route=route, status=status, ms=round(1000 * took, 2))

    async def _checked(self, scope: Scope, receive: Receive) -> Receive:
        """A request with its whole body, or a RefusedError."""
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        names = [without_port(value) for value in headers.get("host", [""])]
        if len(names) != 1 or names[0] not in self.hosts:
            raise RefusedError(421, "This server has another name: start it with --allow-host and the name in Host.")
        if scope["method"] not in ("POST", "PUT"):
            return receive
        kind = headers.get("content-type", [""])[-1].partition(";")[0].strip().lower()
        if kind not in KINDS and (kind != FORM or scope["path"].startswith("/v1/")):
            raise RefusedError(415, f"The request is not of a known kind: send Content-Type {' or '.join(KINDS)}.")
        size = headers.get("content-length", ["0"])[-1]
        self.limits.check_body(int(size) if size.isdecimal() else 0)
        return _replayed(await self._body(receive), receive)

    async def _body(self, receive: Receive) -> bytes:
        parts, size = [], 0
        while True:
            message: Any = await receive()
            if message["type"] != "http.request":
                raise RefusedError(400, "The request ended before its body did: send it again.")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            self.limits.check_body(size)
            if not message.get("more_body", False):
                return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A body that was read, to be read again; then whatever else comes."""
    is_read = False

    async def again() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def without_port(host: str) -> str:
    """The name in a Host header.

    >>> without_port("LocalHost:8000"), without_port("[::1]:8000"), without_port("::1")
    ('localhost', '[::1]', '::1')
    """
    name, colon, port = host.strip().lower().rpartition(":")
    is_port = colon and port.isdecimal() and (":" not in name or name.endswith("]"))
    return name if is_port else host.strip().lower()
