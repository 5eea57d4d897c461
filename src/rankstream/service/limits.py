"""How much the service takes, and what it says where that is too much."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

PRICED_WAYS = 20
"""Ways to price an offer, on average: the log keeps prices as they were sent."""


class RefusedError(Exception):
    """An answer that is not what was asked for: a status of HTTP, and a sentence for whoever asked."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass(frozen=True)
class ServiceLimits:
    """The most of everything; ``rankstream serve run --limit offers=5000`` changes one."""

    body: int = 8_000_000
    """Bytes of a request."""
    records: int = 10_000
    """Records of a batch."""
    items: int = 200
    """Items of an offer."""
    label: int = 200
    """Characters of an item's name."""
    offers: int = 2_000
    """Different offers of a market."""
    markets: int = 100
    """Markets."""
    events: int = 50
    """Listeners to events at once."""
    waiting: int = 200
    """Batches that wait to be written."""
    asked: int = 500
    """Offers of one question for predictions."""
    questions: int = 8
    """Questions that wait for an answer that takes long."""

    def changed(self, texts: Iterable[str]) -> "ServiceLimits":
        """The same with limits that are written as ``name=number``.

        >>> ServiceLimits().changed(["offers=50"]).offers
        50
        """
        known: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        given: dict[str, Any] = {}
        for text in texts:
            name, _, number = text.partition("=")
            if name not in known or not number.isdecimal() or not 0 < int(number) < 10**12:
                raise ValueError(
                    f"The limit {text!r} is not a name and a number: write one of {', '.join(known)}, =, 50."
                )
            given[name] = int(number)
        return replace(self, **given)

    def check_body(self, size: int) -> None:
        """Refuse a request that is too large."""
        if size > self.body:
            raise RefusedError(413, f"The request is larger than {self.body:,} bytes: send fewer records at once.")

    def check_records(self, number: int) -> None:
        """Refuse a batch of too many records."""
        if number > self.records:
            raise RefusedError(
                413, f"The batch has {number:,} records and may have {self.records:,}: send several batches."
            )

    def check_offer(self, items: Iterable[Any]) -> None:
        """Refuse an offer of too many items, or with a name that is too long; both as a ValueError of a record."""
        names = [str(item) for item in items]
        if len(names) > self.items:
            raise ValueError(f"its offer has {len(names):,} items and may have {self.items:,}: offer fewer")
        longest = max(map(len, names))
        if longest > self.label:
            raise ValueError(f"an item of its offer has a name of {longest:,} characters: use at most {self.label:,}")

    def check_offers(self, number: int) -> None:
        """Refuse more offers than a market may have."""
        if number > self.offers:
            raise RefusedError(
                409, f"The market would have more than {self.offers:,} different offers: send these to another market."
            )

    def check_prices(self, number: int) -> None:
        """Refuse more ways to price offers than a market may have."""
        most = PRICED_WAYS * self.offers
        if number > most:
            raise RefusedError(
                409, f"The market would have more than {most:,} offers at different prices: round prices to a few."
            )

    def check_markets(self, number: int) -> None:
        """Refuse more markets than there may be."""
        if number > self.markets:
            raise RefusedError(409, f"There are {self.markets:,} markets already: purge one first, or raise the limit.")

    def check_waiting(self, number: int) -> None:
        """Refuse a batch where too many wait."""
        if number >= self.waiting:
            raise RefusedError(429, f"{number:,} batches wait to be written: send this again later.", Retry_After="1")

    def check_events(self, number: int) -> None:
        """Refuse a listener where there are too many."""
        if number >= self.events:
            raise RefusedError(429, f"{number:,} listen to events already: close one, or ask later.", Retry_After="10")

    def check_asked(self, number: int) -> None:
        """Refuse a question about too many offers."""
        if number > self.asked:
            raise RefusedError(
                413, f"The question names {number:,} offers and may name {self.asked:,}: ask several times."
            )

    def check_questions(self, number: int) -> None:
        """Refuse a question where too many wait."""
        if number >= self.questions:
            raise RefusedError(429, f"{number:,} questions wait for an answer: ask again later.", Retry_After="5")
