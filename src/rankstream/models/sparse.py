"""Fewer rankings for nearly the same choices: the frontier of accuracy against size."""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from rankstream._core import Codes, Label, Vec, number_between, whole_number
from rankstream.data.assortments import Assortments
from rankstream.models.nearest import NearestMixture, winning_coordinates

MAX_OFFERS = 2000  # of three items: with more, only pairs are compared, since time grows with offers
NO_ERROR = 1e-12  # rounding


@dataclass(frozen=True, eq=False)
class Frontier:
    """The least mean absolute error and the mixture for every size; errors fall with the size.

    ``orders[k]`` and ``weights[k]`` are the rankings of the k-th mixture; ``str`` returns a table.
    """

    sizes: Codes
    errors: Vec
    orders: tuple[Codes, ...]
    weights: tuple[Vec, ...]

    def pick(self, tolerance: float | None = None, max_rankings: int | None = None) -> int:
        """Return the smallest mixture within the tolerance, or the most accurate with ``max_rankings`` rankings.

        With both, the number of rankings comes first; a tolerance out of reach gives the most accurate one.
        """
        good = self.errors <= (-1.0 if tolerance is None else tolerance)
        place = int(np.argmax(good)) if good.any() else self.sizes.size - 1
        if max_rankings is None:
            return place
        return min(place, int(np.searchsorted(self.sizes, max_rankings, "right")) - 1)

    def __str__(self) -> str:
        pairs = zip(self.sizes.tolist(), self.errors.tolist(), strict=True)
        return "\n".join(["rankings  error", *(f"{size:>8}  {error:.2e}" for size, error in pairs)])


def small_offers(items: tuple[Label, ...]) -> Assortments:
    """Return all offers of two and of three items (only of two if there are many), and the offer of all items."""
    most = 3 if comb(len(items), 3) <= MAX_OFFERS else 2
    offers = [offer for size in range(2, most + 1) for offer in combinations(items, size)]
    return Assortments(dict.fromkeys([*offers, items]), items)


def frontier(
    offers: Assortments, orders: Codes, weights: Vec, tolerance: float = 0.0, max_rankings: int | None = None
) -> Frontier:
    """Return mixtures of some of the rankings that approximate the mixture of all, with their best weights in l2.

    On the way up, every step adds the ranking along which the distance falls fastest; on the way down, it drops the
    one of least weight. Each size keeps the more accurate of the two. The way down starts at an error of
    ``tolerance``, or well above ``max_rankings``, so that there is something to drop.
    """
    chosen = winning_coordinates(offers, orders)
    target: Vec = np.zeros(offers.n_coordinates)
    np.add.at(target, chosen, weights[:, np.newaxis])
    nearest = NearestMixture(offers, target, np.ones(offers.n_offers))
    best: dict[int, tuple[float, Codes, Vec]] = {}

    def note() -> float:
        error = float(np.abs(nearest.point - target).mean())
        if error < best.get(nearest.count, (np.inf,))[0]:
            best[nearest.count] = (error, nearest.orders, nearest.weights)
        return error

    top = len(orders) if max_rankings is None else 2 * max_rankings + 10
    while nearest.count <= top:
        slopes = (nearest.point - target)[chosen].sum(axis=1)
        if not nearest.take(orders[[int(np.argmin(slopes))]]) or note() <= max(tolerance, NO_ERROR):
            break
    while nearest.count > 1:
        nearest.drop(int(np.argmin(nearest.weights)))
        note()
    sizes: list[int] = []
    for size in sorted(best):
        if not sizes or best[size][0] < best[sizes[-1]][0]:
            sizes.append(size)
    errors, kept, shares = zip(*(best[size] for size in sizes), strict=True)
    return Frontier(np.array(sizes, dtype=np.int64), np.array(errors), kept, shares)


def fewer(
    offers: Assortments, orders: Codes, weights: Vec, tolerance: float | None, max_rankings: int | None
) -> tuple[Codes, Vec]:
    """Return the rankings and weights that ``Frontier.pick`` picks, largest weight first."""
    if tolerance is None and max_rankings is None:
        raise ValueError("Set the size of the model: give a tolerance, max_rankings, or both.")
    least = 0.0 if tolerance is None else number_between("tolerance", tolerance, 0.0)
    most = None if max_rankings is None else whole_number("max_rankings", max_rankings, least=1)
    mixtures = frontier(offers, orders, weights, least, most)
    place = mixtures.pick(tolerance, most)
    orders, weights = mixtures.orders[place], mixtures.weights[place]
    heaviest = np.argsort(-weights, kind="stable")
    return orders[heaviest], weights[heaviest] / weights.sum()
