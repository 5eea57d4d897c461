"""The learner: a process that follows the log and publishes a model of every market."""

import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from rankstream._core.files import own_folder, write_whole
from rankstream._core.memory import resident_memory
from rankstream._core.stderr import tolerate_stderr
from rankstream.service.journal import note
from rankstream.service.processes.item_list import make_listing
from rankstream.service.processes.worker import Worker, follow_parent, lower_priority
from rankstream.service.settings import for_live
from rankstream.service.storage import log
from rankstream.service.storage import states as store
from rankstream.service.storage.database import Place, place_of
from rankstream.service.storage.leases import Leases
from rankstream.service.storage.log import MarketRow, Offered
from rankstream.service.storage.publication import open_learned
from rankstream.streams.background import BackgroundLive, RefreshJob
from rankstream.streams.sources.follower import BATCH_RECORDS

PAUSE, EVERY = 0.1, 0.5  # seconds between looks at the log, and between steps where fewer than BATCH_RECORDS wait
CYCLE_SECONDS = 5.0  # in which every market with new records has a turn (benchmarks/learner_memory.py)
SLOW_SECONDS = 2.0  # of one batch of records, after which a market gets smaller ones: less than a cycle; not tuned
MAX_RECORDS_AT_ONCE = 20_000  # two batches of 10,000 as a server takes them: memory for parsed records is bounded
MIN_EFFORT = 0.05  # share of the rounds of a batch that are played however little time there is (as CYCLE_SECONDS)
PROOF_REST, WEIGHING_REST = 9.0, 2.0  # times as long as these took, nothing of the kind is done where models grow old
IN_MEMORY = 20  # markets; others are read again when choices come. Not tuned: about 45 MB each
MAX_MEMORY = 1_000_000_000  # bytes of this process above which markets leave memory (as CYCLE_SECONDS: 445 MB for ten)
STUCK_SECONDS = 300.0  # after which a market that could not be learned is tried again; not tuned, spares the others
Refresh = Callable[[RefreshJob], Any]


@dataclass
class FollowedMarket:
    """A market in memory: its state for the settings of ``epoch``, and whether that is saved."""

    learning: BackgroundLive
    epoch: int
    offers: dict[int, Offered] = field(default_factory=dict)
    fence: int | None = None  # of the lease under which it was read
    is_saved: bool = True
    is_stuck: bool = False
    used: float = 0.0
    chunk: int = BATCH_RECORDS  # maximum number of records to learn at a time
    seconds: float = 0.0  # duration of the last batch
    rests_until: float = 0.0  # after a turn that took too long: when the next one may start, if others wait


