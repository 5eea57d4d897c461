"""Simulated choices for replicates: as many from each offer as make its frequencies as certain as the counted ones."""

import numpy as np

from rankstream._core.types import Vec
from rankstream.data.counts import ChoiceCounts


def resample(counts: ChoiceCounts, shares: Vec, random: np.random.Generator, sizes: Vec | None = None) -> ChoiceCounts:
    """Counts of as many choices from each offer, with these shares; of ``sizes`` choices that weigh as much together.

    A size that is not whole is rounded up or down by chance, so that it is right on average.
    """
    offers, tallies = counts.assortments, np.zeros(shares.size)
    ends, totals = offers.indptr.tolist(), counts.totals.tolist()
    drawn = totals if sizes is None else sizes.tolist()
    for first, last, total, size in zip(ends[:-1], ends[1:], totals, drawn, strict=True):
        part = np.maximum(shares[first:last], 0.0)
        number = int(size) if size == int(size) else max(1, int(size + random.random()))
        made = random.multinomial(number, part / part.sum())
        tallies[first:last] = made if number == total else made * (total / number)
    return ChoiceCounts(offers, tallies)


def effective_sizes(counts: ChoiceCounts, data: ChoiceCounts, sizes: Vec | None) -> Vec:
    """How many choices a replicate draws from each offer of ``data``, which are the observed ones of ``counts``.

    What weights add to the variance of a frequency follows their squares: (sum of weights)^2 / (sum of squares) choices
    of equal weight have the same.
    """
    if sizes is None:
        if not counts.forgets and (counts.tallies != np.floor(counts.tallies)).any():
            raise ValueError(
                "Intervals need whole choices that all count the same, or counts that forget: give ChoiceCounts "
                "without weights."
            )
        sizes = counts.effective_totals
    elif sizes.shape != counts.totals.shape or not (sizes > 0.0)[counts.totals > 0.0].all():
        raise ValueError("The sizes must be numbers above 0, one for each offer with choices.")
    places = {frozenset(offer): place for place, offer in enumerate(data.assortments.offers)}
    totals, squares = np.zeros(len(places)), np.zeros(len(places))
    for offer, total, size in zip(counts.assortments.offers, counts.totals.tolist(), sizes.tolist(), strict=True):
        if total > 0.0:
            totals[places[frozenset(offer)]] += total
            squares[places[frozenset(offer)]] += total**2 / size
    found: Vec = totals**2 / squares
    whole = np.rint(found)
    return np.where(np.abs(found - whole) < 1e-9 * whole, whole, found)
