"""The l_q norms for 1 <= q < 2, plain or smoothed: duals in a box or a high-power ball, Euclidean potential."""

from dataclasses import dataclass

import numpy as np

from rankstream._core.types import Vec
from rankstream.distances import projection_kernels as kernels
from rankstream.distances.bilinear import EuclideanPotential, norm_direction, norm_of


@dataclass(frozen=True)
class L1(EuclideanPotential):
    """The sum of absolute errors: the dual domain is a box; smoothed, Huber's function of every coordinate.

    >>> from rankstream import Assortments
    >>> round(L1(Assortments([("tea", "nothing")])).value(np.array([0.8, 0.2]), np.array([0.5, 0.5])), 4)
    0.6
    """

    @property
    def width(self) -> float:
        """N / 2."""
        return 0.5 * self.assortments.n_coordinates

    def trivial_dual(self) -> Vec:
        """The dual 0, by which all models pay the same."""
        return self.start()

    def project(self, point: Vec) -> Vec:
        """Every coordinate cut to [-1, 1]."""
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


@dataclass(frozen=True)
class LowNorm(EuclideanPotential):
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

    def trivial_dual(self) -> Vec:
        """The dual 0, by which all models pay the same."""
        return self.start()

    def project(self, point: Vec) -> Vec:
        """The Euclidean projection onto the l_r ball."""
        out = np.empty_like(point)
        kernels.project_onto_power_ball(point, self.conjugate, out)
        return out

    def farthest(self, lifted: Vec) -> Vec:
        """The gradient of the norm."""
        return norm_direction(lifted, self.q)

    def data_norm(self, change: Vec) -> float:
        """The l_q norm."""
        return norm_of(change, self.q)

    def data_radius(self, l1_radii: Vec) -> float:
        """The l_q norm of the offers' own."""
        return norm_of(l1_radii * 2.0 ** (1.0 / self.q - 1.0), self.q)
