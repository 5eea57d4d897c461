"""Some of the offers, with what was counted of them: those that were seen, or those of a fold."""

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.types import Codes, Label, Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts


def some_offers(whole: Assortments, numbers: ArrayLike) -> tuple[Assortments, Codes]:
    """Some of the offers over the same items, and the coordinates that theirs were: how all drop what nobody was shown.

    >>> fewer, places = some_offers(Assortments([("tea", "pie"), ("pie", "cake")]), [1])
    >>> fewer.items, fewer.offers, places
    (('tea', 'pie', 'cake'), (('pie', 'cake'),), array([2, 3]))
    """
    kept = np.asarray(numbers, dtype=np.int64).tolist()
    if kept == list(range(whole.n_offers)):
        return whole, np.arange(whole.n_coordinates)
    places = [np.arange(whole.indptr[number], whole.indptr[number + 1]) for number in kept]
    fewer = Assortments([whole.offers[number] for number in kept], whole.items, whole.order)
    return fewer, np.concatenate(places)


def restrict(counts: ChoiceCounts, numbers: ArrayLike) -> ChoiceCounts:
    """Counts over some of the offers, with the same items: those of the others stay known.

    >>> offers = Assortments([("tea", "pie"), ("pie", "cake")])
    >>> fewer = restrict(ChoiceCounts(offers, [3, 1, 2, 2]), [1])
    >>> fewer.assortments.items, fewer.assortments.offers, fewer.tallies
    (('tea', 'pie', 'cake'), (('pie', 'cake'),), array([2., 2.]))
    """
    smaller, places = some_offers(counts.assortments, numbers)
    return ChoiceCounts(smaller, counts.tallies[places])


def seen_offers(counts: ChoiceCounts) -> Codes:
    """The numbers of the offers with choices, of which there must be some."""
    numbers = np.flatnonzero(counts.totals > 0.0)
    if not numbers.size:
        raise ValueError("The counts have no observations yet: observe some choices first.")
    return numbers


def observed(counts: ChoiceCounts) -> ChoiceCounts:
    """The same choices without the offers that nobody was shown, and with equal offers counted as one."""
    whole = counts.assortments
    shown = seen_offers(counts).tolist()
    first: dict[frozenset[Label], int] = {}
    for number in shown:
        first.setdefault(frozenset(whole.offers[number]), number)
    if len(first) == len(shown):
        return counts if len(shown) == whole.n_offers else restrict(counts, shown)
    merged = ChoiceCounts(Assortments([whole.offers[number] for number in first.values()], whole.items, whole.order))
    for number in shown:
        where = [merged.assortments.coordinate(whole.offers[number], item) for item in whole.offers[number]]
        merged.observe_coordinates(where, counts.tallies[whole.indptr[number] : whole.indptr[number + 1]])
    return merged


def impossible_choices(offers: Assortments, amounts: Vec) -> Codes:
    """The coordinates that were chosen although their offer has an item which the order puts before theirs.

    >>> impossible_choices(Assortments([("tea", "pie")], order=[("tea", "pie")]), np.array([3.0, 1.0]))
    array([1])
    """
    if not offers.order:
        return np.zeros(0, dtype=np.int64)
    chosen = np.flatnonzero(amounts > 0.0)
    above, whole = offers.precedence.above, np.split(offers.members, offers.indptr[1:-1])
    beaten = [above[whole[offers.owner[k]], offers.members[k]].any() for k in chosen]
    return chosen[np.array(beaten, dtype=np.bool_)]


def contradiction(counts: ChoiceCounts) -> str:
    """How many choices contradict the order of the items, in one sentence; nothing where none does."""
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
