"""The pages of the service: log in, the list of markets, one market, what its script asks for, and uploaded files."""

import asyncio
import gzip
import re
import secrets
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from shutil import rmtree
from typing import Any
from urllib.parse import parse_qsl, quote

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute

from rankstream._core.version import VERSION
from rankstream.reports.blocks import render
from rankstream.service.http.guard import check_origin, cookie_name, token_of
from rankstream.service.http.read_routes import EventStream
from rankstream.service.http.schemas import Preferences, UploadedFile
from rankstream.service.http.write_routes import Market
from rankstream.service.hub import Service
from rankstream.service.limits import RefusedError
from rankstream.service.page.market import PART_SECONDS, Pages, model_header, overview_of
from rankstream.service.storage.log import keep_preferences, preferences_of

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {"Content-Security-Policy": POLICY, "Referrer-Policy": "same-origin"}
"""Headers of pages besides those that the guard adds to every response."""
SHARED_FILES = ("style.css", "charts.js", "vendor/d3.min.js", "vendor/plot.umd.min.js")
"""What pages load, and reports have within them."""
OWN_FILES = (
    "page.js", "server.js", "memory.js", "what_if.js", "best_offer.js", "periods.js", "prices.js", "markets.js",
    "upload.js",
)  # fmt: skip
COOKIE_HOURS = 12  # a working day
MAX_FORM_FIELDS = 20_000  # four for each item of a market (5,000 by ``ServiceLimits``)
MAX_FILES = 4  # that wait to be imported; the oldest one is deleted for another
MAX_UPLOAD_SECONDS = 600.0  # 100 MB at 170 kB/s; beyond, the connection hangs
NO_PAGE = "There is no such page: see the list of markets."


def page(name: str, status: int = 200, **content: Any) -> HTMLResponse:
    """A page that nobody keeps, and that runs no script but our own."""
    return HTMLResponse(render(name, "rankstream.service.page", static=f"/static/{TAG}", **content), status, HEADERS)


@cache
def static(name: str, is_compressed: bool = False) -> bytes:
    """Return a file that pages load; compressing it takes too long to do for every request."""
    package = "rankstream.reports" if name in SHARED_FILES else "rankstream.service.page"
    content = (files(package) / "static" / name).read_bytes()
    return gzip.compress(content, 9, mtime=0) if is_compressed else content


TAG = sha256(b"".join(static(name) for name in (*SHARED_FILES, *OWN_FILES))).hexdigest()[:12]
"""What the addresses of these files begin with: a browser that keeps them asks for new ones of another version."""


def header_of(request: Request) -> str | None:
    """The token of the cookie, as a program would send it."""
    return token_of(request.headers.get("cookie", ""), request.headers.get("host", ""))


async def form_of(request: Request) -> list[tuple[str, str]]:
    """The fields of a form that was sent from one of our own pages; a RefusedError where it came from elsewhere."""
    check_origin(request.headers.get("origin", ""), request.headers.get("host", ""))
    try:
        text = (await request.body()).decode("ascii")
        return parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS, errors="strict")
    except ValueError:
        raise RefusedError(400, "The form cannot be read: open the page again, and use its form.") from None


def keep_token(request: Request, answer: Response, token: str) -> None:
    """Have the browser keep a token, and send it to this server alone."""
    secure = request.headers.get("origin", "").startswith("https://")
    name = cookie_name(request.headers.get("host", ""))
    answer.set_cookie(
        name, token, max_age=3600 * COOKIE_HOURS, path="/", secure=secure, httponly=True, samesite="strict"
    )


