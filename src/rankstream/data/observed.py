"""Counts over some of the offers: those that were seen, or those of a fold."""

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.types import Label
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts


def restrict(counts: ChoiceCounts, numbers: ArrayLike) -> ChoiceCounts:
    """Counts over some of the offers, with the same items: those of the others stay known.

    >>> offers = Assortments([("tea", "pie"), ("pie", "cake")])
    >>> fewer = restrict(ChoiceCounts(offers, [3, 1, 2, 2]), [1])
    >>> fewer.assortments.items, fewer.assortments.offers, fewer.tallies
    (('tea', 'pie', 'cake'), (('pie', 'cake'),), array([2., 2.]))
    """
    whole = counts.assortments
    kept = np.asarray(numbers, dtype=np.int64).tolist()
    places = [np.arange(whole.indptr[number], whole.indptr[number + 1]) for number in kept]
    smaller = Assortments([whole.offers[number] for number in kept], whole.items)
    return ChoiceCounts(smaller, counts.tallies[np.concatenate(places)])


def observed(counts: ChoiceCounts) -> ChoiceCounts:
    """The same choices without the offers that nobody was shown, and with equal offers counted as one."""
    whole = counts.assortments
    seen = np.flatnonzero(counts.totals > 0.0).tolist()
    if not seen:
        raise ValueError("The counts hold no observations yet: observe some choices first.")
    first: dict[frozenset[Label], int] = {}
    for number in seen:
        first.setdefault(frozenset(whole.offers[number]), number)
    if len(first) == len(seen):
        return counts if len(seen) == whole.n_offers else restrict(counts, seen)
    merged = ChoiceCounts(Assortments([whole.offers[number] for number in first.values()], whole.items))
    for number in seen:
        where = [merged.assortments.coordinate(whole.offers[number], item) for item in whole.offers[number]]
        merged.observe_coordinates(where, counts.tallies[whole.indptr[number] : whole.indptr[number + 1]])
    return merged
