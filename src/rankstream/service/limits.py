"""Limits of the service, and the error messages for requests beyond them."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

PRICED_WAYS = 20  # different prices of an offer, on average; the log stores prices as they were sent

REFUSALS: dict[str, tuple[Any, ...]] = {
    "body": (413, "The request is larger than {most:,} bytes: send fewer records at once."),
    "question": (413, "The request is larger than {most:,} bytes: ask about fewer items."),
    "bodies": (429, "The server is reading other large requests: send this again later.", 1),
    "records": (413, "The batch has {number:,} records and may have {most:,}: send several batches."),
    "offers": (409, "This market would have more than {most:,} different offers: send these to another market."),
    "offers_at_prices": (
        409, "This market would have more than {most:,} offers at different prices: round prices to a few.",
    ),
    "market_items": (409, "This market would have more than {most:,} different items: use several markets."),
    "markets": (409, "The limit on markets ({most:,}) is reached: purge one first, or raise the limit."),
    "waiting": (429, "{most:,} batches are waiting to be written: send this again later.", 1),
    "events": (429, "{most:,} clients are already listening to events: close one, or try later.", 10),
    "asked": (413, "The request has {number:,} offers and may have {most:,}: split it."),
    "login": (413, "The form is larger than {most:,} bytes: use the form of the page."),
    "upload": (413, "The file is larger than {most:,} bytes: use 'rankstream open', or raise the limit 'upload'."),
    "questions": (429, "{most:,} requests are waiting for an answer: try again later.", 5),
}  # fmt: skip
"""For each limit: the HTTP status, the message, and the seconds after which to retry."""


class LostCommitError(sqlite3.OperationalError):
    """The connection was lost during a COMMIT, so that nobody knows whether it was done."""


class RefusedError(Exception):
    """A rejected request: an HTTP status and a message for the client."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass(frozen=True)
class ServiceLimits:
    """All limits; ``rankstream serve run --limit offers=5000`` changes one."""

    body: int = 8_000_000  # bytes of a request
    records: int = 10_000  # records of a batch
    items: int = 200  # items of an offer
    label: int = 200  # characters of an item's name
    offers: int = 2_000  # different offers, by market
    markets: int = 100  # markets
    events: int = 50  # listeners to events at once
    waiting: int = 200  # batches waiting to be written
    asked: int = 500  # offers of one question for predictions
    questions: int = 8  # questions that wait for an answer that takes long
    market_items: int = 5_000  # different items of a market
    question: int = 1_000_000  # bytes of a request that is not a batch of choices
    connections: int = 500  # open connections
    cache: int = 32_000_000  # bytes of predictions that need not be computed again
    upload: int = 100_000_000  # bytes of a file that is uploaded on the page
    bodies: int = 32_000_000  # bytes of large request bodies in memory at once
    login = 10_000  # bytes of the form to log in, which nobody needs to change

    @property
    def offers_at_prices(self) -> int:
        """Offers of a market, with each way to price one counted."""
        return PRICED_WAYS * self.offers

    def changed(self, texts: Iterable[str]) -> "ServiceLimits":
        """Return a copy with some limits changed, each written as ``name=number``.

        >>> ServiceLimits().changed(["offers=50"]).offers
        50
        """
        known = [field.name for field in fields(self)]
        changes: dict[str, Any] = {}
        for text in texts:
            name, _, number = text.partition("=")
            if name not in known or not number.isdecimal() or not 0 < int(number) < 10**12:
                raise ValueError(
                    f"The limit {text!r} is not a name and a number: write offers=5000. "
                    f"The names are {', '.join(known)}."
                )
            changes[name] = int(number)
        return replace(self, **changes)

    def check(self, name: str, number: int) -> None:
        """Raise a RefusedError if the number is above its limit.

        >>> ServiceLimits(records=1).check("records", 49)
        Traceback (most recent call last):
        rankstream.service.limits.RefusedError: The batch has 49 records and may have 1: send several batches.
        """
        most = getattr(self, name)
        if number > most:
            status, sentence, *wait = REFUSALS[name]
            headers = {"Retry_After": str(wait[0])} if wait else {}
            raise RefusedError(status, sentence.format(most=most, number=number), **headers)

    def check_offer(self, items: Iterable[Any]) -> None:
        """Raise a ValueError if an offer has too many items or a name that is too long."""
        names = [str(item) for item in items]
        if len(names) > self.items:
            raise ValueError(f"its offer has {len(names):,} items and may have {self.items:,}: offer fewer")
        longest = max(map(len, names))
        if longest > self.label:
            raise ValueError(f"an item of its offer has a name of {longest:,} characters: use at most {self.label:,}")
