"""What choices from offers that are known in part prove about shares, whatever was on the shelf.

For every ranking model and every set A between S and L: P(i | L) <= P(i | A) <= P(i | S and i), the first for items of
S. So the average share of an item over the customers of a period lies between averages of coordinates.
"""

from collections import Counter, defaultdict

import numpy as np

from rankstream._core import Label, Vec, number_between
from rankstream.columns.data import Observed
from rankstream.columns.master import Ball, Region, ball
from rankstream.data.uncertain import Term, UncertainCounts, matrix_over_sets

TILTS = 0.02 * 2.0 ** np.arange(9)  # of the exponential bounds: the best is about sqrt(2 log(1/risk) / choices)


def bound_shares(counts: UncertainCounts, region: Region, confidence: float) -> tuple[Observed, Ball]:
    """The inequalities of all choices, pooled by their largest set, and how far frequencies may break them.

    Pooled, as the largest set is known before the first choice is made. So errors are sums of martingale differences,
    and the bounds hold as well where sell-outs depend on what was chosen before.
    """
    naive = counts.naive_counts()
    naive.require_whole("A range over uncertain offers")
    lower, upper = defaultdict[Term, float](float), defaultdict[Term, Counter[frozenset[Label]]](Counter)
    for period in counts.periods:
        largest = frozenset(period.largest)
        for slot in period.slots:
            number = int(sum(slot.chosen.values()))
            for item in largest if number else ():
                upper[largest, item][slot.smallest | {item}] += number
                lower[largest, item] += number if item in slot.smallest else 0
    rows, facts = list[dict[Term, float]](), list[tuple[float, float, int]]()
    for (largest, item), sets in upper.items():
        total = float(sum(sets.values()))
        share = float(naive.tallies[naive.assortments.coordinate(largest, item)]) / total
        rows += [{(largest, item): lower[largest, item] / total}, {(s, item): n / total for s, n in sets.items()}]
        facts += [(share, total, 1), (share, total, -1)]
    offers, matrix = matrix_over_sets(rows, counts.items)
    shares, totals, sides = (np.array(column) for column in zip(*facts, strict=True))
    found = Observed(offers, offers, shares, totals, matrix)
    if region == "confidence":
        if not 0.0 < number_between("confidence", confidence, 0.0, 1.0) < 1.0:
            raise ValueError(f"confidence is {confidence}: it must lie strictly between 0 and 1.")
        low, high = average_bounds(shares, totals, (1.0 - confidence) / len(rows))
        budgets = np.where(sides > 0, high - shares, shares - low)
        return found, Ball(np.arange(len(rows)), budgets, sides)
    return found, ball(len(rows), region, sides)


def average_bounds(shares: Vec, totals: Vec, risk: float) -> tuple[Vec, Vec]:
    """Bounds on the average probability of events, each of which may have its own, from how often they happened.

    Each bound fails with probability ``risk`` at most, also if probabilities depend on the events before: for any tilt
    t, exp(t * number) over the product of 1 + p_k (e^t - 1) has mean 1, and the product is largest at equal p_k.

    >>> low, high = average_bounds(np.array([0.1]), np.array([1000.0]), 0.025)
    >>> low.round(3), high.round(3)
    (array([0.07]), array([0.136]))
    """
    slack = np.log(len(TILTS) / risk) / totals
    up, down = np.expm1(TILTS)[:, np.newaxis], -np.expm1(-TILTS)[:, np.newaxis]
    low = (np.exp(np.outer(TILTS, shares) - slack) - 1.0) / up
    high = (1.0 - np.exp(-np.outer(TILTS, shares) - slack)) / down
    return np.maximum(low.max(axis=0), 0.0), np.minimum(high.min(axis=0), 1.0)
