"""Estimates from offers that are known in part: EM over the sets that may have been on offer, and when items sold out.

Within a period items leave one after the other and stay away, so the possible sets form a hidden Markov chain.
"""

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from rankstream._core import Codes, Label, Mask, Vec, number_between
from rankstream.data import Assortments, ChoiceCounts
from rankstream.data.uncertain import Period, Term, UncertainCounts, matrix_over_sets
from rankstream.models.protocol import Predicts

MAX_DOUBTFUL_ITEMS = 6  # of one period, whose sets are all weighed; others stay. An estimate, by no benchmark
MIN_SHARE = 1e-9  # of an item in an offer: a model that gives 0 must not rule out what was chosen
KEPT_SHARE = 0.999  # of the expected choices: offers with the rest are not fitted. An estimate, by no benchmark
EXPECTED_DECIMALS = 6  # of expected choices, so that their digest does not depend on the order of sums


class SellOut(NamedTuple):
    """When an item sold out, as estimated: the expected time, and times that enclose it with the given confidence.

    All times are in the unit of the period's, for ``read_sales`` seconds since 1970.
    """

    place: Label
    item: Label
    expected: float
    earliest: float
    latest: float


@dataclass
class _Chain:
    """The possible sets of one period, slot by slot; bit u of a state says that doubtful item u is still there.

    ``rows`` are the numbers of pairs of a slot and a state (-1: impossible), ``leaves`` the chance that an item which
    is there leaves before a slot, and ``times`` when the slots begin, with the end of the last.
    """

    period: Period
    items: list[Label]
    rows: Codes
    leaves: Vec
    times: list[float]

    def posterior(self, likelihoods: Vec) -> tuple[Vec, float]:
        """The probability of each state in each slot, given all choices of the period, and their log-likelihood.

        >>> chain = _Chain(None, ["tea"], np.array([[0, 1]]), np.array([[0.5]]), [0.0, 1.0])
        >>> chain.posterior(np.log([[0.2, 0.6]]))[0].round(3)
        array([[0.25, 0.75]])
        """
        top = likelihoods.max(axis=1, keepdims=True)
        seen = np.exp(likelihoods - top)
        forward, backward = np.empty_like(seen), np.ones_like(seen)
        belief, total = np.zeros(seen.shape[1]), float(top.sum())
        belief[-1] = 1.0
        moves = [_moves(chances) for chances in self.leaves]
        for slot in range(len(seen)):
            belief = (belief @ moves[slot]) * seen[slot]
            total += float(np.log(belief.sum()))
            belief = belief / belief.sum()
            forward[slot] = belief
        for slot in range(len(seen) - 1, 0, -1):
            rest = moves[slot] @ (backward[slot] * seen[slot])
            backward[slot - 1] = rest / rest.sum()
        both = forward * backward
        return both / both.sum(axis=1, keepdims=True), total


def _moves(chances: Vec) -> Vec:
    """The probability of each next state (columns) from each state (rows), where items leave with these chances."""
    steps = [np.array([[1.0, 0.0], [chance, 1.0 - chance]]) for chance in chances]
    return reduce(lambda matrix, step: np.kron(step, matrix), steps, np.eye(1))


