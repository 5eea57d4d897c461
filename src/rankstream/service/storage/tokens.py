"""Tokens: permissions by market. A token is shown once; only a digest of it is stored."""

import hmac
import secrets
import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from unicodedata import category

from rankstream.service.limits import RefusedError
from rankstream.service.storage import log
from rankstream.service.storage.database import Database, Place, connect

NAME = "tokens.sqlite3"
VERBS = ("write", "read", "manage")
EVERY = "*"
TABLE = """CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, digest BLOB NOT NULL, markets TEXT NOT NULL, may TEXT NOT NULL, made REAL NOT NULL
)"""
ADDED = ("name TEXT NOT NULL DEFAULT ''", "expires REAL")  # columns that the first version did not have
EXPIRED = "This token has expired: create another with 'rankstream serve token create'."
LINK_SECONDS = 60.0  # lifetime of a link to a page; a browser opens it at once
NOBODY = sha256(b"").digest()
DENIED = "This needs a token: send 'Authorization: Bearer ...' with one that 'rankstream serve token create' made."


@dataclass(frozen=True)
class Holder:
    """The holder of a token: its id and its permissions."""

    id: str
    markets: frozenset[str]
    may: frozenset[str]
    expires: float | None = None

    def allows(self, verb: str, market: str | None) -> bool:
        """Return whether the token has a permission for a market, or without one for all markets."""
        return verb in self.may and (EVERY in self.markets or (market is not None and market in self.markets))


ANYBODY = Holder("", frozenset((EVERY,)), frozenset(VERBS))


class Tokens:
    """The current tokens of a service; another process may create and revoke some."""

    def __init__(self, place: Place) -> None:
        self._connection = opened(place)
        self._version, self._is_open = -1, False
        self._holders: dict[str, tuple[bytes, Holder]] = {}

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _read(self) -> dict[str, tuple[bytes, Holder]]:
        try:
            version = self._connection.changes()
            if version != self._version:
                rows = self._connection.execute("SELECT id, digest, markets, may, expires FROM tokens").fetchall()
                self._holders = {
                    name: (digest, Holder(name, frozenset(markets.split(",")), frozenset(may.split(",")), expires))
                    for name, digest, markets, may, expires in rows
                }
                self._is_open = not rows and not self._connection.version(NAME)
                self._version = version
            return self._holders
        except sqlite3.Error:
            raise RefusedError(503, "The tokens cannot be read: try again in a second.", Retry_After="1") from None

    @property
    def any(self) -> bool:
        """Whether there are tokens; before the first one, every local client may do everything."""
        return bool(self._read())

    def holder(self, header: str | None) -> Holder:
        """Return the holder of the token in an Authorization header, or raise a RefusedError.

        Once there has been a token, one is always needed: revoking the last one does not open the service.
        """
        holders = self._read()
        if self._is_open:
            return ANYBODY
        kind, _, word = (header or "").partition(" ")
        name, _, secret = word.strip().removeprefix("rs_").partition("_")
        digest, holder = holders.get(name, (NOBODY, None))
        same = hmac.compare_digest(digest, _digest(secret))
        if kind.lower() != "bearer" or holder is None or not same:
            raise RefusedError(401, DENIED, WWW_Authenticate="Bearer")
        if holder.expires is not None and time.time() >= holder.expires:
            raise RefusedError(401, EXPIRED, WWW_Authenticate="Bearer")
        return holder

    def check(self, header: str | None, verb: str, market: str | None) -> Holder:
        """Return the holder of a token with this permission, or raise a RefusedError."""
        holder = self.holder(header)
        if not holder.allows(verb, market):
            what = "every market" if market is None else "this market"
            raise RefusedError(403, f"This token may not {verb} {what}: use one that may.")
        return holder


