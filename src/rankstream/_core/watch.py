"""Deadlines and progress: a fit calls its watch after every step, and stops when the watch returns True."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from time import monotonic, process_time, thread_time
from typing import Any, ClassVar, Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """A callback that reports how far long work has come."""

    def __call__(self, text: str, fraction: float, /) -> object:
        """Report the current step and the fraction that is done, from 0 to 1; 0 where that is unknown.

        Returning True ends work that can end early, such as refits.
        """


class Watch(Protocol):
    """A callback that tells a fit when to stop early; the fit then returns the best result so far."""

    def __call__(self, text: str, share: float = 1.0) -> bool:
        """Return whether this share of the time has passed; ``text`` describes the current step."""


def unwatched(text: str, share: float = 1.0) -> bool:  # noqa: ARG001
    """Never stop: the watch of a fit without a deadline."""
    return False


def until(watch: Watch, part: float) -> Watch:
    """Return a watch for one of several tasks in a row, whose time ends after this part of the whole.

    >>> shares = []
    >>> half = until(lambda text, share=1.0: bool(shares.append(share)), 0.5)
    >>> half("first"), half("second", 0.5), shares
    (False, False, [0.5, 0.25])
    """
    return _Part(watch, part)


@dataclass(frozen=True)
class _Part:
    """A watch for the first part of another watch's time."""

    watch: Watch
    part: float

    def __call__(self, text: str, share: float = 1.0) -> bool:
        """As ``Watch`` says."""
        return self.watch(text, self.part * share)

    def left(self, share: float = 1.0) -> float:
        """As ``seconds_left`` says."""
        return seconds_left(self.watch, self.part * share)


def seconds_left(watch: Watch, share: float = 1.0) -> float:
    """Return how many seconds are left until this share of the time has passed; infinite without a deadline.

    Use it before a step that cannot be interrupted.

    >>> seconds_left(unwatched), round(seconds_left(until(Deadline(60.0), 0.5)))
    (inf, 30)
    """
    left = getattr(watch, "left", None)
    return float("inf") if left is None else float(left(share))


class CompileTime(threading.local):
    """CPU seconds that numba spent compiling or loading kernels; ``compilation`` registers it as a listener."""

    total: ClassVar = [0.0]
    depth, began, seconds = 0, 0.0, 0.0

    def notify(self, event: Any) -> None:
        """Handle an event of ``numba.core.event.Listener``; compilations can be nested."""
        self.count(event.is_start)

    def count(self, is_start: bool) -> None:
        """Count from a start until the end that belongs to it."""
        if is_start:
            self.began = self.began if self.depth else thread_time()
            self.depth += 1
        elif self.depth:
            self.depth -= 1
            took = 0.0 if self.depth else thread_time() - self.began
            self.seconds += took
            self.total[0] += took


compile_time = CompileTime()


def thread_seconds() -> float:
    """Return the CPU seconds of this thread without compilation, so that budgets do not depend on cached kernels."""
    return thread_time() - compile_time.seconds


def process_seconds() -> float:
    """Return the CPU seconds of all threads of the process without compilation."""
    return process_time() - compile_time.total[0]


@dataclass
class Deadline:
    """A watch that stops a fit after ``seconds``, or once ``interrupts`` has an entry.

    ``tell`` receives the current step and the fraction of the time that has passed. ``stopped`` is True once a step
    was told to stop. ``clock`` may count processor time; ``timeout`` limits the wall-clock time as well; another
    ``watch`` may end it, too.
    """

    seconds: float
    interrupts: list[int] = field(default_factory=list)
    tell: Progress | None = None
    clock: Callable[[], float] = monotonic
    timeout: float = inf
    watch: Watch = unwatched
    stopped: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.start, self.wall_start = self.clock(), monotonic()

    def __call__(self, text: str, share: float = 1.0) -> bool:
        """As ``Watch`` says."""
        passed, waited = self.clock() - self.start, monotonic() - self.wall_start
        if self.tell is not None:
            used = max(passed / max(self.seconds, 1e-9), waited / max(self.timeout, 1e-9))
            self.tell(text, min(1.0, used))
        enough = bool(self.interrupts) or passed >= share * self.seconds or waited >= share * self.timeout
        enough = enough or self.watch(text, share)
        self.stopped |= enough
        return enough

    def left(self, share: float = 1.0) -> float:
        """As ``seconds_left`` says; 0 after an interrupt."""
        if self.interrupts:
            return 0.0
        passed, waited = self.clock() - self.start, monotonic() - self.wall_start
        return min(share * self.seconds - passed, share * self.timeout - waited, seconds_left(self.watch, share))


@contextmanager
def during(variable: "ContextVar[Any]", value: T) -> Iterator[T]:
    """Give a context variable this value within a ``with`` block."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


@contextmanager
def handling(handler: Callable[..., Any], *kinds: int) -> Iterator[None]:
    """Handle signals within a block; what handled them before does so again after it."""
    before = {kind: signal.signal(kind, handler) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler_before in before.items():
            signal.signal(kind, handler_before)


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """Yield a list that gets an entry on Ctrl-C, so that a fit can finish its round; a second Ctrl-C stops at once."""
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    before = signal.getsignal(signal.SIGINT)

    def record(number: int, _: object) -> None:
        signals.append(number)
        signal.signal(signal.SIGINT, before)

    with handling(record, signal.SIGINT):
        yield signals
