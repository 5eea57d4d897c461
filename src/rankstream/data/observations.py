"""Subsets of counts: observed offers, some of the offers, and hold-out splits."""

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core import Codes, Label, Vec, whole_number
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts

Holdout = Literal["assortments", "choices", "person", "time"]
Split = tuple[ChoiceCounts, ChoiceCounts]
WAYS = ("assortments", "choices", "person", "time")


def splits(
    counts: ChoiceCounts | Sequence[ChoiceCounts], holdout: Holdout = "assortments", folds: int = 5, seed: int = 0
) -> list[Split]:
    """Split counts into pairs to fit to and to test on, over the same items; every offer in them has choices.

    ``"assortments"`` divides the offers into ``folds`` parts and tests on each in turn: how well does a model predict
    new offers? ``"choices"`` divides the single choices. ``"person"`` divides the persons, for counts that were read
    with a column of persons: nobody is on both sides of a split. ``"time"`` takes a sequence of counts, earliest first,
    and tests on each one after fitting to all before it.

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
    way = {"assortments": _by_offers, "choices": _by_choices, "person": _by_person}[holdout]
    return way(data, folds, generator)


def _by_offers(data: ChoiceCounts, folds: int, generator: np.random.Generator) -> list[Split]:
    n_offers = data.assortments.n_offers
    if n_offers < folds:
        fewer = f"set folds={n_offers} or " if n_offers > 1 else "set "
        offers = "is 1 offer" if n_offers == 1 else f"are {n_offers} different offers"
        raise ValueError(f"There {offers} with choices but {folds} folds: {fewer}holdout='choices'.")
    parts = np.array_split(generator.permutation(n_offers), folds)
    everything = np.arange(n_offers)
    return [(restrict(data, np.setdiff1d(everything, part)), restrict(data, np.sort(part))) for part in parts]


def _by_choices(data: ChoiceCounts, folds: int, generator: np.random.Generator) -> list[Split]:
    whole = data.tallies.astype(np.int64)
    if not np.array_equal(whole, data.tallies):
        part = data.tallies[np.flatnonzero(whole != data.tallies)[0]]
        raise ValueError(
            f"The count {part:g} is not a whole number, so folds cannot share it: round it, or hold out assortments."
        )
    dealt = generator.multinomial(whole, np.full(folds, 1.0 / folds)).T
    if not dealt.sum(axis=1).all():
        raise ValueError(
            f"{data.observations} choices are too few for {folds} folds, one of which is empty: ask for fewer folds."
        )
    return _without_each(data, dealt)


def _without_each(data: ChoiceCounts, dealt: Iterable[Vec]) -> list[Split]:
    parts = [ChoiceCounts(data.assortments, part) for part in dealt]
    return [(observed(ChoiceCounts(data.assortments, data.tallies - part.tallies)), observed(part)) for part in parts]


def _by_person(data: ChoiceCounts, folds: int, generator: np.random.Generator) -> list[Split]:
    if data.persons is None:
        raise ValueError("The holdout 'person' needs to know who chose: read them with columns='person=YOUR_COLUMN'.")
    if len(data.persons) < folds:
        raise ValueError(
            f"There are {folds} folds but only {len(data.persons)} groups of persons: ask for fewer folds."
        )
    parts = np.array_split(generator.permutation(len(data.persons)), folds)
    return _without_each(data, [data.persons[part].sum(axis=0) for part in parts])


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
    if counts.persons is not None:
        moved.persons = np.zeros((len(counts.persons), common.n_coordinates))
        np.add.at(moved.persons.T, where, counts.persons.T)
    return moved


def some_offers(whole: Assortments, numbers: ArrayLike) -> tuple[Assortments, Codes]:
    """Return some of the offers over the same items, and the coordinates that they had in ``whole``.

    >>> fewer, places = some_offers(Assortments([("tea", "pie"), ("pie", "cake")]), [1])
    >>> fewer.items, fewer.offers, places
    (('tea', 'pie', 'cake'), (('pie', 'cake'),), array([2, 3]))
    """
    selected = np.asarray(numbers, dtype=np.int64).tolist()
    if selected == list(range(whole.n_offers)):
        return whole, np.arange(whole.n_coordinates)
    places = [np.arange(whole.indptr[number], whole.indptr[number + 1]) for number in selected]
    fewer = Assortments([whole.offers[number] for number in selected], whole.items, whole.order)
    return fewer, np.concatenate(places)


def restrict(counts: ChoiceCounts, numbers: ArrayLike) -> ChoiceCounts:
    """Return counts over some of the offers; all items stay known.

    >>> offers = Assortments([("tea", "pie"), ("pie", "cake")])
    >>> fewer = restrict(ChoiceCounts(offers, [3, 1, 2, 2]), [1])
    >>> fewer.assortments.items, fewer.assortments.offers, fewer.tallies
    (('tea', 'pie', 'cake'), (('pie', 'cake'),), array([2., 2.]))
    """
    smaller, places = some_offers(counts.assortments, numbers)
    fewer = ChoiceCounts(smaller, counts.tallies[places])
    fewer.persons = None if counts.persons is None else counts.persons[:, places]
    return fewer


def seen_offers(counts: ChoiceCounts) -> Codes:
    """Return the numbers of the offers with choices; raise a ValueError if there are none."""
    numbers = np.flatnonzero(counts.totals > 0.0)
    if not numbers.size:
        raise ValueError("The counts have no observations yet: observe some choices first.")
    return numbers


def observed(counts: ChoiceCounts) -> ChoiceCounts:
    """Drop the offers without choices, and merge equal offers."""
    whole = counts.assortments
    shown = seen_offers(counts).tolist()
    first: dict[frozenset[Label], int] = {}
    for number in shown:
        first.setdefault(frozenset(whole.offers[number]), number)
    if len(first) == len(shown):
        return counts if len(shown) == whole.n_offers else restrict(counts, shown)
    return _recount(restrict(counts, shown), some_offers(whole, list(first.values()))[0])


def person_deviations(counts: ChoiceCounts, persons: Vec, shares: Vec) -> Vec:
    """Return how the choices of each group of persons differ from shares, with the variance of a random sample."""
    offers = counts.assortments
    totals = np.add.reduceat(persons, offers.indptr[:-1], axis=1)
    deviations = persons - totals[:, offers.owner] * shares
    centred: Vec = (deviations - deviations.mean(axis=0)) * np.sqrt(len(persons) / (len(persons) - 1.0))
    return centred


def design_effect(counts: ChoiceCounts, shares: Vec, by_item: bool = False) -> float:
    """Return how many choices are worth one independent choice: more than one if the choices of a person are alike.

    With ``by_item``, choices of an item from different offers count as alike, too.

    >>> twice = ChoiceCounts(Assortments([("tea", "pie")]), [4, 4])
    >>> twice.persons = np.array([[2.0, 0.0], [0.0, 2.0]] * 2)
    >>> round(design_effect(twice, np.array([0.5, 0.5])), 2)
    2.67
    """
    if counts.persons is None or len(counts.persons) < 2:
        return 1.0
    offers, apart = counts.assortments, person_deviations(counts, counts.persons, shares)
    if by_item:
        apart = apart @ (offers.members[:, np.newaxis] == np.arange(offers.n_items))
    independent = float((counts.totals[offers.owner] * shares * (1.0 - shares)).sum())
    return max(1.0, float((apart**2).sum()) / max(independent, 1e-300))


def impossible_choices(offers: Assortments, amounts: Vec) -> Codes:
    """Return the coordinates with choices whose offer has an item that the order ranks above the chosen one.

    >>> impossible_choices(Assortments([("tea", "pie")], order=[("tea", "pie")]), np.array([3.0, 1.0]))
    array([1])
    """
    if not offers.order:
        return np.zeros(0, dtype=np.int64)
    chosen = np.flatnonzero(amounts > 0.0)
    above, whole = offers.precedence.above, np.split(offers.members, offers.indptr[1:-1])
    impossible = [above[whole[offers.owner[k]], offers.members[k]].any() for k in chosen]
    return chosen[np.array(impossible, dtype=np.bool_)]


def contradiction(counts: ChoiceCounts) -> str:
    """Return a sentence with the number of choices that contradict the order of the items; empty if none does."""
    offers = counts.assortments
    places = impossible_choices(offers, counts.tallies)
    if not places.size:
        return ""
    number, item = counts.tallies[places].sum(), offers.items[offers.members[places[0]]]
    return (
        f"{number:.12g} of {counts.observations:.12g} choices contradict the order of the items, such as {item!r} from "
        f"the offer {offers.offers[offers.owner[places[0]]]!r}: no ranking model can predict them, so correct these "
        "records or leave out the order."
    )
