"""Counts that forget: little by little with a half-life, or all at once beyond a window."""

from datetime import timedelta
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.types import Codes, Vec
from rankstream.assortments import Assortments
from rankstream.forgetting import By, ForgettingCounts

FORGOTTEN = 1e-200  # an offer whose choices weigh less together counts as never seen


class DecayingCounts(ForgettingCounts):
    """Counts in which a choice weighs half as much after every half-life: exponential forgetting.

    By observations, every choice ages all those before it, whatever their offer; a record that counts n times is n
    choices in a row. By time, ``now`` is the latest time seen, and late records weigh what their age leaves them. The
    frequencies of an offer change only when it is offered; what fades meanwhile is ``effective_totals``, the number of
    equally weighted choices that would be as certain: (sum of weights)^2 / (sum of squared weights).

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
        """After how many observations, or how much time, a choice weighs half."""
        return self.reach

    @property
    def effective_totals(self) -> Vec:
        """For each offer, how many choices of equal weight would make its frequencies as certain."""
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
        lost = (self._totals < FORGOTTEN) | (self._squares == 0.0)
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
        """All that is remembered, as arrays."""
        named = {"tallies": self._tallies, "totals": self._totals, "squares": self._squares}
        return {**{name: array.copy() for name, array in named.items()}, "now": np.array(self.now)}

    def remember(self, memory: dict[str, Any]) -> None:
        """Take over what ``memory`` gave."""
        super().remember(memory)
        self._squares = np.array(memory["squares"], dtype=np.float64)
        self.now = float(memory["now"])


class WindowCounts(ForgettingCounts):
    """Counts of the latest choices only: the last ``size`` of them, or those less than ``size`` old.

    By time, ``now`` is the latest time seen; records may come in any order. A call takes time in proportion to the
    window: hand over records in batches. Records must count whole numbers, so that what leaves is taken off exactly.

    >>> counts = WindowCounts(Assortments([("tea", "nothing")]), size=2)
    >>> counts.observe([("tea", "nothing")] * 3, ["tea", "tea", "nothing"])
    >>> counts.tallies
    array([1., 1.])
    """

    reach_name: ClassVar[str] = "size"

    def __init__(self, assortments: Assortments, size: float | timedelta, by: By | None = None) -> None:
        super().__init__(assortments, size, by)
        if self.by == "observations" and not (self.reach >= 1.0 and self.reach.is_integer()):
            raise ValueError(f"size is {size!r}: a window of observations holds a whole number of them, at least 1.")
        self._where: Codes = np.zeros(0, dtype=np.int64)
        self._amounts: Vec = np.zeros(0)
        self._times: Vec = np.zeros(0)

    @property
    def size(self) -> float:
        """How many observations, or how much time, the window holds."""
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
            left = self.reach - (amounts.sum() - np.cumsum(amounts))  # what the later records leave of the window
            amounts = np.minimum(amounts, np.maximum(left, 0.0))
        kept = amounts > 0.0
        self._where, self._amounts, self._times = where[kept], amounts[kept], times[kept]
        self._recount()

    def _recount(self) -> None:
        offers = self.assortments
        tallies = np.bincount(self._where, weights=self._amounts, minlength=offers.n_coordinates)
        self._tallies = tallies.astype(np.float64)
        self._totals = np.add.reduceat(self._tallies, offers.indptr[:-1])

    def memory(self) -> dict[str, Any]:
        """All that is remembered, as arrays."""
        named = {"where": self._where, "amounts": self._amounts, "times": self._times}
        return {**{name: array.copy() for name, array in named.items()}, "now": np.array(self.now)}

    def remember(self, memory: dict[str, Any]) -> None:
        """Take over what ``memory`` gave."""
        self._where = np.array(memory["where"], dtype=np.int64)
        self._amounts, self._times = (np.array(memory[name], dtype=np.float64) for name in ("amounts", "times"))
        self.now = float(memory["now"])
        self._recount()
