"""Distances between a model's choice probabilities and the observed ones, as the dual player sees them.

Every distance has the max-type form of the paper's equation (4):
D(x, p) = max over y in Y of <B (x - p), y> - smoothing * potential(y).
"""

from dataclasses import dataclass
from math import sqrt
from typing import Protocol

import numpy as np

from rankstream._types import Vec
from rankstream.assortments import Assortments


class Distance(Protocol):
    """A distance, its dual domain, its mirror map and its constants. A residual is always x - p."""

    @property
    def smoothing(self) -> float:
        """The weight of the potential in the distance; 0 for a plain norm."""

    @property
    def width(self) -> float:
        """The range of the potential over the dual domain (Assumption 3b)."""

    @property
    def grad_bound(self) -> float:
        """A bound on the payoff's gradient in the dual, in the norm dual to the potential's (Assumption 2)."""

    @property
    def lipschitz(self) -> float:
        """How much the payoff can change per unit of change in the frequencies (Assumption 1)."""

    def start(self) -> Vec:
        """The dual of least potential."""

    def potential(self, dual: Vec) -> float:
        """The potential, 1-strongly convex on the dual domain."""

    def mirror(self, dual: Vec) -> Vec:
        """The gradient of the potential."""

    def prox(self, slope: Vec) -> Vec:
        """The dual that minimises <slope, y> + potential(y)."""

    def lift(self, residual: Vec) -> Vec:
        """B (x - p)."""

    def costs(self, dual: Vec) -> Vec:
        """B^T y, what the oracle is asked; the two are adjoint."""

    def respond(self, residual: Vec) -> Vec:
        """The dual at which the distance attains its maximum."""

    def value(self, residual: Vec) -> float:
        """The distance itself."""

    def unsmoothed(self, residual: Vec) -> float:
        """The distance with smoothing 0: the support function of the dual domain."""


@dataclass(frozen=True)
class L2:
    """The Euclidean norm |x - p|_2: the dual domain is the unit ball, the potential |y|^2 / 2.

    Constants are those of the paper's Table "MD constants" for q = 2, smoothing that of Table "smoothed norms":
    with it the distance is Huber's function of the norm.

    >>> offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    >>> round(L2(offers).value(np.array([0.3, -0.3, 0.4, -0.4])), 4)
    0.7071
    """

    assortments: Assortments
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.smoothing < np.inf:
            raise ValueError(f"The smoothing {self.smoothing} must be a finite number >= 0.")

    @property
    def width(self) -> float:
        """Half the squared radius of the unit ball."""
        return 0.5

    @property
    def grad_bound(self) -> float:
        """sqrt(2 m), the diameter of the choice probabilities, and the smoothing on top."""
        return sqrt(2.0 * self.assortments.n_offers) + self.smoothing

    @property
    def lipschitz(self) -> float:
        """Duals have norm at most 1."""
        return 1.0

    def start(self) -> Vec:
        """The centre of the ball."""
        return np.zeros(self.assortments.n_coordinates)

    def potential(self, dual: Vec) -> float:
        """|y|^2 / 2."""
        return 0.5 * float(dual @ dual)

    def mirror(self, dual: Vec) -> Vec:
        """The potential's gradient is the dual itself."""
        return dual

    def prox(self, slope: Vec) -> Vec:
        """The projection of -slope onto the unit ball."""
        return slope * (-1.0 / max(1.0, _norm(slope)))

    def lift(self, residual: Vec) -> Vec:
        """B is the identity."""
        return residual

    def costs(self, dual: Vec) -> Vec:
        """B is the identity."""
        return dual

    def respond(self, residual: Vec) -> Vec:
        """The residual's direction, shortened where the smoothing rounds the norm's tip."""
        length = max(self.smoothing, _norm(residual))
        return residual / length if length > 0.0 else np.zeros_like(residual)

    def value(self, residual: Vec) -> float:
        """The norm, or Huber's function of it."""
        norm = _norm(residual)
        if norm >= self.smoothing:
            return norm - 0.5 * self.smoothing
        return 0.5 * norm * norm / self.smoothing

    def unsmoothed(self, residual: Vec) -> float:
        """The norm."""
        return _norm(residual)


def make(name: str | Distance, assortments: Assortments, smoothing: float = 0.0) -> Distance:
    """A distance by its name, or the object itself.

    >>> make("l2", Assortments([("tea", "pie")])).width
    0.5
    """
    if not isinstance(name, str):
        return name
    if name not in BY_NAME:
        raise ValueError(f"There is no distance {name!r}: choose one of {', '.join(map(repr, BY_NAME))}.")
    return BY_NAME[name](assortments, smoothing)


BY_NAME = {"l2": L2}


def _norm(vector: Vec) -> float:
    return sqrt(float(vector @ vector))
