"""Smooth losses of choice probabilities, one term per coordinate, and what a pricing round proves about them."""

from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Protocol

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.columns.data import Observed


class Loss(Protocol):
    """A sum of convex terms of the probabilities at ``places``, the coordinates that count."""

    @property
    def places(self) -> Codes:
        """The coordinates whose probabilities matter."""

    def value(self, point: Vec) -> float:
        """The loss at probabilities (those of ``places``)."""

    def slope(self, point: Vec) -> Vec:
        """Its gradient."""

    def slack(self, progress: float, slope_at_point: float) -> float:
        """How much less any distribution can lose, from the least <slope, vertex> and from <slope, point>."""


@dataclass(frozen=True, eq=False)
class KullbackLeibler:
    """The likelihood's loss: sum of q log(p / x) over what was chosen, in nats per observation (Appendix B.2).

    Coordinates that were never chosen drop out, since 0 log 0 = 0.
    """

    observed: Observed

    def __post_init__(self) -> None:
        for place in self.observed.impossible.tolist():
            offers = self.observed.assortments
            item, offer = offers.items[offers.members[place]], offers.offers[offers.owner[place]]
            raise ValueError(
                f"The choice {item!r} of the offer {offer!r} contradicts the order, which ranks another item "
                "of the offer first: correct the record, or leave out the order."
            )

    @cached_property
    def places(self) -> Codes:
        """The coordinates with choices."""
        return np.flatnonzero(self.observed.frequencies > 0.0)

    @cached_property
    def _shares(self) -> Vec:
        return self.observed.shares[self.places]

    def value(self, point: Vec) -> float:
        """The divergence."""
        return float(self._shares @ np.log(self.observed.frequencies[self.places] / point))

    def slope(self, point: Vec) -> Vec:
        """Minus shares over probabilities."""
        slope: Vec = -self._shares / point
        return slope

    def curvature(self, point: Vec) -> Vec:
        """The second derivatives: shares over squared probabilities."""
        curvature: Vec = self._shares / point**2
        return curvature

    def slack(self, progress: float, slope_at_point: float) -> float:
        """The log of the largest <q / x, vertex>: by Jensen's inequality, and less than the usual (largest - 1)."""
        return log(max(-progress, 1.0))


@dataclass(frozen=True, eq=False)
class SquaredL2:
    """The sum of weight * (x - p)^2 over all coordinates; a weight per coordinate."""

    frequencies: Vec
    weights: Vec

    @cached_property
    def places(self) -> Codes:
        """All coordinates."""
        return np.arange(self.frequencies.size)

    def value(self, point: Vec) -> float:
        """The weighted square."""
        return float(self.weights @ (point - self.frequencies) ** 2)

    def slope(self, point: Vec) -> Vec:
        """Twice the weighted residual."""
        slope: Vec = 2.0 * self.weights * (point - self.frequencies)
        return slope

    def slack(self, progress: float, slope_at_point: float) -> float:
        """The Frank-Wolfe gap <slope, point - vertex>: a convex function lies above its tangents."""
        return max(slope_at_point - progress, 0.0)


def named_loss(name: str, observed: Observed) -> Loss:
    """A loss by its name: ``"kl"``, or ``"squared-l2"`` with each offer weighted by its share of the observations."""
    if name == "kl":
        return KullbackLeibler(observed)
    if name == "squared-l2":
        return SquaredL2(observed.frequencies, observed.offer_shares[observed.assortments.owner])
    raise ValueError(f"Unknown loss {name!r}: choose 'kl' or 'squared-l2'.")
