"""Tests of whether choices from the same offers depend on something else: the prices of items, or a group.

Both compare records of one offer with each other, so that they hold whatever model describes the choices.
"""

from collections.abc import Iterable
from math import erfc, sqrt

import numpy as np

from rankstream._core.types import Codes, Vec


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


def group_p_value(tables: Iterable[Vec]) -> tuple[float, Vec]:
    """Test whether choices differ between groups that see the same offers: the generalised Mantel-Haenszel test.

    Each table is an offer: a row for each group, a column for each item, the same for all offers. Returned are the
    p-value (NaN where no two groups can be compared), and by how many percentage points each group takes each item
    more often than all groups together.
    """
    from scipy.stats import chi2

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
    return float(chi2.sf(statistic, freedom)), 100.0 * excess / np.maximum(seen, 1.0)[:, None]
