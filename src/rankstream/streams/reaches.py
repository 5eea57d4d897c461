"""Which settings of a live model go together: half-lives, windows, and a change detector."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from rankstream._core.arguments import whole_number
from rankstream.streams.detector import DetectorSettings

SERVED = ("max-entropy", "sparse")


def check_served(served: str) -> str:
    """What a live model gives out."""
    if served not in SERVED:
        raise ValueError(f"served is {served!r}: choose 'max-entropy' or 'sparse'.")
    return served


def with_detector(settings: DetectorSettings, window: Any, given: dict[str, Any]) -> DetectorSettings:
    """The settings with those that were given in their places, or what is wrong with them."""
    if window is not None:
        raise ValueError("With a change detector the counts begin again when the market changes: leave window out.")
    if isinstance(given["half_life"], timedelta):
        raise ValueError("With a change detector the half-life is that of a copy, in choices: give a number.")
    return replace(settings, **{name: value for name, value in given.items() if value is not None})


def without_detector(half_life: Any, window: Any, threshold: float | None) -> int | timedelta | None:
    """The window, whole where it is of choices, or what is wrong with the three."""
    if threshold is not None:
        raise ValueError("The threshold is the evidence that a change detector takes: give both, or neither.")
    if half_life is not None and window is not None:
        raise ValueError("Counts forget either with a half-life or beyond a window: set one of the two.")
    if isinstance(window, int | float):
        return whole_number("window", int(window) if window % 1 == 0 else window, least=1)
    span: timedelta | None = window
    return span
