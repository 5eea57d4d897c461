"""Check batches of choices against their market, and write them to the log, all or nothing."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from rankstream._core.types import Label
from rankstream.service.limits import RefusedError, ServiceLimits
from rankstream.service.settings import check_history, check_prices, checked, live_settings
from rankstream.service.storage.database import Database, upsert
from rankstream.service.storage.log import MarketRow, Offered, checksum, market_row, offer_text, offers_of, packed
from rankstream.streams.live_settings import RecordRules
from rankstream.streams.record import MAX_DETECTED_COUNT as LARGEST_COUNT
from rankstream.streams.record import Record
from rankstream.streams.sources.parser import amount_of, in_priced_offers, moment_of, record_from

T = TypeVar("T")
MAX_WRITTEN_BYTES = 32_000_000  # memory limit of the cache of offers as they were written, for all markets together
KEY_SECONDS = 7 * 86_400.0  # how long a repeated key means the same request; clients retry within days
AWAKE_STEPS = 500  # records or offers, after which the database hears of us; not tuned, 0.5 s on a busy machine
PRICES = (int, float, type(None))
Row = tuple[int, int, float, float | None]


class Sent(NamedTuple):
    """A batch, the token of its sender, and its idempotency key with the digest of the body."""

    market: str
    records: Sequence[Any]
    token: str = ""
    key: str | None = None
    digest: bytes = b""


@dataclass
class KnownMarket:
    """The writer's cache of a market: its row and its offers."""

    row: MarketRow
    rules: RecordRules
    numbers: dict[frozenset[Any], int] = field(default_factory=dict)
    places: dict[int, dict[Label, int]] = field(default_factory=dict)
    written: dict[frozenset[Any], int] = field(default_factory=dict)
    """Numbers of offers by the text they were sent in, in any order, so that these are checked once."""
    added: dict[int, Offered] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kinds: set[frozenset[Label]] = set()  # offers at price levels
        self.items: set[Label] = set()
        self.no_choice = self.row.settings["no_choice"]
        self.priced = None if self.rules.settings.levels.levels is None else in_priced_offers(no_choice=self.no_choice)

    def number_of(self, record: Record, limits: ServiceLimits) -> int:
        """Return the number of a record's offer, which may be new."""
        offered = dict(record.offered) if isinstance(record.offered, Mapping) else record.offered
        offer = key_of(offered)
        if offer not in self.numbers:
            limits.check_offer(offered)
            limits.check("offers_at_prices", len(self.numbers) + 1)
            self.add(len(self.numbers), offered)
            limits.check("offers", len(self.kinds))
            limits.check("market_items", len(self.items))
            self.added[self.numbers[offer]] = offered
        return self.numbers[offer]

    def add(self, number: int, offered: Offered) -> None:
        """Add an offer of the log."""
        self.numbers[key_of(offered)] = number
        self.items.update(offered)
        self.kinds.add(frozenset(self.rules.settings.levels.of(Record(offered, None)).offered))
        self.places[number] = {item: place for place, item in enumerate(offered)}


def key_of(offered: Offered) -> frozenset[Any]:
    """Return the identity of an offer: its items, and their prices."""
    return frozenset(offered.items() if isinstance(offered, dict) else offered)


def awake(connection: Database, things: Iterable[T]) -> Iterator[T]:
    """Yield things, and use the connection meanwhile: PostgreSQL ends a transaction that looks paused (``LIMITS``).

    Checking 10,000 new offers at prices, or reading as many, can take longer than that.
    """
    for number, thing in enumerate(things):
        if number % AWAKE_STEPS == AWAKE_STEPS - 1:
            connection.execute("SELECT 1")
        yield thing


