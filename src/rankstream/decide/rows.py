"""Rows: limits on sums over an offer, such as "one of these items" or "at most two changes"."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rankstream._core.types import Bytes, Codes, Mask

IN, FREE, OUT = 1, 0, -1
Row = tuple[Sequence[int], Sequence[int], int]
"""The items that count +1, those that count -1, and the most that their sum may be."""


@dataclass(frozen=True, eq=False)
class Rows:
    """For every row, what each item of an offer adds to its sum, and the most that the sum may be."""

    factors: Codes = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    limits: Codes = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def allow(self, held: Mask) -> bool:
        """Whether an offer keeps all rows."""
        return not len(self.limits) or bool((self.factors[:, held].sum(axis=1) <= self.limits).all())

    def left(self, codes: Codes, inside: Mask) -> "Rows":
        """The rows of some items, once those ``inside`` are in the offer and all others are not."""
        if not len(self.limits):
            return Rows()
        limits = self.limits - self.factors[:, inside].sum(axis=1)
        return Rows(np.ascontiguousarray(self.factors[:, codes]), limits)

    def follow(self, state: Bytes) -> bool:
        """Fix the items that a row leaves no choice about, in place; False where one cannot be kept.

        A row's sum is least with all free items that lower it, and none of the others. An item without which, or with
        which, even that exceeds the limit is decided.
        """
        for factors, limit in zip(self.factors, self.limits.tolist(), strict=True):
            free = state == FREE
            least = int(factors[state == IN].sum() + np.minimum(factors[free], 0).sum())
            if least > limit:
                return False
            state[free & (factors > limit - least)] = OUT
            state[free & (-factors > limit - least)] = IN
        return True


def make_rows(size: int, rows: Iterable[Row]) -> Rows:
    """Rows over ``size`` items.

    >>> one_of = ((), (0, 1), -1)
    >>> rows = make_rows(3, [one_of])
    >>> rows.allow(np.array([False, True, True])), rows.allow(np.array([False, False, True]))
    (True, False)
    """
    given = list(rows)
    factors = np.zeros((len(given), size), dtype=np.int64)
    for number, (plus, minus, _) in enumerate(given):
        factors[number, list(plus)] += 1
        factors[number, list(minus)] -= 1
    return Rows(factors, np.array([limit for *_, limit in given], dtype=np.int64)) if given else Rows()