class PossibleOffers:
    """All sets that may have been on offer, and which choices came from which of them in which slot."""

    def __init__(self, counts: UncertainCounts) -> None:
        counts.require_choices()
        self._rows: list[dict[Term, float]] = []  # what was chosen in a slot, if it was from this set
        self.chains = [self._chain(period) for period in counts.periods if any(slot.chosen for slot in period.slots)]
        self.assortments, self._choices = matrix_over_sets(self._rows, counts.items)

    def _chain(self, period: Period) -> _Chain:
        """The chain of a period, with a row for each slot with choices and each state that is possible then."""
        starts = list(accumulate((slot.duration for slot in period.slots), initial=period.start))
        spans = [(slot, starts[n], starts[n + 1]) for n, slot in enumerate(period.slots) if slot.chosen]
        slots, sold = [slot for slot, *_ in spans], Counter[Label]()
        for slot in slots:
            sold.update(slot.chosen)
        items = sorted(period.doubtful, key=lambda item: -sold[item])[:MAX_DOUBTFUL_ITEMS]
        sure = np.array([[item in slot.smallest for item in items] for slot in slots]).reshape(len(slots), -1)
        weights = np.array([sum(slot.chosen.values()) for slot in slots])
        leaves = np.array([_chances(weights, ~there) for there in sure.T]).reshape(-1, len(slots)).T
        rows = np.full((len(slots), 2 ** len(items)), -1)
        for number, slot in enumerate(slots):
            for state in range(rows.shape[1]):
                gone = {item for bit, item in enumerate(items) if not state >> bit & 1}
                if not gone & slot.smallest:
                    offer = frozenset(period.largest) - gone
                    rows[number, state] = len(self._rows)
                    self._rows.append({(offer, item): count for item, count in slot.chosen.items()})
        ends = [period.start, *(end for *_, end in spans)]  # an item may leave at any time between two slots
        edges = [(end + start) / 2.0 for end, (_, start, _) in zip(ends, spans, strict=False)]
        return _Chain(period, items, rows, leaves, [*edges, ends[-1]])

    def weigh(self, model: Predicts | None) -> tuple[Vec, float]:
        """The posterior probability of each row by a model, and the log-likelihood; without one, the largest sets."""
        weights, total = np.zeros(len(self._rows)), 0.0
        if model is None:
            weights[np.concatenate([chain.rows[:, -1] for chain in self.chains])] = 1.0
            return weights, -np.inf
        for chain, found in zip(self.chains, self._posteriors(model), strict=True):
            possible = chain.rows >= 0
            weights[chain.rows[possible]] = found[0][possible]
            total += found[1]
        return weights, total

    def _posteriors(self, model: Predicts) -> list[tuple[Vec, float]]:
        shares = np.maximum(model.probabilities(self.assortments), MIN_SHARE)
        likelihoods = np.append(self._choices @ np.log(shares), -np.inf)
        return [chain.posterior(likelihoods[chain.rows]) for chain in self.chains]

    def expected(self, weights: Vec) -> ChoiceCounts:
        """The choices that are expected from each set, without sets that have hardly any; these go to the others."""
        tallies = weights @ self._choices
        totals = np.add.reduceat(tallies, self.assortments.indptr[:-1])
        order = np.argsort(-totals, kind="stable")
        kept = order[: int(np.searchsorted(np.cumsum(totals[order]), KEPT_SHARE * totals.sum())) + 1]
        offers = [self.assortments.offers[number] for number in sorted(kept.tolist())]
        places = np.isin(self.assortments.owner, kept)
        found = tallies[places] * (totals.sum() / totals[kept].sum())
        return ChoiceCounts(Assortments(offers, self.assortments.items), found.round(EXPECTED_DECIMALS))

    def sell_outs(self, model: Predicts, confidence: float) -> list[SellOut]:
        """When each doubtful item of each period left, by a model."""
        found, tail = [], (1.0 - confidence) / 2.0
        for chain, (states, _) in zip(self.chains, self._posteriors(model), strict=True):
            numbers = np.arange(states.shape[1])
            for bit, item in enumerate(chain.items):
                gone = np.append(states[:, (numbers >> bit & 1) == 0].sum(axis=1), 1.0)
                expected = float(np.diff(gone, prepend=0.0) @ chain.times)
                low, high = (chain.times[int(np.argmax(gone >= share - 1e-12))] for share in (tail, 1.0 - tail))
                found.append(SellOut(chain.period.place, item, expected, low, high))
        return found


def expected_choices(counts: UncertainCounts, model: Predicts) -> ChoiceCounts:
    """Return the choices that are expected from each set that may have been on offer, by a model."""
    possible = PossibleOffers(counts)
    return possible.expected(possible.weigh(model)[0])


def availability(counts: UncertainCounts, model: Predicts, confidence: float = 0.9) -> list[SellOut]:
    """Estimate when each item sold out, for each period in which it may have.

    An item is as likely to leave at one customer as at another, before what was chosen is looked at.

    Parameters
    ----------
    counts : UncertainCounts
        The choices.
    model : ChoiceModel
        A model of the same items, such as that of ``estimate(counts)``.
    confidence : float
        How often the time is to lie between ``earliest`` and ``latest``.

    Examples
    --------
    >>> from rankstream import RankingModel
    >>> counts = UncertainCounts()
    >>> slots = [{"tea": 3, "pie": 1}, {"tea": 2, "pie": 2}, {"pie": 4}, {"pie": 4}]
    >>> counts.observe_period(["pie"], ["tea", "pie"], slots, [3600] * 4, place="York", start=8 * 3600)
    >>> model = RankingModel(["tea", "pie"], [("tea", "pie"), ("pie", "tea")], [0.5, 0.5])
    >>> [found] = availability(counts, model)
    >>> found.item, round(found.expected / 3600, 1)
    ('tea', 10.1)
    """
    if not 0.0 < number_between("confidence", confidence, 0.0, 1.0) < 1.0:
        raise ValueError(f"confidence is {confidence}: it must lie strictly between 0 and 1.")
    return PossibleOffers(counts).sell_outs(model, confidence)


def _chances(weights: Vec, doubtful: Mask) -> Vec:
    """The chance that an item leaves before each slot, if it is there: it leaves at any customer alike.

    >>> _chances(np.array([2.0, 2.0]), np.array([True, True])).round(3)     # 1/4 before, 1/2 between, 1/4 after
    array([0.25 , 0.667])
    """
    halves = 0.5 * weights * doubtful
    masses = halves + np.append(0.0, halves[:-1])
    left = np.cumsum(masses[::-1])[::-1] + halves[-1]
    chances: Vec = np.divide(masses, left, out=np.zeros(len(weights)), where=left > 0.0)
    return chances