class Ingest:
    """Writes batches within the transactions of the log's only writer; the parameters are those of ``hub.Options``."""

    def __init__(self, limits: ServiceLimits, new_markets: bool = True, seed: int = 0) -> None:
        self.limits, self.new_markets, self.seed = limits, new_markets, seed
        self._known: dict[str, KnownMarket] = {}
        self._written_bytes = 0

    def forget(self) -> None:
        """Clear the caches, after a failed transaction."""
        self._known.clear()
        self._written_bytes = 0

    def store(self, connection: Database, sent: Sent) -> dict[str, Any]:
        """Write a batch and return the answer; a batch with a known key gets its first answer again."""
        market = self._market(connection, sent.market)
        if sent.key is not None and market.row.id:
            before = _answered(connection, market.row.id, sent)
            if before is not None:
                return before
        try:
            rows = self._rows(connection, market, sent.records)
        except BaseException:
            self._known.pop(sent.market, None)
            raise
        return self._write(connection, market, rows, sent)

    def _market(self, connection: Database, name: str) -> KnownMarket:
        row, known = market_row(connection, name, lock=True), self._known.get(name)
        if known is not None and row is not None:  # other servers may have written since, even offers
            is_behind = row != known.row and offers_of(connection, row.id, len(known.numbers) - 1)
            if (row.id, row.epoch) == (known.row.id, known.row.epoch) and not is_behind:
                known.row = row
                return known
        self._known.pop(name, None)
        if row is None:
            if not self.new_markets:
                raise RefusedError(404, "Unknown market, and this server creates none: use one of GET /v1/markets.")
            self.limits.check("markets", connection.execute("SELECT count(*) FROM markets").fetchone()[0] + 1)
            row = MarketRow(0, name, time.time(), 1, 0, 0, 0, 0, checked({}, self.seed), 0)
        offers = offers_of(connection, row.id)
        items = {item for offer in offers.values() for item in offer}
        known = KnownMarket(row, RecordRules(live_settings(row.settings), items))
        for number, offered in awake(connection, offers.items()):
            known.add(number, offered)
        if row.id:
            self._known[name] = known
        return known

    def _rows(self, connection: Database, market: KnownMarket, records: Sequence[Any]) -> list[Row]:
        """Return the records in the form of the log; a RefusedError names the first bad one."""
        rows: list[Row] = []
        words: dict[int, frozenset[Any]] = {}  # by the id of the offer, which several records may share
        for number, content in enumerate(awake(connection, records)):
            try:
                offered = id(content["offered"]) if type(content) is dict and "offered" in content else -1
                if offered not in words:
                    words[offered] = _words(content)
                rows.append(self._row(market, content, words[offered]))
            except ValueError as error:
                raise RefusedError(
                    422, f"Record {number} is wrong: {error}. Nothing of the batch was stored."
                ) from None
        return rows

    def _row(self, market: KnownMarket, content: Any, words: frozenset[Any]) -> Row:
        number = market.written.get(words, -1)
        places = market.places.get(number, {})
        chosen = content["chosen"] if number >= 0 and "chosen" in content else None
        if isinstance(chosen, str) and chosen in places and type(content) is dict:
            count, moment = amount_of(content.get("count", 1)), moment_of(content.get("time"))
            market.rules.check_amount(Record((chosen,), chosen, count, moment))
            return number, places[chosen], count, moment
        record = market.rules.checked(record_from(content, None, market.no_choice, priced=market.priced))
        number = market.number_of(record, self.limits)
        if words and words not in market.written:
            self._remember(market, words, number)
        return number, market.places[number][record.chosen], record.times, record.time

    def _remember(self, market: KnownMarket, words: frozenset[Any], number: int) -> None:
        """Cache the text of an offer; clear the caches of all markets if they take too much memory."""
        texts = [word if isinstance(word, str) else word[0] for word in words]
        self._written_bytes += sum(map(len, texts)) + 150 * len(texts)
        if self._written_bytes > MAX_WRITTEN_BYTES:
            self._written_bytes = 0
            for known in self._known.values():
                known.written.clear()
        market.written[words] = number

    def _write(self, connection: Database, market: KnownMarket, rows: list[Row], sent: Sent) -> dict[str, Any]:
        row, now = market.row, connection.now()  # the clocks of servers may differ
        if not row.id:
            row = row._replace(id=make_market(connection, row.name, row.settings))
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
            body = packed(rows)
            connection.execute(
                "INSERT INTO batches (market, position, records, arrived, body, checksum) VALUES (?, ?, ?, ?, ?, ?)",
                (row.id, row.records, len(rows), now, body, checksum(body)),
            )
        connection.execute(
            "UPDATE markets SET records = ?, untimed = ?, uneven = ?, large = ? WHERE id = ?",
            (row.records, row.untimed, row.uneven, row.large, row.id),
        )
        market.row, answer = row, {"market": row.name, "position": row.records, "records": len(rows)}
        if sent.key is not None:
            upsert(connection, "keys", (row.id, sent.token, sent.key, sent.digest, json.dumps(answer), now))
        return answer

    def change_settings(self, connection: Database, name: str, content: dict[str, Any]) -> dict[str, Any]:
        """Change some settings of a market, None to the default; its model is rebuilt from the log.

        Price levels may create a market, because choices with prices can only follow them.
        """
        row = market_row(connection, name, lock=True)
        merged = {**({} if row is None else row.settings), **content}
        settings = checked({key: value for key, value in merged.items() if value is not None}, self.seed)
        if row is None:
            if settings["price_levels"] is None or not self.new_markets:
                raise RefusedError(404, "Unknown market: send choices to it first.")
            self.limits.check("markets", connection.execute("SELECT count(*) FROM markets").fetchone()[0] + 1)
            make_market(connection, name, settings)
            return settings
        check_history(settings, row.untimed, row.uneven, row.large)
        if settings["price_levels"] != row.settings.get("price_levels"):
            check_prices(settings, offers_of(connection, row.id).values())
        epoch = row.epoch + (settings != row.settings)
        connection.execute(
            "UPDATE markets SET settings = ?, epoch = ? WHERE id = ?", (json.dumps(settings), epoch, row.id)
        )
        self._known.pop(name, None)
        return settings


