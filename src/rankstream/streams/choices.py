"""One observation of a stream, what is wrong with it, and whether it can wait to be counted."""

from math import isfinite
from typing import Any, NamedTuple

from rankstream._core.types import Label
from rankstream.data.counts import MOST

LARGEST = 100_000


class Record(NamedTuple):
    """One observation: what was offered, what was chosen, how many times, and when (in seconds since 1970).

    Where items have prices, what was offered is a mapping from items to prices, None for what has none.

    >>> Record(("tea", "pie", "nothing"), "tea")
    Record(offered=('tea', 'pie', 'nothing'), chosen='tea', times=1.0, time=None)
    """

    offered: Any  # a tuple of items, or a mapping from items to prices
    chosen: Label
    times: float = 1.0
    time: float | None = None


def check_record(record: Record, timed: bool, detect: bool) -> None:
    """Refuse what cannot be counted: by time, or choice by choice."""
    if record.chosen not in record.offered:
        raise ValueError(f"its choice {record.chosen!r} is not in its offer {record.offered!r}")
    if timed and record.time is None:
        raise ValueError('it has no "time" that can be read, by which choices fade: write 2024-05-16T12:30')
    if detect and not (float(record.times).is_integer() and 0 <= record.times <= LARGEST):
        raise ValueError(
            f"its count {record.times:g} is not a whole number up to {LARGEST:,}: a change is looked for choice by "
            "choice"
        )


def can_wait(record: Record, whole: bool) -> bool:
    """Whether nothing can be wrong with how often and when it was: what waits must be counted later.

    >>> can_wait(Record(("tea", "pie"), "tea", 2.5), whole=False), can_wait(Record(("tea", "pie"), "tea", 2.5), True)
    (True, False)
    """
    times, moment = record.times, record.time
    if not _is_number(times) or not 0.0 <= times < MOST or (whole and times != int(times)):
        return False
    return moment is None or (_is_number(moment) and isfinite(moment))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
