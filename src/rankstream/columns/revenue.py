"""Farias, Jagabathula and Shah's question: what can an offer earn, given all that the data do not say?"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.arguments import number_between
from rankstream._core.types import Label, Vec
from rankstream.certificate import confidence_radii
from rankstream.columns.data import Columns, MakeOracle, observe, oracle_for
from rankstream.columns.master import FEASIBLE, Ball, Master, ball
from rankstream.columns.pricing import Pricing
from rankstream.columns.search import RangeSearch
from rankstream.columns.solved import Limits
from rankstream.columns.warm_start import warm_start
from rankstream.data.assortments import Assortments, as_offer, plain
from rankstream.data.counts import ChoiceCounts
from rankstream.models.rankings import RankingModel
from rankstream.oracles import Ties

Region = Literal["l1", "linf", "confidence"]
WARM = 1000


@dataclass(frozen=True, eq=False)
class Range:
    """What an offer can bring over all ranking distributions that fit the data.

    ``low`` and ``high`` are proven to enclose all of it, and are sharp up to the tolerance of the search if ``proven``.
    ``predicted`` is that of the nearest model. ``tolerance`` is the distance at which distributions count as fitting:
    the one asked for, or, where none fits so well (``feasible`` is False), the smallest one at which some do.
    """

    low: float
    high: float
    predicted: float
    tolerance: float
    feasible: bool
    proven: bool
    model: RankingModel

    @property
    def width(self) -> float:
        """High less low: what the data leave open."""
        return self.high - self.low


def revenue_range(
    data: ChoiceCounts | ArrayLike,
    offer: Iterable[Label],
    prices: Mapping[Label, float],
    tolerance: float = 0.0,
    *,
    assortments: Assortments | None = None,
    region: Region = "l1",
    level: float = 0.95,
    accuracy: float = 1e-6,
    max_seconds: float = np.inf,
    oracle: MakeOracle | None = None,
    ties: Ties = "random",
    seed: int = 0,
) -> Range:
    """Worst and best expected revenue of an offer, over all distributions over rankings that fit (Appendix B.1).

    A distribution fits if its choice probabilities are within ``tolerance`` of the frequencies in the norm ``region``;
    ``region="confidence"`` takes those within the offers' confidence radii at this ``level`` instead, and the tolerance
    reported is a factor of them. Column generation gives the exact answer, where the authors sample constraints or
    approximate them: the offer is one more assortment, whose costs are the prices. Every item of the offer needs one
    (0, if it earns nothing), except for the no-choice item of the data.
    ``accuracy`` is that of low and high, relative to the largest price; ``max_seconds`` is for each of three searches.

    >>> offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    >>> menu, prices = ("tea", "pie", "nothing"), {"tea": 2, "pie": 4}
    >>> found = revenue_range([0.5, 0.5, 0.25, 0.75], menu, prices, assortments=offers)
    >>> round(found.low, 4), round(found.high, 4), found.proven     # do those who like pie like tea, too?
    (1.0, 2.0, True)
    """
    number_between("accuracy", accuracy, 0.0)
    number_between("max_seconds", max_seconds, 0.0)
    observed = observe(data, assortments)
    labels = known_offer(offer, observed.whole)
    check_prices(labels, prices, observed.whole)
    gains = price_list(labels, prices)
    if region == "confidence":
        shape, radius = _confidence(data, level), 1.0
    else:
        shape = ball(observed.assortments, region)
        radius = number_between("tolerance", tolerance, 0.0)
    whole = Assortments([*observed.assortments.offers, labels], observed.whole.items)
    pricing, nothing = Pricing(oracle_for(whole, oracle, ties, seed), whole), np.zeros(len(labels))
    search = RangeSearch(observed, Master(observed, shape), pricing, Columns(whole), nothing)
    search.add(pricing.cheapest(-np.append(observed.frequencies, nothing)).rankings)
    search.add(warm_start(observed, WARM, seed))
    nearest = search.run(Limits(FEASIBLE, max_seconds=max_seconds))
    model = observed.model(search.columns.orders[: nearest.weights.size], nearest.weights, ties, seed)
    feasible = nearest.value <= radius + 10.0 * FEASIBLE
    used = max(radius, nearest.value) + (FEASIBLE if nearest.value >= radius - FEASIBLE else 0.0)
    scale = float(np.abs(gains).max(initial=0.0)) or 1.0
    bounds, gaps = [], []
    for sign in (1.0, -1.0):
        search.aim(sign * gains / scale, used)
        found = search.run(Limits(accuracy, max_seconds=max_seconds))
        bounds.append(sign * scale * found.bound)
        gaps.append(found.gap)
    proven = max(gaps) <= accuracy and (feasible or nearest.gap <= 10.0 * FEASIBLE)
    predicted = float(gains @ list(model.predict(labels).values()))
    return Range(bounds[0], bounds[1], predicted, used if not feasible else radius, feasible, proven, model)


def probability_range(
    data: ChoiceCounts | ArrayLike,
    offer: Iterable[Label],
    item: Label,
    tolerance: float = 0.0,
    *,
    assortments: Assortments | None = None,
    region: Region = "l1",
    level: float = 0.95,
    accuracy: float = 1e-6,
    max_seconds: float = np.inf,
    oracle: MakeOracle | None = None,
    ties: Ties = "random",
    seed: int = 0,
) -> Range:
    """The smallest and the largest share that an item of an offer can have; see ``revenue_range``.

    >>> offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    >>> found = probability_range([0.5, 0.5, 0.25, 0.75], ("tea", "pie"), "pie", assortments=offers)
    >>> round(found.low, 4), round(found.high, 4)
    (0.0, 0.75)
    """
    labels = as_offer("The offer", offer)
    if plain(item) not in labels:
        raise ValueError(f"The item {item!r} is not in the offer {labels!r}: ask for one that is.")
    return revenue_range(
        data,
        labels,
        {label: 1.0 if label == plain(item) else 0.0 for label in labels},
        tolerance,
        assortments=assortments,
        region=region,
        level=level,
        accuracy=accuracy,
        max_seconds=max_seconds,
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


def check_prices(labels: tuple[Label, ...], prices: Mapping[Label, float], assortments: Assortments) -> None:
    """Refuse an offer with an item that has no price and is not the no-choice item of the data."""
    for label in labels:
        if label not in prices and assortments.code(label) != assortments.no_choice:
            raise ValueError(f"The item {label!r} of the offer has no price: give one, 0 if it earns nothing.")


def price_list(labels: tuple[Label, ...], prices: Mapping[Label, float]) -> Vec:
    """What each item of an offer earns, 0 where no price is given."""
    for item, value in prices.items():
        if not np.isfinite(number_between(f"The price of {item!r}", value, -np.inf)):
            raise ValueError(f"The price of {item!r} is {value}: it must be a finite number.")
    return np.array([float(prices.get(label, 0.0)) for label in labels])


def _confidence(data: ChoiceCounts | ArrayLike, level: float) -> Ball:
    """One group per offer that was seen, with its confidence radius as the budget."""
    if not isinstance(data, ChoiceCounts):
        raise ValueError("Frequencies have no confidence region: give ChoiceCounts, or a tolerance.")
    data.require_whole("A confidence region")
    offers, seen = data.assortments, data.totals > 0.0
    owners = np.repeat(np.arange(int(seen.sum())), np.diff(offers.indptr)[seen])
    return Ball(np.ones(owners.size), owners, confidence_radii(data, level)[seen])
