"""The pages of the service: log in, the list of markets, one market, what if, and events for the page's script."""

from collections.abc import Callable, Coroutine
from hashlib import sha256
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute

from rankstream._core.version import VERSION
from rankstream.reports.blocks import render
from rankstream.service.http.events import EventStream
from rankstream.service.http.guard import COOKIE
from rankstream.service.http.write_routes import Market
from rankstream.service.limits import RefusedError
from rankstream.service.page.market import Pages
from rankstream.service.page.what_if import what_if
from rankstream.service.storage.log import MarketRow
from rankstream.service.storage.publication import MIN_CHOICES, PROVISIONAL
from rankstream.service.storage.states import PublishedModel

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
COOKIE_HOURS = 12
MAX_FORM_FIELDS = 20_000
PART = "Rankstream-Part"
"""The header by which the page's script asks for a part of a page alone."""


def page(name: str, status: int = 200, **content: Any) -> HTMLResponse:
    """A page that nobody keeps, and that runs no script but our own."""
    return HTMLResponse(render(name, "rankstream.service.page", version=TAG, **content), status, HEADERS)


def static(name: str) -> str:
    """Return the text of a file that pages load; reports have the same style sheet."""
    package = "rankstream.reports" if name.endswith(".css") else "rankstream.service.page"
    return (files(package) / "templates" / name).read_text(encoding="utf-8")


TAG = sha256("".join(map(static, STATIC)).encode()).hexdigest()[:12]


def header_of(request: Request) -> str | None:
    """The token of the cookie, as a program would send it."""
    token = request.cookies.get(COOKIE)
    return None if token is None else f"Bearer {token}"


async def form_of(request: Request) -> list[tuple[str, str]]:
    """The fields of a form that was sent from one of our own pages; a RefusedError where it came from elsewhere.

    A browser names the page's own site in ``Origin`` and lets no other site change that.
    """
    origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
    if not host or _site(origin) != host.lower():
        raise RefusedError(403, "The form was sent from another site: open the page of this server, and use its form.")
    try:
        text = (await request.body()).decode("ascii")
        return parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS, errors="strict")
    except ValueError:
        raise RefusedError(400, "The form cannot be read: open the page again, and use its form.") from None


def _site(origin: str) -> str:
    """The name and the port in an Origin; nothing where it cannot be read.

    >>> _site("http://Localhost:8000"), _site("null"), _site("//localhost"), _site("http://[")
    ('localhost:8000', '', '', '')
    """
    try:
        parts = urlsplit(origin)
    except ValueError:
        return ""
    return parts.netloc.lower() if parts.scheme in ("http", "https") else ""


def keep_token(request: Request, answer: Response, token: str) -> None:
    """Have the browser keep a token, and send it to this server alone."""
    secure = request.headers.get("origin", "").startswith("https://")
    answer.set_cookie(
        COOKIE, token, max_age=3600 * COOKIE_HOURS, path="/", secure=secure, httponly=True, samesite="strict"
    )


def drop_token(answer: Response) -> None:
    """Have the browser forget the token."""
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


class PageRoute(APIRoute):
    """A route that answers people: what is refused is a page, or the way to log in."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        answer = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await answer(request)
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
        sentence, warnings = "", list[str]()
        try:
            published: PublishedModel = service.model_of(row)
            content = await pages.panels(row, published)
            warnings = [PROVISIONAL] * (published.facts["choices"] < MIN_CHOICES) + content["warnings"]
            asked = await what_if(pages, row, published, content["items"], form)
        except RefusedError as refused:
            sentence = refused.sentence
        template = {"what-if": "what_if.html", "panels": "panels_part.html"}.get(part or "", "market.html")
        filled: dict[str, Any] = {"facts": facts, "content": content, "asked": asked, "sentence": sentence}
        return page(template, market=row.name, warnings=warnings, **filled)

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
            return page("login.html", 401, to=to, sentence="Unknown token. Did you copy all of it?")
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
        return EventStream(service, market)

    @router.get("/static/{name}")
    async def get_static(name: str) -> Response:
        if name not in STATIC:
            raise RefusedError(404, "There is no such page: see the list of markets.")
        headers = {**HEADERS, "Cache-Control": "max-age=86400", "ETag": f'"{VERSION}-{TAG}"'}
        return Response(static(name), media_type=STATIC[name], headers=headers)

    return router
