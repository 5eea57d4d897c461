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
    """Compile with numba, cached on disk where the installation allows it."""
    return _compiled(function, no_cfunc_wrapper=True)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that only compiled ones call: without a way in from Python, which takes time to compile."""
    return _compiled(function, no_cfunc_wrapper=True, no_cpython_wrapper=True)


def released(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that lets go of the interpreter's lock, so that several threads can run it."""
    return _compiled(function, no_cfunc_wrapper=True, nogil=True)


def in_any_order(function: Callable[P, R]) -> Callable[P, R]:
    """Compile sums so that several terms are taken at a time: quicker, with another rounding in the last digits.

    Like ``released``, it can be run by several threads.
    """
    return _compiled(function, no_cfunc_wrapper=True, nogil=True, fastmath={"reassoc", "contract"})


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    made: Callable[P, R]
    try:
        made = numba.njit(cache=True, error_model="numpy", **options)(function)
    except RuntimeError:  # numba finds no writable place for its cache
        made = numba.njit(error_model="numpy", **options)(function)
    return made