class LogLearner:
    """Learns all markets of a folder from its log, or those of a shared database for which it has ``leases``.

    Only one learner of a folder may run at a time.

    State, position and model of a market are saved in one transaction. However a learner ends, the next one continues
    after the last record in the state: every record counts exactly once.

    Fresh models take precedence over effort per record. Every market with new records gets a turn within 5 seconds, and
    learns all of them: in larger batches if more are waiting, with fewer rounds each if those take too long. Old models
    are refitted before others are improved, and proofs take at most a tenth of the time while records are waiting.

    ``refresh`` runs a ``RefreshJob`` in another process; it is called in a thread. After ``stop`` is set, a step ends
    as soon as possible, and saves.
    """

    def __init__(
        self, folder: Place, refresh: Refresh, stop: Event | None = None, leases: Leases | None = None
    ) -> None:
        self.stop, self.leases = stop or Event(), leases
        self.folder, self.log, self.refresh = folder, log.existing_log(folder), refresh
        try:
            self.store, self._file = open_learned(folder, self.log), store.file_of(folder)
        except BaseException:
            self.log.close()
            raise
        store.forget_unfinished(self.store)
        self.markets: dict[int, FollowedMarket] = {}
        self._threads = ThreadPoolExecutor(1)
        self._refreshing: tuple[int, FollowedMarket, Future[Any], float | None] | None = None
        self._proofs_rest = self._weighing_rests = 0.0  # times until which there are none
        self._is_busy = False  # whether more records wait than are learned at once
        self._owed = self._coarse()  # markets that are not in memory, and may be due for a refresh
        self._last = 0.0
        self._held: dict[int, int] = {}  # the leases at the last step

    def close(self) -> None:
        """Close all files; what is not saved will be learned again."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.log.close()
        self.store.close()

    def step(self, at_once: bool = False) -> bool:
        """Learn new records, if it is time; return whether any were learned."""
        if store.file_of(self.folder) != self._file:
            raise ValueError(f"{store.NAME} was replaced: restart the learner.")
        rows = log.market_rows(self.log)
        known = {row.id for row in rows}
        if not self.store.is_shared:
            store.drop_others(self.store, known)
        else:
            store.forget_unfinished(self.store)  # imports of servers that have ended
        if self.leases is not None:
            held = self.leases.held
            if held.keys() - self._held.keys():
                self._owed |= self._coarse()
            self._held, rows = held, [row for row in rows if row.id in held]
            known = {row.id for row in rows}
        held_now = {market: self._held.get(market) for market in known}
        self.markets = {of: one for of, one in self.markets.items() if held_now.get(of, -1) == one.fence}
        at = store.positions(self.store)
        behind = [row for row in rows if self._waits(row, at.get(row.id, (0, 0)))]
        waiting = sum(row.records - at.get(row.id, (0, 0))[1] for row in behind)
        went_on, self._is_busy = False, waiting >= BATCH_RECORDS
        if at_once or waiting >= BATCH_RECORDS or time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            for row in behind:
                # a market that took long pauses while others have their turn
                rests_until = self.markets[row.id].rests_until if row.id in self.markets else 0.0
                is_its_turn = at_once or len(behind) == 1 or time.monotonic() >= rests_until
                if is_its_turn and not self.stop.is_set():
                    self._guarded(row, min(EVERY, CYCLE_SECONDS / len(behind)))
                    self._publish(rows)
                    went_on = True
        unproven = [followed for followed in self.markets.values() if followed.learning.live.proof.is_owed]
        if unproven and not behind:
            unproven[0].is_saved = False  # saving it computes the proof that was postponed
        self._publish(rows)
        self._make_room()
        return went_on

    def _coarse(self) -> dict[int, None]:
        """Return the markets with a coarse model."""
        published = store.published_models(self.store)
        return dict.fromkeys(market for market, model in published.items() if model.facts["kind"] == "sparse")

    def _publish(self, rows: list[MarketRow]) -> None:
        """Use a refreshed model, start the next refresh, and save what is new."""
        self._take_refreshed()
        if not self.stop.is_set():
            self._begin_refresh(rows)
        for market, followed in list(self.markets.items()):
            try:
                if not followed.is_saved:
                    self._save(market, followed)
            except store.LeaseLostError:
                note("another learner has taken a market", market=market)
                del self.markets[market]

    def _waits(self, row: MarketRow, at: tuple[int, int]) -> bool:
        followed = self.markets.get(row.id)
        if followed is not None and followed.is_stuck and followed.epoch == row.epoch:
            return time.monotonic() - followed.used > STUCK_SECONDS
        return at != (row.epoch, row.records) and bool(row.records)

    def _guarded(self, row: MarketRow, turn: float) -> None:
        """Learn one market; if it fails, the others continue."""
        try:
            self._learn(self._followed(row), row, turn)
        except (sqlite3.Error, OSError):
            raise
        except Exception as error:
            stuck = FollowedMarket(BackgroundLive({}), row.epoch, fence=self._held.get(row.id), is_stuck=True)
            stuck.used, self.markets[row.id] = time.monotonic(), stuck
            store.set_problem(self.store, row.id, row.epoch, problem_of(error))
            note("a market cannot be learned", market=row.id, kind=type(error).__name__)

    def _followed(self, row: MarketRow) -> FollowedMarket:
        """Return the market from memory or its saved state, or a new one if its settings are new."""
        followed = self.markets.get(row.id)
        if followed is None or followed.epoch != row.epoch or followed.is_stuck:
            learning = self._resumed(row) or BackgroundLive(for_live(row.settings))
            learning.live.no_choice = row.settings.get("no_choice")
            followed = self.markets[row.id] = FollowedMarket(learning, row.epoch, fence=self._held.get(row.id))
        followed.used = time.monotonic()
        return followed

    def _resumed(self, row: MarketRow) -> BackgroundLive | None:
        """Return the saved state, if it has these settings, matches the log, and can be read."""
        saved = store.load_market(self.store, row.id)
        if saved is None or saved.epoch != row.epoch:
            return None
        if saved.position > row.records and not self.store.is_shared:
            store.forget(self.store, row.id)  # its records are not in the log
            return None
        try:
            return BackgroundLive.from_bytes(saved.state)
        except (ValueError, LookupError, TypeError) as error:
            note("a saved state cannot be read; rebuilding it from the log", market=row.id, kind=type(error).__name__)
            return None

    def _learn(self, followed: FollowedMarket, row: MarketRow, turn: float) -> None:
        """Learn batches of records until all are learned or the turn is over; batches grow if many records wait."""
        began, learning = time.monotonic(), followed.learning
        while learning.position < row.records and time.monotonic() - began < turn and not self.stop.is_set():
            left, waiting = turn - (time.monotonic() - began), row.records - learning.position
            batches_left = max(1, int(left / max(followed.seconds, 1e-3)))
            chunk = min(followed.chunk, max(BATCH_RECORDS, -(-waiting // batches_left)))
            batches = log.batches_after(self.log, row.id, learning.position, followed.offers, chunk)
            if not batches:
                break
            started, followed.is_saved = time.monotonic(), False
            records = [record for batch in batches for record in batch.records]
            learning.observe(records, batches[-1].position, batches[-1].arrived)
            followed.seconds = max(time.monotonic() - started, 1e-3)
            learning.live.effort = min(1.0, max(MIN_EFFORT, learning.live.effort * turn / followed.seconds))
            is_slow = followed.seconds > SLOW_SECONDS
            followed.chunk = max(1, chunk // 2) if is_slow else min(MAX_RECORDS_AT_ONCE, 2 * followed.chunk)
        took = time.monotonic() - began
        followed.rests_until = time.monotonic() + took if took > EVERY else 0.0

    def _begin_refresh(self, rows: list[MarketRow]) -> None:
        """Start the refresh of one model that is due, first of those that are old or not published yet.

        A refresh that weighs the guides anew takes longest. It comes first now and then, or it would never run under
        load.
        """
        if self._refreshing is not None:
            return
        if self._owed and not any(followed.learning.due for followed in self.markets.values()):
            owed = self._owed.popitem()[0]
            for row in rows:
                if row.id == owed and row.settings.get("served") != "sparse":
                    self._followed(row)
        due = [market for market, followed in self.markets.items() if followed.learning.due]
        if not due:
            return
        of = {market: self.markets[market].learning for market in due}
        due.sort(key=lambda market: (not of[market].needs_refit, of[market].known_since))
        weigh = [market for market in due if of[market].due == "anew"]
        if weigh and (not of[due[0]].needs_refit or time.monotonic() >= self._weighing_rests):
            market, job = weigh[0], of[weigh[0]].job()
        else:
            market, job = due[0], of[due[0]].job("again")
        assert job is not None
        weighed_from = time.monotonic() if job.how == "anew" else None
        self._refreshing = market, self.markets[market], self._threads.submit(self.refresh, job), weighed_from

    def _take_refreshed(self) -> None:
        if self._refreshing is None or not self._refreshing[2].done():
            return
        market, followed, result, weighed_from = self._refreshing
        self._refreshing = None
        if weighed_from is not None:
            self._weighing_rests = time.monotonic() + WEIGHING_REST * (time.monotonic() - weighed_from)
        failed = result.exception() is not None or result.result() is None
        if failed:
            note("a model could not be refreshed", market=market)
        followed.learning.take(None if failed else result.result())
        followed.is_saved = failed and followed.is_saved

    def _save(self, market: int, followed: FollowedMarket) -> None:
        learning = followed.learning
        publishes = learning.ready and not learning.is_catching_up
        if publishes:
            learning.publish()
        state = store.Learned(followed.epoch, learning.position, learning.to_bytes())
        if publishes:
            began = time.monotonic()
            learning.live.proof.is_paused = self._is_busy and began < self._proofs_rest
            facts = facts_of(learning)
            if not learning.live.proof.is_paused:
                self._proofs_rest = time.monotonic() + PROOF_REST * (time.monotonic() - began)
            model, detector = learning.model, learning.live.detector
            # alarms are numbered by choices, and the course by records
            choices = learning.position if detector is None else detector.records + learning.live.waiting
            point = store.CoursePoint(learning.position, time.time(), float(choices), facts["distance"], facts["gap"])
            listing = make_listing(model, learning.live.counts)
            store.save_market(self.store, market, state, model.to_text(), facts, point, listing, followed.fence)
        else:
            store.save_market(self.store, market, state, None, None, fence=followed.fence)
        followed.is_saved = True

    def _make_room(self) -> None:
        busy = None if self._refreshing is None else self._refreshing[0]
        idle = [market for market, followed in self.markets.items() if followed.is_saved and market != busy]
        for market in sorted(idle, key=lambda market: self.markets[market].used):
            if len(self.markets) <= IN_MEMORY and (len(self.markets) == 1 or resident_memory() <= MAX_MEMORY):
                return
            if self.markets.pop(market).learning.due:
                self._owed[market] = None


def problem_of(error: Exception) -> str:
    """Return a message about a market that cannot be learned, with a remedy.

    >>> problem_of(MemoryError()).partition(",")[0]
    'This market cannot be learned: not enough memory. Give the server more memory and restart it'
    """
    if isinstance(error, MemoryError):
        why = "not enough memory. Give the server more memory and restart it"
    elif isinstance(error, log.DamagedBatchError):
        why = f"{str(error).rstrip('.')}. Restore a backup"
    else:
        why = f"the learner failed ({type(error).__name__}). Restart the server"
    return f"This market cannot be learned: {why}, or remove the market with 'rankstream serve purge'."


def facts_of(learning: BackgroundLive) -> dict[str, Any]:
    """Return the facts about the published model."""
    certificate, counts = learning.certificate, learning.live.counts
    assert counts is not None
    alarms = [{"choice": alarm.record, "since": alarm.since} for alarm in learning.live.alarms]
    detector = learning.live.detector
    return {
        "kind": learning.serves, "position": learning.known, "since": learning.known_since,
        "learned": learning.position, "offers": counts.assortments.n_offers, "items": learning.live.n_items,
        "choices": float(counts.totals.sum()), "distance": certificate.upper, "least": certificate.lower,
        "gap": certificate.gap, "alarms": alarms, "detects": detector is not None and detector.stopped is None,
    }  # fmt: skip


def learn(place: Place, refresh: Refresh, stop: Event) -> None:
    """Follow the log until ``stop`` is set, then save; retry while the disk is full."""
    with ExitStack() as stack:
        if isinstance(place, str):
            _learn_shared(place, refresh, stack, stop)
            return
        (place / "learner").mkdir(exist_ok=True)
        while not stop.is_set():
            try:
                stack.enter_context(own_folder(place / "learner"))
                break
            except ValueError:  # the learner of a killed server is still finishing its step
                stop.wait(PAUSE)
        write_whole(place / "learner" / "pid", str(os.getpid()), sync=False)
        try:
            _follow(LogLearner(place, refresh, stop), stack, stop)
        except sqlite3.DatabaseError as error:
            if log.is_damage(error):
                store.put_aside(place, "damaged")  # the next learner rebuilds it
            raise


def _learn_shared(url: str, refresh: Refresh, stack: ExitStack, stop: Event) -> None:
    """Follow the log of a database for the markets that are leased, as soon as it can be reached."""
    while not stop.is_set():
        try:
            database = store.open_store(url)
            leases = Leases(database, database)
            leases.beat()
            learner = LogLearner(url, refresh, stop, leases)
        except sqlite3.OperationalError as error:
            note("the database cannot be reached; trying again", kind=type(error).__name__)
            stop.wait(1.0)
        else:
            stack.callback(leases.end)
            stack.callback(leases.keep(stop).join)
            _follow(learner, stack, stop)


def _follow(learner: LogLearner, stack: ExitStack, stop: Event) -> None:
    stack.callback(learner.close)
    store.set_problem(learner.store, 0, 0, None)
    note("the learner is running")
    while not stop.is_set():
        try:
            went_on = learner.step()
        except log.DamagedLogError as error:
            store.set_problem(learner.store, 0, 0, str(error))  # all requests are rejected until a restart
            note("the log is damaged")
            stop.wait()
        except (sqlite3.OperationalError, OSError) as error:
            note("saving the models failed; retrying", kind=type(error).__name__)
            stop.wait(1.0)
        else:
            stop.wait(0.0 if went_on else PAUSE)


def main() -> None:
    """Run the learner until its parent process closes its standard input, or is gone."""
    place, stop = place_of(sys.argv[1]), Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    tolerate_stderr()
    follow_parent(stop.set)
    lower_priority(5)
    refresher = Worker("processes.worker")
    try:
        learn(place, refresher.ask, stop)
    except Exception as error:
        note("the learner failed", kind=type(error).__name__)
        sys.exit(1)
    finally:
        refresher.close()
    note("the learner has stopped; everything is saved")
