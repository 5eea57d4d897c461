"""The tie rule: which ranking is kept where several are equally cheap; and what all oracles with such a rule share."""

from typing import Literal

import numpy as np

from rankstream._core.arguments import whole_number
from rankstream._core.types import Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.oracles import tie_kernels as kernels

Ties = Literal["first", "last", "random"]
TIE_RULES = {"first": kernels.FIRST, "last": kernels.LAST, "random": kernels.RANDOM}


class TieRule:
    """Offers, and which of the rankings with the same vertex is kept: what oracles begin with.

    The rule ranks from the top, choosing among the items that may come next without changing what is chosen from any
    offer. ``"first"`` takes them in their order and the no-choice item as late as possible, ``"last"`` that item as
    soon as possible and the others in reverse order, ``"random"`` one of them uniformly, from a hash of the seed and
    the vertex. So the same costs always get the same answer, equal vertices are completed alike, and different ones
    independently. Where different vertices are equally cheap, the first items win them (with ``"last"``, the last).
    """

    def __init__(self, assortments: Assortments, ties: Ties = "random", seed: int = 0) -> None:
        if ties not in TIE_RULES:
            raise ValueError(f"Unknown tie rule {ties!r}: choose one of {', '.join(map(repr, TIE_RULES))}.")
        if whole_number("seed", seed) >= 2**63:
            raise ValueError(f"The seed {seed} is too large: it must be below 2**63.")
        self.assortments, self.ties, self.seed = assortments, ties, seed
        self._universal = -1 if assortments.no_choice_code is None else assortments.no_choice_code
        self._shape = assortments.indptr, assortments.members

    def keep(self, costs: Vec, ranking: Codes) -> float:
        """Replace a ranking, in place, by the one that is kept of its vertex; return what it costs."""
        rule, pairs = (self._universal, TIE_RULES[self.ties], self.seed), self.assortments.precedence.pairs
        return kernels.keep_by_rule(costs, *self._shape, *rule, True, pairs, ranking)

    def kept(self, orders: Codes) -> Codes:
        """The rankings, one per row, that are kept of the same vertices; they must respect the order of the items."""
        rankings, free = np.array(orders, dtype=np.int64), np.zeros(self.assortments.n_coordinates)
        self.assortments.precedence.check(rankings)
        for ranking in rankings:
            self.keep(free, ranking)
        return rankings
