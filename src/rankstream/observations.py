"""Reading records: from what people have, rows of offers and choices, to ChoiceCounts."""

import numpy as np

from rankstream._types import Codes, Mask, Vec
from rankstream.assortments import Assortments
from rankstream.counts import ChoiceCounts


def count_availability(
    available: Mask, chosen: Codes, weight: Vec, before: ChoiceCounts | None = None
) -> tuple[ChoiceCounts, bool]:
    """Counts of rows of an availability matrix, items being column numbers; and whether there were new offers.

    Offers are numbered by their columns, not by their rows, so that the order of the rows does not matter.

    >>> rows = np.array([[True, True, False], [True, True, False], [False, True, True]])
    >>> counts, _ = count_availability(rows, np.array([0, 1, 2]), np.ones(3))
    >>> counts.assortments.offers, counts.tallies
    (((1, 2), (0, 1)), array([0., 1., 1., 1.]))
    """
    counted = weight > 0.0
    available, chosen, weight = available[counted], chosen[counted], weight[counted]
    rows, row_of = np.unique(available, axis=0, return_inverse=True)
    offers = [tuple(np.flatnonzero(row).tolist()) for row in rows]
    if before is None:
        counts, grew = ChoiceCounts(Assortments(offers, range(available.shape[1]))), True
    else:
        known = set(before.assortments.offers)
        new = [offer for offer in offers if offer not in known]
        counts, grew = (before.extend(new), True) if new else (before.copy(), False)
    starts = np.array([counts.assortments.coordinate(offer, offer[0]) for offer in offers])
    inside = np.cumsum(available, axis=1)[np.arange(len(chosen)), chosen] - 1
    counts.observe_coordinates(starts[row_of.ravel()] + inside, weight)
    return counts, grew
