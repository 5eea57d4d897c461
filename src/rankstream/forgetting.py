"""What counts that forget share: a reach, in observations or in time, and a clock."""

import re
from abc import abstractmethod
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.arguments import number_between
from rankstream._core.types import Codes, Label, Vec
from rankstream.assortments import Assortments
from rankstream.counts import ChoiceCounts

By = Literal["observations", "time"]
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


class ForgettingCounts(ChoiceCounts):
    """What counts that forget have in common: a reach, in observations or in time, and a clock.

    Times are numbers, or datetimes, which are read as seconds (UTC where they name no zone).
    """

    forgets: ClassVar[bool] = True
    reach_name: ClassVar[str] = "reach"

    def __init__(self, assortments: Assortments, reach: float | timedelta, by: By | None = None) -> None:
        super().__init__(assortments)
        timed = isinstance(reach, timedelta)
        self.by: By = ("time" if timed else "observations") if by is None else by
        if self.by not in ("observations", "time") or (timed and self.by != "time"):
            raise ValueError(f"by is {by!r} with {reach!r}: choose 'observations' or 'time', which a timedelta needs.")
        amount = reach.total_seconds() if isinstance(reach, timedelta) else reach
        self.reach = number_between(self.reach_name, amount, 1e-300, 1e300)
        self.now = -np.inf

    def observe(self, offered: Any, chosen: Any, count: Any = 1, time: Any = None) -> None:
        """Add one record, or many in their order, as ``ChoiceCounts`` do; with one time, or one for each record."""
        self.observe_coordinates(self.coordinates(offered, chosen), count, time)

    def observe_coordinates(self, coordinates: ArrayLike, count: ArrayLike = 1, time: Any = None) -> None:
        """Add choices that are already coordinates, in their order."""
        where, amounts = self._checked(coordinates, count)
        if self.by == "observations":
            if time is not None:
                raise ValueError(f"{self!r} forgets by observations: make it with by='time', or give no time.")
            self._take(where, amounts, np.zeros(where.size))
            return
        if time is None:
            raise ValueError(f"{self!r} forgets by time: give the time of every record.")
        times = as_seconds(time)
        if times.shape not in ((), where.shape):
            raise ValueError(f"There are {where.size} records but times of shape {times.shape}: give one for each.")
        if times.size:
            self._move_to(float(times.max()))
        self._take(where, amounts, np.broadcast_to(times, where.shape))

    def extend(self, offers: Iterable[Iterable[Label]], items: Iterable[Label] = ()) -> Self:
        """Counts over more offers that remember the same, and go their own way."""
        grown = self._like(self.assortments.extend(offers, items))
        memory = self.memory()
        for name, more in (
            ("tallies", grown.assortments.n_coordinates),
            ("totals", grown.assortments.n_offers),
            ("squares", grown.assortments.n_offers),
        ):
            if name in memory:
                memory[name] = np.pad(memory[name], (0, more - memory[name].size))
        grown.remember(memory)
        return grown

    def copy(self) -> Self:
        """Counts of their own that remember the same."""
        twin = self._like(self.assortments)
        twin.remember(self.memory())
        return twin

    def _like(self, assortments: Assortments) -> Self:
        return type(self)(assortments, self.reach, self.by)

    @abstractmethod
    def _move_to(self, now: float) -> None:
        """Let time pass; it never goes back."""

    @abstractmethod
    def _take(self, where: Codes, amounts: Vec, times: Vec) -> None:
        """Add checked records."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reach:g} by {self.by}, {self.observations:.6g} choices)"


def as_reach(value: float | str | timedelta) -> float | timedelta:
    """A half-life or a window: a number of observations, or a time, which may be text such as "7d" or "90min".

    >>> as_reach("500"), as_reach("7d"), as_reach("1.5h")
    (500.0, datetime.timedelta(days=7), datetime.timedelta(seconds=5400))
    """
    if not isinstance(value, str):
        return value
    found = re.fullmatch(r"([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([a-z]*)", value.strip())
    number, unit = (float(found[1]), found[2]) if found else (np.nan, "")
    if not 0.0 < number * (UNITS.get(unit, np.nan) if unit else 1.0) < 1e13:
        raise ValueError(
            f"{value!r} is neither a number of choices nor a time: write 500, or 90s, 30min, 12h, 7d or 2w."
        )
    return timedelta(seconds=number * UNITS[unit]) if unit else number


def reach_text(reach: float | timedelta | None) -> float | str | None:
    """What ``as_reach`` reads back, for files.

    >>> [as_reach(reach_text(timedelta(**reach))) for reach in ({"days": 7}, {"microseconds": 10})]
    [datetime.timedelta(days=7), datetime.timedelta(microseconds=10)]
    """
    return f"{reach.total_seconds()!r}s" if isinstance(reach, timedelta) else reach


def as_seconds(time: Any) -> Vec:
    """Times as numbers: datetimes as seconds since 1970 (UTC where they name no zone), numbers as they are.

    >>> as_seconds([datetime(1970, 1, 2), 5]).tolist()
    [86400.0, 5.0]
    """
    raw = np.asarray(time)
    if raw.dtype.kind == "O":
        raw = np.array([_seconds(moment) for moment in raw.ravel().tolist()]).reshape(raw.shape)
    if raw.dtype.kind == "M":
        raw = np.where(np.isnat(raw), np.nan, raw.astype("datetime64[us]").astype(np.float64) / 1e6)
    if raw.dtype.kind not in "iuf" or not np.isfinite(raw).all():
        raise ValueError(f"The time {time!r} is not a number or a datetime: correct the record.")
    return raw.astype(np.float64)


def _seconds(moment: Any) -> float:
    if isinstance(moment, datetime):
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return float(moment) if isinstance(moment, int | float) else np.nan
