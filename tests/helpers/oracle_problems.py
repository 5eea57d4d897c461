"""Random problems for oracles, an oracle that gives one column, and what rounding may cost."""

import numpy as np

from rankstream import Assortments, oracles
from rankstream._core.types import Vec
from rankstream.oracles import Ties

TIES: list[Ties] = ["first", "last", "random"]


def random_problem(n: int, m: int, no_choice: bool, seed: int = 0, largest: int = 6) -> tuple[Assortments, Vec]:
    """Offers of some of n items, the no-choice item counted, with normal costs."""
    generator = np.random.default_rng([n, m, seed])
    others = n - 1 if no_choice else n
    offers = []
    for _ in range(m):
        size = int(generator.integers(1, min(others, largest) + 1))
        picked = generator.choice(others, size=size, replace=False).tolist()
        offers.append((*picked, n - 1) if no_choice else tuple(picked))
    assortments = Assortments(offers, range(n))
    return assortments, generator.normal(size=assortments.n_coordinates)


def rounding_slack(costs: Vec) -> float:
    """How far the cost of a ranking may be off by rounding."""
    return 1e-12 * (1.0 + float(np.abs(costs).sum()))


class OneColumn:
    """An oracle that can only be asked for the cheapest ranking."""

    def __init__(self, offers: Assortments) -> None:
        self.oracle = oracles.auto(offers)

    def cheapest(self, costs: Vec) -> oracles.Answer:
        return self.oracle.cheapest(costs)
