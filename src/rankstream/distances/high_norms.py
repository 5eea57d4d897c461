"""The l_q norms for 2 <= q < infinity, plain, smoothed or squared: duals in a ball, its squared norm the potential."""

from dataclasses import dataclass

import numpy as np

from rankstream._core.types import Vec
from rankstream.distances.bilinear import Bilinear, norm_direction, norm_of


@dataclass(frozen=True)
class HighNorm(Bilinear):
    """The l_q norm for 2 <= q < infinity: a ball of the l_r norm, r = q / (q - 1), potential (q - 1) / 2 * |y|_r^2.

    Smoothed, it is Huber's function of the norm.

    Parameters
    ----------
    assortments : Assortments
        The offers whose frequencies are compared.
    smoothing : float
        How much of the potential is taken from the payoff; 0 is the plain norm.
    weights : tuple of floats, optional
        One number >= 0 per offer, with which its differences count; all 1 without it.
    q : float
        Which norm, 2 <= q < infinity.
    squared : bool
        Whether it is |x - p|_q^2 / 2: the ball then is wide enough for every residual, and the smoothing is
        1 / (q - 1), which need not be given.

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
    def largest_potential(self) -> float:
        """The same: the potential is 0 at the centre."""
        return self.width

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

    def start(self) -> Vec:
        """The centre of the ball."""
        return np.zeros(self.assortments.n_coordinates)

    def trivial_dual(self) -> Vec:
        """The dual 0, by which all models pay the same."""
        return self.start()

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
        """Against the slope, cut to the ball's: powers of small numbers are not taken back and forth."""
        if self.q == 2.0:
            return dual
        norm = norm_of(slope, self.q)
        return slope * -min(1.0, self.mirror_bound / norm) if norm > 0.0 else np.zeros_like(slope)

    def best_dual(self, lifted: Vec) -> Vec:
        """Along the residual, shortened where the smoothing rounds the norm's tip."""
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

    def data_norm(self, change: Vec) -> float:
        """The l_q norm."""
        return norm_of(change, self.q)

    def data_radius(self, l1_radii: Vec) -> float:
        """The l_q norm of the offers' own."""
        return norm_of(l1_radii * 2.0 ** (1.0 / self.q - 1.0), self.q)


@dataclass(frozen=True)
class L2(HighNorm):
    """The Euclidean norm: the dual domain is the unit ball, the potential |y|^2 / 2.

    The parameters are those of ``HighNorm``; leave ``q`` at 2. ``squared`` makes it |x - p|^2 / 2, smoothed by 1.

    >>> from rankstream import Assortments
    >>> round(L2(Assortments([("tea", "nothing")])).value(np.array([0.8, 0.2]), np.array([0.5, 0.5])), 4)
    0.4243
    """
