"""Counts that forget: gradually with a half-life, or all at once beyond a window."""

import re
from abc import abstractmethod
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core import Codes, Vec, number_between
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts

By = Literal["observations", "time"]
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


class ForgettingCounts(ChoiceCounts):
    """Base class of counts that forget after a reach, in observations or in time.

    Times are numbers, or datetimes, which are read as seconds (UTC where they have no zone).
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
        """Add one record, or many in order, as ``ChoiceCounts`` do; with one time, or one for each record."""
        self.observe_coordinates(self.coordinates(offered, chosen), count, time)

    def observe_coordinates(self, coordinates: ArrayLike, count: ArrayLike = 1, time: Any = None) -> None:
        """Add choices given as coordinates, in order."""
        where, amounts = self._checked(coordinates, count)
        if self.by == "observations":
            if time is not None:
                raise ValueError(f"{self!r} forgets by observations: create it with by='time', or leave out the time.")
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

    def _like(self, assortments: Assortments) -> Self:
        return type(self)(assortments, self.reach, self.by)

    @abstractmethod
    def _move_to(self, now: float) -> None:
        """Advance the clock; it never goes back."""

    @abstractmethod
    def _take(self, where: Codes, amounts: Vec, times: Vec) -> None:
        """Add checked records."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reach:g} by {self.by}, {self.observations:.6g} choices)"


def as_reach(value: float | str | timedelta) -> float | timedelta:
    """Parse a half-life or a window: a number of observations, or a time such as "7d" or "90min".

    >>> as_reach("500"), as_reach("7d"), as_reach("1.5h")
    (500.0, datetime.timedelta(days=7), datetime.timedelta(seconds=5400))
    """
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([a-z]*)", value.strip())
    number, unit = (float(match[1]), match[2]) if match else (np.nan, "")
    if not 0.0 < number * (UNITS.get(unit, np.nan) if unit else 1.0) < 1e13:
        raise ValueError(
            f"{value!r} is neither a number of choices nor a time: write 500, or 90s, 30min, 12h, 7d or 2w."
        )
    return timedelta(seconds=number * UNITS[unit]) if unit else number


def reach_text(reach: float | timedelta | None) -> float | str | None:
    """Return a half-life or a window in a form for files, which ``as_reach`` parses.

    >>> [as_reach(reach_text(timedelta(**reach))) for reach in ({"days": 7}, {"microseconds": 10})]
    [datetime.timedelta(days=7), datetime.timedelta(microseconds=10)]
    """
    return f"{reach.total_seconds()!r}s" if isinstance(reach, timedelta) else reach


