"""Checks every request before its body is read: host name, content type, token and size; and logs the outcome."""

import asyncio
import time
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankstream.service.hub import Service
from rankstream.service.journal import note
from rankstream.service.limits import RefusedError

COOKIE = "rankstream-token"
"""The cookie with the token of a user of the page; the port is appended (``cookie_name``)."""
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
KINDS = ("application/json", "application/x-ndjson")
"""Browsers send these from another site only after a CORS preflight, which this server never allows."""

FORM = "application/x-www-form-urlencoded"
"""The type of our own forms, whose routes check the origin."""
FILE = "application/octet-stream"
"""The type of files uploaded on the page; it needs a preflight as well."""

RIGHTS = {"choices": "write", "settings": "manage", "predict": "read", "decide": "read", "next-offer": "read",
          "preferences": "manage", "upload": "manage", "reading": "manage", "import": "manage"}  # fmt: skip
"""The permission that a request with a body needs, by the last part of its path."""
LARGE_BODY = 65_536  # bytes above which bodies share ``ServiceLimits.bodies`` and are parsed one at a time
MAX_BODY_SECONDS, MAX_DISCARD_SECONDS = 30.0, 5.0  # to send a body, and to read a refused one; not tuned
MAX_COMMAS, MAX_BRACKETS = 100_000, 25_000
"""Limits on the values and lists of a question: parsing that many takes about 30 ms (benchmarks/attack_service.py)."""


def refusal(refused: RefusedError) -> JSONResponse:
    """Return the response to a rejected request."""
    return JSONResponse({"error": refused.sentence}, refused.status, refused.headers)


class Guard:
    """Middleware that passes on requests with the right host, token and size.

    The token is checked before the body is read, so that clients without one cannot cause work.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service
        self.hosts = {host.lower() for host in (*LOOPBACK, *service.options.hosts)}
        self.large = 0  # bytes of large bodies in memory
        self._turn, self._discarding = asyncio.Lock(), asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, body, state = time.perf_counter(), 0, Body(), scope.get("state", {})

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(raw=message["headers"])
                headers.setdefault("X-Content-Type-Options", "nosniff")
                headers.setdefault("Cache-Control", "no-store")
                if status < 400 and scope["path"].startswith(("/v1/", "/markets", "/page/")) and "connection" in state:
                    state["connection"].is_trusted = status != 303  # 303 redirects to the login page
            await send(message)

        try:
            await self.app(scope, await self._checked(scope, receive, body), sending)
        except RefusedError as refused:
            if not body.is_whole and scope["method"] in ("POST", "PUT"):
                refused.headers |= await self._discard(receive)
            await refusal(refused)(scope, receive, sending)
        except Exception as error:
            note("a request failed", kind=type(error).__name__)
            if not status:
                failed = RefusedError(500, "Internal server error. It is logged; try again later.")
                await refusal(failed)(scope, receive, sending)
        finally:
            self.large -= body.counted
        took = time.perf_counter() - began
        route = getattr(scope.get("route"), "path", "other")
        self.service.metrics.took(route, status, took)
        if self.service.options.link is None:  # a page of one user needs no access log
            note("request", method=scope["method"], route=route, status=status, ms=round(1000 * took, 2))

    async def _checked(self, scope: Scope, receive: Receive, body: "Body") -> Receive:
        headers = Headers(scope=scope)
        names = [without_port(value) for value in headers.getlist("host")]
        if len(names) != 1 or names[0] not in self.hosts:
            raise RefusedError(421, "The Host header does not match this server: see --allow-host.")
        if scope["method"] not in ("POST", "PUT"):
            return receive
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        is_form = kind == FORM and not scope["path"].startswith(("/v1/", "/page/"))
        is_file = kind == FILE and scope["path"].startswith("/page/") and scope["path"].endswith("/upload")
        if kind not in KINDS and not is_form and not is_file:
            raise RefusedError(415, f"Unsupported body: send Content-Type {' or '.join(KINDS)}.")
        limit = self._size_limit(scope["path"], headers)
        if limit is None:
            return _replayed(b"", receive)
        size = headers.get("content-length", "0")
        self.service.limits.check(limit, int(size) if size.isdecimal() else 0)
        if limit == "upload":
            return receive  # the route writes it to disk as it arrives
        try:
            async with asyncio.timeout(MAX_BODY_SECONDS):
                await self._read(receive, body, limit)
        except TimeoutError:
            raise RefusedError(408, "The body did not arrive in time: send it again, in smaller parts.") from None
        content = b"".join(body.parts)
        body.parts.clear()
        if limit == "question":  # checked before parsing, so commas and brackets in names count as well
            words = f"The question has more than {MAX_COMMAS:,} values or {MAX_BRACKETS:,} lists: ask several times."
            if content.count(b",") > MAX_COMMAS or content.count(b"[") + content.count(b"{") > MAX_BRACKETS:
                raise RefusedError(413, words)
        return _replayed(content, receive, self._turn if len(content) > LARGE_BODY else None)

    def _size_limit(self, path: str, headers: Headers) -> str | None:
        """Check the token of a request; return the name of its size limit, or None if no route reads its body."""
        tokens = self.service.tokens
        match path.split("/")[1:]:
            case ["v1", "markets", market, word] if word in RIGHTS:
                tokens.check(headers.get("authorization"), RIGHTS[word], market)
                return "body" if word == "choices" else "question"
            case ["page", market, word] if word in RIGHTS:
                check_origin(headers.get("origin", ""), headers["host"])
                tokens.check(token_of(headers.get("cookie", ""), headers["host"]), RIGHTS[word], market)
                return "upload" if word == "upload" else "question"
            case ["login"] | ["logout"]:
                return "login"
        return None

    async def _discard(self, receive: Receive) -> dict[str, str]:
        """Read and drop the rest of a body, because clients read the answer only after sending all of it.

        One connection at a time; one that takes too long gets a header that closes it.
        """
        try:
            async with asyncio.timeout(MAX_DISCARD_SECONDS), self._discarding:
                while (await receive()).get("more_body"):
                    await asyncio.sleep(0)
        except TimeoutError:
            return {"Connection": "close"}
        return {}

    async def _read(self, receive: Receive, body: "Body", limit: str) -> None:
        """Read a body; a large one counts towards the limit on large bodies in memory."""
        more = True
        while more:
            message: Any = await receive()
            if message["type"] != "http.request":
                raise RefusedError(400, "The connection closed before the whole body arrived: send it again.")
            body.parts.append(message.get("body", b""))
            body.size += len(body.parts[-1])
            more = message.get("more_body", False)
            body.is_whole = not more
            self.service.limits.check(limit, body.size)
            if body.size > LARGE_BODY:
                self.service.limits.check("bodies", self.large + body.size - body.counted)
                self.large += body.size - body.counted
                body.counted = body.size


class Body:
    """A body while it arrives; ``counted`` bytes of it count as large."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = self.counted = 0
        self.is_whole = False


