"""The oracle for offers that fall apart into groups without a common item: each group is solved by itself."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.types import Codes
from rankstream.data.assortments import Assortments
from rankstream.oracles.protocol import Answer, Oracle, finite_costs
from rankstream.oracles.reductions import reduce
from rankstream.oracles.ties import TieRule, Ties

Make = Callable[[Assortments, Ties, int], Oracle]


class ComponentsOracle(TieRule):
    """One oracle per group of offers; their rankings are put one after the other, and kept by the tie rule.

    The answer is exact where all of theirs are; else its bound is theirs, and what the other offers cost anyway. Items
    that an order ties together are in one group.
    """

    def __init__(self, assortments: Assortments, make: Make, ties: Ties = "random", seed: int = 0) -> None:
        super().__init__(assortments, ties, seed)
        self.make = make
        self._parts: list[tuple[Oracle, Codes, Codes]] = []
        reduced = reduce(assortments)
        for component in reduced.components:
            own = set(reduced.items_of(component))
            touched = np.isin(assortments.members, list(own))
            if assortments.order:  # an offer that can go only one way may have other items besides
                touched &= reduced.entry_at >= 0
            numbers = np.unique(assortments.owner[touched]).tolist()
            codes = np.array(sorted(own | ({self._universal} if self._universal >= 0 else set())))
            labels = [assortments.items[code] for code in codes]
            order = [(assortments.items[a], assortments.items[b]) for a, b in assortments.precedence.among(codes)]
            part = Assortments([assortments.offers[number] for number in numbers], labels, order)
            where = np.flatnonzero(np.isin(assortments.owner, numbers))
            self._parts.append((make(part, "first", seed), where, codes))

    @property
    def parts(self) -> list[Oracle]:
        """The oracles of the components."""
        return [oracle for oracle, _, _ in self._parts]

    def cheapest(self, costs: ArrayLike) -> Answer:
        """Return the groups' cheapest rankings, one after the other."""
        vector = finite_costs(self.assortments, costs)
        above: list[int] = []
        below: list[int] = []
        slack = 0.0
        for oracle, where, codes in self._parts:
            answer = oracle.cheapest(vector[where])
            slack += answer.value - answer.bound
            ranking = codes[answer.ranking].tolist()
            end = ranking.index(self._universal) if self._universal >= 0 else len(ranking)
            above += ranking[:end]
            below += ranking[end + 1 :]
        middle = [self._universal] if self._universal >= 0 else []
        known = {*above, *middle, *below}
        rest = [code for code in range(self.assortments.n_items) if code not in known]
        whole = np.array([*above, *middle, *below, *rest], dtype=np.int64)
        if self.assortments.order:  # items of no group may have to come first, or win an offer that can go one way only
            whole = self.assortments.precedence.lift(whole.tolist())
        value = self.keep(vector, whole)
        return Answer(whole, value, value if slack == 0.0 else value - slack)

    def explain(self) -> str:
        """Say why this oracle was chosen."""
        kinds = sorted({type(oracle).__name__ for oracle, _, _ in self._parts})
        return f"part by part, with {', '.join(kinds)} ({reduce(self.assortments).explain()})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ComponentsOracle, (self.assortments, self.make, self.ties, self.seed)
