"""Base classes of the paper's distances: payoff <B (x - p), y> - smoothing * potential(y) with B = diag(weights)."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from rankstream._core import Mask, Vec, number_between
from rankstream.data.assortments import Assortments

MIN_LOG_ARGUMENT = 1e-300  # replaces 0 in logarithms


def softmax(scores: Vec) -> Vec:
    """Return positive numbers that sum to 1, proportional to exp(scores)."""
    out: Vec = scores - scores.max()
    np.exp(out, out=out)
    out *= 1.0 / np.add.reduce(out)
    return out


def norm_of(vector: Vec, q: float) -> float:
    """Return the l_q norm, scaled so that no power overflows."""
    if q == 2.0:
        return sqrt(float(vector @ vector))
    sizes = np.abs(vector)
    top = float(sizes.max())
    if top == 0.0:
        return 0.0
    return top * float(np.power(((sizes / top) ** q).sum(), 1.0 / q))


def norm_direction(vector: Vec, q: float) -> Vec:
    """Return the gradient of the l_q norm: a vector of unit l_(q / (q - 1)) norm; 0 at 0."""
    norm = norm_of(vector, q)
    if norm == 0.0:
        return np.zeros_like(vector)
    return np.sign(vector) * (np.abs(vector) / norm) ** (q - 1.0)


MIN_WEIGHT, MAX_WEIGHT = 1e-100, 1e100  # squares of weights and smoothings in between neither vanish nor overflow


def zero_or_moderate(name: str, value: float) -> float:
    """Check that a number is 0, or positive with a square that neither vanishes nor overflows."""
    checked = number_between(name, value, 0.0)
    if checked and not MIN_WEIGHT <= checked <= MAX_WEIGHT:
        limits = f"between {MIN_WEIGHT:g} and {MAX_WEIGHT:g}"
        raise ValueError(f"{name} is {value!r}: it must be 0 or {limits}, so that its square can be computed.")
    return checked


def check_weights(assortments: Assortments, weights: Iterable[float] | None) -> tuple[float, ...] | None:
    """Check the weights of the offers and return them as a tuple."""
    if weights is None:
        return None
    checked = tuple(weights)
    sizes = np.array(checked) if set(map(type, checked)) == {float} else np.zeros(1)
    if not ((sizes >= MIN_WEIGHT) & (sizes <= MAX_WEIGHT)).all():  # rare; checking one by one is slow
        checked = tuple(zero_or_moderate("A weight", weight) for weight in checked)
    if len(checked) != assortments.n_offers:
        raise ValueError(f"There are {len(checked)} weights for {assortments.n_offers} offers: give one for each.")
    if max(checked) == 0.0:
        raise ValueError("The weights are all 0: at least one offer must count.")
    return checked


class Potential(ABC):
    """A potential on a dual domain, whose least or largest value is 0."""

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
    """A distance that depends on x and p only through B (x - p); subclasses define the dual domain."""

    assortments: Assortments
    smoothing: float = 0.0
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        zero_or_moderate("smoothing", self.smoothing)
        object.__setattr__(self, "weights", check_weights(self.assortments, self.weights))

    @property
    def smooth(self) -> bool:
        """Whether a strongly convex potential in the payoff smooths the distance."""
        return self.smoothing > 0.0

    @property
    def affine(self) -> bool:
        """True: the offset is <B^T y, p> plus a term without p."""
        return True

    @cached_property
    def offer_weights(self) -> Vec:
        """One weight per offer: the diagonal of B."""
        return np.ones(self.assortments.n_offers) if self.weights is None else np.array(self.weights, dtype=np.float64)

    @cached_property
    def scale(self) -> Vec | None:
        """One weight per coordinate; None if all are 1."""
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
        """Return B (x - p), in the shape of a dual."""
        return residual if self.scale is None else residual * self.scale

    def costs(self, dual: Vec) -> Vec:
        """Return B^T y, the adjoint of ``lift``."""
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
        """Set the dual to 0 on offers without data."""
        return np.where(seen, dual, 0.0)

    def restrict(self, dual: Vec, seen: Mask) -> Vec:
        """Return a dual of the same distance over the observed offers alone, with 0 on all others."""
        return np.where(seen, dual, 0.0)

    def value_on(self, vertex: Vec, frequencies: Vec, seen: Mask) -> float:
        """Return the distance over the observed offers; on the others, the two points must agree."""
        return self.value(vertex, frequencies)

    def data_change(self, frequencies: Vec, other: Vec) -> float:
        """The support function of the dual domain at B (p - p')."""
        return self.largest(self.lift(frequencies - other), 0.0)

    def trivial_dual(self) -> Vec:
        """Return a dual whose payoff is the same for all models, and so a lower bound on any distance: the start."""
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


class NegativeEntropy(Bilinear):
    """Distances with the potential sum of y log y on simplices."""

    @property
    def mirror_bound(self) -> float:
        """Infinite: the logarithm is not bounded on a simplex."""
        return np.inf

    def potential(self, dual: Vec) -> float:
        """The sum of y log y."""
        return float(dual @ np.log(np.maximum(dual, MIN_LOG_ARGUMENT)))

    def mirror(self, dual: Vec) -> Vec:
        """1 + log y."""
        logs: Vec = 1.0 + np.log(np.maximum(dual, MIN_LOG_ARGUMENT))
        return logs

    def image(self, slope: Vec, dual: Vec) -> Vec:
        """Minus the slope: prox ignores constants, and this avoids logarithms of tiny numbers."""
        return -slope


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
