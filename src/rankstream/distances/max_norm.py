"""The l-infinity norm, plain or smoothed: duals in a simplex of twice the coordinates, with its entropy."""

from dataclasses import dataclass
from math import log

import numpy as np

from rankstream._core.types import Mask, Vec
from rankstream.distances.bilinear import MIN_LOG_ARGUMENT, Bilinear, softmax


@dataclass(frozen=True)
class LInf(Bilinear):
    """The largest absolute error: B is the stack [I; -I], the dual domain the 2N-simplex with its entropy.

    Smoothed, it is smoothing * log(sum of 2 cosh(residual / smoothing)).
    """

    @property
    def width(self) -> float:
        """log(2 N)."""
        return log(2.0 * self.assortments.n_coordinates)

    @property
    def largest_potential(self) -> float:
        """log(2 N), at the centre; the entropy is negative."""
        return self.width

    @property
    def grad_bound(self) -> float:
        """1 without weights."""
        return self.diameter(np.inf)

    @property
    def mirror_bound(self) -> float:
        """The logarithm is not bounded on the simplex."""
        return np.inf

    def start(self) -> Vec:
        """The uniform distribution."""
        size = 2 * self.assortments.n_coordinates
        return np.full(size, 1.0 / size)

    def trivial_dual(self) -> Vec:
        """The uniform distribution: its halves cancel."""
        return self.start()

    def potential(self, dual: Vec) -> float:
        """The sum of y log y."""
        return float(dual @ np.log(np.maximum(dual, MIN_LOG_ARGUMENT)))

    def mirror(self, dual: Vec) -> Vec:
        """1 + log y."""
        logs: Vec = np.log(np.maximum(dual, MIN_LOG_ARGUMENT))
        logs += 1.0
        return logs

    def prox(self, slope: Vec) -> Vec:
        """Proportional to exp(-slope)."""
        return softmax(-slope)

    def image(self, slope: Vec, dual: Vec) -> Vec:
        """The slope's negative: prox does not see a constant, and no logarithm of a tiny number is needed."""
        return -slope

    def lift(self, residual: Vec) -> Vec:
        """The residual and its negative."""
        scaled = super().lift(residual)
        return np.concatenate((scaled, -scaled))

    def costs(self, dual: Vec) -> Vec:
        """The difference of the two halves."""
        half = dual.size // 2
        return super().costs(dual[:half] - dual[half:])

    def best_dual(self, lifted: Vec) -> Vec:
        """The softmax; without smoothing, all on the largest error."""
        if self.smoothing:
            return softmax(lifted / self.smoothing)
        best = int(np.argmax(lifted))
        if lifted[best] == 0.0:
            return self.start()
        dual = np.zeros_like(lifted)
        dual[best] = 1.0
        return dual

    def largest(self, lifted: Vec, smoothing: float) -> float:
        """The maximum, or its smooth version."""
        top = float(lifted.max())
        if not smoothing:
            return top
        return top + smoothing * log(float(np.exp((lifted - top) / smoothing).sum()))

    def silence(self, dual: Vec, seen: Mask) -> Vec:
        """The two halves made equal on what was not seen, so that their difference is 0."""
        positive, negative = dual.reshape(2, -1)
        mean = 0.5 * (positive + negative)
        return np.concatenate((np.where(seen, positive, mean), np.where(seen, negative, mean)))

    def restrict(self, dual: Vec, seen: Mask) -> Vec:
        """The distribution given that a seen offer is drawn."""
        kept: Vec = dual * np.concatenate((seen, seen))
        total = float(kept.sum())
        return kept / total if total > 0.0 else kept  # the dual 0 proves 0, which no distance is below

    def value_on(self, vertex: Vec, frequencies: Vec, seen: Mask) -> float:
        """The distance of the coordinates that count; 0 where none does."""
        return self.largest(self.lift(vertex - frequencies)[np.tile(seen, 2)], self.smoothing) if seen.any() else 0.0

    def data_norm(self, change: Vec) -> float:
        """The largest absolute change."""
        return float(np.abs(change).max())

    def data_radius(self, l1_radii: Vec) -> float:
        """Half the largest radius: what one item gains, others lose."""
        return 0.5 * float(l1_radii.max())
