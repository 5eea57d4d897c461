"""What an offer can bring over all ranking models that fit the data (Farias, Jagabathula and Shah), proven.

Column generation makes the offer as cheap, or as dear, as it can be within a region around the data.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core import Codes, Label, Vec, number_between
from rankstream.certificate import confidence_radii
from rankstream.columns.data import ColumnFinder, Columns, Limits, MakeOracle, Observed, observe
from rankstream.columns.master import FEASIBILITY_TOLERANCE, Ball, Master, Region, ball
from rankstream.columns.uncertain import bound_shares
from rankstream.data import Assortments, ChoiceCounts, UncertainCounts, as_offer, plain
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Ties, auto

BEST_DUAL_SHARE = 0.5  # of the dual that is asked about, the best one so far; by no benchmark
WARM_ROUNDS = 1000  # of mirror descent, whose rankings are the first columns; by no benchmark


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best weights of the columns, their value, and a lower bound for any distribution over rankings."""

    weights: Vec
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """How far the value can be from the best one."""
        return self.value - self.bound


@dataclass
class RangeSearch:
    """Column generation over the observed offers and the offer in question, which comes last.

    The first phase finds the distribution nearest to the frequencies. Once a ``radius`` is fixed, the second phase
    minimises the value of the last offer within it. Pricing uses the mean of the current dual and the best one so far,
    which keeps duals from oscillating (Wentges); a bound holds at any dual. (For nearest models alone, ``corrective``
    is faster.)
    """

    observed: Observed
    master: Master
    finder: ColumnFinder
    columns: Columns
    target: Vec
    radius: float | None = field(default=None, init=False)

    def add(self, rankings: Iterable[Codes]) -> int:
        """Add rankings to the columns and the master; return how many were new."""
        new = self.columns.add(rankings)
        if len(new):
            self.master.add(new, self._offered(new) @ self.target)
        return len(new)

    def aim(self, target: Vec, radius: float) -> None:
        """Start the second phase, or change its target."""
        self.target, self.radius = target, radius
        self.master.fix_radius(radius, self._offered(self.columns.vertices) @ target)

    def run(self, limits: Limits) -> Optimum:
        """Generate columns until the gap is small enough, or a limit is reached."""
        began, score = perf_counter(), -np.inf
        best_bound = 0.0 if self.radius is None else float(self.target.min())
        best_dual = np.zeros(self.master.size)
        best = Optimum(np.zeros(0), np.inf, best_bound)
        for _ in range(limits.max_rounds):
            weights, dual, worth = self.master.solve()
            value = self._value(weights)
            if value <= best.value:
                best = Optimum(weights, value, best_bound)
            if best.gap <= limits.tolerance:
                break
            mix = 0.0 if score == -np.inf else BEST_DUAL_SHARE
            added = 0
            for trial in ((1.0 - mix) * dual + mix * best_dual, dual):
                rankings, bound = self._find_columns(trial)
                costs, vertex = self.costs(dual), self.columns.assortments.vertex
                if bound > score:
                    best_dual, score, best_bound = trial, bound, max(bound, best_bound)
                added = self.add([r for r in rankings if float(costs @ vertex(r)) < worth - FEASIBILITY_TOLERANCE])
                if added:
                    break
            best = Optimum(best.weights, best.value, best_bound)
            if not added or best.gap <= limits.tolerance or perf_counter() - began > limits.budget:
                break
            if limits.watch(f"{len(self.columns):,} rankings, gap {best.gap:.2g}"):
                break
        return best

    def _offered(self, vertices: Vec) -> Vec:
        """Return the coordinates of the offers behind those of the data."""
        return vertices[..., self.observed.assortments.n_coordinates :]

    def costs(self, dual: Vec) -> Vec:
        """Return the oracle's costs at a dual."""
        return np.concatenate((-self.observed.spread(dual), self.target))

    def _find_columns(self, dual: Vec) -> tuple[Codes, float]:
        """Return the cheap rankings at this dual, and its Lagrangian bound."""
        answer = self.finder.cheapest(self.costs(dual))
        slack = float(dual @ self.observed.frequencies) + answer.bound
        width = self.master.ball.width(dual)
        if self.radius is not None:
            return answer.rankings, slack - self.radius * width
        return answer.rankings, slack / width if width > 0.0 else 0.0

    def _value(self, weights: Vec) -> float:
        point = weights @ self.columns.vertices
        if self.radius is None:
            return self.master.ball.distance(self.observed.read(point) - self.observed.frequencies)
        return float(self._offered(point) @ self.target)


