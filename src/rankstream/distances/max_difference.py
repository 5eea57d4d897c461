"""The max-difference distance: per offer, the largest excess of the model over the data (paper, Proposition 2)."""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from rankstream._core.types import Mask, Vec
from rankstream.distances.bilinear import MIN_LOG_ARGUMENT, Bilinear

Kind = Literal["entropy", "euclidean"]


@dataclass(frozen=True)
class MaxDifference(Bilinear):
    """The sum over offers of max_i (x_ij - p_ij): the dual domain is a product of simplices, one per offer.

    It is not symmetric, but x = p is optimal whenever some ranking model has the probabilities p.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> distance = MaxDifference(Assortments([("tea", "pie", "nothing")]))
    >>> distance.value(np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.25, 0.5]))
    0.25
    """

    kind: Kind = "entropy"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind not in ("entropy", "euclidean"):
            raise ValueError(f"Unknown potential {self.kind!r}: choose 'entropy' or 'euclidean'.")

    @property
    def _entropic(self) -> bool:
        return self.kind == "entropy"

    @property
    def width(self) -> float:
        """The sum of log |A_j|, or of (1 - 1 / |A_j|) / 2."""
        sizes = np.diff(self.assortments.indptr)
        return float(np.log(sizes).sum() if self._entropic else 0.5 * (1.0 - 1.0 / sizes).sum())

    @property
    def largest_potential(self) -> float:
        """The same for the entropy; m / 2 for the Euclidean potential, at the corners."""
        return self.width if self._entropic else 0.5 * self.assortments.n_offers

    @property
    def grad_bound(self) -> float:
        """sqrt(m) in the norm dual to that of the entropy, sqrt(2 m) in the Euclidean one, without weights."""
        return sqrt(float((self.offer_weights**2).sum())) if self._entropic else self.diameter(2.0)

    @property
    def mirror_bound(self) -> float:
        """sqrt(m), or infinite for the entropy."""
        return np.inf if self._entropic else sqrt(self.assortments.n_offers)

    def start(self) -> Vec:
        """Uniform on every offer."""
        return (1.0 / np.diff(self.assortments.indptr))[self.assortments.owner]

    def potential(self, dual: Vec) -> float:
        """The sum of y log y, or |y|^2 / 2."""
        return float(dual @ np.log(np.maximum(dual, MIN_LOG_ARGUMENT))) if self._entropic else 0.5 * float(dual @ dual)

    def mirror(self, dual: Vec) -> Vec:
        """1 + log y, or y."""
        return 1.0 + np.log(np.maximum(dual, MIN_LOG_ARGUMENT)) if self._entropic else dual

    def prox(self, slope: Vec) -> Vec:
        """Offer by offer, the softmax of -slope, or its projection onto the simplex."""
        starts, owner = self.assortments.indptr[:-1], self.assortments.owner
        if self._entropic:
            out: Vec = np.exp(np.minimum.reduceat(slope, starts)[owner] - slope)
            return out / np.add.reduceat(out, starts)[owner]
        point, kept = -slope, np.ones(slope.size)
        below_top = np.nextafter(np.maximum.reduceat(point, starts), -np.inf)  # so that rounding leaves the largest
        while True:  # subtract the level at which what stays positive sums to 1: as it only rises, less and less stays
            level = (np.add.reduceat(point * kept, starts) - 1.0) / np.add.reduceat(kept, starts)
            inside = kept * (point > np.minimum(level, below_top)[owner])
            if (inside == kept).all():
                return np.maximum(0.0, point - level[owner])
            kept = inside

    def image(self, slope: Vec, dual: Vec) -> Vec:
        """Minus the slope for the entropy, whose prox ignores constants added to an offer."""
        return -slope if self._entropic else dual

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
        if self._entropic:
            sums = np.add.reduceat(np.exp((lifted - tops[owner]) / smoothing), starts)
            return float(tops.sum()) + smoothing * float(np.log(sums).sum())
        best = self.prox(lifted / -smoothing)
        return float(lifted @ best) - smoothing * self.potential(best)

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
