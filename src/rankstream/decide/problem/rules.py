"""Rules for offers as limits on sums: sizes, space, and rows such as "at most one of these"."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rankstream._core.types import Bytes, Codes, Mask, Vec

IN, FREE, OUT = 1, 0, -1


class LimitRow(NamedTuple):
    """A limit on a sum: items that count +1, items that count -1, the limit, and the keyword it comes from.

    "a only with b" is ``a - b <= 0``, "not both" ``a + b <= 1``, "one of them" ``-a - b <= -1``.
    """

    plus: Sequence[int]
    minus: Sequence[int]
    limit: int
    keyword: str


@dataclass(frozen=True, eq=False)
class Rows:
    """For every row, what each item of an offer adds to its sum, and the limit of the sum."""

    factors: Codes
    limits: Codes
    keywords: tuple[str, ...] = ()

    def slack(self, inside: Mask) -> Codes:
        """Return what is left of every limit with some items in the offer."""
        left: Codes = self.limits - self.factors[:, inside].sum(axis=1)
        return left

    def left(self, codes: Codes, inside: Mask) -> "Rows":
        """Return the rows of some items that can still be broken, with those ``inside`` in and all others out."""
        factors, limits = self.factors[:, codes], self.slack(inside)
        open_ = np.maximum(factors, 0).sum(axis=1) > limits
        return Rows(np.ascontiguousarray(factors[open_]), limits[open_])

    def broken(self, state: Bytes) -> Codes:
        """Return the rows that are broken whatever is decided about the free items."""
        return np.flatnonzero(self._slack_at_best(state) < 0)

    def _slack_at_best(self, state: Bytes) -> Codes:
        """Return what is left of every limit with all free items that lower the sum, and none of the others."""
        left: Codes = self.slack(state == IN) - np.minimum(self.factors[:, state == FREE], 0).sum(axis=1)
        return left

    def follow(self, state: Bytes) -> bool:
        """Fix, in place, every item without which, or with which, a row breaks even at best.

        Returns False if a row is broken.
        """
        if not self.limits.size:
            return True
        slack = self._slack_at_best(state)
        if (slack < 0).any():
            return False
        free, beyond = state == FREE, np.abs(self.factors) > slack[:, np.newaxis]
        out = free & (beyond & (self.factors > 0)).any(axis=0)
        into = free & (beyond & (self.factors < 0)).any(axis=0)
        state[out], state[into] = OUT, IN
        return not (out & into).any()

    @cached_property
    def sparse(self) -> tuple[Codes, Codes, Codes]:
        """Where each row begins, the items that count in it, and what each counts."""
        row, item = np.nonzero(self.factors)
        start = np.searchsorted(row, np.arange(self.limits.size + 1))
        return start.astype(np.int64), item, self.factors[row, item]


def make_rows(size: int, rows: Iterable[LimitRow]) -> Rows:
    """Return rows over ``size`` items.

    >>> rows = make_rows(3, [LimitRow((), (0, 1), -1, "must")])
    >>> (rows.slack(np.array([False, True, True])) >= 0).all(), (rows.slack(np.array([False, False, True])) >= 0).all()
    (np.True_, np.False_)
    """
    rows = list(rows)
    factors = np.zeros((len(rows), size), dtype=np.int64)
    for number, row in enumerate(rows):
        factors[number, list(row.plus)] += 1
        factors[number, list(row.minus)] -= 1
    limits = np.array([row.limit for row in rows], dtype=np.int64)
    return Rows(factors, limits, tuple(row.keyword for row in rows))


class RuleArrays(NamedTuple):
    """Rules for compiled loops: space and capacity, least and most items, and the rows.

    The items of row k are in ``counted`` from ``row[k]`` up to ``row[k + 1]``, each with its ``sign``.
    """

    space: Vec
    capacity: float
    least: int
    most: int
    row: Codes
    counted: Codes
    sign: Codes
    limits: Codes


@dataclass(frozen=True, eq=False)
class Rules:
    """Limits on the number of items, on the space they take, and the rows that an offer must meet."""

    space: Vec
    capacity: float
    least: int
    most: int
    rows: Rows

    @property
    def arrays(self) -> RuleArrays:
        """The arguments of the kernels."""
        return RuleArrays(self.space, self.capacity, self.least, self.most, *self.rows.sparse, self.rows.limits)

    def allow(self, mask: Mask) -> bool:
        """Whether an offer meets all rules."""
        fits = self.least <= int(mask.sum()) <= self.most and float(self.space[mask].sum()) <= self.capacity
        return fits and bool((self.rows.slack(mask) >= 0).all())

    def left(self, codes: Codes, inside: Mask) -> "Rules":
        """Return the rules for some items, with those ``inside`` in the offer and all others out."""
        taken, capacity = int(inside.sum()), self.capacity
        if capacity < np.inf:
            capacity -= float(self.space[inside].sum())
        rows = self.rows.left(codes, inside)
        return Rules(self.space[codes], capacity, self.least - taken, self.most - taken, rows)

    def follow(self, state: Bytes) -> bool:
        """Fix, in place, all that follows from the decisions in ``state``. Returns False if a rule is broken."""
        while True:
            before = state.copy()
            if not self.rows.follow(state):
                return False
            if self.capacity < np.inf:
                left = self.capacity - float(self.space[state == IN].sum())
                if left < 0.0:
                    return False
                state[(state == FREE) & (self.space > left)] = OUT
            taken, possible = int((state == IN).sum()), int((state != OUT).sum())
            if max(taken, self.least) > self.most or possible < self.least:
                return False
            if (state == before).all():
                return True
