"""The l_q norms, plain or smoothed: those for q < 2, for 2 <= q < infinity, and the largest error."""

from dataclasses import dataclass
from math import log

import numpy as np

from rankstream._core.types import Mask, Vec
from rankstream.distances import domain_kernels as kernels
from rankstream.distances.bilinear import (
    Bilinear,
    EuclideanPotential,
    NegativeEntropy,
    norm_direction,
    norm_of,
    softmax,
)


@dataclass(frozen=True)
class LInf(NegativeEntropy):
    """The largest absolute error: B is the stack [I; -I], the dual domain the 2N-simplex with its entropy.

    Smoothed, it is smoothing * log(sum of 2 cosh(residual / smoothing)).
    """

    @property
    def width(self) -> float:
        """log(2 N)."""
        return log(2.0 * self.assortments.n_coordinates)

    @property
    def grad_bound(self) -> float:
        """1 without weights."""
        return self.diameter(np.inf)

    def start(self) -> Vec:
        """The uniform distribution."""
        size = 2 * self.assortments.n_coordinates
        return np.full(size, 1.0 / size)

    def prox(self, slope: Vec) -> Vec:
        """Proportional to exp(-slope)."""
        return softmax(-slope)

    def lift(self, residual: Vec) -> Vec:
        """The residual and its negative."""
        scaled = super().lift(residual)
        return np.concatenate((scaled, -scaled))

    def costs(self, dual: Vec) -> Vec:
        """The difference of the two halves."""
        half = dual.size // 2
        return super().costs(dual[:half] - dual[half:])

    def best_dual(self, lifted: Vec) -> Vec:
        """The softmax; without smoothing, all mass on the largest error."""
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
        """Make the two halves equal on offers without data, so that their difference is 0."""
        positive, negative = dual.reshape(2, -1)
        mean = 0.5 * (positive + negative)
        return np.concatenate((np.where(seen, positive, mean), np.where(seen, negative, mean)))

    def restrict(self, dual: Vec, seen: Mask) -> Vec:
        """The conditional distribution on the observed offers."""
        restricted: Vec = dual * np.concatenate((seen, seen))
        return restricted / (float(restricted.sum()) or 1.0)  # the dual 0 proves the bound 0, which always holds

    def value_on(self, vertex: Vec, frequencies: Vec, seen: Mask) -> float:
        """The distance over the observed coordinates; 0 without any."""
        return self.largest(self.lift(vertex - frequencies)[np.tile(seen, 2)], self.smoothing) if seen.any() else 0.0

    def data_norm(self, change: Vec) -> float:
        """The largest absolute change."""
        return float(np.abs(change).max())

    def data_radius(self, l1_radii: Vec) -> float:
        """Half the largest radius: one item's gain is the others' loss."""
        return 0.5 * float(l1_radii.max())


@dataclass(frozen=True)
class L1(EuclideanPotential):
    """The sum of absolute errors: the dual domain is a box; smoothed, Huber's function of every coordinate.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> round(L1(Assortments([("tea", "nothing")])).value(np.array([0.8, 0.2]), np.array([0.5, 0.5])), 4)
    0.6
    """

    @property
    def width(self) -> float:
        """N / 2."""
        return 0.5 * self.assortments.n_coordinates

    def project(self, point: Vec) -> Vec:
        """Every coordinate clipped to [-1, 1]."""
        return np.minimum(np.maximum(point, -1.0), 1.0)

    def farthest(self, lifted: Vec) -> Vec:
        """The signs."""
        return np.sign(lifted)

    def data_norm(self, change: Vec) -> float:
        """The l1 norm."""
        return float(np.abs(change).sum())

    def data_radius(self, l1_radii: Vec) -> float:
        """The sum of the radii."""
        return float(l1_radii.sum())


class PowerNorm(Bilinear):
    """How far data are apart in the l_q norm."""

    q: float

    def data_norm(self, change: Vec) -> float:
        """The l_q norm."""
        return norm_of(change, self.q)

    def data_radius(self, l1_radii: Vec) -> float:
        """The l_q norm of the largest l_q change of every offer."""
        return norm_of(l1_radii * 2.0 ** (1.0 / self.q - 1.0), self.q)


@dataclass(frozen=True)
class LowNorm(PowerNorm, EuclideanPotential):
    """The l_q norm for 1 < q < 2: the dual domain is the ball of the l_r norm, r = q / (q - 1) > 2.

    Neither the projection nor the smoothed distance has a closed form; the projection is solved to machine precision.
    """

    q: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1.0 < self.q < 2.0:
            raise ValueError(f"LowNorm is for 1 < q < 2, not q = {self.q}: use distances.norm.")

    @property
    def conjugate(self) -> float:
        """The exponent of the dual ball."""
        return self.q / (self.q - 1.0)

    @property
    def width(self) -> float:
        """N^((2 - q) / q) / 2."""
        return 0.5 * float(self.assortments.n_coordinates ** ((2.0 - self.q) / self.q))

    def project(self, point: Vec) -> Vec:
        """The Euclidean projection onto the l_r ball."""
        out = np.empty_like(point)
        kernels.project_onto_power_ball(point, self.conjugate, out)
        return out

    def farthest(self, lifted: Vec) -> Vec:
        """The gradient of the norm."""
        return norm_direction(lifted, self.q)


