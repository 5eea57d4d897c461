"""Watching a fit: whoever watches hears what is going on, and says when that is enough."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from time import monotonic, process_time, thread_time
from typing import Any, ClassVar, Protocol


class Progress(Protocol):
    """Who hears how far long work has come: what ``watch`` and ``progress`` arguments take."""

    def __call__(self, text: str, fraction: float, /) -> object:
        """Hear what is being done, and which fraction of the whole is, from 0 to 1; 0 where that is not known."""


class Watch(Protocol):
    """What every fit that can be cut short asks, step by step; it ends with what it has when the answer is True."""

    def __call__(self, text: str, share: float = 1.0) -> bool:
        """Whether this share of what time there is has passed; ``text`` says what is being done."""


def unwatched(text: str, share: float = 1.0) -> bool:  # noqa: ARG001
    """Never enough: the watch of a fit that may take its time."""
    return False


def until(watch: Watch, part: float) -> Watch:
    """The same watch for one of several tasks in a row: its time ends when this part of the whole has passed.

    >>> asked = []
    >>> half = until(lambda text, share=1.0: bool(asked.append(share)), 0.5)
    >>> half("first"), half("second", 0.5), asked
    (False, False, [0.5, 0.25])
    """
    return _Part(watch, part)


@dataclass(frozen=True)
class _Part:
    """A watch whose time is the first part of another's."""

    watch: Watch
    part: float

    def __call__(self, text: str, share: float = 1.0) -> bool:
        """As ``Watch`` says."""
        return self.watch(text, self.part * share)

    def left(self, share: float = 1.0) -> float:
        """As ``seconds_left`` says."""
        return seconds_left(self.watch, self.part * share)


def seconds_left(watch: Watch, share: float = 1.0) -> float:
    """How many seconds there are until this share of the time has passed; infinite where nobody counts them.

    Whoever is about to do something that cannot be interrupted asks first whether there is time for it.

    >>> seconds_left(unwatched), round(seconds_left(until(Deadline(60.0), 0.5)))
    (inf, 30)
    """
    left = getattr(watch, "left", None)
    return float("inf") if left is None else float(left(share))


class CompileTime(threading.local):
    """The CPU seconds in which numba compiled or loaded kernels: ``compilation`` lets it hear of both ends."""

    total: ClassVar = [0.0]
    depth, began, seconds = 0, 0.0, 0.0

    def notify(self, event: Any) -> None:
        """As ``numba.core.event.Listener`` says; one kernel may compile another."""
        if event.is_start:
            self.began = self.began if self.depth else thread_time()
            self.depth += 1
        elif self.depth:
            self.depth -= 1
            took = 0.0 if self.depth else thread_time() - self.began
            self.seconds += took
            self.total[0] += took


compile_time = CompileTime()


def thread_seconds() -> float:
    """CPU seconds of this thread without compilation: a budget buys the same whether or not kernels are cached."""
    return thread_time() - compile_time.seconds


def process_seconds() -> float:
    """The same of all threads of the process."""
    return process_time() - compile_time.total[0]


@dataclass
class Deadline:
    """A watch by the clock: enough after ``seconds``, or once anything is in ``interrupts``.

    ``tell`` hears what is going on and which part of the time has passed; ``stopped`` says that something was cut
    short. ``clock`` may count processor time; ``timeout`` limits the time on the wall as well.
    """

    seconds: float
    interrupts: list[int] = field(default_factory=list)
    tell: Progress | None = None
    clock: Callable[[], float] = monotonic
    timeout: float = inf
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
        self.stopped |= enough
        return enough

    def left(self, share: float = 1.0) -> float:
        """As ``seconds_left`` says; none once it was asked to end."""
        if self.interrupts:
            return 0.0
        passed, waited = self.clock() - self.start, monotonic() - self.wall_start
        return min(share * self.seconds - passed, share * self.timeout - waited)


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """A list that is empty until Ctrl-C is pressed, which then waits for the round to end; twice does not wait."""
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(number: int, _: object) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
