"""Argument checks: each returns the value, or raises a ValueError that says what is wrong."""

import operator
from collections.abc import Callable, Iterable
from importlib import import_module
from inspect import signature
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.types import Codes, Label

P = ParamSpec("P")
R = TypeVar("R")


def same_parameters(model: Callable[P, Any]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Copy the signature of ``model`` to a function, so that editors, ``help`` and type checkers see it."""

    def decorate(function: Callable[..., R]) -> Callable[P, R]:
        returned = signature(function).return_annotation
        cast("Any", function).__signature__ = signature(model).replace(return_annotation=returned)
        return cast("Callable[P, R]", function)

    return decorate


def whole_number(name: str, value: Any, least: int = 0) -> int:
    """Return the value as an integer of at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r}: it must be a whole number.") from None
    if number < least:
        raise ValueError(f"{name} is {number}: it must be at least {least}.")
    return number


def number_between(name: str, value: Any, low: float, high: float = np.inf) -> float:
    """Return the value as a float between ``low`` and ``high``, both included."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"{name} is {value!r}: it must be a number.")
    if not low <= value <= high:
        span = f"at least {low:g}" if high == np.inf else f"between {low:g} and {high:g}"
        raise ValueError(f"{name} is {value!r}: it must be {span}.")
    return float(value)


def whole_numbers(name: str, values: ArrayLike) -> Codes:
    """Return the values as an array of integers; fractions are an error, they are not truncated."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers; got {array.dtype} such as {array.flat[0]!r}.")
    return np.ascontiguousarray(array, dtype=np.int64)


def optional(package: str, what: str) -> Any:
    """Import an optional package, or raise a ValueError that says how to install it.

    >>> optional("no_such_package", "A data frame")
    Traceback (most recent call last):
    ValueError: A data frame needs no_such_package, which is not installed: pip install no_such_package.
    """
    try:
        return import_module(package)
    except ImportError:
        raise ValueError(f"{what} needs {package}, which is not installed: pip install {package}.") from None


def listed(items: Iterable[Label], most: int = 8) -> str:
    """Return items for an error message, the first few of many."""
    names = [repr(item) for item in items]
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])}, ... ({len(names)} in all)"
