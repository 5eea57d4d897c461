"""Compilation with numba, cached on disk where the installation allows it."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba
import numba.core.event

from rankstream._core.watch import CompileTime, compile_time

events: Any = numba.core.event
events.Listener.register(CompileTime)
events.register("numba:compiler_lock", compile_time)

P = ParamSpec("P")
R = TypeVar("R")


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
    options |= {"error_model": "numpy", "no_cfunc_wrapper": True}
    kernel: Callable[P, R]
    try:
        kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba finds no writable place for its cache
        kernel = numba.njit(**options)(function)
    return kernel
