"""Compiled loops of the quick search: the coordinates of every item, and a descent of limited work."""

import numpy as np

from rankstream._core.compiling import compiled
from rankstream._core.types import Codes, Vec
from rankstream.oracles.search_kernels import Offers, insert_best
from rankstream.oracles.tie_kernels import hashed


@compiled
def list_coordinates(members: Codes, n_items: int) -> tuple[Codes, Codes]:
    """Where each item's list begins, and all lists of coordinates one after the other: a sort in one pass."""
    begins = np.zeros(n_items + 1, dtype=np.int64)
    for k in range(members.size):
        begins[members[k] + 1] += 1
    for item in range(n_items):
        begins[item + 1] += begins[item]
    free, listed = begins[:-1].copy(), np.empty(members.size, dtype=np.int64)
    for k in range(members.size):
        listed[free[members[k]]] = k
        free[members[k]] += 1
    return begins, listed


@compiled
def improve(costs: Vec, offers: Offers, order: Codes, ties: int, seed: np.uint64, first: int, work: int) -> None:
    """Insert items at their best positions, from ``first`` on in the order of their codes, until the work is done.

    The work is how many coordinates and places are looked at. It ends before where a pass over all items saves nothing.
    """
    n_items, item, done, idle = order.size, first, 0, 0
    position, change = np.empty(n_items, dtype=np.int64), np.empty(n_items + 1)
    for place in range(n_items):
        position[order[place]] = place
    # what rounding can make of a sum over all coordinates
    room = 1e-13 * np.abs(costs).sum()
    while done < work and idle < n_items:
        for where in range(offers.item_ptr[item], offers.item_ptr[item + 1]):
            offer = offers.owner[offers.item_coordinates[where]]
            done += offers.indptr[offer + 1] - offers.indptr[offer]
        # an insertion looks at every place, too
        done += n_items
        saved = insert_best(costs, offers, order, position, item, ties, hashed(seed, np.uint64(done)), room, change)
        idle = 0 if saved > room else idle + 1
        item = item + 1 if item + 1 < n_items else 0
