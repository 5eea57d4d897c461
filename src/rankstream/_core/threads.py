"""Threads for compiled loops: how many there may be, and how a call shares its work out among them.

The loops let go of the interpreter's lock (``compiling.released``) and Python's own threads run them. Numba's parallel
loops would need a second, slow compilation of each kernel, and its fallback layer aborts the process when two threads
call at once. Whoever shares work out makes sure that every number is computed by the same sums in the same order
whatever the number of threads, so that answers are the same bit for bit.
"""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from functools import cache, wraps
from multiprocessing import parent_process
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

from numba import get_num_threads
from numba.core import config
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


def locked(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Let one thread at a time run a method, by the ``lock`` of its object."""

    @wraps(method)
    def run(self: Any, /, *arguments: P.args, **named: P.kwargs) -> R:
        with self.lock:
            return method(self, *arguments, **named)

    return run


def thread_count() -> int:
    """How many threads a call may use: as many as numba may, and one in worker processes and uncompiled.

    Numba reads ``NUMBA_NUM_THREADS`` when it is imported and can be set to less by ``numba.set_num_threads``; it starts
    from the cores that the process may run on. Worker processes (of multiprocessing, joblib and the like) share the
    cores already: they use one thread each, unless ``NUMBA_NUM_THREADS`` says otherwise, which joblib sets.
    """
    if getattr(config, "DISABLE_JIT", 0) or (parent_process() is not None and "NUMBA_NUM_THREADS" not in os.environ):
        return 1
    return int(get_num_threads())


class Crew:
    """The threads of one call; the first is the caller's own."""

    def __init__(self, size: int, pool: ThreadPoolExecutor | None) -> None:
        self.size = size if pool is not None else 1
        self._pool = pool

    def run(self, work: Callable[[int], None], count: int) -> None:
        """Call ``work(task)`` once for every task below ``count``, in any order; return when all are done."""
        tasks = iter(range(count))  # shared: whoever is free takes the next one

        def take() -> None:
            for task in tasks:
                work(task)

        helpers = min(self.size, count) - 1
        if self._pool is None or helpers < 1:
            take()
            return
        others = [self._pool.submit(take) for _ in range(helpers)]
        try:
            take()
        finally:
            # nobody must still write when the caller reads; whoever has not begun, on a busy machine, is not needed
            begun = [other for other in others if not other.cancel()]
            wait(begun)
        for other in begun:
            other.result()


@cache
def _lock(_process: int) -> Lock:
    """Who holds it may use the pool; a forked process has one of its own, as it has none of the threads."""
    return Lock()


@cache
def _pool(_process: int, size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="rankstream")


@contextmanager
def crew(wanted: bool = True) -> Iterator[Crew]:
    """The threads for a call: all that may be used, or the caller's own if work is too small or others have them.

    >>> with crew() as threads:
    ...     threads.run(lambda task: None, 10)
    """
    size, process = thread_count() if wanted else 1, os.getpid()
    if size == 1 or not _lock(process).acquire(blocking=False):
        yield Crew(1, None)
        return
    try:
        yield Crew(size, _pool(process, size - 1))
    finally:
        _lock(process).release()


def one_blas_thread() -> AbstractContextManager[object]:
    """One thread for sums and small systems of numpy and scipy, as long as it lasts.

    From 10,000 numbers on they would share every sum out: threads that wait for each other on a busy machine, and last
    digits that depend on how many there are.

    >>> with one_blas_thread():
    ...     pass
    """
    limits: AbstractContextManager[object] = _controller("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")
    return limits


@cache
def _controller(_with_scipy: bool) -> ThreadpoolController:
    """The libraries that are loaded; scipy has one of its own, which comes with its linear algebra."""
    return ThreadpoolController()
