"""Wish lists: what a ranking model says of the items that are still to be decided about."""

from dataclasses import dataclass

import numpy as np

from rankstream._core.types import Bytes, Codes, Mask, Vec
from rankstream.decide import list_kernels as kernels
from rankstream.decide.problem import OfferProblem
from rankstream.decide.rows import IN
from rankstream.models.rankings import RankingModel


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
    def arrays(self) -> tuple[Codes, Codes, Vec, Vec, Vec]:
        """What the kernels take."""
        return self.start, self.item, self.weight, self.end, self.margin

    def value(self, held: Bytes) -> float:
        """Expected margin less listing costs, of an offer of free items beside what must be offered."""
        return kernels.earned(*self.arrays, held) - float(self.cost @ held) - self.fixed_cost

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
    place[problem.state == IN] = -2
    if problem.nothing >= 0:
        place[problem.nothing] = -2
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