@dataclass(frozen=True, eq=False)
class End:
    """One end of the range of an offer's value: a proven bound, and a plausible model within ``gap`` of it."""

    bound: float
    gap: float
    model: RankingModel


@dataclass
class PlausibleModels:
    """All distributions over rankings within ``radius`` of the data, as a ``Ball`` measures it.

    It computes the range of an offer's value over them. Rankings found for one offer are reused for the next.
    """

    observed: Observed
    ball: Ball
    radius: float
    oracle: MakeOracle | None = None
    ties: Ties = "random"
    seed: int = 0
    rankings: dict[bytes, Codes] = field(default_factory=dict)

    def nearest(self, labels: tuple[Label, ...], limits: Limits) -> tuple[RangeSearch, Optimum]:
        """Return a search for the ends of an offer, and the distribution nearest to the data."""
        known = self.observed.whole
        whole = Assortments([*self.observed.assortments.offers, labels], known.items, known.order)
        finder = ColumnFinder(auto(whole, self.ties, self.seed) if self.oracle is None else self.oracle(whole), whole)
        nothing = np.zeros(len(labels))
        search = RangeSearch(self.observed, Master(self.observed, self.ball), finder, Columns(whole), nothing)
        search.add(finder.cheapest(search.costs(self.observed.frequencies)).rankings)
        search.add(self.rankings.values() if self.rankings else self.observed.warm_start(WARM_ROUNDS, self.seed))
        return search, search.run(Limits(FEASIBILITY_TOLERANCE, budget=limits.budget))

    def fits(self, nearest: Optimum) -> bool:
        """Whether any distribution is within the radius."""
        return nearest.value <= self.radius + 10.0 * FEASIBILITY_TOLERANCE

    def used(self, nearest: Optimum) -> float:
        """Return the radius, or the least radius that contains a distribution if this one does not."""
        tight = nearest.value >= self.radius - FEASIBILITY_TOLERANCE
        return max(self.radius, nearest.value) + (FEASIBILITY_TOLERANCE if tight else 0.0)

    def end(self, search: RangeSearch, nearest: Optimum, gains: Vec, limits: Limits) -> End:
        """Return the least value of the offer at these gains; the accuracy is relative to the largest gain."""
        scale = scale_of(gains)
        search.aim(gains / scale, self.used(nearest))
        optimum = search.run(limits)
        orders = search.columns.orders
        self.rankings.update((order.tobytes(), order) for order in orders)
        used = np.flatnonzero(optimum.weights > 0.0)
        weights, whole = optimum.weights[used], self.observed.whole
        model = RankingModel.from_codes(whole.items, orders[used], weights / weights.sum(), whole.no_choice_code)
        return End(scale * optimum.bound, scale * optimum.gap, model)

    def worst(self, labels: tuple[Label, ...], gains: Vec, limits: Limits) -> tuple[End, bool]:
        """Return the least value of an offer, and whether any distribution is within the radius."""
        search, nearest = self.nearest(labels, limits)
        return self.end(search, nearest, gains, limits), self.fits(nearest)


def plausible_models(
    data: ChoiceCounts | UncertainCounts | ArrayLike,
    region: Region,
    tolerance: float,
    confidence: float,
    *,
    assortments: Assortments | None = None,
    oracle: MakeOracle | None = None,
    ties: Ties = "random",
    seed: int = 0,
) -> PlausibleModels:
    """Return the distributions in a region around the data; parameters as in ``revenue_range``."""
    if isinstance(data, UncertainCounts):
        observed, limits = bound_shares(data, region, confidence)
        radius = 1.0 if region == "confidence" else number_between("tolerance", tolerance, 0.0)
        first = observe(data.naive_counts()).warm_start(WARM_ROUNDS, seed)
        starts = {ranking.tobytes(): ranking for ranking in first}
        return PlausibleModels(observed, limits, radius, oracle, ties, seed, starts)
    observed = observe(data, assortments)
    if region == "confidence":
        return PlausibleModels(observed, _confidence(data, confidence), 1.0, oracle, ties, seed)
    radius = number_between("tolerance", tolerance, 0.0)
    return PlausibleModels(observed, ball(observed.frequencies.size, region), radius, oracle, ties, seed)


