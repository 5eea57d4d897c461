"""The only thread that writes to the log: queued writes are committed together, and answered once on disk."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from rankstream.service.limits import LostCommitError, RefusedError
from rankstream.service.storage.database import Database, transaction
from rankstream.service.storage.log import DAMAGED, is_damage

R = TypeVar("R")
Work = Callable[[Database], R]
MAX_GROUP_SIZE = 200  # batches in one transaction, as many as may wait (``ServiceLimits.waiting``)
Waiting = tuple[Work[Any], "Future[Any]", str]  # what is to be written, who waits for its result, and the market
LOST = "The database was lost, and this may be stored: send it again with the same Idempotency-Key."
FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


class Writer:
    """Runs functions that write, in transactions that queued functions share.

    A function that raises ``RefusedError`` must not have written anything. If a transaction fails, nothing is stored,
    all of its functions fail, and ``on_failure`` is called.
    """

    def __init__(self, connection: Database, on_failure: Callable[[], None]) -> None:
        self.connection, self.on_failure = connection, on_failure
        self.failure: RefusedError | None = None  # why the last write failed, if it did
        self.is_damaged = False
        self._queue: SimpleQueue[Waiting | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="rankstream log", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of queued functions."""
        return self._queue.qsize()

    def submit(self, work: Work[R], market: str = "") -> "Future[R]":
        """Queue a function that writes to a market; its future is done when the data are on disk."""
        result: Future[R] = Future()
        self._queue.put((work, result, market))
        return result

    def close(self) -> None:
        """Write what is queued, and end the thread."""
        self._queue.put(None)
        self._thread.join()
        self.connection.close()

    def _run(self) -> None:
        going = True
        while going:
            group = [self._queue.get()]
            while len(group) < MAX_GROUP_SIZE and group[-1] is not None:
                try:
                    group.append(self._queue.get_nowait())
                except Empty:
                    break
            going = group[-1] is not None
            self._write([waiting for waiting in group if waiting is not None])

    def _write(self, group: list[Waiting]) -> None:
        answers: list[tuple[Future[Any], Any, BaseException | None]] = []
        if not group:
            return
        group.sort(key=lambda waiting: waiting[2])  # servers lock markets in one order, so that none waits in a circle
        try:
            before = self.connection.total_changes
            with transaction(self.connection):
                for work, result, _ in group:
                    try:
                        answers.append((result, work(self.connection), None))
                    except RefusedError as refused:
                        answers.append((result, None, refused))
            self.failure = self.failure if self.connection.total_changes == before else None
        except Exception as error:
            self.on_failure()
            self.is_damaged |= is_damage(error)
            self.failure = refusal = reason(error)
            answers = [(result, None, refusal) for _, result, _ in group]
        for result, content, problem in answers:
            if problem is None:
                result.set_result(content)
            else:
                result.set_exception(problem)


def reason(error: Exception) -> RefusedError:
    """Return the error for a failed write, without details that a client should not see."""
    if is_damage(error):
        return RefusedError(503, DAMAGED)
    if isinstance(error, LostCommitError):
        return RefusedError(503, LOST, Retry_After="1")
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF in FULL:
        return RefusedError(503, "The disk is full: nothing of this was stored; send it again later.", Retry_After="5")
    if code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return RefusedError(503, "The log is busy: nothing of this was stored; send it again later.", Retry_After="1")
    return RefusedError(
        503, "The log cannot be written: nothing of this was stored; send it again later.", Retry_After="5"
    )
