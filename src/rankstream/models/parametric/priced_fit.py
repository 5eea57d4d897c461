"""The likelihood of classes of logits with a price coefficient, and how it is climbed."""

from typing import NamedTuple

import numpy as np

from rankstream._core.threads import one_blas_thread
from rankstream._core.types import Codes, Vec
from rankstream._core.watch import Watch
from rankstream.data.counts import ChoiceCounts
from rankstream.models.parametric.em_kernels import mixture_step

SPREAD = 0.7  # of constants and log slopes, where random starts begin


class Ended(NamedTuple):
    """Where a climb ended."""

    point: Vec
    height: float
    steps: int
    converged: bool


class PricedProblem:
    """Smoothed likelihood and slope; a point is the log mixture, the constants, class by class, and the log slopes.

    Both are per observation, so that steps and tolerances fit one choice and 10 billion of them alike.
    Slopes are in units of the prices' spread, so that all coordinates are of one size; by their logarithms, so that
    none is below 0. In each class an item gets ``smoothing`` imaginary choices from an offer of everything, dealt out
    to its levels, and each class as many customers.
    """

    def __init__(self, data: ChoiceCounts, owner: Codes, prices: Vec, classes: int, smoothing: float) -> None:
        offers = data.assortments
        self.observations = max(1.0, float(data.tallies.sum()))
        self.offers = offers.indptr, offers.members, data.tallies / self.observations
        self.owner, self.classes, self.groups = owner, classes, int(owner.max()) + 1
        priced = prices[prices > 0.0]
        self.scale = float(priced.std()) or float(priced.mean() if priced.size else 1.0)
        self.money = prices / self.scale
        self.smoothing = smoothing / self.observations
        self.imagined = self.smoothing / np.bincount(owner)[owner]

    def parts(self, point: Vec) -> tuple[Vec, Vec, Vec]:
        """Mixture, constants and slopes."""
        size = self.classes
        logs = point[:size] - point[:size].max()
        mixture = np.exp(logs) / np.exp(logs).sum()
        return (
            mixture,
            point[size:-size].reshape(size, self.groups),
            np.exp(np.minimum(point[-size:], 50.0)) / self.scale,
        )

    def cost(self, point: Vec) -> tuple[float, Vec]:
        """Minus the smoothed log-likelihood per observation, and its slope."""
        mixture, constants, slopes = self.parts(point)
        utility = constants.T[self.owner] - np.outer(self.money, slopes * self.scale)
        utility -= utility.max(axis=0)
        attraction = np.maximum(np.exp(utility), 1e-300)
        top, bottom = np.zeros_like(attraction), np.zeros_like(attraction)
        value = mixture_step(*self.offers, mixture, attraction, top, bottom)
        customers = top.sum(axis=0) + self.smoothing
        total = attraction.sum(axis=0)
        shares = attraction / total
        value += float(self.imagined @ (utility - np.log(total)).sum(axis=1))
        value += self.smoothing * float(np.log(np.maximum(mixture, 1e-300)).sum())
        slope = top - attraction * bottom + self.imagined[:, np.newaxis] - self.imagined.sum() * shares
        by_item = np.zeros((self.groups, self.classes))
        np.add.at(by_item, self.owner, slope)
        by_slope = -(self.money @ slope) * slopes * self.scale
        gradient = [customers - customers.sum() * mixture, by_item.T.ravel(), by_slope]
        return -value, -np.concatenate(gradient)

    def random_point(self, random: np.random.Generator) -> Vec:
        """Draw a point to begin at."""
        size, spread = self.classes, SPREAD if self.classes > 1 else 0.0
        return np.concatenate([np.zeros(size), spread * random.normal(size=size * (self.groups + 1))])

    def point_of(self, mixture: Vec, worth: Vec) -> Vec:
        """Find the point of classes with this worth of each label; slopes are fitted within items, by least squares."""
        logs, sizes = np.log(np.maximum(worth, 1e-300)), np.bincount(self.owner)

        def item_means(rows: Vec) -> Vec:
            return np.array([np.bincount(self.owner, row) for row in np.atleast_2d(rows)]) / sizes

        money = self.money - item_means(self.money)[0, self.owner]
        slopes = np.maximum(-(logs @ money) / max(float(money @ money), 1e-300), 1e-6)
        constants = item_means(logs + np.outer(slopes, self.money))
        return np.concatenate([np.log(np.maximum(mixture, 1e-300)), constants.ravel(), np.log(slopes)])

    def climb(self, begin: Vec, tolerance: float, max_rounds: int, watch: Watch) -> Ended:
        """L-BFGS from a point, until a step gains less than ``tolerance`` nats per observation."""
        from scipy.optimize import minimize

        steps = 0

        def look(_: Vec) -> None:
            nonlocal steps
            steps += 1
            if watch(f"logits with a price, step {steps}"):
                raise StopIteration

        limits = {"maxiter": max_rounds, "maxfun": 2 * max_rounds, "maxcor": 20, "ftol": tolerance, "gtol": 1e-7}
        with one_blas_thread():  # vectors are short: threads would only wait
            found = minimize(self.cost, begin, jac=True, method="L-BFGS-B", options=limits, callback=look)
        return Ended(found.x, -float(found.fun) * self.observations, int(found.nit), bool(found.success))
