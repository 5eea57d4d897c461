"""NearestMixture: the mixture of known rankings nearest to a target in a weighted l2 norm, by Wolfe's method."""

from copy import copy, deepcopy
from typing import Any

import numpy as np

from rankstream._core.types import Codes, Vec, Words
from rankstream.data.assortments import Assortments
from rankstream.oracles.bounds import corral_kernels as kernels
from rankstream.oracles.bounds.corral_kernels import empty_corral


def winning_coordinates(assortments: Assortments, rankings: Codes) -> Words:
    """Return the coordinate that each ranking, a row of codes, chooses from each offer."""
    columns = np.empty((len(rankings), assortments.n_offers), dtype=np.uint32)
    kernels.winners(rankings, assortments.indptr, assortments.members, columns)
    return columns


class NearestMixture:
    """Rankings with the weights whose mixture is nearest to a target; columns are added, zero weights are dropped.

    ``squares`` are the squared weights of the offers; offers with weight 0 do not count.

    >>> offers = Assortments([("tea", "pie", "nothing"), ("tea", "nothing")])
    >>> nearest = NearestMixture(offers, np.array([0.5, 0.25, 0.25, 0.5, 0.5]), np.ones(2))
    >>> nearest.take(np.array([[0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 0, 1]]))
    True
    >>> nearest.orders.tolist(), nearest.weights.round(6).tolist()
    ([[0, 1, 2], [1, 2, 0], [2, 0, 1]], [0.5, 0.25, 0.25])
    """

    def __init__(self, assortments: Assortments, target: Vec, squares: Vec) -> None:
        self.assortments = assortments
        self.squares = np.ascontiguousarray(squares, dtype=np.float64)
        self._scale = self.squares[assortments.owner]
        self.target = np.where(self._scale > 0.0, target, 0.0)
        self.point: Vec = np.zeros(assortments.n_coordinates)
        self._corral = empty_corral(self.squares, 0)
        self._orders = np.zeros((0, assortments.n_items), dtype=np.int64)

    @property
    def count(self) -> int:
        """Number of rankings with positive weight."""
        return int(self._corral.known[0])

    @property
    def orders(self) -> Codes:
        """The rankings with positive weight, one row of codes each."""
        return self._orders[self._corral.slots[: self.count]]

    @property
    def weights(self) -> Vec:
        """Their weights."""
        return self._corral.weights[: self.count].copy()

    @property
    def squared_distance(self) -> float:
        """The squared distance of the mixture from the target."""
        residual = self.point - self.target
        return float(self._scale @ (residual * residual))

    def take(self, rankings: Codes) -> bool:
        """Add the rankings that help and drop those that no longer do. Returns whether the mixture came nearer."""
        columns = winning_coordinates(self.assortments, rankings)
        self._make_room(self.count + len(rankings) + 1)
        before = self.squared_distance if self.count else np.inf
        target, owner = self.target, self.assortments.owner
        kernels.correct(self._corral, columns, rankings, target, owner, self._orders, self.point)
        return self.squared_distance < before

    def drop(self, row: int) -> None:
        """Remove a ranking, and optimise the weights of the others."""
        kernels.remove(self._corral, row)
        self._corral.weights[: self.count] /= self._corral.weights[: self.count].sum()
        kernels.settle(self._corral, self.point)

    def aimed_at(self, target: Vec) -> "NearestMixture":
        """Return the nearest mixture of these rankings to another target.

        >>> offers = Assortments([("tea", "nothing")])
        >>> nearest = NearestMixture(offers, np.array([0.5, 0.5]), np.ones(1))
        >>> nearest.take(np.array([[0, 1], [1, 0]]))
        True
        >>> nearest.aimed_at(np.array([0.25, 0.75])).weights.tolist(), nearest.weights.tolist()
        ([0.25, 0.75], [0.5, 0.5])
        """
        twin = copy(self)
        twin.target, twin.point = np.where(self._scale > 0.0, target, 0.0), self.point.copy()
        twin._corral, twin._orders = deepcopy((self._corral, self._orders))
        kernels.retarget(twin._corral, twin.target)
        kernels.settle(twin._corral, twin.point)
        return twin

    def refresh(self) -> None:
        """Recompute the factor, which has accumulated rounding errors, and optimise the weights again."""
        kernels.refactor(self._corral, self.target)
        kernels.settle(self._corral, self.point)

    def _make_room(self, wanted: int) -> None:
        have = self._corral.slots.size
        if wanted > have:
            grown = empty_corral(self.squares, max(wanted, 2 * have, 64))
            pairs: Any = zip(self._corral[:-1], grown[:-1], strict=True)  # all but the squares
            for old, new in pairs:
                new[tuple(slice(side) for side in old.shape)] = old
            self._corral = grown
            self._orders = np.pad(self._orders, ((0, grown.slots.size - have), (0, 0)))
