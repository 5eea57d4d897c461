"""The oracle protocol: from costs to a cheapest ranking, chosen by a tie rule, with a proven bound."""

from abc import ABC, abstractmethod
from itertools import permutations
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core import ROUNDING, Codes, Vec, whole_number
from rankstream.data.assortments import Assortments
from rankstream.oracles import tie_kernels as kernels
from rankstream.oracles.walk_kernels import WalkTable, read_ranking

Ties = Literal["first", "last", "random"]
TIE_RULES = {"first": kernels.FIRST, "last": kernels.LAST, "random": kernels.RANDOM}


class TieRule:
    """The tie rule: which ranking to return among those with the same vertex. A base class of oracles.

    The rule ranks from the top, choosing among the items that can come next without changing any choice. ``"first"``
    takes them in their order and the no-choice item as late as possible; ``"last"`` takes that item as early as
    possible and the others in reverse order; ``"random"`` draws uniformly, from a hash of the seed and the vertex. So
    equal costs have equal answers, equal vertices equal rankings, and different vertices independent ones. Between
    vertices of equal cost, the first items win (with ``"last"``, the last).
    """

    def __init__(self, assortments: Assortments, ties: Ties = "random", seed: int = 0) -> None:
        if ties not in TIE_RULES:
            raise ValueError(f"Unknown tie rule {ties!r}: choose one of {', '.join(map(repr, TIE_RULES))}.")
        if whole_number("seed", seed) >= 2**63:
            raise ValueError(f"The seed {seed} is too large: it must be below 2**63.")
        self.assortments, self.ties, self.seed = assortments, ties, seed
        self._universal = -1 if assortments.no_choice_code is None else assortments.no_choice_code
        self._shape = assortments.indptr, assortments.members
        self._rule = kernels.TieBreak(self._universal, TIE_RULES[ties], seed, assortments.precedence.pairs)

    def keep(self, costs: Vec, ranking: Codes) -> float:
        """Replace a ranking, in place, by the rule's choice for its vertex; return its cost."""
        return kernels.keep_by_rule(costs, *self._shape, self._rule, True, ranking)

    def kept(self, orders: Codes) -> Codes:
        """Return the rule's choice for the vertex of every row; the rows must respect the order of the items."""
        rankings, free = np.array(orders, dtype=np.int64), np.zeros(self.assortments.n_coordinates)
        self.assortments.precedence.check(rankings)
        for ranking in rankings:
            self.keep(free, ranking)
        return rankings


class Answer(NamedTuple):
    """A ranking (a full permutation of item codes, best first), its cost, and a bound <= the true minimum <= value.

    Both inequalities hold up to rounding, for which certificates leave a margin.
    """

    ranking: Codes
    value: float
    bound: float

    @property
    def exact(self) -> bool:
        """Whether the ranking is proven cheapest."""
        return self.bound == self.value


class Oracle(Protocol):
    """The combinatorial subproblem of the paper's Section 4.3: min over rankings of ``<costs, a(ranking)>``.

    An oracle belongs to one thread, since most keep tables, pools or counts between calls. Pickled copies are
    independent.
    """

    def cheapest(self, costs: Vec) -> Answer:
        """Return a cheapest ranking for one cost per coordinate."""


class Explained(Oracle, Protocol):
    """An oracle that can explain why it was chosen."""

    def explain(self) -> str:
        """Say why this oracle was chosen."""


def beginnings(assortments: Assortments, length: int) -> list[tuple[int, ...]]:
    """Return all beginnings of a ranking with ``length`` items that respect the order, if there is one.

    >>> beginnings(Assortments([("a", "b", "c")], order=[("a", "b")]), 2)
    [(0, 1), (0, 2), (2, 0)]
    """
    every = list(permutations(range(assortments.n_items), length))
    if not assortments.order:
        return every
    before = [set(np.flatnonzero(column).tolist()) for column in assortments.precedence.above.T]
    return [items for items in every if all(before[item] <= set(items[:place]) for place, item in enumerate(items))]


class TableOracle(TieRule, ABC):
    """An oracle with a table: one run gives a cheapest ranking for each of many beginnings."""

    @abstractmethod
    def beginning_with(self, first: list[tuple[int, ...]], costs: ArrayLike) -> list[Answer]:
        """Return the cheapest ranking for every beginning; each bound is that of the whole problem."""

    def cheapest(self, costs: ArrayLike) -> Answer:
        """Return the cheapest ranking, proven: bound and value are equal."""
        return self.beginning_with([()], costs)[0]

    def _read(
        self, first: list[tuple[int, ...]], costs: Vec, above_end: Vec, table: WalkTable
    ) -> list[tuple[Codes, float]]:
        """Read the best completion of every beginning from a table filled with costs above no-choice."""
        shape = above_end, *self._shape, self._rule, table
        answers = []
        for beginning in first:
            ranking, forced = np.empty(self.assortments.n_items, np.int64), np.array(beginning, dtype=np.int64)
            value = read_ranking(costs, *shape, forced, ranking)
            answers.append((ranking, value))
        return answers

    def cheapest_by_first(self, costs: ArrayLike) -> list[Answer]:
        """Return the cheapest ranking for every possible first item, in the order of the items.

        All bounds are that of the whole problem, so only the best answers are exact. Column generation uses them all.

        >>> from rankstream.oracles import DenseOracle
        >>> oracle = DenseOracle(Assortments([("tea", "cake"), ("tea", "pie")]))
        >>> [answer.value for answer in oracle.cheapest_by_first([0.0, 1.0, 1.0, 0.0])]
        [1.0, 1.0, 0.0]
        """
        return self.beginning_with(beginnings(self.assortments, 1), costs)

    def cheapest_by_first_pair(self, costs: ArrayLike) -> list[Answer]:
        """Return the cheapest ranking for every possible first pair, in the order of ``itertools.permutations``."""
        return self.beginning_with(beginnings(self.assortments, 2), costs)


def check_costs(assortments: Assortments, costs: ArrayLike) -> Vec:
    """Return the costs as a contiguous vector of the right length."""
    vector = np.ascontiguousarray(costs, dtype=np.float64)
    if vector.shape != assortments.members.shape:
        size = assortments.n_coordinates
        raise ValueError(f"There must be {size} costs, one per coordinate; got {vector.shape}.")
    return vector


def finite_costs(assortments: Assortments, costs: ArrayLike) -> Vec:
    """Check also that the costs and their sum are finite, for oracles that would not notice by themselves."""
    vector = check_costs(assortments, costs)
    with np.errstate(over="ignore"):
        total = np.abs(vector).sum()
    if not np.isfinite(total):
        raise ValueError("The costs contain NaN or infinity: every cost must be a finite number.")
    return vector


def meet(bound: float, value: float, costs: Vec) -> float:
    """Return a bound of at most the value, and exactly the value if they differ only by rounding."""
    rounding = ROUNDING * costs.size * float(np.abs(costs).sum())
    return value if bound >= value - rounding else bound
