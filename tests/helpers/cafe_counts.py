"""The choices of a small café: three items, three offers, and what every item earns."""

import numpy as np

from rankstream import Assortments, ChoiceCounts
from rankstream._core.types import Label

ITEMS = ("tea", "pie", "cake", "no")
OFFERS = Assortments([("tea", "no"), ("pie", "cake", "no"), ("tea", "cake", "no")], ITEMS)
TALLIES = [60, 40, 30, 20, 50, 45, 25, 30]
MARGINS: dict[Label, float] = {"tea": 1.0, "pie": 2.0, "cake": 1.5}


def counts(times: int = 1) -> ChoiceCounts:
    return ChoiceCounts(OFFERS, times * np.array(TALLIES))
