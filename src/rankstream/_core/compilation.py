"""Compilation with numba, cached on disk where the installation allows it."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cache, update_wrapper
from threading import Lock
from typing import Any, Generic, ParamSpec, TypeVar

from rankstream._core.watch import CompileTime, compile_time, during

P = ParamSpec("P")
R = TypeVar("R")
_LOCK = Lock()
ALL = -1
UNCOMPILED_STEPS: ContextVar[int] = ContextVar("UNCOMPILED_STEPS", default=0)
"""How many steps of innermost loops a question may take as Python; with ``ALL``, kernels run as Python."""


class Kernel(Generic[P, R]):
    """A function that numba compiles, or loads from its cache, when it is first called from Python or a kernel."""

    def __init__(self, function: Callable[P, R], options: dict[str, Any]) -> None:
        self.function, self.options = function, options
        self._dispatcher: Any = None
        update_wrapper(self, function)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        run: Callable[P, R] = self.function if UNCOMPILED_STEPS.get() == ALL else self._dispatcher or self._dispatch()
        return run(*arguments, **named)

    @property
    def _numba_type_(self) -> Any:
        """The type by which other kernels call this one."""
        return self._dispatch()._numba_type_

    def _dispatch(self) -> Any:
        numba = load_numba()
        with _LOCK:  # one for all threads: numba keeps no dispatcher alive that it has compiled into another
            if self._dispatcher is None:
                try:
                    self._dispatcher = numba.njit(cache=True, **self.options)(self.function)
                except RuntimeError:  # numba finds no writable place for its cache
                    self._dispatcher = numba.njit(**self.options)(self.function)
        return self._dispatcher


@cache
def load_numba() -> Any:
    """Import numba, which takes as long as answering a small question; budgets do not count it, like compilation."""
    compile_time.count(is_start=True)
    import numba
    import numba.core.event

    compile_time.count(is_start=False)
    events: Any = numba.core.event
    events.Listener.register(CompileTime)
    events.register("numba:compiler_lock", compile_time)
    return numba


def uncompiled(steps: int = ALL) -> AbstractContextManager[int]:
    """Run kernels as Python in this block, or let questions of at most ``steps`` do so.

    That is for a process with few questions: a small one takes less time than loading numba and its caches.
    """
    return during(UNCOMPILED_STEPS, steps)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that Python calls."""
    return _compiled(function)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only compiled code calls. It has no Python wrapper, which saves compile time."""
    return _compiled(function, no_cpython_wrapper=True)


def released(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that releases the GIL, so that several threads can run it."""
    return _compiled(function, nogil=True)


def in_any_order(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function whose sums may be reordered (SIMD): faster, but the last digits can differ.

    Like ``released``, it releases the GIL.
    """
    return _compiled(function, nogil=True, fastmath={"reassoc", "contract"})


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return function
    return Kernel(function, options | {"error_model": "numpy", "no_cfunc_wrapper": True})