class PageRoute(APIRoute):
    """A route that answers people: what is refused is a page, or the way to log in."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        answer = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await answer(request)
            except RequestValidationError:
                return page("problem.html", 404, sentence=NO_PAGE)
            except RefusedError as refused:
                if refused.status == 401:
                    return RedirectResponse(f"/login?to={quote(request.url.path)}", 303, HEADERS)
                return page("problem.html", refused.status, sentence=refused.sentence)

        return answered


def page_routes(pages: Pages) -> APIRouter:
    """The routes of pages."""
    router, service = APIRouter(route_class=PageRoute, include_in_schema=False), pages.service

    @router.get("/")
    async def markets(request: Request) -> Response:
        holder = service.tokens.holder(header_of(request))
        found = [overview_of(service, row) for row in service.rows() if holder.allows("read", row.name)]
        most = service.limits.upload if holder.allows("manage", None) else 0
        logs_in = service.tokens.any and service.options.link is None
        return page("markets.html", markets=found, has_tokens=logs_in, most=most)

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

    @router.get("/open")
    async def open_once(request: Request, key: str = "") -> Response:
        """Exchange the key of a link for a cookie, once; nobody learns the key from a referrer."""
        link = service.options.link
        if link is None or not link.take(key):
            raise RefusedError(403, "This link was used before, or is more than a minute old: start the command again.")
        answer = RedirectResponse(link.page, 303, HEADERS | {"Referrer-Policy": "no-referrer"})
        keep_token(request, answer, link.token)
        return answer

    @router.post("/logout")
    async def log_out(request: Request) -> Response:
        await form_of(request)
        answer = RedirectResponse("/login", 303, HEADERS)
        answer.delete_cookie(cookie_name(request.headers.get("host", "")), path="/", httponly=True, samesite="strict")
        return answer

    @router.get("/markets/{market}")
    async def one_market(request: Request, market: Market) -> Response:
        row = service.readable(header_of(request), market)
        manages = service.tokens.holder(header_of(request)).allows("manage", market)
        filled = await pages.view(row, request.query_params.multi_items())
        return page("market.html", market=row.name, manages=manages, alone=service.options.link is not None, **filled)

    @router.get("/page/{market}/report")
    async def get_report(request: Request, market: Market) -> Response:
        row = service.readable(header_of(request), market)
        digest = service.model_of(row).digest
        question = {"kind": "report", "market": row.id, "digest": digest, "title": f"What customers choose: {market}"}
        text = await service.ask(service.slow, question)
        return HTMLResponse(text, headers=HEADERS | {"Content-Disposition": 'attachment; filename="report.html"'})

    @router.get("/markets/{market}/events")
    async def get_events(request: Request, market: Market) -> Response:
        return EventStream(service, header_of(request), market)

    @router.get("/static/{tag}/{name:path}")
    async def get_static(request: Request, name: str) -> Response:
        if name not in SHARED_FILES and name not in OWN_FILES:
            raise RefusedError(404, NO_PAGE)
        is_compressed = "gzip" in request.headers.get("accept-encoding", "")
        headers = {**HEADERS, "Cache-Control": "max-age=86400", "ETag": f'"{VERSION}-{TAG}"', "Vary": "Accept-Encoding"}
        headers |= {"Content-Encoding": "gzip"} if is_compressed else {}
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        return Response(static(name, is_compressed), media_type=kind, headers=headers)

    return router


def part_routes(pages: Pages) -> APIRouter:
    """What the script of a page asks for besides questions; what is refused is JSON."""
    router, service = APIRouter(prefix="/page", include_in_schema=False), pages.service

    @router.get("/{market}/panels")
    @router.get("/{market}/summary")
    async def get_panels(request: Request, market: Market) -> dict[str, Any]:
        row = service.readable(header_of(request), market)
        published = service.model_of(row)
        try:
            content = await pages.panels(row, published, PART_SECONDS, request.url.path.rpartition("/")[2])
        except RefusedError as refused:
            if refused.status != 503:
                raise
            return {"waiting": refused.sentence}  # no error: it is on its way
        return {name: model_header(row, published)[name] for name in ("reason", "age")} | content

    @router.get("/{market}/preferences")
    async def get_preferences(request: Request, market: Market) -> dict[str, Any]:
        service.tokens.check(header_of(request), "read", market)
        return service.from_log(lambda: preferences_of(service.reading, market))

    @router.put("/{market}/preferences")
    async def put_preferences(request: Request, market: Market, body: Preferences) -> dict[str, Any]:
        service.tokens.check(header_of(request), "manage", market)
        service.row(market)
        return await service.write(lambda log: keep_preferences(log, market, body.model_dump()), market)

    return router


def upload_routes(service: Service) -> APIRouter:
    """What the list of markets asks for a file; the guard checks the origin and the token before."""
    router = APIRouter(prefix="/page", include_in_schema=False)

    @router.post("/{market}/upload")
    async def upload(request: Request, market: Market, name: str = "file") -> dict[str, str]:
        plain = re.sub(r"[^\w.\- ]", "_", Path(name).name)[-80:].lstrip(".") or "file"
        service.uploads.mkdir(mode=0o700, exist_ok=True)
        folder, size = service.uploads / secrets.token_hex(8), 0
        folder.mkdir(mode=0o700)
        try:
            with (folder / plain).open("wb") as file:
                async with asyncio.timeout(MAX_UPLOAD_SECONDS):
                    async for part in request.stream():
                        size += len(part)
                        service.limits.check("upload", size)
                        file.write(part)
        except BaseException as error:
            rmtree(folder, ignore_errors=True)
            if isinstance(error, TimeoutError | OSError):
                raise RefusedError(507, "The file could not be stored: free some disk space, and try again.") from None
            raise
        for old in sorted(service.uploads.iterdir(), key=lambda one: one.stat().st_mtime)[:-MAX_FILES]:
            rmtree(old, ignore_errors=True)
        return {"file": folder.name, "market": market}

    def task_of(body: UploadedFile, step: str) -> dict[str, Any]:
        """What the process that reads files is told; a RefusedError where the file is gone."""
        path = next((service.uploads / body.file).glob("*"), None)
        if path is None:
            raise RefusedError(410, "The file is no longer on the server: drop it again.")
        reading = body.model_dump(exclude={"file", "by"}, exclude_none=True) | {"on_error": "skip"}
        return {"step": step, "path": str(path), "reading": reading, "by": body.by}

    @router.post("/{market}/reading")
    async def look(market: Market, body: UploadedFile) -> dict[str, Any]:
        task = task_of(body, "look")
        try:
            found: dict[str, Any] = await service.ask(service.looking, task)
        except RefusedError as refused:
            if refused.status != 429:  # nobody can mend this file here
                rmtree(service.uploads / body.file, ignore_errors=True)
            raise
        return found | {"is_taken": not body.by and any(one.market == market for one in service.markets())}

    @router.post("/{market}/import")
    async def import_file(request: Request, market: Market, body: UploadedFile) -> dict[str, Any]:
        task, options = task_of(body, "store"), service.options
        if body.by:
            service.tokens.check(header_of(request), "manage", None)
        task |= {"market": market, "limits": service.limits, "new_markets": options.new_markets}
        task |= {"fit": {"method": "auto", "budget": None, "seed": options.seed}}
        markets = await service.ask(service.importing, task)

        def ended(done: "Future[Any]") -> None:
            if not service.is_closing and (done.exception() is not None or done.result()[0] != 200):
                service.importing.submit(task | {"step": "fail", "markets": markets})

        service.fitting.submit(task | {"step": "fit"}).add_done_callback(ended)
        return {"markets": markets}

    return router
