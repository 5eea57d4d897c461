"""Compiled loops: the vertex of a ranking, and the choice shares of a mixture of rankings."""

import numpy as np

from rankstream._core.compilation import compiled
from rankstream._core.types import Codes, Vec


@compiled
def add_choices(rankings: Codes, weights: Vec, indptr: Codes, members: Codes, out: Vec) -> None:
    """Add every ranking's weight to its choice from each offer; ``out`` starts at the first offer's coordinate."""
    position = np.empty(rankings.shape[1], dtype=np.int64)
    for row in range(rankings.shape[0]):
        for place in range(position.size):
            position[rankings[row, place]] = place
        # ranking by ranking, so that every sum has the same order as a sum of whole vertices
        for offer in range(indptr.size - 1):
            best = indptr[offer]
            for k in range(best + 1, indptr[offer + 1]):
                if position[members[k]] < position[members[best]]:
                    best = k
            out[best - indptr[0]] += weights[row]


@compiled
def vertex(ranking: Codes, indptr: Codes, members: Codes, out: Vec) -> bool:
    """Write a(ranking), 1 where an item is the best ranked of its offer and 0 elsewhere; False if not a ranking."""
    n_items = ranking.size
    position = np.full(n_items, -1, dtype=np.int64)  # -1: not met yet
    for place in range(n_items):
        item = ranking[place]
        # an item met twice means that another is missing, as there are n_items places
        if item < 0 or item >= n_items or position[item] >= 0:
            return False
        position[item] = place
    for offer in range(indptr.size - 1):
        best = indptr[offer]
        out[best] = 0.0
        for k in range(indptr[offer] + 1, indptr[offer + 1]):
            out[k] = 0.0
            if position[members[k]] < position[members[best]]:
                best = k
        out[best] = 1.0
    return True
