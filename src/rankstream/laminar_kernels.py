"""The compiled loops of the laminar oracle, linear in the number of entries."""

import numpy as np

from rankstream._core.compiling import compiled
from rankstream._core.types import Codes, Vec


@compiled
def choose_winners(
    entries: Vec, starts: Codes, above: Codes, inner: Codes, stop: float, whole: Vec, won: Vec, winner: Codes
) -> None:
    """The cheapest winner of every offer of a laminar family, smaller offers first.

    ``won[e]`` is the least cost of an offer and all inside it if the entry's item is the best ranked: its own cost, the
    least of each offer inside without the item, and ``won`` of the one inside that holds it (``inner[e]``, -1: none).
    ``whole`` is the least over all items, or ``stop`` where the no-choice item may win. ``winner`` becomes the entry of
    the best ranked item of every offer, -1 for no-choice; ``above`` is the smallest offer around each, -1 for none.
    """
    n_offers = starts.size - 1
    inside = np.zeros(n_offers)
    owner = np.zeros(entries.size, dtype=np.int64)
    for v in range(n_offers):
        best = stop
        winner[v] = -1
        for e in range(starts[v], starts[v + 1]):
            owner[e] = v
            won[e] = entries[e] + inside[v]
            if inner[e] >= 0:
                won[e] += won[inner[e]] - whole[owner[inner[e]]]
            if won[e] < best:
                best = won[e]
                winner[v] = e
        whole[v] = best
        if above[v] >= 0:
            inside[above[v]] += best
    for v in range(n_offers - 1, -1, -1):
        if above[v] < 0:
            continue
        over = winner[above[v]]
        if over < 0:
            winner[v] = -1
        elif inner[over] >= 0 and owner[inner[over]] == v:
            winner[v] = inner[over]
