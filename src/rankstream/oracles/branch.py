"""Branch and bound: exact beyond the dynamic program where it finishes in time, and honest where it does not."""

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Bits, Codes, Vec
from rankstream.data.assortments import Assortments
from rankstream.oracles.bounds.group_kernels import find
from rankstream.oracles.bounds.splitting import EPSILON, SplittingBound
from rankstream.oracles.branch_kernels import ENDS, EXACT, BranchProblem, Memo, closure, component, explore
from rankstream.oracles.protocol import Answer, finite_costs, meet
from rankstream.oracles.search import SearchOracle

MOST_ITEMS = 64
CHUNK = 2000


class BranchOracle:
    """Depth first from the top of the ranking, with the local search's ranking to beat and the groups' tables as bound.

    A node is the set of items still to be ranked. Sets are looked up in a memo, items that are in no untouched offer
    are dropped, sets that fall apart are solved part by part, and a set is given up when the groups' dynamic programs,
    with shares that ``SplittingBound`` has optimised for a third of the budget, show that it cannot lead to a cheaper
    ranking. The answer is exact if the search finishes within the budget; otherwise it is the best ranking known, with
    the best bound. An order is kept, and makes the search smaller. Rankings that differ by rounding only count as
    equal, and the first of them is the answer.

    Parameters
    ----------
    assortments : Assortments
        Offers of at most 64 items.
    budget : float
        Seconds for an answer.
    seed : int
        Seed of the local search.
    rounds : int
        Rounds of the local search that gives the ranking to beat; it takes at most a sixth of the budget.
    sweeps : int
        The most passes over the groups when the bound is optimised.
    states : int
        The most states of a group.
    memory : int
        How many sets the memo has room for.

    >>> oracle = BranchOracle(Assortments([("tea", "cake", "nothing"), ("tea", "pie", "nothing")]))
    >>> oracle.cheapest([-1.0, 2.0, 0.0, 1.5, -1.0, 0.0]).exact
    True

    """

    def __init__(
        self,
        assortments: Assortments,
        budget: float = 10.0,
        seed: int = 0,
        rounds: int = 200,
        sweeps: int = 100,
        states: int = 2000,
        memory: int = 2**20,
    ) -> None:
        if assortments.n_items > MOST_ITEMS:
            raise ValueError(
                f"{assortments.n_items} items are too many for branch and bound, which takes {MOST_ITEMS}: "
                "use SearchOracle, or leave out rare items."
            )
        self.assortments = assortments
        self.budget = number_between("budget", budget, 0.0)
        self.seed, self.rounds, self.states = seed, rounds, states
        self.sweeps = whole_number("sweeps", sweeps)
        self.memory = whole_number("memory", memory, least=2)
        self.searcher = SearchOracle(assortments, "first", seed, budget / 6.0, rounds, 0, 2)
        self.splitting = SplittingBound(assortments, states)
        universal = -1 if assortments.no_choice_code is None else assortments.no_choice_code
        masks = [sum(1 << int(i) for i in part if i != universal) for part in self._parts()]
        self._sets: Bits = np.array(masks, dtype=np.uint64)
        above = [sum(1 << i for i in np.flatnonzero(column).tolist()) for column in assortments.precedence.above.T]
        self._above: Bits = np.array(above if assortments.order else [0] * assortments.n_items, dtype=np.uint64)
        self._none: Codes = np.flatnonzero(assortments.members == universal)
        offers_of = self.splitting.groups.offers
        self._group_items: Bits = np.array([np.bitwise_or.reduce(self._sets[group]) for group in offers_of])

    def _parts(self) -> list[list[int]]:
        """The items of every offer, with all that must come after one of them."""
        offers = self.assortments
        parts = [part.tolist() for part in np.split(offers.members, offers.indptr[1:-1].tolist())]
        return [offers.precedence.closed(part) for part in parts] if offers.order else parts

    def cheapest(self, costs: ArrayLike) -> Answer:
        """The cheapest ranking if the search finishes in time, else the best so far; with a proven bound."""
        vector = finite_costs(self.assortments, costs)
        started = perf_counter()
        ranking = self.searcher.search(vector)
        value = float(vector @ self.assortments.vertex(ranking))
        bound = self.splitting.lower(vector, self.sweeps, self.budget / 3.0, target=value)
        if meet(bound, value, vector) == value:
            return Answer(ranking, value, value)
        base = float(vector[self._none].sum())
        problem, memo = self._problem(vector), self._memo()
        everything = np.uint64(closure(self._sets, np.uint64(2**64 - 1)))
        while perf_counter() - started < self.budget and 2 * memo.filled[0] < memo.keys.size:
            problem.nodes[0] = CHUNK
            reached = base + explore(problem, memo, everything, value - base, 0)
            bound = max(bound, min(reached, value))
            if problem.status[0] == EXACT:
                ranking = self._read(memo, everything)
                value = float(vector @ self.assortments.vertex(ranking))
            if problem.status[0] == EXACT or reached >= value - problem.room:
                return Answer(ranking, value, value)
        return Answer(ranking, value, meet(bound, value, vector))

    def _problem(self, costs: Vec) -> BranchProblem:
        """The tables for these costs; they are filled with the best shares."""
        relaxation = self.splitting.relaxation
        relaxation.least(self.splitting.shares)
        above = costs.copy()
        if self._none.size:
            above -= costs[self._none][self.assortments.owner]
        n_items, n_groups = self.assortments.n_items, self._group_items.size
        at = np.zeros((2 * n_items + 2, n_groups), dtype=np.int64)
        at[0] = relaxation.groups.lattices.state_ptr[1:] - 1
        return BranchProblem(
            sets=self._sets,
            above=self._above,
            indptr=self.assortments.indptr,
            members=self.assortments.members,
            costs=above,
            ends=bool(self._none.size),
            room=EPSILON * costs.size * float(np.abs(costs).sum()),
            groups=relaxation.groups.lattices,
            group_items=self._group_items,
            to_go=relaxation.to_go,
            at=at,
            status=np.zeros(at.shape[0], dtype=np.int64),
            nodes=np.zeros(1, dtype=np.int64),
            cost=np.zeros((at.shape[0], n_items)),
            estimate=np.zeros((at.shape[0], n_items)),
        )

    def _memo(self) -> Memo:
        size = 4
        while size < 2 * self.memory:
            size *= 2
        return Memo(
            keys=np.zeros(size, dtype=np.uint64),
            used=np.full(size, -1, dtype=np.int64),
            value=np.zeros(size),
            status=np.zeros(size, dtype=np.int64),
            item=np.zeros(size, dtype=np.int64),
            filled=np.zeros(1, dtype=np.int64),
        )

    def _read(self, memo: Memo, items: np.uint64) -> Codes:
        """The ranking that the memo's exact entries lead to: part by part, then no-choice, then the rest."""
        order: list[int] = []
        parts = [items]
        while parts:
            left = np.uint64(closure(self._sets, parts.pop()))
            if not left:
                continue
            part = np.uint64(component(self._sets, left))
            if part != left:
                parts += [left & ~part, part]
                continue
            item = int(memo.item[find(memo.keys, memo.used, part)])
            if item != ENDS:
                order.append(item)
                parts.append(part & ~np.uint64(1 << item))
        if self.assortments.no_choice_code is not None:
            order.append(self.assortments.no_choice_code)
        order += [item for item in range(self.assortments.n_items) if item not in order]
        # what was left out on the way wins no offer, wherever the order has it
        return self.assortments.precedence.lift(order) if self.assortments.order else np.array(order, dtype=np.int64)

    def __reduce__(self) -> tuple[Any, ...]:
        options = (self.budget, self.seed, self.rounds, self.sweeps, self.states, self.memory)
        return BranchOracle, (self.assortments, *options)
