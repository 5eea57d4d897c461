"""Choices that come in: read, checked against their market, and written to the log with their key, all or nothing."""

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rankstream._core.types import Label
from rankstream.data.readers.json_lines import Twice, loads
from rankstream.service.limits import RefusedError, ServiceLimits
from rankstream.service.log import MarketRow, Offered, market_row, offer_text, offers_of, packed
from rankstream.service.settings import check_history, check_prices, checked, live_of, to_text
from rankstream.streams.choices import LARGEST as LARGEST_COUNT
from rankstream.streams.gate import Gate
from rankstream.streams.live import Record
from rankstream.streams.records import amount_of, in_priced_offers, moment_of, record_from

REMEMBERED = 5  # ways to write each offer, on average
KEYS_KEPT = 7 * 86_400.0
PRICES = (int, float, type(None))
Row = tuple[int, int, float, float | None]


class Sent(NamedTuple):
    """A batch as it was sent, by whom, and the key with the digest of its body if it has one."""

    market: str
    records: Sequence[Any]
    token: str = ""
    key: str | None = None
    digest: bytes = b""


@dataclass
class KnownMarket:
    """A market as the writer knows it: its row, and its offers by what they are."""

    row: MarketRow
    gate: Gate
    numbers: dict[frozenset[Any], int] = field(default_factory=dict)
    places: dict[int, dict[Label, int]] = field(default_factory=dict)
    written: dict[tuple[Any, ...], int] = field(default_factory=dict)
    """Offers by the words that they came in, which need not be looked at again."""
    added: dict[int, Offered] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kinds: set[frozenset[Label]] = set()  # offers at price levels
        self.no_choice = self.row.settings["no_choice"]
        self.priced = None if self.gate.live.prices is None else in_priced_offers(no_choice=self.no_choice)

    def number_of(self, record: Record, limits: ServiceLimits) -> int:
        """The number of a record's offer, which may be new."""
        offered = dict(record.offered) if isinstance(record.offered, Mapping) else record.offered
        offer = key_of(offered)
        if offer not in self.numbers:
            limits.check_offer(offered)
            limits.check_prices(len(self.numbers) + 1)
            self.add(len(self.numbers), offered)
            limits.check_offers(len(self.kinds))
            self.added[self.numbers[offer]] = offered
        return self.numbers[offer]

    def add(self, number: int, offered: Offered) -> None:
        """An offer of the log."""
        self.numbers[key_of(offered)] = number
        self.kinds.add(frozenset(self.gate.live.at_levels(Record(offered, None)).offered))
        self.places[number] = {item: place for place, item in enumerate(offered)}


def key_of(offered: Offered) -> frozenset[Any]:
    """What makes an offer another one: its items, and their prices."""
    return frozenset(offered.items() if isinstance(offered, dict) else offered)


