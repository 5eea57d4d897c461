"""Ways of holding choices out: whole offers, single choices, or what came later."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from rankstream._core.arguments import whole_number
from rankstream._core.types import Label
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import observed, restrict

Holdout = Literal["assortments", "choices", "time"]
Split = tuple[ChoiceCounts, ChoiceCounts]
WAYS = ("assortments", "choices", "time")


def splits(
    counts: ChoiceCounts | Sequence[ChoiceCounts], holdout: Holdout = "assortments", folds: int = 5, seed: int = 0
) -> list[Split]:
    """Pairs of counts, to fit to and to test on; all know the same items, and every offer in them has choices.

    ``"assortments"`` deals the offers out to ``folds`` parts and tests on each in turn: how well are offers predicted
    that nobody has seen? ``"choices"`` deals every single choice out. ``"time"`` takes a sequence of counts, earliest
    first, and tests on each but the first after fitting to all before it.

    >>> offers = Assortments([("tea", "pie"), ("pie", "cake")])
    >>> for fitted, tested in splits(ChoiceCounts(offers, [3, 1, 2, 2]), folds=2):
    ...     print(fitted.assortments.offers, tested.assortments.offers)
    (('pie', 'cake'),) (('tea', 'pie'),)
    (('tea', 'pie'),) (('pie', 'cake'),)
    """
    if holdout not in WAYS:
        raise ValueError(f"Unknown holdout {holdout!r}: choose one of {', '.join(map(repr, WAYS))}.")
    whole_number("folds", folds, least=2)
    if holdout == "time":
        return _by_time(counts)
    if not isinstance(counts, ChoiceCounts):
        raise ValueError(f"For the holdout {holdout!r} give one ChoiceCounts, not a {type(counts).__name__}.")
    generator = np.random.default_rng(whole_number("seed", seed))
    data = observed(counts)
    return _by_offers(data, folds, generator) if holdout == "assortments" else _by_choices(data, folds, generator)


def _by_offers(data: ChoiceCounts, folds: int, generator: np.random.Generator) -> list[Split]:
    n_offers = data.assortments.n_offers
    if n_offers < folds:
        fewer = f"ask for at most {n_offers} folds, or " if n_offers > 1 else ""
        offers = "is 1 offer" if n_offers == 1 else f"are {n_offers} different offers"
        raise ValueError(f"There {offers} with choices but {folds} folds: {fewer}hold out choices.")
    parts = np.array_split(generator.permutation(n_offers), folds)
    everything = np.arange(n_offers)
    return [(restrict(data, np.setdiff1d(everything, part)), restrict(data, np.sort(part))) for part in parts]


def _by_choices(data: ChoiceCounts, folds: int, generator: np.random.Generator) -> list[Split]:
    whole = data.tallies.astype(np.int64)
    if not np.array_equal(whole, data.tallies):
        part = data.tallies[np.flatnonzero(whole != data.tallies)[0]]
        raise ValueError(
            f"The count {part:g} is not a whole number, so it cannot be dealt out: round it, or hold out assortments."
        )
    dealt = generator.multinomial(whole, np.full(folds, 1.0 / folds)).T
    if not dealt.sum(axis=1).all():
        raise ValueError(
            f"{data.observations} choices are too few for {folds} folds, one of which is empty: ask for fewer folds."
        )
    both = [(ChoiceCounts(data.assortments, whole - part), ChoiceCounts(data.assortments, part)) for part in dealt]
    return [(observed(fitted), observed(tested)) for fitted, tested in both]


def _by_time(batches: ChoiceCounts | Sequence[ChoiceCounts]) -> list[Split]:
    if isinstance(batches, ChoiceCounts) or not all(isinstance(batch, ChoiceCounts) for batch in batches):
        raise ValueError("For the holdout 'time' give a list of ChoiceCounts, one for each period, earliest first.")
    periods = [observed(batch) for batch in batches if batch.observations]
    if len(periods) < 2:
        raise ValueError(f"There are {len(periods)} periods with choices: give at least two to test on the later.")
    known: dict[frozenset[Label], tuple[Label, ...]] = {}
    for period in periods:
        for offer in period.assortments.offers:
            known.setdefault(frozenset(offer), offer)
    items = dict.fromkeys(item for period in periods for item in period.assortments.items)
    order = [pair for period in periods for pair in period.assortments.order]
    common = Assortments(known.values(), items, order)
    moved = [_recount(period, common) for period in periods]
    return [(observed(sum(moved[1:now], moved[0])), observed(moved[now])) for now in range(1, len(moved))]


def _recount(counts: ChoiceCounts, common: Assortments) -> ChoiceCounts:
    moved = ChoiceCounts(common)
    where = [common.coordinate(offer, item) for offer in counts.assortments.offers for item in offer]
    moved.observe_coordinates(where, counts.tallies)
    return moved