def scale_of(gains: Vec) -> float:
    """Return the largest absolute gain; 1 if all are 0."""
    return float(np.abs(gains).max(initial=0.0)) or 1.0


def _confidence(data: ChoiceCounts | ArrayLike, confidence: float) -> Ball:
    """Return a ball with a group per observed offer, whose budget is the offer's confidence radius."""
    if not isinstance(data, ChoiceCounts):
        raise ValueError("Frequencies have no confidence region: give ChoiceCounts, or a tolerance.")
    data.require_whole("A confidence region")
    offers, seen = data.assortments, data.totals > 0.0
    owners = np.repeat(np.arange(int(seen.sum())), np.diff(offers.indptr)[seen])
    return Ball(owners, confidence_radii(data, confidence)[seen])


@dataclass(frozen=True, eq=False)
class Range:
    """The range of an offer's value over all distributions over rankings that fit the data.

    ``low`` and ``high`` are proven to enclose all values; if ``proven``, they are sharp up to the accuracy. ``worst``
    and ``best`` are distributions that fit and come close to ``low`` and ``high``. Use them for this offer only: the
    order of items that the data do not compare is arbitrary. ``predicted`` is the value under the nearest ``model``.
    ``tolerance`` is the distance at which distributions count as fitting: the requested one or, if none fits so well
    (``feasible`` is False), the smallest at which some do.
    """

    low: float
    high: float
    predicted: float
    tolerance: float
    feasible: bool
    proven: bool
    model: RankingModel
    worst: RankingModel
    best: RankingModel

    @property
    def width(self) -> float:
        """High minus low: what the data leave open."""
        return self.high - self.low

    def __repr__(self) -> str:
        fits = "fits the data" if self.feasible else f"is nearest to the data, at a distance of {self.tolerance:.3g}"
        sure = "sharp" if self.proven else "valid, not sharp"
        return f"Range({self.low:.4g} to {self.high:.4g} ({sure}), predicted {self.predicted:.4g}; the model {fits})"


