"""The compiled loop that reads many rankings off one run of the lattice program, for column generation."""

import numpy as np

from rankstream._core.compiling import compiled
from rankstream._core.types import Codes, Vec, Words
from rankstream.oracles.lattice_kernels import cheapest_on_lattice


@compiled
def columns_on_lattice(
    costs: Vec,
    numbers: Codes,
    shape: Codes,
    program: Words,
    work: Vec,
    space: Codes,
    beginnings: Codes,
    rankings: Codes,
) -> float:
    """Write the cheapest ranking, then the cheapest with each beginning; returns the least cost, NaN for bad costs."""
    unforced = np.empty(0, dtype=np.int64)
    least = cheapest_on_lattice(costs, numbers, shape, program, work, space, unforced, rankings[0])
    # the tables have not been filled, so there is nothing to read
    if np.isnan(least):
        return least
    for row in range(beginnings.shape[0]):
        beginning, ranking = beginnings[row], rankings[row + 1]
        # no program: the tables of the first call are read again, since only the beginning is another
        cheapest_on_lattice(costs, numbers, shape, program[:0], work, space, beginning, ranking)
    return least
