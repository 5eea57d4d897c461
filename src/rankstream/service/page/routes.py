"""The pages of the service: log in, the list of markets, one market, what if, and events for the page's script."""

from collections.abc import Callable, Coroutine
from gzip import compress
from hashlib import sha256
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute

from rankstream._core.version import VERSION
from rankstream.service import events
from rankstream.service.answering import EventStream
from rankstream.service.limits import RefusedError
from rankstream.service.log import MarketRow
from rankstream.service.page.asked import what_if
from rankstream.service.page.blocks import render
from rankstream.service.page.login import drop_token, form_of, header_of, keep_token
from rankstream.service.page.market import Pages
from rankstream.service.routes import Market
from rankstream.service.store import ServedModel

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
STATIC = {"style.css": "text/css", "page.js": "text/javascript"}
LEAST = 1000
"""Bytes from which on an answer is compressed."""
PART = "Rankstream-Part"
"""The header by which the page's script asks for a part of a page alone."""


def page(name: str, status: int = 200, **content: Any) -> HTMLResponse:
    """A page that nobody keeps, and that runs no script but our own."""
    return HTMLResponse(render(name, version=TAG, **content), status, HEADERS)


def static(name: str) -> str:
    """The text of a file that pages load."""
    return (files("rankstream.service.page") / "templates" / name).read_text(encoding="utf-8")


TAG = sha256("".join(map(static, STATIC)).encode()).hexdigest()[:12]


def packed(request: Request, answer: Response) -> Response:
    """An answer as small as the browser can take it; events are sent as they come."""
    accepted = [one.partition(";")[0].strip() for one in request.headers.get("accept-encoding", "").split(",")]
    if isinstance(answer, EventStream) or len(answer.body) < LEAST or "gzip" not in accepted:
        return answer
    answer.body = compress(answer.body, 6)
    answer.headers["Content-Length"] = str(len(answer.body))
    answer.headers["Content-Encoding"] = "gzip"
    answer.headers["Vary"] = "Accept-Encoding"
    return answer


class PageRoute(APIRoute):
    """A route that answers people: what is refused is a page, or the way to log in."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        answer = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return packed(request, await answer(request))
            except RequestValidationError:
                return page("problem.html", 404, sentence="There is no such page: see the list of markets.")
            except RefusedError as refused:
                if refused.status == 401:
                    return RedirectResponse(f"/login?to={quote(request.url.path)}", 303, HEADERS)
                return page("problem.html", refused.status, sentence=refused.sentence)

        return answered


def page_routes(pages: Pages) -> APIRouter:
    """The routes of pages."""
    router, service = APIRouter(route_class=PageRoute, include_in_schema=False), pages.service

    def readable(request: Request, market: str) -> MarketRow:
        service.tokens.check(header_of(request), "read", market)
        return service.row(market)

    async def shown(row: MarketRow, form: list[tuple[str, str]] | None, part: str | None) -> HTMLResponse:
        facts, content, asked = service.facts(row), None, None
        sentence = ""
        try:
            served: ServedModel = service.served(row)
            content = await pages.panels(row, served)
            asked = await what_if(pages, row, served, content["items"], form)
        except RefusedError as refused:
            sentence = refused.sentence
        template = {"what-if": "what_if.html", "panels": "panels_part.html"}.get(part or "", "market.html")
        return page(template, market=row.name, facts=facts, content=content, asked=asked, sentence=sentence)

    @router.get("/")
    async def markets(request: Request) -> Response:
        holder = service.tokens.holder(header_of(request))
        found = [one for one in service.markets() if holder.allows("read", one.market)]
        return page("markets.html", markets=found, has_tokens=service.tokens.any)

    @router.get("/login")
    async def ask_for_token(to: str = "/") -> Response:
        return page("login.html", to=to, sentence="")

    @router.post("/login")
    async def log_in(request: Request) -> Response:
        form = dict(await form_of(request))
        token, to = form.get("token", "").strip(), form.get("to", "/")
        token = token if token.isascii() and token.isprintable() else ""  # no header, and no token, has others
        try:
            service.tokens.holder(f"Bearer {token}")
        except RefusedError:
            return page("login.html", 401, to=to, sentence="This token is not known: check that it is whole.")
        own = to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable()
        answer = RedirectResponse(quote(to) if own else "/", 303, HEADERS)
        keep_token(request, answer, token)
        return answer

    @router.post("/logout")
    async def log_out(request: Request) -> Response:
        await form_of(request)
        answer = RedirectResponse("/login", 303, HEADERS)
        drop_token(answer)
        return answer

    @router.get("/markets/{market}")
    async def one_market(request: Request, market: Market) -> Response:
        return await shown(readable(request, market), None, request.headers.get(PART))

    @router.post("/markets/{market}")
    async def ask_what_if(request: Request, market: Market) -> Response:
        row = readable(request, market)
        return await shown(row, await form_of(request), request.headers.get(PART))

    @router.get("/markets/{market}/events")
    async def get_events(request: Request, market: Market) -> Response:
        readable(request, market)
        service.limits.check_events(service.listeners)
        return EventStream(events.stream(service, market), headers={"Cache-Control": "no-store"})

    @router.get("/static/{name}")
    async def get_static(name: str) -> Response:
        if name not in STATIC:
            raise RefusedError(404, "There is no such page: see the list of markets.")
        headers = {**HEADERS, "Cache-Control": "max-age=86400", "ETag": f'"{VERSION}-{TAG}"'}
        return Response(static(name), media_type=STATIC[name], headers=headers)

    return router