class Ingest:
    """Writes batches within the transactions of the log's one writer; what it remembers is only ever of what is there.

    Parameters
    ----------
    limits : ServiceLimits
        The most of everything.
    new_markets : bool
        Whether a market may be made by its first batch.
    seed : int
        The seed of markets that are made.

    """

    def __init__(self, limits: ServiceLimits, new_markets: bool = True, seed: int = 0) -> None:
        self.limits, self.new_markets, self.seed = limits, new_markets, seed
        self._known: dict[str, KnownMarket] = {}
        self._version = -1

    def forget(self) -> None:
        """Look everything up again: a transaction was undone, or another process wrote."""
        self._known.clear()

    def store(self, connection: sqlite3.Connection, sent: Sent) -> dict[str, Any]:
        """Write a batch, and what is answered; the answer of the first time where its key was there before."""
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version:  # somebody purged a market
            self._version = version
            self.forget()
        market = self._market(connection, sent.market)
        if sent.key is not None and market.row.id:
            before = _answered(connection, market.row.id, sent)
            if before is not None:
                return before
        try:
            rows = self._rows(market, sent.records)
        except BaseException:
            self._known.pop(sent.market, None)
            raise
        return self._write(connection, market, rows, sent)

    def _market(self, connection: sqlite3.Connection, name: str) -> KnownMarket:
        if name in self._known:
            return self._known[name]
        row = market_row(connection, name)
        if row is None:
            if not self.new_markets:
                raise RefusedError(404, "There is no such market, and none may be made: name one of GET /v1/markets.")
            self.limits.check_markets(connection.execute("SELECT count(*) FROM markets").fetchone()[0] + 1)
            row = MarketRow(0, name, time.time(), 1, 0, 0, 0, 0, checked({}, self.seed), 0)
        offers = offers_of(connection, row.id)
        known = KnownMarket(row, Gate(live_of(row.settings), {item for offer in offers.values() for item in offer}))
        for number, items in offers.items():
            known.add(number, items)
        if row.id:
            self._known[name] = known
        return known

    def _rows(self, market: KnownMarket, records: Sequence[Any]) -> list[Row]:
        """The records as the log keeps them; a RefusedError names the first that is wrong."""
        rows: list[Row] = []
        for number, content in enumerate(records):
            try:
                rows.append(self._row(market, content))
            except ValueError as error:
                raise RefusedError(
                    422, f"Record {number} is wrong: {error}. Nothing of the batch was stored."
                ) from None
        return rows

    def _row(self, market: KnownMarket, content: Any) -> Row:
        words = _words(content)
        number = market.written.get(words, -1)
        places = market.places.get(number, {})
        chosen = content["chosen"] if number >= 0 and "chosen" in content else None
        if isinstance(chosen, str) and chosen in places and type(content) is dict:
            count, moment = amount_of(content.get("count", 1)), moment_of(content.get("time"))
            market.gate.check_amount(Record((chosen,), chosen, count, moment))
            return number, places[chosen], count, moment
        record = market.gate.checked(record_from(content, None, market.no_choice, priced=market.priced))
        number = market.number_of(record, self.limits)
        if words and len(market.written) < REMEMBERED * self.limits.offers:
            market.written[words] = number
        return number, market.places[number][record.chosen], record.times, record.time

    def _write(
        self, connection: sqlite3.Connection, market: KnownMarket, rows: list[Row], sent: Sent
    ) -> dict[str, Any]:
        row, now = market.row, time.time()
        if not row.id:
            row = row._replace(id=_made(connection, row.name, row.settings))
            self._known[row.name] = market
        row = row._replace(
            records=row.records + len(rows),
            untimed=row.untimed + sum(moment is None for *_, moment in rows),
            uneven=row.uneven + sum(not count.is_integer() for _, _, count, _ in rows),
            large=row.large + sum(count > LARGEST_COUNT for _, _, count, _ in rows),
        )
        connection.executemany(
            "INSERT INTO offers VALUES (?, ?, ?)",
            [(row.id, number, offer_text(offered)) for number, offered in market.added.items()],
        )
        market.added.clear()
        if rows:
            connection.execute(
                "INSERT INTO batches (market, position, records, arrived, body) VALUES (?, ?, ?, ?, ?)",
                (row.id, row.records, len(rows), now, packed(rows)),
            )
        connection.execute(
            "UPDATE markets SET records = ?, untimed = ?, uneven = ?, large = ? WHERE id = ?",
            (row.records, row.untimed, row.uneven, row.large, row.id),
        )
        market.row, answer = row, {"market": row.name, "position": row.records, "records": len(rows)}
        if sent.key is not None:
            connection.execute(
                "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?, ?)",
                (row.id, sent.token, sent.key, sent.digest, json.dumps(answer), now),
            )
        return answer

    def change_settings(self, connection: sqlite3.Connection, name: str, content: dict[str, Any]) -> dict[str, Any]:
        """Other settings for a market: its records are learned again from the first that is in the log.

        Price levels may make a market: choices with prices can only come after them.
        """
        row, settings = market_row(connection, name), checked(content, self.seed)
        if row is None:
            if settings["price_levels"] is None or not self.new_markets:
                raise RefusedError(404, "There is no such market: send choices to it first.")
            self.limits.check_markets(connection.execute("SELECT count(*) FROM markets").fetchone()[0] + 1)
            _made(connection, name, settings)
            return settings
        check_history(settings, row.untimed, row.uneven, row.large)
        if settings["price_levels"] != row.settings.get("price_levels"):
            check_prices(settings, offers_of(connection, row.id).values())
        epoch = row.epoch + (settings != row.settings)
        connection.execute(
            "UPDATE markets SET settings = ?, epoch = ? WHERE id = ?", (to_text(settings), epoch, row.id)
        )
        self._known.pop(name, None)
        return settings


def _made(connection: sqlite3.Connection, name: str, settings: dict[str, Any]) -> int:
    """A new market, by its number."""
    made = connection.execute(
        "INSERT INTO markets (name, made, epoch, records, untimed, uneven, large, settings)"
        " VALUES (?, ?, 1, 0, 0, 0, 0, ?)",
        (name, time.time(), to_text(settings)),
    )
    return int(made.lastrowid or 0)


def _words(content: Any) -> tuple[Any, ...]:
    """The words of an offer that is a list of texts, or a mapping from texts to prices; nothing for others."""
    try:
        offered = content["offered"]
        if type(offered) is dict and all(type(price) in PRICES for price in offered.values()):
            return tuple(offered.items())
        if type(offered) is list:
            "".join(offered)  # the quickest way to see that all are texts
            return tuple(offered)
    except (TypeError, KeyError):
        pass
    return ()


def _answered(connection: sqlite3.Connection, market: int, sent: Sent) -> dict[str, Any] | None:
    """The answer that was given to the same key of the same sender."""
    found = connection.execute(
        "SELECT digest, answer FROM keys WHERE market = ? AND token = ? AND key = ? AND made > ?",
        (market, sent.token, sent.key, time.time() - KEYS_KEPT),
    ).fetchone()
    if found is None:
        return None
    if found[0] != sent.digest:
        raise RefusedError(422, "This Idempotency-Key came with another body before: use a new key for a new batch.")
    answer: dict[str, Any] = json.loads(found[1])
    return answer


def records_in(body: bytes, lines: bool, limits: ServiceLimits) -> list[Any]:
    """What a request says: an object with a list of records, or an object in every line."""
    try:
        text = body.decode("utf-8-sig")
        content = [loads(line) for line in text.split("\n") if line.strip()] if lines else loads(text)
    except (ValueError, RecursionError):
        kind = "JSON in every line" if lines else "JSON"
        raise RefusedError(422, f"The request is not {kind}: send records as the documentation shows.") from None
    if not lines:
        if isinstance(content, Twice) or not isinstance(content, dict) or set(content) != {"records"}:
            raise RefusedError(422, 'The request is not an object of "records" alone: send {"records": [...]}.')
        content = content["records"]
    if not isinstance(content, list) or not content:
        raise RefusedError(422, "There are no records in the request: send a list of at least one.")
    limits.check_records(len(content))
    return content