def make_market(connection: Database, name: str, settings: dict[str, Any] | None = None) -> int:
    """Create a market, with default settings if none are given; return its id."""
    made = connection.execute(
        "INSERT INTO markets (name, made, epoch, records, untimed, uneven, large, settings)"
        " VALUES (?, ?, 1, 0, 0, 0, 0, ?) ON CONFLICT (name) DO NOTHING",
        (name, time.time(), json.dumps(checked({}) if settings is None else settings)),
    )
    if not made.rowcount:
        raise RefusedError(503, "Another server has just made this market: send this again.", Retry_After="1")
    return int(connection.execute("SELECT id FROM markets WHERE name = ?", (name,)).fetchone()[0])


def _words(content: Any) -> frozenset[Any]:
    """Return the cache key of an offer that is a list of texts or a mapping to prices; empty for others."""
    try:
        offered = content["offered"]
        if type(offered) is dict and all(type(price) in PRICES for price in offered.values()):
            return frozenset(offered.items())
        if type(offered) is list:
            "".join(offered)  # the fastest check that all items are text
            words = frozenset(offered)
            return words if len(words) == len(offered) else frozenset()  # a repeated item is an error
    except (TypeError, KeyError):
        pass
    return frozenset()


def _answered(connection: Database, market: int, sent: Sent) -> dict[str, Any] | None:
    row = connection.execute(
        "SELECT digest, answer, made FROM keys WHERE market = ? AND token = ? AND key = ?",
        (market, sent.token, sent.key),
    ).fetchone()
    if row is None or row[2] <= connection.now() - KEY_SECONDS:
        return None
    digest, answer, _ = row
    if digest != sent.digest:
        raise RefusedError(422, "This Idempotency-Key was used with another body: use a new key for a new batch.")
    return dict(json.loads(answer))