def create(
    place: Place, markets: Iterable[str], may: Iterable[str], label: str = "", seconds: float | None = None
) -> str:
    """Create a token with a label, valid for some seconds or for ever; it cannot be read again."""
    names, verbs = sorted({name.strip() for name in markets}), sorted({verb.strip() for verb in may})
    for name in names:
        if name != EVERY:
            check_name(name)
    for verb in verbs:
        if verb not in VERBS:
            raise ValueError(f"may names {verb!r}: choose among {', '.join(VERBS)}.")
    if not names or not verbs:
        raise ValueError("A token needs a market and a permission: give both.")
    name, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    with closing(opened(place)) as connection:
        now = time.time()
        expires = None if seconds is None else now + seconds
        row = (name, _digest(secret), ",".join(names), ",".join(verbs), now, label, expires)
        connection.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        connection.set_version(NAME, 1)  # there has been a token
    return f"rs_{name}_{secret}"


def listed(place: Place) -> list[dict[str, Any]]:
    """The tokens without their secrets, the oldest first."""
    with closing(_existing(place)) as connection:
        rows = connection.execute("SELECT id, markets, may, made, name, expires FROM tokens ORDER BY made").fetchall()
    return [
        {"id": name, "markets": markets.split(","), "may": may.split(","), "made": made, "name": label, "expires": ends}
        for name, markets, may, made, label, ends in rows
    ]


def revoke(place: Place, name: str) -> None:
    """Revoke a token at once."""
    with closing(_existing(place)) as connection:
        gone = connection.execute("DELETE FROM tokens WHERE id = ?", (name,)).rowcount
    if not gone:
        raise ValueError(f"There is no token {name!r}: 'rankstream serve token list {place}' lists all.")


def check_name(name: str) -> str:
    """Return a valid name of a market, safe in URLs and lists; raise a ValueError for any other.

    >>> check_name("Old Town"), check_name("Café-2")
    ('Old Town', 'Café-2')
    """
    signs = all(category(sign)[0] in "LMN" or sign in " _.-" for sign in name)
    if not signs or not 0 < len(name) <= 64 or name != name.strip() or name in (".", ".."):
        raise ValueError(
            f"A market cannot be called {name[:64]!r}: use up to 64 letters, digits, spaces and any of . _ -."
        )
    return name


def market_name(text: str) -> str:
    """Return a valid name of a market for the name of a file.

    >>> market_name("sales (2026).csv"), market_name("???")
    ('sales 2026 .csv', 'choices')
    """
    signs = "".join(sign if sign.isalnum() or sign in "_.-" else " " for sign in text)
    return " ".join(signs.split())[:64].strip(" .") or "choices"


@dataclass
class PageLink:
    """A link that opens the page once; its key is exchanged for a cookie with a token."""

    token: str
    page: str
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    until: float = 0.0

    def start(self, address: str) -> str:
        """Return the link at an address, and start its lifetime."""
        self.until = time.monotonic() + LINK_SECONDS
        return f"{address}/open?key={self.key}"

    def take(self, key: str) -> bool:
        """Return whether a key is valid, and invalidate it.

        >>> link = PageLink("token", "/")
        >>> address = link.start("http://localhost")
        >>> link.take("guess"), link.take(link.key), link.take(link.key)
        (False, True, False)
        """
        is_valid = time.monotonic() < self.until and hmac.compare_digest(key.encode(), self.key.encode())
        self.until = 0.0 if is_valid else self.until
        return is_valid


def _existing(place: Place) -> Database:
    if not isinstance(place, str) and not (place / NAME).is_file():
        raise ValueError(f"There is no service in {place}: name the folder of one.")
    return opened(place)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()


def opened(folder: Place) -> Database:
    """Open the tokens of a folder or a database, unless they were moved."""
    if isinstance(folder, str):
        return log.open_log(folder)
    if (folder / log.NAME).is_file():
        log.open_log(folder).close()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        connection = connect(folder / NAME)
        connection.execute(TABLE)
        known = {row[1] for row in connection.execute("PRAGMA table_info(tokens)")}
        for column in ADDED:
            if column.split()[0] not in known:
                connection.execute(f"ALTER TABLE tokens ADD COLUMN {column}")
    except sqlite3.Error as error:
        raise ValueError(f"{folder / NAME} cannot be read ({error}): restore it from a backup.") from None
    return connection
