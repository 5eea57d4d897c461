"""The paper's integer program (Section 4.3) in HiGHS: slow, and independent of our dynamic programs.

Benchmarks, tests and the study compare the oracles of the package with it.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise, permutations, product

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.types import Label
from rankstream.columns.master import quiet_highs
from rankstream.data.assortments import Assortments
from rankstream.oracles.protocol import Answer, finite_costs

COST_EXPONENT = 10  # costs are scaled to at most 2^10, for the solver's tolerances are absolute, 1e-6 the coarsest
COST_PRECISION = 1e-9
"""Times the sum of the absolute costs: how well the solver then knows a minimum."""


class MilpOracle:
    """Order variables for pairs of items, O(n^3) transitivity rows, and one choice variable per coordinate.

    The program is built once; a call changes only its objective. It takes side constraints that the dynamic programs
    cannot: ``before`` has pairs of items of which the first must be ranked above the second, ``top`` the items that
    must come first, in this order. It also respects the order of the assortments. "Exact" means up to 1e-9 times the
    sum of the absolute costs.

    Examples
    --------
    >>> oracle = MilpOracle(Assortments([("tea", "cake"), ("tea", "pie")]))
    >>> answer = oracle.cheapest([0.0, 1.0, 1.0, 0.0])
    >>> answer.ranking, answer.value
    (array([2, 0, 1]), 0.0)
    """

    def __init__(
        self, assortments: Assortments, before: Iterable[tuple[Label, Label]] = (), top: Sequence[Label] = ()
    ) -> None:
        self.assortments = assortments
        self._pairs = {pair: k for k, pair in enumerate(combinations(range(assortments.n_items), 2))}
        self._highs = quiet_highs(mip_rel_gap=0.0, mip_abs_gap=0.0)
        self._build()
        rest = [item for item in assortments.items if item not in top]
        pairs = [*before, *combinations(top, 2), *product(top, rest)]
        above = np.argwhere(assortments.precedence.above)  # with implied pairs: redundant rows help the solver
        pairs += [(assortments.items[a], assortments.items[b]) for a, b in above.tolist()]
        for better, worse in pairs:
            codes = assortments.code(better), assortments.code(worse)
            if codes[0] == codes[1]:
                raise ValueError(f"The item {better!r} cannot be ranked before itself: use two different items.")
            self._add_row([(*codes, 1.0)], [], 1.0, 1.0)

    def _build(self) -> None:
        import highspy

        integer, infinity = highspy.HighsVarType.kInteger, highspy.kHighsInf
        n_pairs, n_choices = len(self._pairs), self.assortments.n_coordinates
        for column in range(n_pairs + n_choices):
            self._highs.addVar(0.0, 1.0)
            if column < n_pairs:
                self._highs.changeColIntegrality(column, integer)
        for a, b, c in permutations(range(self.assortments.n_items), 3):
            if a < b and a < c:  # one representative of each of the two cyclic orders
                self._add_row([(a, b, 1.0), (b, c, 1.0), (c, a, 1.0)], [], -infinity, 2.0)
        members, indptr = self.assortments.members.tolist(), self.assortments.indptr.tolist()
        for start, stop in pairwise(indptr):
            self._add_row([], [(k, 1.0) for k in range(start, stop)], 1.0, 1.0)
            for k in range(start, stop):
                for other in range(start, stop):
                    if other != k:
                        self._add_row([(members[k], members[other], -1.0)], [(k, 1.0)], -infinity, 0.0)

    def _add_row(
        self, before: list[tuple[int, int, float]], choices: list[tuple[int, float]], low: float, high: float
    ) -> None:
        """Add a row over "a is ranked before b" terms, written with a < b only, and choice terms."""
        columns = [self._pairs[min(a, b), max(a, b)] for a, b, _ in before]
        columns += [len(self._pairs) + k for k, _ in choices]
        values = [factor if a < b else -factor for a, b, factor in before] + [factor for _, factor in choices]
        fixed = sum(factor for a, b, factor in before if a > b)  # as before(a, b) = 1 - before(b, a)
        self._highs.addRow(low - fixed, high - fixed, len(columns), np.array(columns, np.int32), np.array(values))

    def cheapest(self, costs: ArrayLike) -> Answer:
        """Return a cheapest ranking, with the solver's bound (or the value, within its precision)."""
        vector = finite_costs(self.assortments, costs)
        n_pairs = len(self._pairs)
        columns = np.arange(n_pairs, n_pairs + vector.size, dtype=np.int32)
        size = np.frexp(np.abs(vector).max())[1] - COST_EXPONENT  # a power of 2, so that scaling is exact
        self._highs.changeColsCost(vector.size, columns, np.ldexp(vector, -size))
        self._highs.run()
        if self._highs.modelStatusToString(self._highs.getModelStatus()) == "Infeasible":
            raise ValueError("No ranking meets all the side constraints: relax one of them.")
        solution = self._highs.getSolution().col_value
        wins = np.zeros(self.assortments.n_items)
        for (a, b), column in self._pairs.items():
            wins[a if solution[column] > 0.5 else b] += 1.0
        ranking = np.argsort(-wins, kind="stable")
        value = float(vector @ self.assortments.vertex(ranking))
        bound = float(np.ldexp(self._highs.getInfo().mip_dual_bound, size)) if self._pairs else value
        return Answer(ranking, value, value if bound >= value - COST_PRECISION * float(np.abs(vector).sum()) else bound)
