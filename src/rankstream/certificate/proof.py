"""Lower bounds on the distance of any ranking model from the data, proven by cuts."""

from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core import ROUNDING, Vec, number_between, whole_number
from rankstream.data import Assortments, ChoiceCounts, Target, as_target
from rankstream.data.observations import some_offers
from rankstream.oracles.bounds.cuts import CLIMB_PASSES, Cut, CutPool, PartRounds

# tuned on other seeds than those of benchmarks/proofs.py
MIN_WEIGHT_SHARE = 1e-6  # of the largest weight: offers below it are left out, which only lowers the bound
MULTIPLIER_TOLERANCE = 1e-4  # relative distance of the multipliers from their optimum at which parts are searched


class Proof:
    """A lower bound on the weighted Euclidean distance of any ranking model from the data, which rises round by round.

    A cut is a half-space that contains all models. Cuts come from parts of the items around every offer
    (``oracles.bounds.cuts``), and from the caller (``add``). No model is nearer to the data than the
    nearest point that satisfies all cuts. Cuts ignore an order on the items; the bound still holds for rankings that
    respect one, because these are a subset of all rankings.

    Parameters
    ----------
    assortments : Assortments
        The offers.
    frequencies : ChoiceCounts, Target or array
        The data; offers without any are left out.
    weights : array, optional
        One number >= 0 per offer, as in ``distances.L2``; 0 leaves the offer out. By default all are 1.
    items : int
        The largest number of items in a part, whose table has 2^items numbers per item. 0 means no parts.

    Examples
    --------
    >>> offers = Assortments([("tea", "pie", "nothing"), ("tea", "nothing")])
    >>> proof = Proof(offers, [0.5, 0.5, 0.0, 0.25, 0.75])
    >>> round(proof.advance(rounds=1), 3), proof.point.round(3)
    (0.231, array([0.357, 0.571, 0.071, 0.357, 0.643]))
    >>> proof.add([-1.0, 0.0, 0.0, 1.0, 0.0], 0.0)     # tea's share is larger where there is no pie
    >>> round(proof.bound(), 3)
    0.231
    """

    def __init__(
        self,
        assortments: Assortments,
        frequencies: ChoiceCounts | Target | ArrayLike,
        weights: ArrayLike | None = None,
        *,
        items: int = 16,
    ) -> None:
        self.assortments = assortments
        target = as_target(assortments, frequencies)
        number = assortments.n_offers
        offer_weights = np.ones(number) if weights is None else np.array(weights, dtype=np.float64)
        if offer_weights.shape != (number,) or not (np.isfinite(offer_weights) & (offer_weights >= 0.0)).all():
            raise ValueError(f"The weights are {weights!r}: give a number >= 0 for each of {number} offers.")
        if target.seen is not None:
            offer_weights = np.where(target.seen[assortments.indptr[:-1]], offer_weights, 0.0)
        if not offer_weights.any():
            raise ValueError("No offer has been seen yet: observe some choices first.")
        self._norm = float(offer_weights.max())
        counted = np.flatnonzero(offer_weights > MIN_WEIGHT_SHARE * self._norm)
        self._offers, self._places = some_offers(assortments, counted)
        self._weights: Vec = offer_weights[counted] / self._norm
        self._known: Vec = np.nan_to_num(target.frequencies)
        self._data: Vec = target.frequencies[self._places]
        self.pool = CutPool(self._offers, self._data, self._weights)
        self._parts = PartRounds(self._offers, self._weights**2, whole_number("items", items))
        self._best, self.rounds, self.finished = 0.0, 0, False
        self._best_normal: Vec = np.zeros(self._data.size)

    def bound(self) -> float:
        """Return the lower bound: no model is nearer to the data. It never falls."""
        latest = self.pool.bound() * self._norm
        if latest > self._best:
            self._best, self._best_normal = latest, self.pool.normal()
        return self._best

    @property
    def normal(self) -> Vec:
        """The normal of the half-space that proves the bound: all models are on the side where it is larger."""
        self.bound()
        whole: Vec = np.zeros(self.assortments.n_coordinates)
        whole[self._places] = self._best_normal
        return whole

    @property
    def point(self) -> Vec:
        """The nearest point to the data that satisfies all cuts; offers that do not count keep their data, or 0."""
        whole: Vec = self._known.copy()
        whole[self._places] = self.pool.point
        return whole

    @property
    def direction(self) -> Vec:
        """The weighted residual: costs whose cheapest ranking, from an exact oracle, gives the next cut."""
        weights = self._weights[self._offers.owner]
        costs: Vec = np.zeros(self.assortments.n_coordinates)
        costs[self._places] = weights**2 * (self.pool.point - self._data)
        return costs

    def add(self, normal: ArrayLike, least: float) -> None:
        """Add your own cut: ``<normal, x> >= least`` for every ranking model x of all offers.

        ``least`` must be proven, for example by an exact oracle, and allow for rounding. Offers that do not count are
        removed from the cut at their largest possible value.
        """
        whole = np.array(normal, dtype=np.float64)
        if whole.shape != (self.assortments.n_coordinates,) or not np.isfinite(whole).all():
            number = self.assortments.n_coordinates
            raise ValueError(f"The normal of a cut is {normal!r}: give {number} finite numbers, one per coordinate.")
        number_between("least", least, -np.inf)
        inside = whole[self._places]
        whole[self._places] = 0.0
        elsewhere = np.maximum.reduceat(whole, self.assortments.indptr[:-1])
        rounding = ROUNDING * whole.size * float(np.abs(elsewhere).sum())
        where = np.flatnonzero(inside)
        self.pool.add(Cut(where, inside[where], float(least) - float(elsewhere.sum()) - rounding))
        self.pool.climb(CLIMB_PASSES)
        self.finished = False

    def advance(self, budget: float = np.inf, rounds: int | None = None, target: float = np.inf) -> float:
        """Raise the bound for ``budget`` seconds or some rounds, or until it reaches ``target``; return it.

        Without a limit it ends when parts of the largest size add next to nothing (``finished``). The same number of
        rounds gives the same bound, whatever the number of threads.
        """
        until = perf_counter() + number_between("budget", budget, 0.0)
        last = np.inf if rounds is None else self.rounds + whole_number("rounds", rounds)
        while self.rounds < last and not self.finished and perf_counter() < until and self.bound() < target:
            if not self._round(until):
                break
            self.rounds += 1
        return self.bound()

    def _round(self, until: float) -> bool:
        """Add the cuts of some parts if the multipliers are near their optimum, then improve the multipliers.

        Returns False if there is no time for a part.
        """
        cuts: list[Cut] | None = []
        if self.pool.bound() >= (1.0 - MULTIPLIER_TOLERANCE) * self.pool.distance():
            cuts = self._parts.cuts(self.pool.point, self.pool.misfits(), self.pool.bound(), until)
            self.finished = self._parts.finished
        for cut in cuts or []:
            self.pool.add(cut)
        self.pool.climb(CLIMB_PASSES)
        self.pool.forget()
        return cuts is not None
