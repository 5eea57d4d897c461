"""What a bootstrap draws, and what it cannot see: by how much the truth is unlike the model, by held-out offers."""

from dataclasses import dataclass

import numpy as np

from rankstream._core.types import Vec
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.distances import observation_weights
from rankstream.models.protocol import ChoiceModel

HALF = 0.5
PART_FACTOR, TYPE_FACTOR, MIN_BUYERS = 0.5, 1.5, 0.01
"""For parts of an item's buyers and for customer types: chosen by ``benchmarks/errors.py`` on other seeds. Parts of
fewer buyers than the last count as if there were as many.
"""


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


@dataclass(frozen=True)
class Misfit:
    """Squared errors beyond sampling noise, in units of share * (1 - share).

    ``seen`` is that of offers with data, ``unseen`` that of others; ``scale`` is share * (1 - share) over the squared
    spread of the replicates, both on average. ``doubt`` is the standard error of these figures, which can be 0 although
    there is a misfit: noise hides it. An error that no replicate shows is partly larger where replicates
    differ more, partly the same everywhere: half of it is added in proportion to their spread, half in proportion to
    share * (1 - share). In simulations that covered best for its width (``benchmarks/intervals.py``).

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

    def variance(self, share: Vec, spread: Vec, seen: Vec | None = None) -> Vec:
        """The squared standard error of shares whose replicates have this squared spread."""
        beyond = self.unseen if seen is None else np.where(seen, self.seen, self.unseen)
        return spread * (1.0 + HALF * beyond * self.scale) + HALF * beyond * share * (1.0 - share)

    def stretched(self, spread: Vec) -> Vec:
        """The same for numbers that are not shares, all in proportion to their replicates' spread."""
        return spread * (1.0 + (self.unseen + self.doubt) * self.scale)

    def of_parts(self, part: Vec, spread: Vec, buyers: Vec) -> Vec:
        """The same for the parts of an item's buyers that take another instead; ``buyers`` is that item's share.

        A part is a difference of shares over the share of the item that is gone: errors are larger for rare items.
        """
        beyond = PART_FACTOR * (self.unseen + self.doubt) / np.maximum(buyers, MIN_BUYERS)
        return self.stretched(spread) + beyond * part * (1.0 - part)

    def of_types(self, share: Vec, spread: Vec, first: Vec) -> Vec:
        """The same for types by their first two choices; ``first`` is the share of all types with the same first one.

        A model is smoother than a truth of few rankings: it deals one type's share out to all with that first choice.
        So a type that has next to no share by the model can have much of it.
        """
        noise = HALF * self.doubt * share * (1.0 - share) + TYPE_FACTOR * self.unseen * first * (1.0 - first)
        return spread * (1.0 + HALF * (self.unseen + self.doubt) * self.scale) + noise

    def has(self, assortments: Assortments) -> Vec:
        """For every coordinate, whether its offer has data."""
        known = np.array([frozenset(offer) in self.offers for offer in assortments.offers])
        return known[assortments.owner]


def measure_misfit(
    data: ChoiceCounts, share: Vec, error: Vec, shift: Vec, held_out: float | None, sizes: Vec | None = None
) -> Misfit:
    """The misfit of a model with shares and replicates on the offers of its data.

    On these offers, (share - frequency)^2 has the mean variance of a frequency less that of the share, which follows
    it, plus the misfit; a standard error is added, as noise can hide one. ``held_out`` is the same of offers held out,
    before their own estimation error (that of ``error``, a little less than it was then) is taken off; without it the
    misfit of offers with data stands for that of others.

    ``share``, ``error`` and ``shift`` are the model's share, and the standard deviation and the shift of its
    replicates. ``sizes`` is for each offer how many choices of equal weight are as certain; without it, all counted.
    """
    noise = share * (1.0 - share)
    total = float(noise.sum())
    if total <= 0.0:
        return Misfit()
    totals = data.totals[data.assortments.owner]
    sampling = noise / (totals if sizes is None else sizes[data.assortments.owner])
    if held_out is not None:  # as much noise as ``sizes`` say was taken off there as if each choice weighed the same
        held_out += float((noise / totals - sampling).sum()) / total
    left = (share - data.frequencies()) ** 2 - (sampling - np.minimum(error**2, sampling))
    seen = max(0.0, float(left.sum()) / total)
    unseen = seen if held_out is None else max(seen, held_out - float((error**2).sum()) / total)
    doubt = float(np.sqrt(2.0 / share.size) * sampling.sum()) / total
    scale = total / max(float((error**2 + shift**2).sum()), 1e-12 * total)
    offers = frozenset(frozenset[object](offer) for offer in data.assortments.offers)
    return Misfit(min(unseen, seen + doubt), unseen, scale, offers, doubt)


def noise_distance(model: ChoiceModel, counts: ChoiceCounts) -> float:
    """The weighted l2 distance from the data that sampling noise alone would give, were the model the truth.

    It is the root of the expected squared distance: a frequency of K choices has the variance share * (1 - share) / K,
    and offers weigh as in ``distances.observation_weights``.

    >>> from rankstream import RankingModel
    >>> counts = ChoiceCounts(Assortments([("tea", "pie")]), [50, 50])
    >>> round(noise_distance(RankingModel(["tea", "pie"], [("tea", "pie"), ("pie", "tea")], [0.5, 0.5]), counts), 4)
    0.0707
    """
    share, owner, sizes = model.probabilities(counts.assortments), counts.assortments.owner, counts.effective_totals
    weights = np.where(sizes > 0.0, np.array(observation_weights(counts)) ** 2 / np.maximum(sizes, 1e-300), 0.0)
    return float(np.sqrt((weights[owner] * share * (1.0 - share)).sum()))
