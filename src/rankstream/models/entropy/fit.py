"""The maximum-entropy ranking model: of all that fit the data as well as noise allows, the one nearest to a prior."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.rounding import ROUNDING
from rankstream._core.types import Vec
from rankstream._core.watch import Watch, until, unwatched
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observed import observed
from rankstream.models.entropy.laws import Prior, plackett_luce
from rankstream.models.entropy.model import EntropyModel
from rankstream.models.entropy.priors import fit_prior, stacked_prior
from rankstream.models.entropy.soft_lattice import SoftLattice
from rankstream.models.rankings import RankingModel
from rankstream.oracles.lattice import TooManyUnionsError

TRUST = 30.0
EXACT = 100_000.0
SAMPLES = 4_000


@dataclass(frozen=True, eq=False)
class EntropyFit:
    """A fitted model and what is proven about it.

    ``gap`` bounds, in nats, how far the objective is from its optimum over all rankings (over the sampled ones where
    ``approximate``), for the prior that was used. ``assortments``, ``duals`` and ``fitted`` are those of the offers
    with observations.
    """

    model: EntropyModel | RankingModel
    assortments: Assortments
    duals: Vec
    fitted: Vec
    gap: float
    evaluations: int
    converged: bool
    approximate: bool


class Tilted(Protocol):
    """A law over rankings that can be tilted: an exact program, or sampled rankings."""

    def evaluate(self, duals: Vec) -> tuple[float, Vec]:
        """Log E exp(-<duals, a(ranking)>), and the choice probabilities of the tilted law."""


def fit(
    counts: ChoiceCounts,
    prior: Prior | Literal["default", "stacked"] = "default",
    *,
    trust: float = TRUST,
    tolerance: float = 1e-3,
    max_evaluations: int = 1000,
    start: EntropyFit | None = None,
    seed: int = 0,
    watch: Watch = unwatched,
) -> EntropyFit:
    """Minimise log E_prior exp(-<y, a>) + <p, y> + trust / 2 * sum of y^2 / K over y, K the observations of an offer.

    That is the dual of: stay near the prior (in Kullback-Leibler divergence) while the squared errors, in units of
    ``trust`` times their sampling variance, stay small. The expectation is exact, by a dynamic program; where that is
    too large, over rankings sampled from the prior, and the fit says so. ``start`` may be an earlier fit to the same
    offers, as when a stream refreshes its model. When ``watch`` says that it is enough, the point with the least gap so
    far is the answer; half the time is for the prior, a fifth for sampling.

    >>> counts = ChoiceCounts(Assortments([("tea", "pie", "no"), ("tea", "no")]), [50, 30, 20, 70, 30])
    >>> found = fit(counts)
    >>> found.converged, found.gap <= 1e-3
    (True, True)
    >>> {item: round(share, 2) for item, share in found.model.predict(("pie", "no")).items()}
    {'pie': 0.5..., 'no': 0.4...}
    """
    number_between("trust", trust, 1e-9)
    number_between("tolerance", tolerance, 0.0)
    whole_number("max_evaluations", max_evaluations, least=1)
    data = observed(counts)
    if not isinstance(prior, Prior):
        if prior not in ("default", "stacked"):
            raise ValueError(f"There is no prior {prior!r}: give a Prior, 'default' or 'stacked'.")
        prior = (stacked_prior if prior == "stacked" else fit_prior)(data, seed=seed, watch=until(watch, 0.5))
    offers = data.assortments
    try:
        law: Tilted = SoftLattice(offers, prior)
        approximate = False
    except TooManyUnionsError:
        law = SampledLaw(offers, prior, SAMPLES, seed, until(watch, 0.7))
        approximate = True
    problem = Problem(law, data.frequencies(), data.totals[offers.owner] / trust, tolerance, watch)
    begin = np.zeros(offers.n_coordinates)
    if start is not None and start.assortments == offers:
        begin = start.duals
    problem.solve(begin, max_evaluations)
    model: EntropyModel | RankingModel = EntropyModel(prior, offers, problem.duals)
    if isinstance(law, SampledLaw):
        model = law.model(problem.duals)
    return EntropyFit(
        model, offers, problem.duals, problem.fitted, problem.gap, problem.evaluations,
        problem.gap <= tolerance, approximate,
    )  # fmt: skip


def has_small_program(counts: ChoiceCounts) -> bool:
    """Whether the exact program is small enough to be run a few dozen times, with room for the offers to predict."""
    offers = counts.assortments
    if offers.n_offers > 400 or not 1 < offers.n_items <= 64:
        return False
    flat = plackett_luce(offers.items, [1.0] * offers.n_items)
    try:
        SoftLattice(offers, flat, most_states=2**13)
    except TooManyUnionsError:
        return False
    return True


@dataclass
class Problem:
    """The smooth convex problem in the duals, and the best point found so far.

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


class SampledLaw:
    """Rankings sampled from a prior, as likely as they are frequent before they are tilted."""

    def __init__(self, assortments: Assortments, prior: Prior, size: int, seed: int, watch: Watch = unwatched) -> None:
        self.assortments, self.items = assortments, prior.items
        self.orders, times = np.unique(prior.sample(size, seed, watch), axis=0, return_counts=True)
        self.logs = np.log(times / times.sum())
        self.vertices = np.array([assortments.vertex(order) for order in self.orders])

    def weights(self, duals: Vec) -> tuple[float, Vec]:
        """Log E exp(-<duals, a>) and the tilted weights of the rankings."""
        exponents = self.logs - self.vertices @ duals
        top = float(exponents.max())
        weights = np.exp(exponents - top)
        total = float(weights.sum())
        return top + float(np.log(total)), weights / total

    def evaluate(self, duals: Vec) -> tuple[float, Vec]:
        """As ``Tilted`` says."""
        value, weights = self.weights(duals)
        return value, weights @ self.vertices

    def model(self, duals: Vec) -> RankingModel:
        """The sampled rankings with their tilted weights."""
        return RankingModel.from_codes(self.items, self.orders, self.weights(duals)[1], self.assortments.no_choice)