def check_origin(origin: str, host: str) -> None:
    """Raise a RefusedError unless a page of this server sent the request; browsers set the Origin header.

    >>> check_origin("http://Localhost:8000", "localhost:8000")
    """
    scheme, _, site = origin.lower().partition("://")
    if not host or scheme not in ("http", "https") or site != host.lower():
        raise RefusedError(403, "The form was sent from another site: open the page of this server, and use its form.")


def cookie_name(host: str) -> str:
    """Return the name of the cookie, with the port because browsers send cookies to all ports of a host.

    >>> cookie_name("localhost:8000"), cookie_name("shop.example")
    ('rankstream-token-8000', 'rankstream-token')
    """
    port = host.rpartition(":")[2] if without_port(host) != host.strip().lower() else ""
    return f"{COOKIE}-{port}" if port else COOKIE


def token_of(cookies: str, host: str) -> str | None:
    """Return the token in a Cookie header as an Authorization header."""
    token = cookie_parser(cookies).get(cookie_name(host))
    return None if token is None else f"Bearer {token}"


def _replayed(body: bytes, receive: Receive, turn: asyncio.Lock | None = None) -> Receive:
    """Return a ``receive`` that yields a body that was already read.

    Parsing a body blocks the event loop. With a ``turn``, large bodies are handed out one after the other, with pauses
    of three times the parsing time, so that other requests do not wait long.
    """
    is_read, loop, began = False, asyncio.get_running_loop(), 0.0

    def rest(turn: asyncio.Lock) -> None:
        loop.call_later(3.0 * (loop.time() - began), turn.release)

    async def replay() -> Message:
        nonlocal is_read, began
        if is_read:
            return await receive()
        is_read = True
        if turn is not None:
            await turn.acquire()
            began = loop.time()
            loop.call_soon(rest, turn)
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def without_port(host: str) -> str:
    """Return the host name in a Host header, without the port.

    >>> without_port("LocalHost:8000"), without_port("[::1]:8000"), without_port("::1")
    ('localhost', '[::1]', '::1')
    """
    name, colon, port = host.strip().lower().rpartition(":")
    return name if colon and port.isdecimal() and (":" not in name or name.endswith("]")) else host.strip().lower()
