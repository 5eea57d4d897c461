"""The fully corrective engine: after every oracle call, the best weights for all rankings found so far."""

from array import array
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from rankstream import distances, oracles
from rankstream._types import Codes, Vec
from rankstream.assortments import Assortments
from rankstream.certificate import Certificate
from rankstream.certificate.gap import ROUNDING
from rankstream.counts import ChoiceCounts, Target, as_target
from rankstream.distances import L1, L2, Distance, HighNorm, LInf
from rankstream.linear_master import LinearMaster
from rankstream.model import RankingModel
from rankstream.nearest import NearestMixture
from rankstream.oracles import Oracle, Ties
from rankstream.pricing import Pricing, by_tie_rule
from rankstream.runs import COLUMNS, Estimate, History, Stop
from rankstream.validate import number_between, whole_number

NAME = "fully-corrective"
SEED_GAP = 1e-4
Norm: TypeAlias = L1 | HighNorm | LInf


class Master(Protocol):
    """What finds the best weights of the rankings so far."""

    point: Vec

    @property
    def orders(self) -> Codes:
        """The rankings."""

    @property
    def weights(self) -> Vec:
        """Their weights."""

    def take(self, rankings: Codes) -> bool:
        """Take in new rankings; False if they change nothing."""


def fit(
    assortments: Assortments,
    data: ChoiceCounts | Target | ArrayLike,
    distance: str | Distance = "l2",
    oracle: Oracle | None = None,
    ties: Ties = "random",
    tolerance: float = 1e-6,
    stop: Stop = "gap",
    max_rounds: int = 10_000,
    seed: int = 0,
) -> Estimate:
    """The ranking model nearest to frequencies or counts that stand still, to a small certified gap, with few rankings.

    Every oracle call gives many rankings at once, and all weights are then chosen anew: for l2 by Wolfe's method for
    the nearest point of a polytope, for l1 and l-infinity by linear programs that start from the l2 rankings. Rankings
    that lose their weight are dropped, and come back if the oracle finds them again. A weight per offer goes with the
    distance object. It ends with tight bounds on both sides, whether a ranking model fits the data or not.

    >>> offers = Assortments([("tea", "pie"), ("tea", "pie", "nothing")])
    >>> found = fit(offers, [0.4, 0.6, 0.5, 0.2, 0.3])       # tea gains when nothing joins: no ranking model does that
    >>> round(found.certificate.upper, 6), round(found.certificate.lower, 6)
    (0.092582, 0.092582)
    """
    whole_number("max_rounds", max_rounds, least=1)
    number_between("tolerance", tolerance, 0.0)
    if stop not in ("mae", "gap"):
        raise ValueError(f"There is no stopping rule {stop!r}: choose 'mae' or 'gap'.")
    if not isinstance(assortments, Assortments):
        raise ValueError(f"The assortments must be an Assortments, not {type(assortments).__name__}.")
    norm = _supported(distances.make(distance, assortments))
    target = as_target(assortments, data)
    offer_weights = norm.offer_weights
    if target.seen is not None:
        offer_weights = np.where(target.seen[assortments.indptr[:-1]], offer_weights, 0.0)
    if not offer_weights.any():
        raise ValueError("No offer with a positive weight was observed: observe some choices first.")
    if oracle is None:
        oracle = oracles.auto(assortments, ties, whole_number("seed", seed))
    if not hasattr(oracle, "cheapest"):
        raise ValueError(f"The oracle {oracle!r} has no method cheapest: leave it out, or see oracles.Oracle.")
    search = _Search(norm, target, Pricing(oracle, assortments.n_items), tolerance, stop, max_rounds)
    nearest = NearestMixture(assortments, target.frequencies, offer_weights**2)
    if isinstance(norm, HighNorm):
        return search.run_nearest(nearest, norm).result(nearest, oracle)
    search.run_nearest(nearest, L2(assortments, weights=norm.weights), SEED_GAP)
    if search.converged or search.rounds == max_rounds:
        return search.result(nearest, oracle)
    master = LinearMaster(assortments, "l1" if isinstance(norm, L1) else "linf", target.frequencies, offer_weights)
    master.take(nearest.orders)
    return search.run_linear(master).result(master, oracle)


