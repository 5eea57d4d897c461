"""Leases: each market of a shared database is learned by one learner at a time, and a dead learner is replaced.

Every learner renews one row with its name each second. All learners compute the same owner of each market from the
names that are alive, so they need not talk. A learner takes a market that it owns when the one that held it has
released it, or is dead. Each time, the fence of the lease grows; ``states.save_market`` refuses an older one.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from secrets import token_hex
from threading import Event, Thread

from rankstream.service.journal import note
from rankstream.service.storage.database import Database, transaction, upsert

LEASE_SECONDS = 5.0  # without a sign of life, after which a learner counts as dead; with the rest, 10 s to replace it
BEAT_SECONDS = 1.0  # between two signs of life


class Leases:
    """The leases of one learner, in the database of what was learned, for the markets of a log."""

    def __init__(self, database: Database, log: Database) -> None:
        self.database, self.log, self.holder = database, log, token_hex(8)
        self.held: dict[int, int] = {}
        """The fences of the markets that this learner holds, by market."""

    def beat(self) -> None:
        """Give a sign of life, take and release markets, and look up which are held."""
        database, now = self.database, self.database.now()
        markets = self.log.execute("SELECT id FROM markets ORDER BY id").fetchall()
        with transaction(database):
            upsert(database, "learners", (self.holder, now + LEASE_SECONDS))
            database.execute("DELETE FROM learners WHERE until < ?", (now - 60 * LEASE_SECONDS,))
            living = learners_alive(database, now)
            leases = dict(database.execute("SELECT market, holder FROM leases ORDER BY market").fetchall())
            for (market,) in markets:
                is_owned, before = owner_of(market, living) == self.holder, leases.get(market)
                if before == self.holder and not is_owned:
                    self._change(market, before, "")
                elif before is None and is_owned:
                    insert = "INSERT INTO leases VALUES (?, ?, 1) ON CONFLICT (market) DO NOTHING"
                    database.execute(insert, (market, self.holder))
                elif before is not None and is_owned and before not in living:
                    self._change(market, before, self.holder)
            held = database.execute("SELECT market, fence FROM leases WHERE holder = ?", (self.holder,)).fetchall()
        self.held = dict(held)

    def _change(self, market: int, before: str, after: str) -> None:
        """Give a lease from one holder to another, unless somebody else did."""
        change = "UPDATE leases SET holder = ?, fence = fence + 1 WHERE market = ? AND holder = ?"
        self.database.execute(change, (after, market, before))

    def keep(self, stop: Event) -> Thread:
        """Renew the leases in a thread until ``stop`` is set."""

        def renew() -> None:
            while not stop.wait(BEAT_SECONDS):
                try:
                    self.beat()
                except sqlite3.Error as error:  # the database is out of reach: saving will fail, too
                    note("the leases could not be renewed", kind=type(error).__name__)

        thread = Thread(target=renew, name="rankstream leases", daemon=True)
        thread.start()
        return thread

    def end(self) -> None:
        """Release everything, so that other learners need not wait."""
        with suppress(sqlite3.Error), transaction(self.database):  # otherwise they end with their time
            self.database.execute("UPDATE leases SET holder = '' WHERE holder = ?", (self.holder,))
            self.database.execute("DELETE FROM learners WHERE holder = ?", (self.holder,))
        self.held = {}


def learners_alive(database: Database, now: float | None = None) -> set[str]:
    """Return the names of the learners that are alive; none was so far ahead before the clock was set back."""
    since = database.now() if now is None else now
    query = "SELECT holder FROM learners WHERE until > ? AND until < ?"
    return {holder for (holder,) in database.execute(query, (since, since + 2 * LEASE_SECONDS))}


def owner_of(market: int, living: Iterable[str]) -> str:
    """Return the learner that should learn a market; few markets change it when a learner comes or goes.

    >>> [owner_of(market, ["left", "right"]) for market in range(6)]
    ['left', 'left', 'left', 'right', 'right', 'left']
    """
    return max(living, key=lambda holder: sha256(f"{holder} {market}".encode()).digest(), default="")
