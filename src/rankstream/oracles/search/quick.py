"""For markets that grow while they are followed: a search whose work is limited, with a bound that needs no tables."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.types import Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.oracles.protocol import Answer, finite_costs, meet
from rankstream.oracles.search import local_kernels as search_kernels
from rankstream.oracles.search.local import index_offers
from rankstream.oracles.tie_kernels import hashed
from rankstream.oracles.ties import TIE_RULES, TieRule, Ties

LOOKS_PER_COORDINATE, MIN_LOOKS = 6, 100_000  # how many coordinates a call may look at, whichever is more


class QuickOracle(TieRule):
    """Inserts items at their best positions, starting from the answer that it was to follow.

    Neither making it nor asking it takes more than a few passes over the coordinates, however the offers overlap. The
    bound lets every offer choose its cheapest item: it holds for every ranking, and is far off where offers disagree.
    Asking changes nothing: only ``follow`` lets the next search start from the last answer, and with another item.
    Where there is an order, every ranking keeps it.

    Parameters
    ----------
    assortments : Assortments
        The offers.
    ties : "random", "first" or "last"
        Where an item goes among equally good positions.
    seed : int
        Seed of ties.
    turn : int
        How many answers were followed so far: it says which item is the next to be inserted.
    start : array, optional
        The ranking that a search starts from; by the codes without it, as far as the order allows.

    >>> oracle = QuickOracle(Assortments([("tea", "cake", "nothing"), ("tea", "pie", "nothing")]))
    >>> answer = oracle.cheapest([-1.0, 2.0, 0.0, 1.5, -1.0, 0.0])
    >>> answer.value, answer.bound
    (-2.0, -2.0)

    """

    def __init__(
        self, assortments: Assortments, ties: Ties = "random", seed: int = 0, turn: int = 0, start: Codes | None = None
    ) -> None:
        super().__init__(assortments, ties, seed)
        self.turn = turn
        self.start: Codes = assortments.precedence.sequence.copy() if start is None else start
        assortments.precedence.check(np.atleast_2d(self.start))
        self._answered = self.start
        self._offers = index_offers(assortments)
        self._sizes = np.diff(assortments.indptr)

    def cheapest(self, costs: ArrayLike) -> Answer:
        """Return the ranking that the search comes to, its cost, and what all offers cost at least."""
        vector, offers = finite_costs(self.assortments, costs), self.assortments
        candidates = np.vstack([self.start, self._sorted(vector)])
        values = search_kernels.pool_costs(vector, self._offers, np.argsort(candidates, axis=1))
        order = np.ascontiguousarray(candidates[int(values.argmin())])
        seed, first = np.uint64(hashed(np.uint64(self.seed), np.uint64(self.turn))), self._first()
        work = max(MIN_LOOKS, LOOKS_PER_COORDINATE * offers.n_coordinates)
        search_kernels.improve(vector, self._offers, order, TIE_RULES[self.ties], seed, first, work)
        value = float(search_kernels.pool_costs(vector, self._offers, np.argsort(order)[None, :])[0])
        self._answered = order
        least = float(np.minimum.reduceat(vector, offers.indptr[:-1]).sum())
        return Answer(order, value, meet(least, value, vector))

    def _sorted(self, costs: Vec) -> Codes:
        """The items by what they cost more than the mean of their offers, the cheapest first, in the order if any."""
        offers = self.assortments
        means = np.add.reduceat(costs, offers.indptr[:-1]) / self._sizes
        excess = np.bincount(offers.members, costs - means[offers.owner], offers.n_items)
        found = np.argsort(excess, kind="stable")
        if offers.order:
            search_kernels.put_in_order(self._offers.pairs, found, np.argsort(found))
        return found

    def _first(self) -> int:
        """The item to begin with: an answer's work may not reach all of them, so that the next ones begin elsewhere."""
        return int(hashed(np.uint64(self.turn), np.uint64(1)) >> np.uint64(11)) % self.assortments.n_items

    def follow(self) -> None:
        """Start the next search from the last answer."""
        self.start, self.turn = self._answered, self.turn + 1

    def memory(self) -> dict[str, Any]:
        """What it was told, as arrays: with it, a copy answers as this one would."""
        return {"start": self.start}

    def remember(self, memory: dict[str, Any]) -> None:
        """Restore the state that ``memory`` returned."""
        start = np.array(memory["start"]).astype(np.int64, casting="same_kind")
        if start.shape != self.start.shape or not np.array_equal(np.sort(start), np.arange(start.size)):
            raise ValueError("a ranking that its oracle knows does not order all items")
        self.assortments.precedence.check(start[None, :])
        self.start = start

    def explain(self) -> str:
        """Say why this oracle was chosen."""
        number = self.assortments.n_coordinates
        return f"by a search of {LOOKS_PER_COORDINATE} steps for each of {number:,} coordinates, with a wide bound"

    def __reduce__(self) -> tuple[Any, ...]:
        return QuickOracle, (self.assortments, self.ties, self.seed, self.turn, self.start)