def as_seconds(time: Any) -> Vec:
    """Convert datetimes to seconds since 1970 (UTC where they have no zone); numbers stay as they are.

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


MIN_OFFER_WEIGHT = 1e-200  # an offer with less total weight counts as never seen; its squares would underflow


class DecayingCounts(ForgettingCounts):
    """Counts in which a choice weighs half as much after every half-life: exponential forgetting.

    By observations, every choice ages all earlier ones, whatever their offer; a record that counts n times is n
    choices in a row. By time, ``now`` is the latest time seen, and late records are weighted by their age. The
    frequencies of an offer change only when it is offered. Meanwhile ``effective_totals`` fade, the effective number
    of choices: (sum of weights)^2 / (sum of squared weights).

    Examples
    --------
    >>> offers = Assortments([("tea", "nothing")])
    >>> counts = DecayingCounts(offers, half_life=1)
    >>> counts.observe([("tea", "nothing")] * 3, ["tea", "tea", "nothing"])
    >>> counts.tallies, counts.frequencies().round(3)
    (array([0.75, 1.  ]), array([0.429, 0.571]))
    """

    reach_name: ClassVar[str] = "half_life"

    def __init__(self, assortments: Assortments, half_life: float | timedelta, by: By | None = None) -> None:
        super().__init__(assortments, half_life, by)
        self._rate = float(np.log(2.0) / self.reach)
        self._squares: Vec = np.zeros(assortments.n_offers)

    @property
    def half_life(self) -> float:
        """Number of observations, or time, after which a choice counts half."""
        return self.reach

    @property
    def effective_totals(self) -> Vec:
        """For each offer, the effective number of choices behind its frequencies."""
        return np.divide(self._totals**2, self._squares, out=np.zeros(self._totals.size), where=self._squares > 0.0)

    def _move_to(self, now: float) -> None:
        if now > self.now:
            self._age(now - self.now)
            self.now = now

    def _age(self, by: float) -> None:
        factor = float(np.exp(-self._rate * by))
        self._tallies *= factor
        self._totals *= factor
        self._squares *= factor * factor
        lost = (self._totals < MIN_OFFER_WEIGHT) | (self._squares == 0.0)
        self._totals[lost] = self._squares[lost] = 0.0
        self._tallies[lost[self.assortments.owner]] = 0.0

    def _take(self, where: Codes, amounts: Vec, times: Vec) -> None:
        rate, offers = self._rate, self.assortments
        if self.by == "time":
            ages = self.now - times
            weights, squares = (amounts * np.exp(-power * rate * ages) for power in (1.0, 2.0))
        else:
            ages = amounts.sum() - np.cumsum(amounts)
            weights, squares = (
                np.exp(-power * rate * ages) * np.expm1(-power * rate * amounts) / np.expm1(-power * rate)
                for power in (1.0, 2.0)
            )
            self._age(float(amounts.sum()))
        self._add(np.bincount(where, weights=weights, minlength=self._tallies.size).astype(np.float64))
        self._squares += np.bincount(offers.owner[where], weights=squares, minlength=offers.n_offers)

    def memory(self) -> dict[str, Any]:
        """Return the whole state as arrays."""
        return super().memory() | {"squares": self._squares.copy(), "now": np.array(self.now)}

    def remember(self, memory: dict[str, Any]) -> None:
        """Restore the state that ``memory`` returned."""
        super().remember(memory)
        self._squares = np.array(memory["squares"], dtype=np.float64)
        self.now = float(memory["now"])


class WindowCounts(ForgettingCounts):
    """Counts of the latest choices only: the last ``size`` of them, or those less than ``size`` old.

    By time, ``now`` is the latest time seen; records may arrive in any order. A call takes time in proportion to the
    window, so add records in batches. Counts must be whole numbers, so that they can be subtracted exactly.

    Examples
    --------
    >>> counts = WindowCounts(Assortments([("tea", "nothing")]), size=2)
    >>> counts.observe([("tea", "nothing")] * 3, ["tea", "tea", "nothing"])
    >>> counts.tallies
    array([1., 1.])
    """

    reach_name: ClassVar[str] = "size"

    def __init__(self, assortments: Assortments, size: float | timedelta, by: By | None = None) -> None:
        super().__init__(assortments, size, by)
        if self.by == "observations" and not (self.reach >= 1.0 and self.reach.is_integer()):
            raise ValueError(f"size is {size!r}: a window of observations is a whole number of them, at least 1.")
        self._where: Codes = np.zeros(0, dtype=np.int64)
        self._amounts: Vec = np.zeros(0)
        self._times: Vec = np.zeros(0)

    @property
    def size(self) -> float:
        """How many observations, or how much time, are in the window."""
        return self.reach

    def _checked(self, coordinates: ArrayLike, count: ArrayLike) -> tuple[Codes, Vec]:
        where, amounts = super()._checked(coordinates, count)
        if not np.array_equal(amounts, np.rint(amounts)):
            raise ValueError("A window counts whole choices: give whole counts, or use DecayingCounts.")
        return where, amounts

    def _move_to(self, now: float) -> None:
        self.now = max(self.now, now)

    def _take(self, where: Codes, amounts: Vec, times: Vec) -> None:
        where = np.concatenate((self._where, where))
        amounts = np.concatenate((self._amounts, amounts))
        times = np.concatenate((self._times, times))
        if self.by == "time":
            order = np.argsort(times, kind="stable")
            order = order[times[order] > self.now - self.reach]
            where, amounts, times = where[order], amounts[order], times[order]
        else:
            left = self.reach - (amounts.sum() - np.cumsum(amounts))  # places in the window not used by later records
            amounts = np.minimum(amounts, np.maximum(left, 0.0))
        inside = amounts > 0.0
        self._where, self._amounts, self._times = where[inside], amounts[inside], times[inside]
        self._recount()

    def _recount(self) -> None:
        offers = self.assortments
        tallies = np.bincount(self._where, weights=self._amounts, minlength=offers.n_coordinates)
        self._tallies = tallies.astype(np.float64)
        self._totals = np.add.reduceat(self._tallies, offers.indptr[:-1])

    def memory(self) -> dict[str, Any]:
        """Return the whole state as arrays."""
        named = {"where": self._where, "amounts": self._amounts, "times": self._times}
        return {**{name: array.copy() for name, array in named.items()}, "now": np.array(self.now)}

    def remember(self, memory: dict[str, Any]) -> None:
        """Restore the state that ``memory`` returned."""
        self._where = np.array(memory["where"], dtype=np.int64)
        self._amounts, self._times = (np.array(memory[name], dtype=np.float64) for name in ("amounts", "times"))
        self.now = float(memory["now"])
        self._recount()


def make_counts(
    assortments: Assortments, half_life: float | timedelta | None, window: float | timedelta | None
) -> ChoiceCounts:
    """Return empty counts with a half-life, with a window, or that never forget."""
    if half_life is not None:
        return DecayingCounts(assortments, half_life)
    return ChoiceCounts(assortments) if window is None else WindowCounts(assortments, window)
