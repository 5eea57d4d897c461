"""NearestMixture: the mixture of known rankings nearest to a target in a weighted l2 norm, by Wolfe's method."""

from copy import copy
from typing import Any

import numpy as np

from rankstream._core.types import Codes, Vec, Words
from rankstream.data.assortments import Assortments
from rankstream.models.wolfe_kernels import correct, winners
from rankstream.oracles.bounds import corral_kernels as kernels


def winning_coordinates(assortments: Assortments, rankings: Codes) -> Words:
    """The coordinate that each ranking, a row of codes, chooses from each offer."""
    columns = np.empty((len(rankings), assortments.n_offers), dtype=np.uint32)
    winners(rankings, assortments.indptr, assortments.members, columns)
    return columns


class NearestMixture:
    """Rankings with the weights that bring their mixture nearest to a target; it grows by columns and forgets zeros.

    ``squares`` are the squared weights of the offers; those with 0 do not count, nor does the target there.

    >>> offers = Assortments([("tea", "pie", "nothing"), ("tea", "nothing")])
    >>> nearest = NearestMixture(offers, np.array([0.5, 0.25, 0.25, 0.5, 0.5]), np.ones(2))
    >>> nearest.take(np.array([[0, 1, 2], [1, 0, 2], [1, 2, 0], [2, 0, 1]]))
    True
    >>> nearest.orders.tolist(), nearest.weights.round(6).tolist()
    ([[0, 1, 2], [1, 2, 0], [2, 0, 1]], [0.5, 0.25, 0.25])
    """

    def __init__(self, assortments: Assortments, target: Vec, squares: Vec) -> None:
        self.assortments, self.count = assortments, 0
        self.squares = np.ascontiguousarray(squares, dtype=np.float64)
        self._scale = self.squares[assortments.owner]
        self.target = np.where(self._scale > 0.0, target, 0.0)
        self.point: Vec = np.zeros(assortments.n_coordinates)
        self._slots = np.zeros(0, dtype=np.int64)
        self._chosen = np.zeros((0, assortments.n_offers), dtype=np.uint32)
        self._orders = np.zeros((0, assortments.n_items), dtype=np.int64)
        self._weights, self._factor, self._sides = np.zeros(0), np.zeros((0, 0)), np.zeros((2, 0))

    @property
    def orders(self) -> Codes:
        """The rankings with positive weight, one row of codes each."""
        return self._orders[self._slots[: self.count]]

    @property
    def weights(self) -> Vec:
        """Their weights."""
        return self._weights[: self.count].copy()

    @property
    def squared_distance(self) -> float:
        """How far the mixture is from the target."""
        residual = self.point - self.target
        return float(self._scale @ (residual * residual))

    def take(self, rankings: Codes) -> bool:
        """Add the rankings that help, drop those that no longer do; False if that leads no nearer."""
        columns = winning_coordinates(self.assortments, rankings)
        self._make_room(self.count + len(rankings) + 1)
        before = self.squared_distance if self.count else np.inf
        held: Any = (self._slots, self._chosen, self._orders, self._weights, self._factor, self._sides, self.point)
        target, squares, owner = self.target, self.squares, self.assortments.owner
        self.count = correct(self.count, columns, rankings, target, squares, owner, *held)
        return self.squared_distance < before

    def drop(self, row: int) -> None:
        """Take a ranking out, and settle the weights of the others."""
        kernels.remove(self.count, row, self._slots, self._weights, self._factor, self._sides)
        self.count -= 1
        self._weights[: self.count] /= self._weights[: self.count].sum()
        self._settle()

    def aimed_at(self, target: Vec) -> "NearestMixture":
        """Another mixture of these rankings, or of some of them, that is nearest to another target.

        >>> offers = Assortments([("tea", "nothing")])
        >>> nearest = NearestMixture(offers, np.array([0.5, 0.5]), np.ones(1))
        >>> nearest.take(np.array([[0, 1], [1, 0]]))
        True
        >>> nearest.aimed_at(np.array([0.25, 0.75])).weights.tolist(), nearest.weights.tolist()
        ([0.25, 0.75], [0.5, 0.5])
        """
        other = copy(self)
        other.target, other.point = np.where(self._scale > 0.0, target, 0.0), self.point.copy()
        other._slots, other._chosen, other._orders = self._slots.copy(), self._chosen.copy(), self._orders.copy()
        other._weights, other._factor, other._sides = self._weights.copy(), self._factor.copy(), self._sides.copy()
        held = (other._slots, other._chosen, other._factor, other._sides)
        kernels.retarget(self.count, other.target, self.squares, *held)
        other._settle()
        return other

    def _settle(self) -> None:
        self.count = kernels.settle(self.count, self._slots, self._weights, self._factor, self._sides)
        kernels.mixture(self.count, self._slots, self._chosen, self._weights, self.point)

    def refresh(self) -> None:
        """Rid the factor of the rounding it has gathered, and settle the weights once more."""
        held = (self._slots, self._chosen, self._weights, self._factor, self._sides)
        self.count = kernels.refactor(self.count, self.target, self.squares, *held)
        self._settle()

    def _make_room(self, wanted: int) -> None:
        have = self._slots.size
        if wanted <= have:
            return
        more = max(wanted, 2 * have, 64) - have
        self._slots = np.append(self._slots, np.arange(have, have + more))
        self._chosen = np.pad(self._chosen, ((0, more), (0, 0)))
        self._orders = np.pad(self._orders, ((0, more), (0, 0)))
        self._weights = np.pad(self._weights, (0, more))
        self._sides = np.pad(self._sides, ((0, 0), (0, more)))
        self._factor = np.pad(self._factor, ((0, more), (0, more)))
