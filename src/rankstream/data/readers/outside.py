"""Assume a share of customers who bought nothing and were not recorded."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankstream._core.arguments import number_between
from rankstream._core.types import Label, Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts


def with_outside(
    counts: ChoiceCounts, share: float | Mapping[Any, float], no_choice: Label = "no choice"
) -> ChoiceCounts:
    """Add a no-purchase option to every offer, and assume that this share of customers took it.

    The share is one number, or one for each offer (a mapping from tuples of items). Offers that already have the item
    are unchanged: data take precedence over assumptions.

    Examples
    --------
    >>> counts = ChoiceCounts(Assortments([("tea", "pie")]), [6, 3])
    >>> with_outside(counts, 0.25).tallies
    array([6., 3., 3.])
    """
    before = counts.assortments
    shares = _shares(before, share)
    lacking = np.array([no_choice not in offer for offer in before.offers])
    offers = [(*offer, no_choice) if lacks else offer for offer, lacks in zip(before.offers, lacking, strict=True)]
    items = before.items if no_choice in before.items else (*before.items, no_choice)
    assumed = counts.totals * shares / (1.0 - shares)
    grown = np.insert(counts.tallies, before.indptr[1:][lacking], assumed[lacking])
    return ChoiceCounts(Assortments(offers, items, before.order), grown)


def _shares(assortments: Assortments, share: float | Mapping[Any, float]) -> Vec:
    if not isinstance(share, Mapping):
        return np.full(assortments.n_offers, number_between("The share", share, 0.0, 0.999))
    known = {frozenset(offer): value for offer, value in share.items()}
    for offer in assortments.offers:
        if frozenset(offer) not in known:
            raise ValueError(f"There is no share for the offer {offer!r}: give one for each offer, or one for all.")
    return np.array(
        [number_between(f"The share of {offer!r}", known[frozenset(offer)], 0.0, 0.999) for offer in assortments.offers]
    )
