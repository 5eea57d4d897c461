"""Checks of plain arguments: the right number, or one sentence that names the value."""

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.types import Codes


def whole_number(name: str, value: Any, least: int = 0) -> int:
    """An integer of at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r}: it must be a whole number.") from None
    if number < least:
        raise ValueError(f"{name} is {number}: it must be at least {least}.")
    return number


def number_between(name: str, value: Any, low: float, high: float = np.inf) -> float:
    """A float with ``low`` <= value <= ``high``."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ValueError(f"{name} is {value!r}: it must be a number.")
    if not low <= value <= high:
        span = f"at least {low:g}" if high == np.inf else f"between {low:g} and {high:g}"
        raise ValueError(f"{name} is {value!r}: it must be {span}.")
    return float(value)


def whole_numbers(name: str, values: ArrayLike) -> Codes:
    """An array of integers; fractions are refused, not cut."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers; got {array.dtype} such as {array.flat[0]!r}.")
    return np.ascontiguousarray(array, dtype=np.int64)
