"""Threads for compiled loops: how many a call may use, and how it divides its work among them.

Python threads run loops that release the GIL (``compilation.released``). Numba's parallel loops would need a second,
slow compilation of each kernel, and its fallback layer aborts the process when two threads call at once. Callers must
compute every number by the same sums in the same order whatever the number of threads: results are then identical.
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

from threadpoolctl import ThreadpoolController

from rankstream._core import compilation

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
    """Return how many threads a call may use: numba's number, or 1 in worker processes and without compilation.

    Numba starts from the cores of the process, or ``NUMBA_NUM_THREADS`` at import; ``numba.set_num_threads`` lowers it.
    Worker processes (of multiprocessing, joblib and the like) share the cores already, so they use one thread each
    unless ``NUMBA_NUM_THREADS`` is set, as joblib does.
    """
    numba = compilation.load_numba()
    if numba.config.DISABLE_JIT or (parent_process() is not None and "NUMBA_NUM_THREADS" not in os.environ):
        return 1
    return int(numba.get_num_threads())


class Crew:
    """The threads of one call; the first is the caller's own."""

    def __init__(self, size: int, pool: ThreadPoolExecutor | None) -> None:
        self.size = size if pool is not None else 1
        self._pool = pool

    def run(self, work: Callable[[int], None], count: int) -> None:
        """Call ``work(task)`` once for every task below ``count``, in any order; return when all are done."""
        tasks = iter(range(count))  # shared by all threads: each takes the next task when it is free

        def take() -> None:
            for task in tasks:
                work(task)

        helpers = min(self.size, count) - 1
        if self._pool is None or helpers < 1:
            take()
            return
        futures = [self._pool.submit(take) for _ in range(helpers)]
        try:
            take()
        finally:
            # no thread may still write when the caller reads; on a busy machine some have not started: cancel these
            started = [future for future in futures if not future.cancel()]
            wait(started)
        for future in started:
            future.result()


@cache
def _lock(_process: int) -> Lock:
    """Return the lock on the pool. A forked process gets a new one, because it has none of the threads."""
    return Lock()


@cache
def _pool(_process: int, size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="rankstream")


@contextmanager
def crew(wanted: bool = True) -> Iterator[Crew]:
    """Yield the threads for a call: all of them, or only the caller's if not ``wanted`` or if another call uses them.

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
    """Limit numpy's and scipy's linear algebra to one thread within a ``with`` block.

    From 10,000 numbers on, BLAS splits every sum among threads. These wait for each other on a busy machine, and the
    last digits depend on how many there are.

    >>> with one_blas_thread():
    ...     pass
    """
    limits: AbstractContextManager[object] = _controller("scipy.linalg" in sys.modules).limit(limits=1, user_api="blas")
    return limits


@cache
def _controller(_with_scipy: bool) -> ThreadpoolController:
    """Return the controller of the loaded BLAS libraries; ``scipy.linalg`` loads one more."""
    return ThreadpoolController()
