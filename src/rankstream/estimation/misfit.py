"""Resampling for the bootstrap, and the misfit: model error that a bootstrap cannot show, from held-out offers."""

from dataclasses import dataclass

import numpy as np

from rankstream._core.types import Mask, Vec
from rankstream.data import Assortments, ChoiceCounts
from rankstream.data.observations import person_deviations
from rankstream.distances import observation_weights
from rankstream.models.protocol import ChoiceModel

HALF = 0.5
PART_FACTOR, TYPE_FACTOR, MIN_BUYERS = 0.5, 1.5, 0.01
"""For parts of an item's buyers and for customer types: chosen by ``benchmarks/errors.py`` on other seeds. Parts of
fewer buyers than the last count as if there were as many.
"""


def resample(counts: ChoiceCounts, shares: Vec, random: np.random.Generator, sizes: Vec | None = None) -> ChoiceCounts:
    """Draw as many choices from each offer as were counted, with these shares; or ``sizes``, scaled to that total.

    A fractional size is rounded randomly, so that it is right on average.
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


def resample_persons(counts: ChoiceCounts, shares: Vec, persons: Vec, random: np.random.Generator) -> ChoiceCounts:
    """Draw groups of persons with replacement, and add their deviations from the model's shares to its choices.

    Every offer keeps its number of choices, and the mean of the replicates is the model, as for ``resample``. But a
    person's choices deviate together, from one offer or from several.
    """
    offers = counts.assortments
    drawn = random.multinomial(len(persons), np.full(len(persons), 1.0 / len(persons))) - 1.0
    tallies = np.maximum(counts.totals[offers.owner] * shares + drawn @ person_deviations(counts, persons, shares), 0.0)
    wanted = counts.totals / np.add.reduceat(tallies, offers.indptr[:-1])
    return ChoiceCounts(offers, tallies * wanted[offers.owner])


def effective_sizes(counts: ChoiceCounts, data: ChoiceCounts, sizes: Vec | None) -> Vec:
    """Return how many choices a replicate draws from each offer of ``data``, the observed offers of ``counts``.

    This is Kish's effective number, (sum of weights)^2 / (sum of squared weights).
    """
    if sizes is None:
        if not counts.forgets and (counts.tallies != np.floor(counts.tallies)).any():
            raise ValueError(
                "Counts with fractions, from weights or an assumed share, have no intervals: leave these out, or ask "
                "for no intervals."
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
    effective: Vec = totals**2 / squares
    whole = np.rint(effective)
    return np.where(np.abs(effective - whole) < 1e-9 * whole, whole, effective)


@dataclass(frozen=True)
class Misfit:
    """Squared errors beyond sampling noise, in units of share * (1 - share).

    ``seen`` is for offers with data, ``unseen`` for others; ``scale`` is the mean of share * (1 - share) over the mean
    squared spread of the replicates. ``doubt`` is the standard error of these figures, because noise can hide a misfit.
    Half of the misfit is added in proportion to the replicates' spread, half in proportion to share * (1 - share): in
    simulations this had the best coverage for its width (``benchmarks/intervals.py``).

    >>> Misfit(0.0, 0.01, 4.0).variance(np.array([0.5]), np.array([0.03]), np.array([True])).tolist()
    [0.03]
    >>> Misfit(0.0, 0.01, 4.0).variance(np.array([0.5]), np.array([0.03]), np.array([False])).round(5).tolist()
    [0.03185]
    """

    seen: float = 0.0
    unseen: float = 0.0
    scale: float = 0.0
    offers: frozenset[frozenset[object]] = frozenset()
    doubt: float = 0.0

    def variance(self, share: Vec, spread: Vec, seen: Vec | None = None, drawn: Mask | bool = False) -> Vec:
        """Return the squared standard error of shares whose replicates have this squared spread.

        It is not stretched in offers of new items: what these are worth was ``drawn`` with errors of its own.
        """
        beyond = self.unseen if seen is None else np.where(seen, self.seen, self.unseen)
        stretch = HALF * beyond * np.where(drawn, 0.0, self.scale)
        return spread * (1.0 + stretch) + HALF * beyond * share * (1.0 - share)

    def stretched(self, spread: Vec) -> Vec:
        """Return the same for numbers that are not shares, all in proportion to the replicates' spread."""
        return spread * (1.0 + (self.unseen + self.doubt) * self.scale)

    def of_parts(self, part: Vec, spread: Vec, buyers: Vec) -> Vec:
        """Return the same for the parts of an item's buyers that choose another; ``buyers`` is that item's share.

        A part is a difference of shares, divided by the item's share: errors are larger for rare items.
        """
        beyond = PART_FACTOR * (self.unseen + self.doubt) / np.maximum(buyers, MIN_BUYERS)
        return self.stretched(spread) + beyond * part * (1.0 - part)

    def of_types(self, share: Vec, spread: Vec, first: Vec) -> Vec:
        """Return the same for types by their first two choices; ``first`` is the share of their first choice.

        A model is smoother than a market of few rankings: it spreads a type's share over all with that first choice, so
        a type with a small predicted share can have a large one.
        """
        noise = HALF * self.doubt * share * (1.0 - share) + TYPE_FACTOR * self.unseen * first * (1.0 - first)
        return spread * (1.0 + HALF * (self.unseen + self.doubt) * self.scale) + noise

    def has(self, assortments: Assortments) -> Vec:
        """Return for every coordinate whether its offer has data."""
        known = np.array([frozenset(offer) in self.offers for offer in assortments.offers])
        return known[assortments.owner]


