"""Farias, Jagabathula and Shah's question: what can an offer earn, given all that the data do not say?"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.arguments import number_between
from rankstream._core.old_names import old_keywords
from rankstream._core.types import Label, Vec
from rankstream.columns.data import Limits, MakeOracle
from rankstream.columns.master import FEASIBILITY_TOLERANCE
from rankstream.columns.plausible import Region, plausible_models, scale_of
from rankstream.data.assortments import Assortments, as_offer, plain
from rankstream.data.counts import ChoiceCounts
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Ties


@dataclass(frozen=True, eq=False)
class Range:
    """What an offer can bring over all ranking distributions that fit the data.

    ``low`` and ``high`` are proven to enclose all of it, and are sharp up to the tolerance of the search if ``proven``.
    ``worst`` and ``best`` are distributions that fit and bring about as little and as much: ``low`` and ``high``, if
    ``proven`` up to the accuracy. Their rankings are as the search left them: among items that the data do not compare
    the order is arbitrary, so ask them about this offer only. ``predicted`` is what the nearest model brings, which is
    ``model``. ``tolerance`` is the distance at which distributions count as fitting: the one asked for, or, where none
    fits so well (``feasible`` is False), the smallest one at which some do.
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
        """High less low: what the data leave open."""
        return self.high - self.low

    def __repr__(self) -> str:
        fits = "fits the data" if self.feasible else f"is nearest to the data, at a distance of {self.tolerance:.3g}"
        sure = "sharp" if self.proven else "valid, not sharp"
        return f"Range({self.low:.4g} to {self.high:.4g} ({sure}), predicted {self.predicted:.4g}; the model {fits})"


@old_keywords(prices="margins", level="confidence", max_seconds="budget")
def revenue_range(
    data: ChoiceCounts | ArrayLike,
    offer: Iterable[Label],
    margins: Mapping[Label, float],
    tolerance: float = 0.0,
    *,
    assortments: Assortments | None = None,
    region: Region = "l1",
    confidence: float = 0.95,
    accuracy: float = 1e-6,
    budget: float = np.inf,
    oracle: MakeOracle | None = None,
    ties: Ties = "random",
    seed: int = 0,
) -> Range:
    """Return the lowest and highest expected revenue of an offer over all ranking models that fit (Appendix B.1).

    Column generation gives the exact answer, where the authors sample constraints or approximate them: the offer is one
    more assortment, whose costs are the margins.

    Parameters
    ----------
    data : ChoiceCounts, or array of frequencies
        The choices; frequencies need ``assortments`` as well, and have no confidence region.
    offer : items
        The offer to price, of items that the data know.
    margins : mapping from items to numbers
        What each item of the offer earns: 0 if nothing. Only the no-choice item of the data needs no margin.
    tolerance : float
        How far, in the norm ``region``, the choice probabilities of a distribution that fits may be from the
        frequencies. Without effect for ``region="confidence"``.
    assortments : Assortments, optional
        The offers that frequencies belong to.
    region : "l1", "linf" or "confidence"
        The norm of ``tolerance``; or all distributions within the offers' confidence radii, and the tolerance that the
        answer reports is a factor of those.
    confidence : float
        The confidence level of those radii.
    accuracy : float
        How exact low and high are to be, relative to the largest margin.
    budget : float
        The most seconds for each of the three searches; what is not proven by then is reported as such.
    oracle : callable, optional
        From assortments to an oracle; without it ``oracles.auto``.
    ties : "random", "first" or "last"
        Which of the rankings that choose alike from all offers is kept.
    seed : int
        Seed for the ties and the first rankings.

    >>> offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    >>> menu, margins = ("tea", "pie", "nothing"), {"tea": 2, "pie": 4}
    >>> found = revenue_range([0.5, 0.5, 0.25, 0.75], menu, margins, assortments=offers)
    >>> round(found.low, 4), round(found.high, 4), found.proven     # do those who like pie like tea, too?
    (1.0, 2.0, True)

    """
    number_between("accuracy", accuracy, 0.0)
    limits = Limits(accuracy, budget=number_between("budget", budget, 0.0))
    plausible = plausible_models(
        data, region, tolerance, confidence, assortments=assortments, oracle=oracle, ties=ties, seed=seed
    )
    labels = known_offer(offer, plausible.observed.whole)
    gains = margins_of(labels, margins, plausible.observed.whole)
    search, nearest = plausible.nearest(labels, limits)
    model = plausible.observed.model(search.columns.orders[: nearest.weights.size], nearest.weights, ties, seed)
    low, high = (plausible.end(search, nearest, sign * gains, limits) for sign in (1.0, -1.0))
    feasible = plausible.fits(nearest)
    near = feasible or nearest.gap <= 10.0 * FEASIBILITY_TOLERANCE
    proven = max(low.gap, high.gap) <= accuracy * scale_of(gains) and near
    predicted = float(gains @ list(model.predict(labels, forced=True).values()))
    used = plausible.radius if feasible else plausible.used(nearest)
    return Range(low.bound, -high.bound, predicted, used, feasible, proven, model, low.model, high.model)


@old_keywords(level="confidence", max_seconds="budget")
def probability_range(
    data: ChoiceCounts | ArrayLike,
    offer: Iterable[Label],
    item: Label,
    tolerance: float = 0.0,
    *,
    assortments: Assortments | None = None,
    region: Region = "l1",
    confidence: float = 0.95,
    accuracy: float = 1e-6,
    budget: float = np.inf,
    oracle: MakeOracle | None = None,
    ties: Ties = "random",
    seed: int = 0,
) -> Range:
    """Return the smallest and largest share of an item over all ranking models that fit; see ``revenue_range``.

    Parameters
    ----------
    data, offer : ChoiceCounts or frequencies, and items
        As for ``revenue_range``.
    item : item
        One of the offer's.
    tolerance, assortments, region, confidence, accuracy, budget, oracle, ties, seed : optional
        As for ``revenue_range``; the accuracy is that of the share itself.

    >>> offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    >>> found = probability_range([0.5, 0.5, 0.25, 0.75], ("tea", "pie"), "pie", assortments=offers)
    >>> round(found.low, 4), round(found.high, 4)
    (0.0, 0.75)

    """
    labels = as_offer("The offer", offer)
    if plain(item) not in labels:
        raise ValueError(f"The item {item!r} is not in the offer {labels!r}: choose one that is.")
    return revenue_range(
        data,
        labels,
        {label: 1.0 if label == plain(item) else 0.0 for label in labels},
        tolerance,
        assortments=assortments,
        region=region,
        confidence=confidence,
        accuracy=accuracy,
        budget=budget,
        oracle=oracle,
        ties=ties,
        seed=seed,
    )


def known_offer(offer: Iterable[Label], assortments: Assortments) -> tuple[Label, ...]:
    """The labels of an offer of known items."""
    labels = as_offer("The offer", offer)
    for label in labels:
        assortments.code(label)
    return labels


def margins_of(labels: tuple[Label, ...], margins: Mapping[Label, float], assortments: Assortments) -> Vec:
    """What each item of an offer earns; a missing margin is an error, but for the no-choice item of the data."""
    for item, value in margins.items():
        if not np.isfinite(number_between(f"The margin of {item!r}", value, -np.inf)):
            raise ValueError(f"The margin of {item!r} is {value}: it must be a finite number.")
    for label in labels:
        if label not in margins and assortments.code(label) != assortments.no_choice_code:
            raise ValueError(f"The item {label!r} of the offer has no margin: give one, 0 if it earns nothing.")
    return np.array([float(margins.get(label, 0.0)) for label in labels])
