"""Whether choices that were read as one market changed in the course of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankstream._core.types import Label
from rankstream.data.counts import ChoiceCounts
from rankstream.data.drift import drift_report

LEVEL = 0.01
SPLITS = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Change:
    """A change beyond noise: the time that divides the choices best, the p-value, and the item that moved most.

    ``p_value`` allows for all the offers and times looked at.
    """

    time: Any
    p_value: float
    item: Label
    points: float
    offers: int


def change_over_time(slices: Sequence[ChoiceCounts], starts: Sequence[Any], level: float = LEVEL) -> Change | None:
    """Test at a few times whether choices before and after can be those of one market; the clearest change, or None.

    ``slices`` are counts over the same assortments in the order of time, ``starts`` when each begins. Every offer is
    tested at every time, by ``drift_report``; Holm's correction for the offers is multiplied by the number of times.

    >>> from rankstream import Assortments
    >>> offers = Assortments([("tea", "pie")])
    >>> early, late = ChoiceCounts(offers, [60, 40]), ChoiceCounts(offers, [10, 90])
    >>> found = change_over_time([early, early, late, late], [1, 2, 3, 4])
    >>> found.time, found.p_value < 1e-10, found.item, round(found.points)
    (3, True, 'tea', -50)
    """
    places = sorted({round(share * len(slices)) for share in SPLITS} - {0, len(slices)})
    best: Change | None = None
    for place in places:
        before, after = (sum(part[1:], part[0]) for part in (slices[:place], slices[place:]))
        if not before.observations or not after.observations:
            continue
        report = drift_report(before, after)
        if not report.movements:
            continue
        clearest = report.movements[0]
        p_value = min(1.0, clearest.adjusted * len(places))
        if p_value < level and (best is None or p_value < best.p_value):
            item, points = _most_changed(before, after)
            best = Change(starts[place], p_value, item, points, len(report.moved))
    return best


def _most_changed(before: ChoiceCounts, after: ChoiceCounts) -> tuple[Label, float]:
    """The item whose share changed most, over all offers that were made before and after, in points."""
    offers = before.assortments
    pairs = before.totals * after.totals / np.maximum(before.totals + after.totals, 1e-300)
    weights = pairs[offers.owner]
    both = weights > 0.0
    change = np.zeros(offers.n_coordinates)
    change[both] = (after.frequencies() - before.frequencies())[both]
    total = np.bincount(offers.members, weights * change, offers.n_items)
    mean = total / np.maximum(np.bincount(offers.members, weights, offers.n_items), 1e-300)
    place = int(np.argmax(np.abs(mean)))
    return offers.items[place], 100.0 * float(mean[place])
