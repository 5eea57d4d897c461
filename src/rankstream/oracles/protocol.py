"""What an oracle is: it answers a cost vector with a cheapest ranking and a proven bound."""

from itertools import permutations
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.rounding import ROUNDING
from rankstream._core.types import Codes, Vec
from rankstream.data.assortments import Assortments


class Answer(NamedTuple):
    """A ranking (a full permutation of item codes, best first), its cost, and a bound <= the true minimum <= value.

    Numbers are sums of floats: both inequalities hold up to rounding, for which certificates leave room.
    """

    ranking: Codes
    value: float
    bound: float

    @property
    def exact(self) -> bool:
        """Whether the ranking is proven cheapest."""
        return self.bound == self.value


class Oracle(Protocol):
    """The combinatorial subproblem of the paper's Section 4.3: min over rankings of <costs, a(ranking)>.

    An oracle belongs to one thread: most keep tables, pools or counts between calls. Copies (pickled) are independent.
    """

    def cheapest(self, costs: Vec) -> Answer:
        """A cheapest ranking for one cost per coordinate."""


class Explained(Oracle, Protocol):
    """An oracle that says why it was chosen."""

    def explain(self) -> str:
        """Why this oracle, in words."""


def beginnings(assortments: Assortments, length: int) -> list[tuple[int, ...]]:
    """All ways to begin a ranking with ``length`` items; where there is an order, those that respect it.

    >>> beginnings(Assortments([("a", "b", "c")], order=[("a", "b")]), 2)
    [(0, 1), (0, 2), (2, 0)]
    """
    every = list(permutations(range(assortments.n_items), length))
    if not assortments.order:
        return every
    before = [set(np.flatnonzero(column).tolist()) for column in assortments.precedence.above.T]
    return [items for items in every if all(before[item] <= set(items[:place]) for place, item in enumerate(items))]


def check_costs(assortments: Assortments, costs: ArrayLike) -> Vec:
    """The costs as a contiguous vector of the right length."""
    vector = np.ascontiguousarray(costs, dtype=np.float64)
    if vector.shape != assortments.members.shape:
        size = assortments.n_coordinates
        raise ValueError(f"There must be {size} costs, one per coordinate; got {vector.shape}.")
    return vector


def finite_costs(assortments: Assortments, costs: ArrayLike) -> Vec:
    """The same, of costs that are all finite, as is their sum; for oracles whose own work would not notice."""
    vector = check_costs(assortments, costs)
    with np.errstate(over="ignore"):
        total = np.abs(vector).sum()
    if not np.isfinite(total):
        raise ValueError("The costs contain NaN or infinity: every cost must be a finite number.")
    return vector


def meet(bound: float, value: float, costs: Vec) -> float:
    """A bound that is no more than the value, and the value itself where only rounding is between them."""
    rounding = ROUNDING * costs.size * float(np.abs(costs).sum())
    return value if bound >= value - rounding else bound
