"""The max-difference distance: per offer, the largest excess of the model over the data (paper, Proposition 2)."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from rankstream._core.types import Mask, Vec
from rankstream.distances.bilinear import NegativeEntropy


@dataclass(frozen=True)
class MaxDifference(NegativeEntropy):
    """The sum over offers of max_i (x_ij - p_ij): the dual domain is a product of simplices, one per offer.

    It is not symmetric, but x = p is optimal whenever some ranking model has the probabilities p.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> distance = MaxDifference(Assortments([("tea", "pie", "nothing")]))
    >>> distance.value(np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.25, 0.5]))
    0.25
    """

    @property
    def width(self) -> float:
        """The sum of log |A_j|."""
        return float(np.log(np.diff(self.assortments.indptr)).sum())

    @property
    def grad_bound(self) -> float:
        """sqrt(m) in the norm dual to that of the entropy, without weights."""
        return sqrt(float((self.offer_weights**2).sum()))

    def start(self) -> Vec:
        """Uniform on every offer."""
        return (1.0 / np.diff(self.assortments.indptr))[self.assortments.owner]

    def prox(self, slope: Vec) -> Vec:
        """Offer by offer, the softmax of -slope."""
        starts, owner = self.assortments.indptr[:-1], self.assortments.owner
        out: Vec = np.exp(np.minimum.reduceat(slope, starts)[owner] - slope)
        return out / np.add.reduceat(out, starts)[owner]

    def best_dual(self, lifted: Vec) -> Vec:
        """The smoothed argmax of every offer; without smoothing, all mass on its first largest excess."""
        if self.smoothing:
            return self.prox(lifted / -self.smoothing)
        starts, owner = self.assortments.indptr[:-1], self.assortments.owner
        tops = np.maximum.reduceat(lifted, starts)
        places = np.where(lifted == tops[owner], np.arange(lifted.size), lifted.size)
        dual = np.zeros_like(lifted)
        dual[np.minimum.reduceat(places, starts)] = 1.0
        return dual

    def largest(self, lifted: Vec, smoothing: float) -> float:
        """The sum of the offers' maxima, or its smooth version."""
        starts, owner = self.assortments.indptr[:-1], self.assortments.owner
        tops = np.maximum.reduceat(lifted, starts)
        if not smoothing:
            return float(tops.sum())
        sums = np.add.reduceat(np.exp((lifted - tops[owner]) / smoothing), starts)
        return float(tops.sum()) + smoothing * float(np.log(sums).sum())

    def silence(self, dual: Vec, seen: Mask) -> Vec:
        """Make the dual uniform on offers without data: shares sum to 1, so it earns nothing there."""
        return np.where(seen, dual, self.start())

    def value_on(self, vertex: Vec, frequencies: Vec, seen: Mask) -> float:
        """The distance without what smoothing adds for each of the other offers."""
        return self.value(vertex, frequencies) + self.smoothing * self.potential(self.start()[~seen])

    def data_norm(self, change: Vec) -> float:
        """The sum over offers of the largest absolute change."""
        return float(np.maximum.reduceat(np.abs(change), self.assortments.indptr[:-1]).sum())

    def data_radius(self, l1_radii: Vec) -> float:
        """Half the sum of the radii: one item's gain is the others' loss."""
        return 0.5 * float(l1_radii.sum())
