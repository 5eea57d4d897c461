"""Wish lists of a ranking model: which of the undecided items customers want, and a local search by them."""

from dataclasses import dataclass

import numpy as np

from rankstream._core.types import Bytes, Codes, Mask, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.decide.engines import list_kernels as kernels
from rankstream.decide.problem.offers import OfferProblem
from rankstream.decide.problem.rules import IN, Rules
from rankstream.models.rankings import RankingModel

MIN_GAIN = 1e-12  # of a change, per customer: less is rounding
STEPS_AT_ONCE = 64
"""Steps between two questions whether there is still time: milliseconds, by no benchmark."""
Found = dict[bytes, float]
"""Feasible offers of free items and their values."""


@dataclass(frozen=True, eq=False)
class Lists:
    """Rankings of the free items, each cut at what is always on offer; see ``list_kernels``. Equal ones are merged.

    ``free`` are the free items' numbers in the model, ``margin`` and ``cost`` their margins and listing costs,
    ``fixed_cost`` the listing costs of what must be offered.
    """

    free: Codes
    start: Codes
    item: Codes
    weight: Vec
    end: Vec
    margin: Vec
    cost: Vec
    fixed_cost: float

    @property
    def arrays(self) -> kernels.WishLists:
        """What the kernels take."""
        return kernels.WishLists(self.start, self.item, self.weight, self.end, self.margin)

    def value(self, held: Bytes) -> float:
        """Expected margin less listing costs, of an offer of free items beside what must be offered."""
        return kernels.earned(self.arrays, held) - float(self.cost @ held) - self.fixed_cost

    def whole(self, problem: OfferProblem, held: Bytes) -> Mask:
        """For every item of the model, whether it is in the offer."""
        inside: Mask = problem.state == IN
        inside[self.free[held > 0]] = True
        return inside


def make_lists(model: RankingModel, problem: OfferProblem) -> Lists:
    """The wish lists of a ranking model under a problem's constraints."""
    free, n_items = problem.free, len(problem.items)
    place = np.full(n_items, -1, dtype=np.int64)
    place[free] = np.arange(free.size)
    place[problem.always] = -2
    kept = model.weights > 0.0
    orders, weight = np.ascontiguousarray(model.orders[kept]), np.array(model.weights[kept])
    start, end = np.zeros(len(orders) + 1, dtype=np.int64), np.zeros(len(orders))
    item, mark = np.zeros(orders.size, dtype=np.int64), np.zeros(len(orders), dtype=np.int64)
    kernels.cut(orders, place, problem.margins, start, item, end, mark)
    rows = kernels.merge(start, item, weight, end, mark, np.argsort(mark, kind="stable"))
    return Lists(
        free, start[: rows + 1], item[: start[rows]].copy(), weight[:rows], end[:rows], problem.margins[free],
        problem.costs[free], float(problem.costs[problem.state == IN].sum()),
    )  # fmt: skip


def climb(lists: Lists, rules: Rules, held: Bytes, found: Found, watch: Watch = unwatched) -> None:
    """From a feasible offer to one that no single change improves; every step is kept in ``found``."""
    steps, values = np.zeros((STEPS_AT_ONCE, held.size), dtype=np.int8), np.zeros(STEPS_AT_ONCE)
    given, allowed = lists.arrays, rules.arrays
    while True:
        done = kernels.climb(given, allowed, lists.cost, MIN_GAIN, held, steps, values)
        for number in range(done):
            found[steps[number].tobytes()] = float(values[number]) - lists.fixed_cost
        if done < STEPS_AT_ONCE or watch("local search"):
            return


def local_search(
    lists: Lists, problem: OfferProblem, starts: int = 4, seed: int = 0, watch: Watch = unwatched
) -> Found:
    """Feasible offers with their values, the best of which no single change improves.

    The first start is the smallest offer; others are random ones, made feasible by leaving items out. An infeasible
    problem is a ValueError.
    """
    random, n = np.random.default_rng(seed), lists.margin.size
    rules = problem.free_rules
    found: Found = {}
    for number in range(starts):
        held = np.zeros(n, dtype=np.int8)
        if number:
            order = random.permutation(n)
            for code in order[: max(1, rules.most)]:
                held[code] = 1
                if not kernels.fits(held, rules.arrays):
                    held[code] = 0
        if not kernels.fits(held, rules.arrays):
            if found:
                continue
            from rankstream.decide.engines.milp import some_offer

            held = some_offer(problem)[lists.free].astype(np.int8)
        climb(lists, rules, held, found, watch)
        if watch("local search"):
            break
    return found