def _supported(distance: Distance) -> Norm:
    known = isinstance(distance, L1 | LInf | HighNorm) and not distance.smoothing
    if not known or (isinstance(distance, HighNorm) and distance.q != 2.0):
        given = f"not for this {type(distance).__name__}: use one of those, or another learner"
        raise ValueError(f"The fully corrective engine is for l1, l2 and l-infinity without smoothing, {given}.")
    return cast(Norm, distance)


@dataclass
class _Search:
    """The loop of pricing and re-weighting: the best proven bound so far, and the history."""

    distance: Norm
    target: Target
    pricing: Pricing
    tolerance: float
    stop: Stop
    max_rounds: int
    rounds: int = 0
    converged: bool = False
    lower: float = 0.0  # what the dual 0 proves
    exact: bool = True
    best_dual: Vec | None = None
    rows: "array[float]" = field(default_factory=lambda: array("d"))

    def run_nearest(self, master: NearestMixture, guide: HighNorm, enough: float = 0.0) -> "_Search":
        """Wolfe's method with the duals of an l2 distance, until the tolerance, a gap of its own, or no progress."""
        lower, refreshed = 0.0, False
        while self.rounds < self.max_rounds:
            dual = guide.respond(master.point, self._aim(master))
            bound, rankings = self._price(guide, dual, self._aim(master))
            lower = max(lower, bound)
            if guide is self.distance:
                self._note(dual, bound)
            moved = master.take(rankings)
            self._record(master, master.count)
            gap = guide.value(master.point, self._aim(master)) - lower
            if self.converged or gap <= enough or (refreshed and not moved):
                break
            if not moved:
                master.refresh()
            refreshed = not moved
        return self

    def run_linear(self, master: LinearMaster) -> "_Search":
        """Column generation: the prices of the restricted program, until no ranking pays."""
        moved = True
        while self.rounds < self.max_rounds and moved and not self.converged:
            dual = master.dual()
            bound, rankings = self._price(self.distance, dual, self._aim(master))
            self._note(dual, bound)
            moved = master.take(rankings)
            self._record(master, int(np.count_nonzero(master.weights)))
        return self

    def _aim(self, master: Master) -> Vec:
        """The frequencies, where there are none the model's own probabilities."""
        if self.target.seen is None:
            return self.target.frequencies
        return np.where(self.target.seen, self.target.frequencies, master.point)

    def _price(self, distance: Norm, dual: Vec, aim: Vec) -> tuple[float, Codes]:
        """What a dual proves, with room for rounding, and the rankings that answer it."""
        costs = distance.costs(dual)
        priced = self.pricing(costs)
        offset = distance.offset(dual, aim)
        rounding = ROUNDING * costs.size * (1.0 + float(np.abs(costs).sum()) + abs(offset))
        self.exact = self.exact and priced.exact
        self.rounds += 1
        return priced.bound - offset - rounding, priced.rankings

    def _note(self, dual: Vec, bound: float) -> None:
        if bound > self.lower:
            self.lower, self.best_dual = bound, dual

    def _record(self, master: Master, n_rankings: int) -> None:
        aim, seen = self._aim(master), self.target.seen
        errors = np.abs(master.point - aim)
        mae = float((errors if seen is None else errors[seen]).mean())
        value = self.distance.value(master.point, aim)
        self.rows.extend((self.target.observations, mae, mae, value, n_rankings, value - self.lower))
        self.converged = (mae if self.stop == "mae" else value - self.lower) <= self.tolerance

    def result(self, master: Master, oracle: Oracle) -> Estimate:
        """The model, heaviest ranking first, and the certificate."""
        assortments = self.distance.assortments
        used = np.flatnonzero(master.weights)
        heaviest = used[np.argsort(-master.weights[used], kind="stable")]
        orders = by_tie_rule(assortments, oracle, master.orders[heaviest])
        model = RankingModel.from_codes(
            assortments.items, orders, master.weights[heaviest] / master.weights.sum(), assortments.no_choice
        )
        history = History(*np.frombuffer(self.rows).reshape(-1, len(COLUMNS)).T.copy())
        return Estimate(model, self._certificate(master), self.rounds, self.converged, history)

    def _certificate(self, master: Master) -> Certificate:
        aim, payoff = self._aim(master), 0.0
        if self.best_dual is not None:
            payoff = float(self.distance.costs(self.best_dual) @ master.point)
            payoff -= self.distance.offset(self.best_dual, aim)
        upper = self.distance.value(master.point, aim)
        return Certificate(upper, self.lower, payoff - self.lower, upper - payoff, self.exact)