@dataclass(frozen=True)
class HighNorm(PowerNorm):
    """The l_q norm for 2 <= q < infinity: a ball of the l_r norm, r = q / (q - 1), potential (q - 1) / 2 * |y|_r^2.

    Smoothed, it is Huber's function of the norm.

    Parameters
    ----------
    assortments : Assortments
        The offers whose frequencies are compared.
    smoothing : float
        The weight of the potential in the payoff; 0 is the plain norm.
    weights : tuple of floats, optional
        One factor >= 0 per offer for its differences; by default all are 1.
    q : float
        The exponent, 2 <= q < infinity.
    squared : bool
        Whether to use |x - p|_q^2 / 2: the ball then contains every residual, and the smoothing is 1 / (q - 1).
    """

    q: float = 2.0
    squared: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2.0 <= self.q < np.inf:
            raise ValueError(f"HighNorm is for 2 <= q < infinity, not q = {self.q}: use distances.norm.")
        if self.squared:
            if self.smoothing not in (0.0, 1.0 / (self.q - 1.0)):
                raise ValueError(f"A squared norm has its own smoothing, 1 / (q - 1): leave out {self.smoothing}.")
            object.__setattr__(self, "smoothing", 1.0 / (self.q - 1.0))

    @property
    def radius(self) -> float:
        """1, or for a squared norm the largest norm of a residual."""
        return self.diameter(self.q) if self.squared else 1.0

    @property
    def width(self) -> float:
        """(q - 1) / 2 for the unit ball."""
        return 0.5 * (self.q - 1.0) * self.radius**2

    @property
    def grad_bound(self) -> float:
        """(2 m)^(1 / q) without weights."""
        return self.diameter(self.q)

    @property
    def mirror_bound(self) -> float:
        """(q - 1) times the radius."""
        return (self.q - 1.0) * self.radius

    @property
    def lipschitz(self) -> float:
        """The radius times the largest weight."""
        return self.radius * float(self.offer_weights.max())

    def potential(self, dual: Vec) -> float:
        """(q - 1) / 2 * |y|_r^2."""
        return 0.5 * (self.q - 1.0) * norm_of(dual, self.q / (self.q - 1.0)) ** 2

    def mirror(self, dual: Vec) -> Vec:
        """(q - 1) * |y|_r times the gradient of that norm."""
        if self.q == 2.0:
            return dual
        power = self.q / (self.q - 1.0)
        return norm_direction(dual, power) * ((self.q - 1.0) * norm_of(dual, power))

    def prox(self, slope: Vec) -> Vec:
        """Against the slope, as far as the ball allows."""
        return self._towards(slope, -1.0, 1.0)

    def image(self, slope: Vec, dual: Vec) -> Vec:
        """Minus the slope, shortened to the mirror bound; this avoids powers of small numbers."""
        if self.q == 2.0:
            return dual
        norm = norm_of(slope, self.q)
        return slope * -min(1.0, self.mirror_bound / norm) if norm > 0.0 else np.zeros_like(slope)

    def best_dual(self, lifted: Vec) -> Vec:
        """Along the residual, shorter near 0, where smoothing rounds off the norm."""
        return self._towards(lifted, 1.0, self.smoothing)

    def _towards(self, vector: Vec, sign: float, smoothing: float) -> Vec:
        """The maximiser of sign * <vector, y> - smoothing * potential(y)."""
        norm = norm_of(vector, self.q)
        if norm == 0.0:
            return np.zeros_like(vector)
        curvature = smoothing * (self.q - 1.0)
        length = self.radius if norm >= self.radius * curvature else norm / curvature
        if self.q == 2.0:
            return vector * (sign * length / norm)
        return norm_direction(vector, self.q) * (sign * length)

    def largest(self, lifted: Vec, smoothing: float) -> float:
        """Huber's function of the norm."""
        norm, curvature = norm_of(lifted, self.q), smoothing * (self.q - 1.0)
        if norm >= self.radius * curvature:
            return self.radius * norm - 0.5 * curvature * self.radius**2
        return 0.5 * norm * norm / curvature


@dataclass(frozen=True)
class L2(HighNorm):
    """The Euclidean norm: the dual domain is the unit ball, the potential |y|^2 / 2.

    The parameters are those of ``HighNorm``; leave ``q`` at 2. ``squared`` makes it |x - p|^2 / 2, smoothed by 1.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> round(L2(Assortments([("tea", "nothing")])).value(np.array([0.8, 0.2]), np.array([0.5, 0.5])), 4)
    0.4243
    """
