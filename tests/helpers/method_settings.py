"""Small counts, and settings with which every method is quick."""

from typing import Any

import rankstream as rs
from rankstream.estimation.methods import METHODS, LatentClass, MaxEntropy, Method
from rankstream.models import plackett_luce

OFFERS = rs.Assortments([("tea", "pie", "no"), ("tea", "no"), ("cake", "pie", "no"), ("cake", "tea", "no")])
COUNTS = rs.ChoiceCounts(OFFERS, [25, 15, 10, 60, 10, 20, 10, 20, 7, 3, 1])
ITEMS = OFFERS.items
PRIOR = plackett_luce(ITEMS, [1.0, 2.0, 3.0, 4.0])
QUICK: dict[str, Method] = {
    "max-entropy": MaxEntropy(prior=PRIOR),
    "latent-class": LatentClass(classes=2, starts=1),
}
"""Settings of the methods whose defaults take time."""


def settings(name: str) -> Any:
    return QUICK.get(name) or METHODS[name]()
