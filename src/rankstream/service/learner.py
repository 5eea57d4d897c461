"""The learner: a process that follows the log from its own position, and publishes a model of every market."""

import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

from rankstream._core.files import own_folder, write_whole
from rankstream.service import store
from rankstream.service.child import Worker, lower_priority
from rankstream.service.journal import note
from rankstream.service.log import MarketRow, Offered, batches_after, existing_log, market_rows
from rankstream.service.settings import for_live
from rankstream.streams.background import BackgroundLive, RefreshJob
from rankstream.streams.follower import BATCH

PAUSE, EVERY = 0.1, 0.5  # seconds between looks at the log, and between steps where fewer than BATCH records wait
IN_MEMORY = 20  # markets; others are read again when choices come
Refresh = Callable[[RefreshJob], Any]


@dataclass
class FollowedMarket:
    """A market that is followed: the state of ``epoch``, and whether something of it is not saved yet."""

    learning: BackgroundLive
    epoch: int
    offers: dict[int, Offered] = field(default_factory=dict)
    is_saved: bool = True
    is_stuck: bool = False
    used: float = 0.0


class LogLearner:
    """Follows all markets of a folder, whose log must be there; only one may do so at a time.

    State, position and model of a market are saved in one transaction. So whenever this ends, however it ends, the next
    one goes on behind the last record that is in the state: every record counts exactly once.

    Parameters
    ----------
    folder : Path
        The folder of the service.
    refresh : callable
        Does a ``RefreshJob``, in another process: it is called in a thread.

    """

    def __init__(self, folder: Path, refresh: Refresh) -> None:
        self.log, self.store, self.refresh = existing_log(folder), store.open_store(folder), refresh
        self.markets: dict[int, FollowedMarket] = {}
        self._threads = ThreadPoolExecutor(1)
        self._refreshing: tuple[int, FollowedMarket, Future[Any]] | None = None
        # markets that are not in memory, and may be due for a refresh
        self._owed = dict.fromkeys(m for m, one in store.served(self.store).items() if one.facts["kind"] == "sparse")
        self._last = 0.0

    def close(self) -> None:
        """Let go of everything; what is not saved is learned again."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.log.close()
        self.store.close()

    def step(self, at_once: bool = False) -> bool:
        """Learn what has come, if it is time; whether something was learned."""
        rows = market_rows(self.log)
        self._drop_others({row.id for row in rows})
        at = store.positions(self.store)
        behind = [row for row in rows if self._waits(row, at.get(row.id, (0, 0)))]
        waiting = sum(row.records - at.get(row.id, (0, 0))[1] for row in behind)
        self._take_refreshed()
        is_time = at_once or waiting >= BATCH or time.monotonic() - self._last >= EVERY
        if is_time:
            self._last = time.monotonic()
            for row in behind:
                self._guarded(row)
        self._begin_refresh(rows)
        self._save_all()
        self._make_room()
        return is_time and bool(behind)

    def _waits(self, row: MarketRow, at: tuple[int, int]) -> bool:
        """Whether a market has records that are not learned, or settings that are not followed yet."""
        followed = self.markets.get(row.id)
        if followed is not None and followed.is_stuck and followed.epoch == row.epoch:
            return False
        return at != (row.epoch, row.records) and bool(row.records)

    def _drop_others(self, markets: set[int]) -> None:
        for market in set(self.markets) - markets:
            del self.markets[market]
        store.drop_others(self.store, markets)

    def _guarded(self, row: MarketRow) -> None:
        """Learn of one market; what is wrong with it keeps no other from learning."""
        try:
            self._learn(self._followed(row), row)
        except (sqlite3.Error, OSError):
            raise
        except Exception as error:
            self.markets[row.id] = FollowedMarket(BackgroundLive({}), row.epoch, is_stuck=True)
            note("a market cannot be learned", market=row.id, kind=type(error).__name__)

    def _followed(self, row: MarketRow) -> FollowedMarket:
        """The market as it was left, or from the start where its settings are new."""
        followed = self.markets.get(row.id)
        if followed is None or followed.epoch != row.epoch:
            learning = self._resumed(row) or BackgroundLive(for_live(row.settings))
            followed = self.markets[row.id] = FollowedMarket(learning, row.epoch)
        followed.used = time.monotonic()
        return followed

    def _resumed(self, row: MarketRow) -> BackgroundLive | None:
        """The state that was saved, if it is of these settings and this log, and can be read."""
        kept = store.learned(self.store, row.id)
        if kept is None or kept.epoch != row.epoch or kept.position > row.records:
            return None
        try:
            return BackgroundLive.from_bytes(kept.state)
        except (ValueError, LookupError, TypeError) as error:
            note("a state cannot be read and is learned again", market=row.id, kind=type(error).__name__)
            return None

    def _learn(self, followed: FollowedMarket, row: MarketRow) -> None:
        """Batches of some records, until all are learned or it is time to save."""
        began, learning = time.monotonic(), followed.learning
        while learning.position < row.records and time.monotonic() - began < EVERY:
            batches = batches_after(self.log, row.id, learning.position, followed.offers, BATCH)
            if not batches:
                break
            followed.is_saved = False
            learning.observe([record for batch in batches for record in batch.records], batches[-1].position)

    def _begin_refresh(self, rows: list[MarketRow]) -> None:
        """Have the model that is due made, one at a time, the market that learned least lately first."""
        if self._refreshing is not None:
            return
        if self._owed and not any(one.learning.is_due for one in self.markets.values()):
            owed = self._owed.popitem()[0]
            for row in rows:
                if row.id == owed and row.settings.get("served") != "sparse":
                    self._followed(row)
        for market, followed in sorted(self.markets.items(), key=lambda pair: pair[1].used):
            job = followed.learning.job()
            if job is not None:
                self._refreshing = market, followed, self._threads.submit(self.refresh, job)
                return

    def _take_refreshed(self) -> None:
        if self._refreshing is None or not self._refreshing[2].done():
            return
        market, followed, result = self._refreshing
        self._refreshing = None
        failed = result.exception() is not None or result.result() is None
        if failed:
            note("a model could not be refreshed", market=market)
        followed.learning.take(None if failed else result.result())
        followed.is_saved = failed and followed.is_saved

    def _save_all(self) -> None:
        for market, followed in self.markets.items():
            if not followed.is_saved:
                self._save(market, followed)

    def _save(self, market: int, followed: FollowedMarket) -> None:
        learning = followed.learning
        state = store.Learned(followed.epoch, learning.position, learning.to_bytes())
        if learning.ready:
            facts = facts_of(learning)
            store.keep(self.store, market, state, learning.model.to_text(), facts, point_of(learning, facts))
        else:
            store.keep(self.store, market, state, None, None)
        followed.is_saved = True

    def _make_room(self) -> None:
        busy = None if self._refreshing is None else self._refreshing[0]
        idle = sorted((one.used, market) for market, one in self.markets.items() if one.is_saved and market != busy)
        for _, market in idle[: max(0, len(self.markets) - IN_MEMORY)]:
            if self.markets.pop(market).learning.is_due:
                self._owed[market] = None

    @property
    def is_refreshing(self) -> bool:
        """Whether a model is being made elsewhere."""
        return self._refreshing is not None


def facts_of(learning: BackgroundLive) -> dict[str, Any]:
    """What is known about the model that is served."""
    certificate, counts = learning.certificate, learning.live.counts
    assert counts is not None
    return {
        "kind": learning.serves,
        "position": learning.known,
        "since": learning.known_since,
        "learned": learning.position,
        "offers": counts.assortments.n_offers,
        "items": learning.live.n_items,
        "choices": float(counts.totals.sum()),
        "distance": certificate.upper,
        "least": certificate.lower,
        "gap": certificate.gap,
        "alarms": [{"choice": one.record, "since": one.since} for one in learning.live.alarms],
    }


def point_of(learning: BackgroundLive, facts: dict[str, Any]) -> store.CoursePoint:
    """Where the market is on its course: the records so far, and the choices, which is what alarms are numbered by."""
    detector = learning.live.detector
    choices = learning.position if detector is None else detector.records + learning.live.waiting
    return store.CoursePoint(learning.position, time.time(), float(choices), facts["distance"], facts["gap"])


def learn(folder: Path, refresh: Refresh, stop: Event) -> None:
    """Follow the log until told to stop, then save; a disk that is full is tried again and again."""
    (folder / "learner").mkdir(exist_ok=True)
    with ExitStack() as stack:
        while not stop.is_set():
            try:
                stack.enter_context(own_folder(folder / "learner"))
                break
            except ValueError:  # the learner of a server that was killed goes on to the end of its step
                stop.wait(PAUSE)
        write_whole(folder / "learner" / "pid", str(os.getpid()), sync=False)
        learner = LogLearner(folder, refresh)
        stack.callback(learner.close)
        note("the learner follows the log")
        while not stop.is_set():
            try:
                went_on = learner.step()
            except (sqlite3.OperationalError, OSError) as error:
                note("what was learned cannot be saved yet", kind=type(error).__name__)
                stop.wait(1.0)
                continue
            if not went_on:
                stop.wait(PAUSE)


def main() -> None:
    """The process: it ends when whoever started it closes its standard input, or is gone."""
    folder, stop = Path(sys.argv[1]), Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this one ends it
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    def listen() -> None:
        sys.stdin.buffer.read()
        stop.set()

    Thread(target=listen, daemon=True).start()
    lower_priority(5)
    refresher = Worker("child")
    try:
        learn(folder, refresher.ask, stop)
    except Exception as error:
        note("the learner failed", kind=type(error).__name__)
        sys.exit(1)
    finally:
        refresher.close()
    note("the learner has saved everything")
