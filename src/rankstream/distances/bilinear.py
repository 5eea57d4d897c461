"""What the paper's own distances share: the payoff <B (x - p), y> - smoothing * potential(y) with B = diag(weights)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from rankstream._core.arguments import number_between
from rankstream._core.types import Mask, Vec
from rankstream.data.assortments import Assortments

MIN_LOG_ARGUMENT = 1e-300  # what a logarithm is taken of instead of 0


def softmax(scores: Vec) -> Vec:
    """Positive numbers that sum to 1, proportional to exp(scores)."""
    out: Vec = scores - scores.max()
    np.exp(out, out=out)
    out *= 1.0 / np.add.reduce(out)
    return out


def norm_of(vector: Vec, q: float) -> float:
    """The l_q norm, scaled so that no power overflows."""
    if q == 2.0:
        return sqrt(float(vector @ vector))
    sizes = np.abs(vector)
    top = float(sizes.max())
    if top == 0.0:
        return 0.0
    return top * float(np.power(((sizes / top) ** q).sum(), 1.0 / q))


def norm_direction(vector: Vec, q: float) -> Vec:
    """The gradient of the l_q norm: a vector of unit l_(q / (q - 1)) norm; 0 at 0."""
    norm = norm_of(vector, q)
    if norm == 0.0:
        return np.zeros_like(vector)
    return np.sign(vector) * (np.abs(vector) / norm) ** (q - 1.0)


MIN_WEIGHT, MAX_WEIGHT = 1e-100, 1e100  # weights and smoothings whose squares neither vanish nor overflow


def zero_or_moderate(name: str, value: float) -> float:
    """A number >= 0 whose square is a number too, or a ValueError."""
    checked = number_between(name, value, 0.0)
    if checked and not MIN_WEIGHT <= checked <= MAX_WEIGHT:
        limits = f"between {MIN_WEIGHT:g} and {MAX_WEIGHT:g}"
        raise ValueError(f"{name} is {value!r}: it must be 0 or {limits}, as squares are taken.")
    return checked


def check_weights(assortments: Assortments, weights: Iterable[float] | None) -> tuple[float, ...] | None:
    """Weights per offer as a tuple, or a ValueError."""
    if weights is None:
        return None
    given = tuple(weights)
    sizes = np.array(given) if set(map(type, given)) == {float} else np.zeros(1)
    fine = bool(((sizes >= MIN_WEIGHT) & (sizes <= MAX_WEIGHT)).all())  # nearly always: none is checked alone
    checked = given if fine else tuple(zero_or_moderate("A weight", weight) for weight in given)
    if len(checked) != assortments.n_offers:
        raise ValueError(f"There are {len(checked)} weights for {assortments.n_offers} offers: give one for each.")
    if max(checked) == 0.0:
        raise ValueError("The weights are all 0: at least one offer must count.")
    return checked


class Potential(ABC):
    """A potential on a dual domain, which is 0 where it is least, or where it is largest."""

    assortments: Assortments

    @property
    @abstractmethod
    def width(self) -> float:
        """The range of the potential over the dual domain."""

    @property
    def largest_potential(self) -> float:
        """The width."""
        return self.width

    def start(self) -> Vec:
        """The dual of least potential: 0, unless the domain lies elsewhere."""
        return np.zeros(self.assortments.n_coordinates)


@dataclass(frozen=True)
class Bilinear(Potential):
    """A distance that sees x and p only through B (x - p); subclasses say what the dual domain is."""

    assortments: Assortments
    smoothing: float = 0.0
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        zero_or_moderate("smoothing", self.smoothing)
        object.__setattr__(self, "weights", check_weights(self.assortments, self.weights))

    @property
    def smooth(self) -> bool:
        """A strongly convex potential in the payoff smooths the distance."""
        return self.smoothing > 0.0

    @property
    def affine(self) -> bool:
        """The offset is <B^T y, p> plus a term without p."""
        return True

    @cached_property
    def offer_weights(self) -> Vec:
        """One weight per offer: the diagonal of B."""
        return np.ones(self.assortments.n_offers) if self.weights is None else np.array(self.weights, dtype=np.float64)

    @cached_property
    def scale(self) -> Vec | None:
        """One weight per coordinate; None where all are 1."""
        return None if self.weights is None else self.offer_weights[self.assortments.owner]

    @property
    def lipschitz(self) -> float:
        """The largest weight: duals have norm at most 1 in the norm dual to ``data_norm``."""
        return float(self.offer_weights.max())

    def diameter(self, power: float) -> float:
        """The largest |B (x - p)| in an l-norm: every offer adds at most 2 * weight^power under the root."""
        top = float(self.offer_weights.max())
        if power == np.inf:
            return top
        return top * float((2.0 * ((self.offer_weights / top) ** power).sum()) ** (1.0 / power))

    def lift(self, residual: Vec) -> Vec:
        """B (x - p), as long as a dual."""
        return residual if self.scale is None else residual * self.scale

    def costs(self, dual: Vec) -> Vec:
        """B^T y; the two are adjoint."""
        return dual if self.scale is None else dual * self.scale

    def offset(self, dual: Vec, frequencies: Vec) -> float:
        """<B p, y> + smoothing * potential(y)."""
        base = float(self.costs(dual) @ frequencies)
        return base + self.smoothing * self.potential(dual) if self.smoothing else base

    def pull(self, vertex: Vec, dual: Vec, frequencies: Vec) -> Vec:
        """B (x - p), whatever the dual."""
        return self.lift(vertex - frequencies)

    def image(self, slope: Vec, dual: Vec) -> Vec:
        """The mirror of the dual."""
        return self.mirror(dual)

    def respond(self, vertex: Vec, frequencies: Vec) -> Vec:
        """The dual at which the distance attains its maximum."""
        return self.best_dual(self.lift(vertex - frequencies))

    def value(self, vertex: Vec, frequencies: Vec) -> float:
        """The distance."""
        return self.largest(self.lift(vertex - frequencies), self.smoothing)

    def silence(self, dual: Vec, seen: Mask) -> Vec:
        """0 on what was not seen."""
        return np.where(seen, dual, 0.0)

    def restrict(self, dual: Vec, seen: Mask) -> Vec:
        """A dual of the same distance over the seen offers alone, with 0 on all others."""
        return np.where(seen, dual, 0.0)

    def value_on(self, vertex: Vec, frequencies: Vec, seen: Mask) -> float:
        """The distance over the seen offers alone; on the others, the two points must agree."""
        return self.value(vertex, frequencies)

    def data_change(self, frequencies: Vec, other: Vec) -> float:
        """The support function of the dual domain at B (p - p')."""
        return self.largest(self.lift(frequencies - other), 0.0)

    def trivial_dual(self) -> Vec:
        """A dual that treats all models alike, whose value no model's distance is below: that of the start."""
        return self.start()

    @abstractmethod
    def potential(self, dual: Vec) -> float:
        """The potential."""

    @abstractmethod
    def mirror(self, dual: Vec) -> Vec:
        """Its gradient."""

    @abstractmethod
    def best_dual(self, lifted: Vec) -> Vec:
        """The dual that maximises <lifted, y> - smoothing * potential(y)."""

    @abstractmethod
    def largest(self, lifted: Vec, smoothing: float) -> float:
        """The maximum of <lifted, y> - smoothing * potential(y) over the dual domain."""


class HalfSquare(Potential):
    """The potential |y|^2 / 2 on a domain that contains 0: the width is half the squared norm of the longest dual."""

    @property
    def mirror_bound(self) -> float:
        """The norm of the longest dual."""
        return float(np.sqrt(2.0 * self.width))

    def potential(self, dual: Vec) -> float:
        """|y|^2 / 2."""
        return 0.5 * float(dual @ dual)

    def mirror(self, dual: Vec) -> Vec:
        """The dual itself."""
        return dual

    def image(self, slope: Vec, dual: Vec) -> Vec:
        """The dual itself."""
        return dual


@dataclass(frozen=True)
class EuclideanPotential(HalfSquare, Bilinear):
    """Distances with the potential |y|^2 / 2, whose prox is a projection onto the dual domain."""

    @property
    def grad_bound(self) -> float:
        """The Euclidean diameter of the choice probabilities, sqrt(2 m) without weights."""
        return self.diameter(2.0)

    def prox(self, slope: Vec) -> Vec:
        """The projection of -slope."""
        return self.project(-slope)

    def best_dual(self, lifted: Vec) -> Vec:
        """With smoothing, the projection of lifted / smoothing; without, a boundary point."""
        return self.project(lifted / self.smoothing) if self.smoothing else self.farthest(lifted)

    def largest(self, lifted: Vec, smoothing: float) -> float:
        """The payoff of the best dual."""
        best = self.project(lifted / smoothing) if smoothing else self.farthest(lifted)
        return float(lifted @ best) - smoothing * self.potential(best)

    @abstractmethod
    def project(self, point: Vec) -> Vec:
        """The dual nearest to a point."""

    @abstractmethod
    def farthest(self, lifted: Vec) -> Vec:
        """A dual that maximises <lifted, y>."""