def measure_misfit(
    data: ChoiceCounts, share: Vec, error: Vec, shift: Vec, held_out: float | None, sizes: Vec | None = None
) -> Misfit:
    """Estimate the misfit of a model from its shares and replicates on the offers of its data.

    On these offers, the mean of (share - frequency)^2 is the variance of the frequency, minus that of the share, plus
    the misfit. A standard error is added, because noise can hide a misfit. ``held_out`` is the same mean on held-out
    offers, before their estimation error is subtracted; without it, the misfit of offers with data is used for all.

    ``share``, ``error`` and ``shift`` are the model's share, and the standard deviation and shift of its replicates.
    ``sizes`` is the effective number of choices of each offer (default: all counted).
    """
    noise = share * (1.0 - share)
    total = float(noise.sum())
    if total <= 0.0:
        return Misfit()
    totals = data.totals[data.assortments.owner]
    sampling = noise / (totals if sizes is None else sizes[data.assortments.owner])
    if held_out is not None:  # there, the noise was subtracted as if each choice had the same weight
        held_out += float((noise / totals - sampling).sum()) / total
    excess = (share - data.frequencies()) ** 2 - (sampling - np.minimum(error**2, sampling))
    seen = max(0.0, float(excess.sum()) / total)
    unseen = seen if held_out is None else max(seen, held_out - float((error**2).sum()) / total)
    doubt = float(np.sqrt(2.0 / share.size) * sampling.sum()) / total
    scale = total / max(float((error**2 + shift**2).sum()), 1e-12 * total)
    offers = frozenset(frozenset[object](offer) for offer in data.assortments.offers)
    return Misfit(min(unseen, seen + doubt), unseen, scale, offers, doubt)


def noise_distance(model: ChoiceModel, counts: ChoiceCounts) -> float:
    """Return the weighted l2 distance from the data that sampling noise alone causes if the model is true.

    This is the root of the expected squared distance: a frequency of K choices has the variance share * (1 - share) /
    K, and offers are weighted as in ``distances.observation_weights``.

    >>> from rankstream import RankingModel
    >>> counts = ChoiceCounts(Assortments([("tea", "pie")]), [50, 50])
    >>> round(noise_distance(RankingModel(["tea", "pie"], [("tea", "pie"), ("pie", "tea")], [0.5, 0.5]), counts), 4)
    0.0707
    """
    share, owner, sizes = model.probabilities(counts.assortments), counts.assortments.owner, counts.effective_totals
    weights = np.where(sizes > 0.0, np.array(observation_weights(counts)) ** 2 / np.maximum(sizes, 1e-300), 0.0)
    return float(np.sqrt((weights[owner] * share * (1.0 - share)).sum()))
