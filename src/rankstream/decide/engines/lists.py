"""Wish lists of a ranking model: which of the undecided items customers want, and a local search on them."""

from dataclasses import dataclass

import numpy as np

from rankstream._core import Bytes, Codes, Mask, Vec, Watch, unwatched
from rankstream.decide.engines import list_kernels as kernels
from rankstream.decide.problem.offers import OfferProblem, some_offer
from rankstream.decide.problem.rules import IN, Rules
from rankstream.models.rankings import RankingModel

MIN_GAIN = 1e-12  # of a change, per customer: less is rounding
STEPS_AT_ONCE = 64
"""Steps between two checks of the time: milliseconds, by no benchmark."""
Found = dict[bytes, float]
"""Feasible offers of free items and their values."""


@dataclass(frozen=True, eq=False)
class Lists:
    """Rankings of the free items, each cut at the first item that is always on offer; equal ones are merged.

    ``free`` has the free items' numbers in the model, ``margin`` and ``cost`` their margins and listing costs,
    ``fixed_cost`` is the listing cost of required items. See ``list_kernels``.
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
        """The arguments of the kernels."""
        return kernels.WishLists(self.start, self.item, self.weight, self.end, self.margin)

    def value(self, mask: Bytes) -> float:
        """Return the expected margin minus listing costs of some free items with the required ones."""
        return kernels.earned(self.arrays, mask) - float(self.cost @ mask) - self.fixed_cost

    def whole(self, problem: OfferProblem, mask: Bytes) -> Mask:
        """Return for every item of the model whether it is in the offer."""
        inside: Mask = problem.state == IN
        inside[self.free[mask > 0]] = True
        return inside


def make_lists(model: RankingModel, problem: OfferProblem) -> Lists:
    """Return the wish lists of a ranking model under a problem's constraints."""
    free, n_items = problem.free, len(problem.items)
    place = np.full(n_items, -1, dtype=np.int64)
    place[free] = np.arange(free.size)
    place[problem.always] = -2
    orders, weights = model.orders[model.weights > 0.0], model.weights[model.weights > 0.0]
    places = place[orders]
    ends = places == -2
    listed = (places >= 0) & (np.cumsum(ends, axis=1) == 0)
    # a row has the listed items in order, then -1 as padding, and last the item that ends the list
    turn = np.argsort(~listed, axis=1, kind="stable")
    rows = np.full((len(orders), n_items + 1), -1, dtype=np.int64)
    rows[:, :-1] = np.take_along_axis(np.where(listed, places, -1), turn, axis=1)
    ended = ends.any(axis=1)
    rows[ended, -1] = orders[ended, ends[ended].argmax(axis=1)]
    keys = rows.view(np.dtype((np.void, rows.itemsize * (n_items + 1)))).ravel()
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    wanted, enders = rows[first, :-1], rows[first, -1]
    start, weight = np.append(0, np.cumsum((wanted >= 0).sum(axis=1))), np.bincount(number.ravel(), weights)
    return Lists(
        free, start, wanted[wanted >= 0], weight.astype(np.float64, copy=False),
        np.where(enders >= 0, problem.margins[enders], 0.0), problem.margins[free], problem.costs[free],
        float(problem.costs[problem.state == IN].sum()),
    )  # fmt: skip


def climb(lists: Lists, rules: Rules, mask: Bytes, found: Found, watch: Watch = unwatched) -> None:
    """Improve a feasible offer until no single change helps; add every step to ``found``."""
    steps, values = np.zeros((STEPS_AT_ONCE, mask.size), dtype=np.int8), np.zeros(STEPS_AT_ONCE)
    arguments = lists.arrays, rules.arrays, lists.cost, MIN_GAIN
    while True:
        done = kernels.climb(*arguments, mask, steps, values)
        for number in range(done):
            found[steps[number].tobytes()] = float(values[number]) - lists.fixed_cost
        if done < STEPS_AT_ONCE or watch("local search"):
            return


def local_search(
    lists: Lists, problem: OfferProblem, starts: int = 4, seed: int = 0, watch: Watch = unwatched
) -> Found:
    """Return feasible offers with their values; no single change improves the best of them.

    The first start is the smallest offer; the others are random, made feasible by leaving items out. Raises a
    ValueError if no offer is feasible.
    """
    random, n = np.random.default_rng(seed), lists.margin.size
    rules = problem.free_rules
    found: Found = {}
    for number in range(starts):
        mask = np.zeros(n, dtype=np.int8)
        if number:
            for code in random.permutation(n)[: max(1, rules.most)]:
                mask[code] = 1
                if not kernels.fits(mask, rules.arrays):
                    mask[code] = 0
        if not kernels.fits(mask, rules.arrays):
            if found:
                continue
            mask = some_offer(problem)[lists.free].astype(np.int8)
        climb(lists, rules, mask, found, watch)
        if watch("local search"):
            break
    return found
