"""Times of records: the start of the data to use, the half-life, and equal slices in the order of time.

Times are ISO 8601 (in UTC where they have no zone), or numbers, which are seconds since 1970 if the half-life has a
unit. Everything here is in seconds since 1970, or in the numbers of the column.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from numbers import Number
from typing import Any

import numpy as np

from rankstream._core import Codes, Vec, number_between, whole_number
from rankstream.data.decay import as_reach
from rankstream.data.readers.problems import BadRecordError
from rankstream.data.readers.sources.labels import text

MAX_SECONDS = 1e11  # seconds: the year 5138; what is beyond is in another unit
MOST_SLICES = 1000  # each is a set of counts in memory; charts show a dozen
NUMBER = r"-?[0-9]{1,15}(\.[0-9]{1,9})?"
LOCAL = r"[12][0-9]{3}-[0-9]{2}-[0-9]{2}([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?"  # ISO 8601
ZONED = LOCAL.removesuffix("?") + r"(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])"
NUMERIC = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*)")
TEXTS = ("VARCHAR", "JSON")
Span = tuple[float, float]


def seconds_of(value: Any) -> float:
    """Return a time as a number, or raise a BadRecordError.

    >>> seconds_of("1970-01-02"), seconds_of("1970-01-01T01:00:00+01:00"), seconds_of("12.5")
    (86400.0, 0.0, 12.5)
    """
    words = text(value)
    try:
        if (isinstance(value, Number) and words not in ("true", "false")) or re.fullmatch(NUMBER, words):
            seconds = float(words)
        else:
            moment = datetime.fromisoformat(words)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise bad_time(value) from None
    if not abs(seconds) <= MAX_SECONDS:
        raise BadRecordError("time", f"the time {value!r} is too large: give seconds, not milliseconds.")
    return seconds


def seconds_or_none(value: Any) -> float | None:
    """Return a time as a number; None if it cannot be read."""
    try:
        return seconds_of(value)
    except BadRecordError:
        return None


def bad_time(value: Any) -> BadRecordError:
    """Return the error for a value that is not a time."""
    return BadRecordError(
        "time", f"the time {value!r} is not of the form '2024-05-16 23:30:00': correct it, or set dates='dmy'."
    )


def moment_sql(cell: str, kind: str) -> str:
    """Return the SQL of a time in UTC; NULL if it is not a time, or only Python can read it."""
    if kind.startswith("TIMESTAMP") or kind == "DATE":
        moment = f"CAST({cell} AS TIMESTAMP)"  # connections are in UTC
        return f"CASE WHEN isfinite({moment}) THEN {moment} END"
    if kind not in TEXTS:
        return "CAST(NULL AS TIMESTAMP)"
    return (
        f"CASE WHEN regexp_full_match({cell}, '{LOCAL}') THEN try_cast({cell} AS TIMESTAMP) "
        f"WHEN regexp_full_match({cell}, '{ZONED}') THEN CAST(try_cast({cell} AS TIMESTAMPTZ) AS TIMESTAMP) END"
    )


def seconds_sql(cell: str, kind: str) -> str:
    """Return the SQL of a time as a number; NULL if it is not a time, or only Python can read it."""
    if NUMERIC.fullmatch(kind):
        return _near(f"CAST({cell} AS DOUBLE)")
    moment = _near(f"epoch({moment_sql(cell, kind)})")
    if kind not in TEXTS:
        return moment
    number = _near(f"try_cast({cell} AS DOUBLE)", f"regexp_full_match({cell}, '{NUMBER}')")
    return f"coalesce(epoch({moment_sql(cell, kind)}), {number})"


def _near(found: str, condition: str = "true") -> str:
    return f"CASE WHEN {condition} AND abs({found}) <= {MAX_SECONDS} THEN {found} END"


@dataclass(frozen=True)
class Clock:
    """The column of times, and the options that need it.

    With ``since`` or a half-life, a record without a time is bad. With slices alone, there are then no slices.
    """

    column: str
    slices: int | None = None
    since: float | None = None
    half_life: float | None = None
    in_units: bool = False

    @property
    def strict(self) -> bool:
        """Whether every record must have a time."""
        return self.since is not None or self.half_life is not None

    def check(self, span: Span) -> None:
        """Raise a ValueError if the options and the times seem to be in different units."""
        low, high = span
        shown = f"The times {low:.12g} to {high:.12g}"
        if self.in_units and any(least <= low and high <= most for least, most in ((1900, 2100), (19e6, 21e6 + 2e5))):
            raise ValueError(f"{shown} look like dates without dashes: write them as 2024-05-16.")
        if self.since is not None and abs(self.since) < 1e8 < low:
            raise ValueError(
                f"since is {self.since:.12g}, but the times are dates: write '2024-05-16', or seconds since 1970."
            )


def moment_of(name: str, value: Any) -> float | None:
    """Return the time that an option gives as a number, or raise a ValueError."""
    found = None if value is None else seconds_or_none(value)
    if value is not None and found is None:
        raise ValueError(f"{name} is {value!r}: write a time such as '2024-05-16', or a number as in the column.")
    return found


def clock_of(
    name: str, column: str | None, time_slices: int | None, since: Any, half_life: float | str | timedelta | None
) -> Clock | None:
    """Return the checked options about times; None without any, or for slices without a column of times."""
    slices = None if time_slices is None else whole_number("time_slices", time_slices, 1)
    if slices is not None and slices > MOST_SLICES:
        raise ValueError(f"time_slices is {slices}: it must be at most {MOST_SLICES}.")
    start, reach, in_units = moment_of("since", since), None, False
    if half_life is not None:
        amount = as_reach(half_life)
        in_units = isinstance(amount, timedelta)
        amount = amount.total_seconds() if isinstance(amount, timedelta) else amount
        reach = number_between("half_life", amount, 1e-9, 1e12)
    if column is None and (since is not None or half_life is not None):
        what = "since" if since is not None else "half_life"
        raise ValueError(f"{name} has no column 'time', which {what} needs: map it with columns='time=YOUR_COLUMN'.")
    if column is None or (slices is None and start is None and reach is None):
        return None
    return Clock(column, slices, start, reach, in_units)


def spans_of(times: Vec, weights: Vec, slices: int) -> list[Span]:
    """Return the first and last times of slices of about equal weight; equal times are in the same slice.

    >>> spans_of(np.array([1.0, 2.0, 2.0, 5.0, 9.0, 9.5]), np.ones(6), 3)
    [(1.0, 2.0), (5.0, 5.0), (9.0, 9.5)]
    """
    at, place = np.unique(times, return_inverse=True)
    weight = np.bincount(place, weights=weights, minlength=len(at))
    before = np.cumsum(weight) - weight
    total = weight.sum()
    number = np.minimum(slices * before // total, slices - 1) if total > 0 else np.zeros(len(at))
    firsts = np.flatnonzero(np.diff(number, prepend=-1))
    lasts = np.append(firsts[1:], len(at)) - 1
    return list(zip(at[firsts].tolist(), at[lasts].tolist(), strict=True))


def slice_numbers(times: Vec, spans: list[Span]) -> Codes:
    """Return the number of the slice of each time."""
    return np.searchsorted(np.array([first for first, _ in spans]), times, side="right").astype(np.int64) - 1
