"""The weighted Kullback-Leibler distance through its conjugate (paper, Remark 1): a template for convex distances."""

from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt

import numpy as np

from rankstream._core.types import Mask, Vec
from rankstream.data.assortments import Assortments
from rankstream.distances.bilinear import MIN_WEIGHT, HalfSquare, check_weights


@dataclass(frozen=True)
class KL(HalfSquare):
    """The sum over offers of weight_j * KL(p_j, x_j), the maximum-likelihood distance of van Ryzin and Vulcano.

    Below ``floor``, the tangent replaces -log(x), so gradients and the dual domain stay bounded:
    0 >= y >= -weight / floor. The conjugate is taken over 0 <= x <= 1. With the offers' shares of the observations as
    weights, a model's KL is the log-likelihood per observation that it loses against the frequencies. That holds for
    numbers above the floor, so choose a floor below the smallest frequency that matters. The wide dual domain makes
    mirror descent slow; follow-the-leader (Frank-Wolfe) is faster, though no regret bound is known for it here.

    Examples
    --------
    >>> distance = KL(Assortments([("tea", "nothing")]))
    >>> round(distance.value(np.array([0.5, 0.5]), np.array([0.25, 0.75])), 4)
    0.1308
    """

    assortments: Assortments
    weights: tuple[float, ...] | None = None
    floor: float = 0.01

    def __post_init__(self) -> None:
        if not MIN_WEIGHT <= self.floor < 1.0:
            raise ValueError(f"floor is {self.floor}: it must lie between {MIN_WEIGHT:g} and 1.")
        object.__setattr__(self, "weights", check_weights(self.assortments, self.weights))

    @property
    def smoothing(self) -> float:
        """0: the potential is not part of the payoff."""
        return 0.0

    @property
    def smooth(self) -> bool:
        """True: the tangent below the floor bounds the curvature."""
        return True

    @property
    def affine(self) -> bool:
        """False: the conjugate is not affine in the frequencies."""
        return False

    @cached_property
    def scale(self) -> Vec:
        """One weight per coordinate."""
        size = self.assortments.n_offers
        weights = np.ones(size) if self.weights is None else np.array(self.weights, dtype=np.float64)
        return weights[self.assortments.owner]

    @property
    def width(self) -> float:
        """Half the squared diagonal of the box."""
        return 0.5 * float((self.scale**2).sum()) / self.floor**2

    @property
    def grad_bound(self) -> float:
        """sqrt(N): the pull is a difference of numbers between 0 and 1."""
        return sqrt(self.assortments.n_coordinates)

    @property
    def lipschitz(self) -> float:
        """The largest weight times 1 + log(1 / floor), up to the entropy of p, which cancels."""
        return float(self.scale.max()) * (1.0 - log(self.floor))

    def prox(self, slope: Vec) -> Vec:
        """The projection of -slope onto the box."""
        return np.minimum(np.maximum(-slope, -self.scale / self.floor), 0.0)

    def costs(self, dual: Vec) -> Vec:
        """The dual itself."""
        return dual

    def _best_point(self, dual: Vec, mass: Vec) -> Vec:
        """The x between 0 and 1 at which the conjugate attains its maximum."""
        ratio = np.divide(mass, -dual, out=np.where(mass > 0.0, 1.0, 0.0), where=mass < -dual)
        return np.where(ratio >= self.floor, ratio, 0.0)

    def offset(self, dual: Vec, frequencies: Vec) -> float:
        """The conjugate D*(y, p) = max over 0 <= x <= 1 of <y, x> - D(x, p)."""
        best = self._best_point(dual, self.scale * frequencies)
        return float(dual @ best) - self.value(best, frequencies)

    def pull(self, vertex: Vec, dual: Vec, frequencies: Vec) -> Vec:
        """The vertex less the conjugate's gradient."""
        return vertex - self._best_point(dual, self.scale * frequencies)

    def respond(self, vertex: Vec, frequencies: Vec) -> Vec:
        """The gradient of the distance in x."""
        return -self.scale * frequencies / np.maximum(vertex, self.floor)

    def value(self, vertex: Vec, frequencies: Vec) -> float:
        """The divergence, with the tangent below the floor."""
        clipped = np.maximum(vertex, self.floor)
        logs = np.log(np.maximum(frequencies, 1e-300)) - np.log(clipped) + (clipped - vertex) / self.floor
        return float((self.scale * frequencies) @ logs)

    def silence(self, dual: Vec, seen: Mask) -> Vec:
        """Raise a ValueError: every dual of this distance prices all offers."""
        raise ValueError("KL cannot leave out offers without choices: drop them, or use one of the norms.")

    def data_norm(self, change: Vec) -> float:
        """The l1 norm."""
        return float(np.abs(change).sum())

    def data_radius(self, l1_radii: Vec) -> float:
        """The sum of the radii."""
        return float(l1_radii.sum())

    def data_change(self, frequencies: Vec, other: Vec) -> float:
        """A bound: Lipschitz for the cross-entropy, and the exact difference of the entropies of p."""
        entropies = [p @ (self.scale * np.log(np.maximum(p, 1e-300))) for p in (frequencies, other)]
        return self.lipschitz * self.data_norm(frequencies - other) + float(entropies[1] - entropies[0])
