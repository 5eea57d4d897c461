"""The smooth convex problem behind a tilt, and how it is solved."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from rankstream._core.rounding import ROUNDING
from rankstream._core.types import Vec
from rankstream._core.watch import Watch, unwatched


class Tilted(Protocol):
    """A law over rankings that can be tilted: an exact program, or sampled rankings."""

    def evaluate(self, duals: Vec) -> tuple[float, Vec]:
        """Log E exp(-<duals, a(ranking)>), and the choice probabilities of the tilted law."""


@dataclass
class TiltProblem:
    """The smooth convex problem in the duals, and the best point so far.

    Its duality gap at y is 1/2 sum of K / trust * (x - p - trust * y / K)^2: half the squared slope in the metric of
    the penalty's inverse. The best point is the one whose model has the least ``cost`` (divergence from the prior and
    squared errors), and what is proven of it may come from another point: ``bound`` is the best dual value.
    """

    law: Tilted
    frequencies: Vec
    weights: Vec
    tolerance: float
    watch: Watch = unwatched
    gap: float = field(default=np.inf, init=False)
    cost: float = field(default=np.inf, init=False)
    bound: float = field(default=-np.inf, init=False)
    evaluations: int = field(default=0, init=False)

    def solve(self, start: Vec, most: int) -> None:
        """L-BFGS until the gap is small enough, or whoever watches says so; one evaluation at least."""
        from scipy.optimize import minimize

        self.duals, self.fitted = start.copy(), np.zeros_like(start)
        limits = {"maxcor": 30, "maxfun": most, "maxiter": most, "ftol": 0.0, "gtol": 0.0}
        with suppress(_EnoughError):
            minimize(self._value, start, jac=True, method="L-BFGS-B", options=limits)

    def _value(self, duals: Vec) -> tuple[float, Vec]:
        value, chosen = self.law.evaluate(duals)
        slope = self.frequencies - chosen + duals / self.weights
        gap = 0.5 * float(self.weights @ slope**2)
        self.evaluations += 1
        height = value + float(self.frequencies @ duals) + 0.5 * float(duals**2 @ (1.0 / self.weights))
        self.bound = max(self.bound, -height)
        if gap - height < self.cost:
            self.cost, self.gap, self.duals, self.fitted = gap - height, gap, duals.copy(), chosen
        rounding = ROUNDING * duals.size * (1.0 + abs(self.cost) + abs(self.bound))
        self.gap = min(self.gap, self.cost - self.bound + rounding)
        if self.gap <= self.tolerance or self.watch(f"evaluation {self.evaluations}, gap {self.gap:.2g} nats"):
            raise _EnoughError
        return height, slope


class _EnoughError(Exception):
    """The best point so far is good enough."""