def revenue_range(
    data: ChoiceCounts | UncertainCounts | ArrayLike,
    offer: Iterable[Label],
    margins: Mapping[Label, float],
    tolerance: float = 0.0,
    *, assortments: Assortments | None = None, region: Region = "l1", confidence: float = 0.95,
    accuracy: float = 1e-6, budget: float = np.inf,
    oracle: MakeOracle | None = None, ties: Ties = "random", seed: int = 0,
) -> Range:  # fmt: skip
    """Return the lowest and highest expected revenue of an offer over all ranking models that fit (Appendix B.1).

    The original authors sample or approximate the constraints. Column generation solves the problem exactly: the
    offer is one more assortment, whose costs are the margins.

    Parameters
    ----------
    data : ChoiceCounts, UncertainCounts, or array of frequencies
        The choices; frequencies need ``assortments`` as well, and have no confidence region. Where offers are known in
        part, the range holds whatever was on offer between the smallest and the largest sets.
    offer : items
        The offer to price, made of items in the data.
    margins : mapping from items to numbers
        What each item of the offer earns, 0 if nothing. Only the no-choice item of the data needs no margin.
    tolerance : float
        The largest distance, in the norm ``region``, between frequencies and the choice probabilities of a
        distribution that fits. Without effect for ``region="confidence"``.
    assortments : Assortments, optional
        The offers that frequencies belong to.
    region : "l1", "linf" or "confidence"
        The norm of ``tolerance``; or all distributions within the offers' confidence radii, and the reported
        tolerance is a factor of those.
    confidence : float
        The confidence level of those radii.
    accuracy : float
        Accuracy of low and high, relative to the largest margin.
    budget : float
        Time limit in seconds for each of the three searches; see ``proven`` for whether they finished.
    oracle : callable, optional
        From assortments to an oracle; by default ``oracles.auto``.
    ties : "random", "first" or "last"
        Which ranking to keep of those that make the same choices from all offers.
    seed : int
        Seed for the ties and the first rankings.

    Examples
    --------
    >>> offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    >>> menu, margins = ("tea", "pie", "nothing"), {"tea": 2, "pie": 4}
    >>> found = revenue_range([0.5, 0.5, 0.25, 0.75], menu, margins, assortments=offers)
    >>> round(found.low, 4), round(found.high, 4), found.proven     # the data do not tell whether pie lovers like tea
    (1.0, 2.0, True)
    """
    number_between("accuracy", accuracy, 0.0)
    limits = Limits(accuracy, budget=number_between("budget", budget, 0.0))
    plausible = plausible_models(
        data, region, tolerance, confidence, assortments=assortments, oracle=oracle, ties=ties, seed=seed
    )
    labels, whole = as_offer("The offer", offer), plausible.observed.whole
    gains = margins_of(labels, margins, whole)
    search, nearest = plausible.nearest(labels, limits)
    model = plausible.observed.model(search.columns.orders[: nearest.weights.size], nearest.weights, ties, seed)
    low, high = (plausible.end(search, nearest, sign * gains, limits) for sign in (1.0, -1.0))
    feasible = plausible.fits(nearest)
    near = feasible or nearest.gap <= 10.0 * FEASIBILITY_TOLERANCE
    proven = max(low.gap, high.gap) <= accuracy * scale_of(gains) and near
    predicted = float(gains @ list(model.predict(labels, forced=True).values()))
    used = plausible.radius if feasible else plausible.used(nearest)
    return Range(low.bound, -high.bound, predicted, used, feasible, proven, model, low.model, high.model)


def probability_range(
    data: ChoiceCounts | UncertainCounts | ArrayLike,
    offer: Iterable[Label],
    item: Label,
    tolerance: float = 0.0,
    *, assortments: Assortments | None = None, region: Region = "l1", confidence: float = 0.95,
    accuracy: float = 1e-6, budget: float = np.inf,
    oracle: MakeOracle | None = None, ties: Ties = "random", seed: int = 0,
) -> Range:  # fmt: skip
    """Return the smallest and largest share of an item over all ranking models that fit; see ``revenue_range``.

    Parameters
    ----------
    data, offer : ChoiceCounts or frequencies, and items
        As for ``revenue_range``.
    item : item
        One of the offer's.
    tolerance, assortments, region, confidence, accuracy, budget, oracle, ties, seed : optional
        As for ``revenue_range``; the accuracy is that of the share itself.

    Examples
    --------
    >>> offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    >>> found = probability_range([0.5, 0.5, 0.25, 0.75], ("tea", "pie"), "pie", assortments=offers)
    >>> round(found.low, 4), round(found.high, 4)
    (0.0, 0.75)
    """
    labels = as_offer("The offer", offer)
    if plain(item) not in labels:
        raise ValueError(f"The item {item!r} is not in the offer {labels!r}: choose one that is.")
    margins = {label: 1.0 if label == plain(item) else 0.0 for label in labels}
    return revenue_range(
        data, labels, margins, tolerance, assortments=assortments, region=region, confidence=confidence,
        accuracy=accuracy, budget=budget, oracle=oracle, ties=ties, seed=seed,
    )  # fmt: skip


def margins_of(labels: tuple[Label, ...], margins: Mapping[Label, float], assortments: Assortments) -> Vec:
    """Return the margin of each item of an offer; only the no-choice item of the data may have none."""
    for item, value in margins.items():
        if not np.isfinite(number_between(f"The margin of {item!r}", value, -np.inf)):
            raise ValueError(f"The margin of {item!r} is {value}: it must be a finite number.")
    for label in labels:
        code = assortments.code(label)  # raises a ValueError for an item that is not in the data
        if label not in margins and code != assortments.no_choice_code:
            raise ValueError(f"The item {label!r} of the offer has no margin: give one, 0 if it earns nothing.")
    return np.array([float(margins.get(label, 0.0)) for label in labels])
