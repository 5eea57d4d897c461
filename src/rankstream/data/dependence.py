"""Tests of whether choices depend on something beside the offers: the prices of items, or a group.

Two compare records of one offer with each other, so that they hold whatever model describes the choices. Where prices
change with the offers, these see little: a third compares offers with each other, through a logit.
"""

from collections.abc import Iterable, Mapping
from math import erfc, nan, sqrt
from typing import Any

import numpy as np

from rankstream._core.types import Codes, Vec
from rankstream.data.item_changes import MIN_OFFERS, fit_logit

MAX_CELLS = 3_000_000  # offers at prices, times items: a logit of so many takes about a second


def price_p_value(strata: Iterable[tuple[Vec, Codes, Vec]]) -> float:
    """Test whether choices depend on prices, by shuffling the choices within each offer.

    The statistic is the sum of the prices of what was chosen, each less the item's mean price in the offer. Its
    variance over all ways to shuffle the choices is exact (Hoeffding 1951), and its distribution is taken as normal.
    Each stratum is an offer: the weight of each record, the position of the item chosen, and the price of every item.
    The p-value is two-sided; NaN where no two records can be compared.

    >>> chosen, prices = np.array([0] * 30 + [1] * 30), np.array([[2.0, 3.0]] * 30 + [[3.0, 3.0]] * 30)
    >>> price_p_value([(np.ones(60), chosen, prices)]) < 1e-10
    True
    """
    total = variance = 0.0
    for weights, chosen, prices in strata:
        size = weights.sum()
        if size <= 1.0:
            continue
        apart = prices - weights @ prices / size
        share = np.bincount(chosen, weights, prices.shape[1]) / size
        expected = apart @ share
        total += float(weights @ apart[np.arange(len(chosen)), chosen])
        variance += float(weights @ ((apart - expected[:, None]) ** 2 @ share)) * size / (size - 1.0)
    return erfc(abs(total) / sqrt(2.0 * variance)) if variance > 1e-12 else float("nan")


def logit_price_p_value(strata: Mapping[Any, tuple[Vec, Codes, Vec]]) -> float:
    """Test whether choices depend on prices given the offers: the score test of a price coefficient in a logit.

    The strata are as ``price_p_value`` takes them, by their group and their offer; the items of each group have effects
    of their own. The score, less what these explain, is compared with its variance over offers at prices, so that a
    market that is no logit raises no alarm as long as prices are not set by what else is offered. NaN where too few
    offers are behind it.
    """
    from scipy.special import stdtr

    label = {key: place for place, key in enumerate(dict.fromkeys((g, item) for g, offer in strata for item in offer))}
    parts = [(*stratum, *np.unique(prices, axis=0, return_inverse=True)) for stratum, (_, _, prices) in strata.items()]
    n_rows = sum(len(levels) for _, _, levels, _ in parts)
    if n_rows < MIN_OFFERS or n_rows * len(label) > MAX_CELLS:
        return nan
    inside, counts, prices = np.zeros((3, n_rows, len(label)))
    first = 0
    for (group, offer, levels, row), (weights, chosen, _) in zip(parts, strata.values(), strict=True):
        columns = np.array([label[group, item] for item in offer])
        inside[first : first + len(levels), columns], prices[first : first + len(levels), columns] = 1.0, levels
        np.add.at(counts, (first + row.ravel(), columns[chosen]), weights)
        first += len(levels)
    totals, shares = counts.sum(axis=1), fit_logit(inside, counts)
    slope = shares * (prices - (shares * prices).sum(axis=1, keepdims=True))
    effects = np.diag(totals @ shares) - (shares.T * totals) @ shares
    explained = np.linalg.pinv(effects, rcond=1e-10, hermitian=True) @ (totals @ slope)
    scores = ((counts - totals[:, np.newaxis] * shares) * (prices - explained)).sum(axis=1)
    information = float(totals @ (slope * prices).sum(axis=1) - totals @ slope @ explained)
    squares = float(scores @ scores)
    effective = squares**2 / max(float((scores**4).sum()), 1e-300)
    if effective < MIN_OFFERS or information <= 1e-9 * totals.sum():
        return nan
    variance = max(information, squares * n_rows / (n_rows - 1.0))
    return float(2.0 * stdtr(effective - 1.0, -abs(float(scores.sum())) / sqrt(variance)))


def group_p_value(tables: Iterable[Vec]) -> tuple[float, Vec]:
    """Test whether choices differ between groups that see the same offers: the generalised Mantel-Haenszel test.

    Each table is an offer: a row for each group, a column for each item, the same for all offers. Returned are the
    p-value (NaN where no two groups can be compared), and by how many percentage points each group takes each item
    more often than all groups together.
    """
    from scipy.special import chdtrc

    excess = spread = seen = None
    for table in tables:
        size, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
        if size <= 1.0 or np.count_nonzero(rows) < 2 or np.count_nonzero(columns) < 2:
            continue
        more = table - np.outer(rows, columns) / size
        among_rows, among_columns = (np.diag(sums) * size - np.outer(sums, sums) for sums in (rows, columns))
        part = np.kron(among_rows, among_columns) / (size**2 * (size - 1.0))
        excess = more if excess is None else excess + more
        spread = part if spread is None else spread + part
        seen = rows if seen is None else seen + rows
    if excess is None or spread is None or seen is None:
        return float("nan"), np.zeros((0, 0))
    statistic = excess.ravel() @ np.linalg.pinv(spread, rcond=1e-9, hermitian=True) @ excess.ravel()
    freedom = np.linalg.matrix_rank(spread, tol=1e-9 * np.abs(spread).max(), hermitian=True)
    return float(chdtrc(freedom, statistic)), 100.0 * excess / np.maximum(seen, 1.0)[:, None]
