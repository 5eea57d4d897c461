"""Test whether the choices of one data set changed over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.types import Label, Vec
from rankstream.data.counts import ChoiceCounts
from rankstream.data.drift import drift_report
from rankstream.data.item_changes import ItemCells, mean_change

CHANGE_LEVEL = 0.01  # false-alarm rate of all splits together, by convention
SPLIT_SHARES = (0.25, 0.5, 0.75)  # where choices are cut in two: few places, as all tests share the level; not tuned


class RecordCounts(ChoiceCounts):
    """Counts for tests of change between two periods, in which a record with a large count is not many choices.

    A record with a count is one moment: ``effective_totals`` treat all of its choices as one customer's (Kish's
    formula). Records without counts are single choices, as in ``ChoiceCounts``.

    >>> from rankstream import Assortments
    >>> counts = RecordCounts(Assortments([("tea", "pie")]))
    >>> counts.observe([("tea", "pie")] * 3, ["tea", "tea", "pie"], [60, 60, 60])
    >>> counts.observations, counts.effective_totals
    (180, array([3.]))
    """

    forgets: ClassVar[bool] = True

    def observe_coordinates(self, coordinates: ArrayLike, count: ArrayLike = 1) -> None:
        """Add records that are already coordinates."""
        where, amounts = self._checked(coordinates, count)
        super().observe_coordinates(where, amounts)
        size = self.assortments.n_offers
        added = np.bincount(self.assortments.owner[where], weights=amounts**2, minlength=size)
        self._squares: Vec = getattr(self, "_squares", np.zeros(size)) + added

    @property
    def effective_totals(self) -> Vec:
        """For each offer, the effective number of records, at most its number of choices."""
        totals, squares = self._totals, getattr(self, "_squares", np.zeros(self._totals.size))
        return np.minimum(totals, np.divide(totals**2, squares, out=np.zeros(totals.size), where=squares > 0.0))


@dataclass(frozen=True)
class Change:
    """A significant change: the time that divides the choices best, and the item whose share changed most.

    ``p_value`` is corrected for all offers and times tested.
    """

    time: Any
    p_value: float
    item: Label
    points: float
    offers: int


def change_over_time(slices: Sequence[ChoiceCounts], starts: Sequence[Any]) -> Change | None:
    """Test whether choices changed at one of a few times; return the most significant change, or None.

    ``slices`` are counts over the same assortments in the order of time, and ``starts`` the time at which each begins.
    ``drift_report`` tests offers and items at every time; its p-values are multiplied by the number of times.

    >>> from rankstream import Assortments
    >>> offers = Assortments([("tea", "pie")])
    >>> early, late = ChoiceCounts(offers, [60, 40]), ChoiceCounts(offers, [10, 90])
    >>> change = change_over_time([early, early, late, late], [1, 2, 3, 4])
    >>> change.time, change.p_value < 1e-10, change.item, round(change.points)
    (3, True, 'tea', -50)
    """
    places = sorted({round(share * len(slices)) for share in SPLIT_SHARES} - {0, len(slices)})
    best: Change | None = None
    for place in places:
        before, after = (sum(part[1:], part[0]) for part in (slices[:place], slices[place:]))
        if not before.observations or not after.observations:
            continue
        report = drift_report(before, after)
        p_value = min(1.0, report.p_value * len(places))
        if p_value < CHANGE_LEVEL and (best is None or p_value < best.p_value):
            items = [(movement.item, 100.0 * movement.change) for movement in report.items]
            item, points = items[0] if items else _most_changed(before, after)
            best = Change(starts[place], p_value, item, points, len(report.moved))
    return best


def _most_changed(before: ChoiceCounts, after: ChoiceCounts) -> tuple[Label, float]:
    """Return the item whose share changed most over all offers of both periods, and the change in points."""
    cells = ItemCells.of(list(before.assortments.offers), np.array([before.tallies, after.tallies]))
    change = mean_change(cells)
    place = int(np.argmax(np.abs(change)))
    return cells.items[place], 100.0 * float(change[place])
