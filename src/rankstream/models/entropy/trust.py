"""How far data may tilt a prior: the smooth problem behind a tilt, and the trust that best predicts held-out data."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from rankstream._core.threads import one_blas_thread
from rankstream._core.types import ROUNDING, Codes, Vec
from rankstream._core.watch import Watch, unwatched
from rankstream.data.counts import ChoiceCounts
from rankstream.models.entropy.ensemble import Fold, Stack, hold_out_choices
from rankstream.models.entropy.ranking_laws import RankingLaw, SampledLaw
from rankstream.models.entropy.soft_lattice import SoftLattice

TRIED_TRUSTS = (None, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)
"""From not tilting at all to following the data closely."""
# chosen on markets of benchmarks/truths.py; benchmarks/accuracy.py prints the errors of others
USUAL_TRUST = 100.0
OFFERS_FACTOR = 0.5  # of a choice from a new offer, beside one from an offer with data
MAX_NATS_BEHIND = 3.0  # nats below the best so far, where going on along the path ends
MAX_STATES, MAX_FOLDS = 3000, 5  # unions of offers, and folds: beyond, choosing would take longer than fitting
N_DRAWN_RANKINGS = 4000  # rankings that stand for a prior where its program is too large
UNIT_SHARE, MIN_SHARE = 0.1, 1e-3  # the share whose variance is the unit of trust, and the least share that counts
COMPARED_GAP_NATS = 0.02  # the duality gap of a tilt that is only to be compared, in nats
MAX_GAP_LEFT = 0.5  # of the gap after one of Newton's steps; where more is left, L-BFGS goes on


def tilt_weights(counts: ChoiceCounts, prior: RankingLaw, trust: float) -> Vec:
    """Weigh every squared error by its inverse sampling variance under the prior, divided by ``trust``.

    A share of a tenth has the weight K / trust. Rare items get more: the same weight for all would give up their
    shares, and with them much of the likelihood, for small gains on frequent ones.
    """
    offers = counts.assortments
    shares = np.maximum(prior.probabilities(offers), MIN_SHARE)
    weights: Vec = UNIT_SHARE * counts.totals[offers.owner] / (trust * shares)
    return weights


class Tilted(Protocol):
    """A law over rankings that can be tilted: an exact program, or sampled rankings."""

    def evaluate(self, duals: Vec) -> tuple[float, Vec]:
        """Log E exp(-<duals, a(ranking)>), and the choice probabilities of the tilted law."""


class Curvature:
    """The Hessian of a tilt's problem, diag(1 / weights) + Cov(a), with the covariance of sampled rankings.

    It serves problems that differ little, such as refits: they end after two or three steps instead of fifteen.
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


def choose_trust(
    stack: Stack, counts: ChoiceCounts, program: SoftLattice | None, seed: int = 0, watch: Watch = unwatched
) -> tuple[float | None, dict[str, float]]:
    """The trust on the path with the highest held-out likelihood, and what each step that was tried scored.

    Two kinds of predictions count: of offers that are held out, and of choices that are held out of offers with data
    (``hold_out_choices``). So offers with data are followed as closely as they deserve, unless new offers lose more by
    it; a choice from an offer with data counts twice as much. Every step away from 100 has to gain a nat (from no
    tilt, if logit or pool have most of the weight). With a pool but too few offers for folds, held-out choices alone
    decide, so that a market unlike the others follows its own choices. Without both, or with more than 3,000 unions of
    offers, where every step takes long, it is 100. All offers of the counts have observations. Where the ``program``
    over them is too large, it is None: rankings drawn from the prior take its place, as they will in the fit, and what
    they predict decides whether to tilt at all. When ``watch`` says that it is enough, the steps so far decide.
    """
    if not (stack.folds or stack.pool_weight) or (program is not None and program.states.size > MAX_STATES):
        return USUAL_TRUST, {}
    settled = max(stack.logit_weight, stack.pool_weight) > 0.5
    begin = 0 if program is None or settled else TRIED_TRUSTS.index(USUAL_TRUST)
    step = max(1, len(stack.folds) // MAX_FOLDS)
    tests: list[tuple[float, _HeldOut]] = []
    offers, by_choices = counts.assortments, hold_out_choices(stack, counts, seed, watch)
    for folds, factor in ((stack.folds[::step][:MAX_FOLDS], OFFERS_FACTOR), (by_choices, 1.0)):
        held_out = sum(fold.test.observations for fold in folds)
        for fold in folds:
            prior = fold.prior(stack)
            law: Tilted = program.with_prior(prior) if program else SampledLaw(offers, prior, N_DRAWN_RANKINGS, seed)
            tests.append((factor * counts.observations / held_out, _HeldOut(law, prior, counts, fold)))

    def score(place: int) -> float:
        return sum(times * test.score(TRIED_TRUSTS[place]) for times, test in tests) - abs(place - begin)

    scores = {begin: score(begin)}
    for direction in (1, -1):
        place = begin + direction
        while 0 <= place < len(TRIED_TRUSTS) and not watch("choosing how closely to follow the choices"):
            scores[place] = score(place)
            if scores[place] < max(scores.values()) - MAX_NATS_BEHIND:
                break
            place += direction
    best = max(scores, key=lambda place: scores[place])
    words = ["none" if trust is None else f"{trust:g}" for trust in TRIED_TRUSTS]
    return TRIED_TRUSTS[best], {words[place]: round(scores[place] - scores[best], 2) for place in sorted(scores)}


class _HeldOut:
    """The program over all offers with the prior of one fold; duals only on the offers that have data there.

    So the choice probabilities of the offers to predict come with every evaluation.
    """

    def __init__(self, program: Tilted, prior: RankingLaw, counts: ChoiceCounts, fold: Fold) -> None:
        self.program, self.size = program, counts.assortments.n_coordinates
        self.untilted = prior.probabilities(fold.test.assortments)
        self.rest, self.test = (_places(counts, part) for part in (fold.rest, fold.test))
        self.frequencies, self.tallies = fold.rest.frequencies(), fold.test.tallies
        self.weights = tilt_weights(fold.rest, prior, 1.0)
        self.duals = np.zeros(self.rest.size)
        self.held: Vec = np.zeros(self.test.size)

    def evaluate(self, duals: Vec) -> tuple[float, Vec]:
        """As ``Tilted`` says."""
        spread = np.zeros(self.size)
        spread[self.rest] = duals
        value, chosen = self.program.evaluate(spread)
        self.held = chosen[self.test]
        return value, chosen[self.rest]

    def score(self, trust: float | None) -> float:
        """The log-likelihood of the choices held out, in nats; the next tilt starts where this one ended."""
        if trust is None:
            self.held = self.untilted
        else:
            problem = TiltProblem(self, self.frequencies, self.weights / trust, COMPARED_GAP_NATS)
            problem.solve(self.duals, 60)
            self.duals = problem.duals
            self.evaluate(problem.duals)
        chosen = self.tallies > 0.0
        return float(self.tallies[chosen] @ np.log(np.maximum(self.held[chosen], 1e-300)))


def _places(whole: ChoiceCounts, part: ChoiceCounts) -> Codes:
    offers = whole.assortments
    starts = [offers.coordinate(offer, offer[0]) for offer in part.assortments.offers]
    sizes = np.diff(part.assortments.indptr)
    return np.concatenate([np.arange(start, start + size) for start, size in zip(starts, sizes.tolist(), strict=True)])
