"""The smooth convex problem behind a tilt, and how it is solved."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from rankstream._core.threads import one_blas_thread
from rankstream._core.types import ROUNDING, Vec
from rankstream._core.watch import Watch, unwatched

MAX_GAP_LEFT = 0.5  # of the gap after one of Newton's steps; where more is left, L-BFGS goes on


class Tilted(Protocol):
    """A law over rankings that can be tilted: an exact program, or sampled rankings."""

    def evaluate(self, duals: Vec) -> tuple[float, Vec]:
        """Log E exp(-<duals, a(ranking)>), and the choice probabilities of the tilted law."""


class Curvature:
    """The Hessian of a tilt's problem, diag(1 / weights) + Cov(a), with the covariance of sampled rankings.

    The same for problems that differ little, such as refits: they end after two or three steps instead of fifteen.
    Solved by Woodbury's identity, so that it takes as many numbers as there are rankings, times that of coordinates.
    """

    def __init__(self, vertices: Vec, weights: Vec) -> None:
        from scipy.linalg import cho_factor

        self.weights = weights
        self.rows: Vec = (vertices - vertices.mean(axis=0)) / np.sqrt(len(vertices))
        self.factor = cho_factor(np.eye(len(vertices)) + (self.rows * weights) @ self.rows.T)

    def solve(self, slope: Vec) -> Vec:
        """Return the step whose slope is this one, to first order."""
        from scipy.linalg import cho_solve

        step: Vec = self.weights * slope
        step -= self.weights * (cho_solve(self.factor, self.rows @ step) @ self.rows)
        return step


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

    def solve(self, start: Vec, most: int, curvature: Curvature | None = None) -> None:
        """L-BFGS until the gap is small enough, or whoever watches says so; one evaluation at least.

        With a curvature, after Newton's steps as long as they halve the gap.
        """
        from scipy.optimize import minimize

        self.duals, self.fitted = start.copy(), np.zeros_like(start)
        limits = {"maxcor": 30, "maxfun": most, "maxiter": most, "ftol": 0.0, "gtol": 0.0}
        with suppress(_EnoughError), one_blas_thread():  # matrices are small: threads would only wait
            if curvature is not None:
                start = self._newton(start, most, curvature)
            minimize(self._value, start, jac=True, method="L-BFGS-B", options=limits)

    def _newton(self, start: Vec, most: int, curvature: Curvature) -> Vec:
        point, before = start, np.inf
        while self.evaluations < most:
            _, slope = self._value(point)
            if self.gap > MAX_GAP_LEFT * before:
                break
            before, point = self.gap, point - curvature.solve(slope)
        return self.duals

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
        if self.gap <= self.tolerance or self.watch(f"evaluation {self.evaluations}, gap {self.gap:.2g}"):
            raise _EnoughError
        return height, slope


class _EnoughError(Exception):
    """The best point so far is good enough."""
