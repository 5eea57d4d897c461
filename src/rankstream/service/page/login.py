"""Logging in to the pages: the token as a cookie that no script reads and no other site sends."""

from urllib.parse import parse_qsl, urlsplit

from fastapi import Request, Response

from rankstream.service.limits import RefusedError

COOKIE = "rankstream-token"
HOURS = 12
MOST_FIELDS = 20_000


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
        return parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
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
    answer.set_cookie(COOKIE, token, max_age=3600 * HOURS, path="/", secure=secure, httponly=True, samesite="strict")


def drop_token(answer: Response) -> None:
    """Have the browser forget the token."""
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
