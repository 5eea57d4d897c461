"""The distance protocol: everything that the solver, the learners and the certificates use."""

from typing import Protocol

from rankstream._core.types import Mask, Vec


class Distance(Protocol):
    """A distance D(x, p) = max over duals y of payoff(x, y; p), convex in x (paper, equation 5 and Remark 1).

    The payoff is ``<costs(y), x> - offset(y, p)``, concave in y. The paper's own family has the offset
    ``<costs(y), p> + smoothing * potential(y)``; any other convex distance has its conjugate as the offset.
    """

    @property
    def smoothing(self) -> float:
        """The weight of the potential in the payoff; 0 for a plain norm."""

    @property
    def smooth(self) -> bool:
        """Whether the distance is smooth in x, as Frank-Wolfe needs it."""

    @property
    def affine(self) -> bool:
        """Whether the offset is affine in the frequencies, so that running means give the regrets of moving data."""

    @property
    def width(self) -> float:
        """The range of the potential over the dual domain (Assumption 3b)."""

    @property
    def largest_potential(self) -> float:
        """The largest absolute value of the potential on the dual domain: the cost of smoothing (Lemma 3)."""

    @property
    def grad_bound(self) -> float:
        """A bound on the pull, in the norm dual to that in which the potential is strongly convex (Assumption 2)."""

    @property
    def mirror_bound(self) -> float:
        """A bound on the potential's gradient in the same norm; infinite for an entropy."""

    @property
    def lipschitz(self) -> float:
        """How much the payoff can change per unit of change in the frequencies (Assumption 1), in ``data_norm``.

        A term that depends on the frequencies alone does not count: it cancels in the sum of the two error terms.
        """

    def start(self) -> Vec:
        """The dual of least potential."""

    def potential(self, dual: Vec) -> float:
        """The potential, 1-strongly convex on the dual domain."""

    def mirror(self, dual: Vec) -> Vec:
        """The gradient of the potential."""

    def prox(self, slope: Vec) -> Vec:
        """The dual that minimises ``<slope, y> + potential(y)``."""

    def image(self, slope: Vec, dual: Vec) -> Vec:
        """The mirror of dual = prox(slope), up to a constant that prox ignores, from the more precise argument."""

    def costs(self, dual: Vec) -> Vec:
        """The oracle's costs, linear in the dual."""

    def offset(self, dual: Vec, frequencies: Vec) -> float:
        """The part of the payoff that does not depend on the model, subtracted from ``<costs(y), x>``."""

    def pull(self, vertex: Vec, dual: Vec, frequencies: Vec) -> Vec:
        """The payoff's gradient in the dual without the potential; the whole one is pull - smoothing * mirror."""

    def respond(self, vertex: Vec, frequencies: Vec) -> Vec:
        """A dual of largest payoff."""

    def value(self, vertex: Vec, frequencies: Vec) -> float:
        """The distance: the largest payoff."""

    def silence(self, dual: Vec, seen: Mask) -> Vec:
        """A dual that is unchanged on the observed offers and, on the others, has the same payoff for all rankings.

        If smoothing still counts the others, the methods ``restrict`` and ``value_on`` leave them out completely.
        """

    def data_norm(self, change: Vec) -> float:
        """The norm in which changes of the frequencies are measured."""

    def data_radius(self, l1_radii: Vec) -> float:
        """The largest ``data_norm`` of a change whose l1 norm on each offer is at most the given radius."""

    def data_change(self, frequencies: Vec, other: Vec) -> float:
        """The largest offset(y, frequencies) - offset(y, other) over all duals, or a bound on it."""
