"""The compiled loop of growth: what a mixture of rankings chooses from the offers that join."""

import numpy as np

from rankstream._core.compilation import compiled
from rankstream._core.types import Codes, Vec


@compiled
def add_choices(rankings: Codes, weights: Vec, indptr: Codes, members: Codes, out: Vec) -> None:
    """Add every ranking's weight to what it chooses from each offer; ``out`` begins where the first offer does."""
    position = np.empty(rankings.shape[1], dtype=np.int64)
    for row in range(rankings.shape[0]):
        for place in range(position.size):
            position[rankings[row, place]] = place
        # one ranking after the other, so that every sum is made in the same order as of whole vertices
        for offer in range(indptr.size - 1):
            best = indptr[offer]
            for k in range(best + 1, indptr[offer + 1]):
                if position[members[k]] < position[members[best]]:
                    best = k
            out[best - indptr[0]] += weights[row]
