"""Wish lists: what a ranking model says of the items that are still to be decided about."""

from dataclasses import dataclass, replace

import numpy as np

from rankstream._core.types import Bytes, Codes, Mask, Vec
from rankstream.decide import list_kernels as kernels
from rankstream.decide.problem import IN, OfferProblem
from rankstream.models.rankings import RankingModel


@dataclass(frozen=True, eq=False)
class Lists:
    """Rankings of the free items, each cut at what is always on offer; see ``list_kernels``. Equal ones are merged.

    ``free`` holds the free items' numbers in the model, ``margin`` and ``cost`` their margins and listing costs,
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
    orders = np.ascontiguousarray(model.orders[kept])
    start, end = np.zeros(len(orders) + 1, dtype=np.int64), np.zeros(len(orders))
    item = np.zeros(orders.size, dtype=np.int64)
    kernels.cut(orders, place, problem.margins, start, item, end)
    found = Lists(
        free, start, item[: start[-1]].copy(), np.array(model.weights[kept]), end, problem.margins[free],
        problem.costs[free], float(problem.costs[problem.state == IN].sum()),
    )  # fmt: skip
    return _merged(found)


def _merged(lists: Lists) -> Lists:
    """Lists that are equal, ends included, as one with the sum of their weights."""
    bounds, ends = lists.start.tolist(), lists.end.tolist()
    first: dict[tuple[bytes, float], int] = {}
    owner = [
        first.setdefault((lists.item[low:high].tobytes(), gain), len(first))
        for low, high, gain in zip(bounds[:-1], bounds[1:], ends, strict=True)
    ]
    if len(first) == len(owner):
        return lists
    parts = [np.frombuffer(key, dtype=np.int64) for key, _ in first]
    start = np.concatenate([[0], np.cumsum([part.size for part in parts])]).astype(np.int64)
    weight = np.bincount(owner, weights=lists.weight, minlength=len(first)).astype(np.float64)
    return replace(lists, start=start, item=np.concatenate(parts), weight=weight, end=np.array([g for _, g in first]))
