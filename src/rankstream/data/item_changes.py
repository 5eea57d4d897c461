"""Tests of whether choices depend on more than the offers: on the period, on prices, or on a group.

Where periods or groups share offers, records of the same offer are compared: such a test assumes no choice model.
Where they do not, offers are compared with each other, through a logit.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import erfc, nan, sqrt
from typing import Any

import numpy as np

from rankstream._core.types import Codes, Label, Vec
from rankstream.data.prices import PriceLevels

MIN_EXPECTED_CHOICES = 5.0  # of an item in both periods, as for any chi-squared test; those below are estimates
MAX_LABELS = 300  # of the logit through which items are compared: its matrix is inverted; not tuned
MIN_OFFERS = 4.0  # effective number of offers behind a comparison through a logit, for Student's quantiles; not tuned
MAX_SHIFT = 0.15  # of the share of choices from offers with an item: beyond it, these are compared apart; not tuned
MAX_APART = 4  # items whose presence divides the offers: 16 parts at most, so that each has choices; not tuned
MAX_CELLS = 3_000_000  # offers at prices, times items: a logit of so many takes about a second


@dataclass(frozen=True)
class ItemMovement:
    """An item whose share changed over all offers with it, beyond what earlier items in the report explain.

    ``change`` is the mean change of its share at equal offers and prices. ``p_value`` is corrected for all tests.
    ``offers`` is the number of compared offers with the item; ``moved`` of these changed significantly on their own.
    ``overall`` is the change of its share over all choices, including the effect of other offers and prices.
    """

    item: Label
    change: float
    p_value: float
    offers: int
    moved: int
    overall: float = 0.0


@dataclass(frozen=True, eq=False)
class ItemCells:
    """The choices of two periods by cell: an item (at a price level, if its label has one) in an offer.

    ``tallies`` has a row per period; ``owner`` is the number of the offer, ``label`` that of the label and ``item``
    that of the label's item.
    """

    tallies: Vec
    owner: Codes
    label: Codes
    item: Codes
    items: tuple[Label, ...]
    offers: tuple[frozenset[Label], ...]

    @classmethod
    def of(cls, offers: list[tuple[Label, ...]], tallies: Vec) -> "ItemCells":
        """Number offers, labels and items; if an offer has two levels of one item, every label is an item."""
        labels = list(dict.fromkeys(label for offer in offers for label in offer))
        levels = PriceLevels.from_labels(labels)
        item_of = {label: label if levels is None else levels.of(label)[0] for label in labels}
        if any(len({item_of[label] for label in offer}) < len(offer) for offer in offers):
            item_of = {label: label for label in labels}
        items = tuple(dict.fromkeys(item_of.values()))
        code, number = ({key: place for place, key in enumerate(keys)} for keys in (labels, items))
        cells = [(code[label], number[item_of[label]]) for offer in offers for label in offer]
        label, item = np.array(cells, dtype=np.int64).reshape(-1, 2).T
        owner = np.repeat(np.arange(len(offers)), [len(offer) for offer in offers])
        return cls(tallies, owner, label, item, items, tuple(map(frozenset, offers)))

    def period_totals(self, tallies: Vec) -> Vec:
        """Return, for each period and cell, the choices from the cell's offer."""
        return np.array([np.bincount(self.owner, row)[self.owner] for row in tallies])

    def by_item(self, values: Vec) -> Vec:
        """Sum the values of cells by item."""
        sums: Vec = np.bincount(self.item, values, len(self.items)).astype(np.float64)
        return sums


def count_comparable(cells: ItemCells, given_offers: bool) -> int:
    """Return how many items have enough choices, and enough different offers, to be compared."""
    if not cells.owner.size:
        return 0
    return int((_test(given_offers)(cells, np.ones(cells.owner.size))[0] < 1.0).sum())


def changed_items(
    cells: ItemCells, moved: set[frozenset[Label]], level: float, families: int, given_offers: bool
) -> tuple[ItemMovement, ...]:
    """Return the items that changed, most significant first, each tested without the choices of those before it.

    ``moved`` are the offers that changed on their own. P-values are corrected for all items and ``families`` of tests.
    """
    left, movements = np.ones(cells.owner.size), list[ItemMovement]()
    first, second = (
        cells.by_item(row) / np.maximum(cells.by_item(total), 1e-300)
        for row, total in zip(cells.tallies, cells.period_totals(cells.tallies), strict=True)
    )
    overall = second - first  # of each item's share of all choices from offers with it
    change = mean_change(cells) if not given_offers else None
    while len(movements) < len(cells.items):
        p_values, shift = _test(given_offers)(cells, left)
        by = shift if change is None else change
        tied = p_values <= p_values.min() * (1.0 + 1e-9)  # the last two items always tie: name the larger change
        clearest = int(np.argmax(np.where(tied, np.abs(by).round(9), -1.0)))
        p_value = min(1.0, float(p_values[clearest]) * families * len(cells.items))
        if p_value > level:
            break
        of_item = cells.item == clearest
        offers = [cells.offers[number] for number in np.unique(cells.owner[of_item]).tolist()]
        n_moved = sum(offer in moved for offer in offers)
        changes = float(by[clearest]), p_value, len(offers), n_moved, float(overall[clearest])
        movements.append(ItemMovement(cells.items[clearest], *changes))
        left[of_item] = 0.0
    return tuple(movements)


def _test(given_offers: bool) -> Callable[[ItemCells, Vec], tuple[Vec, Vec]]:
    return by_logit if given_offers else by_offers


def by_offers(cells: ItemCells, left: Vec) -> tuple[Vec, Vec]:
    """Return each item's p-value by Mantel and Haenszel's test over all offers with it, and its surplus of choices."""
    from scipy.special import chdtrc

    tallies = cells.tallies * left
    first, second = cells.period_totals(tallies)
    total = np.maximum(first + second, 1e-300)
    share = tallies.sum(axis=0) / total
    spread = first * second / np.maximum(total - 1.0, 1.0) * share * (1.0 - share)
    surplus, variance = cells.by_item(tallies[1] - second * share), cells.by_item(spread)
    least = np.minimum(cells.by_item(first * share), cells.by_item(second * share))
    usable = (least >= MIN_EXPECTED_CHOICES) & (variance > 0.0)
    values = np.where(usable, surplus**2 / np.where(usable, variance, 1.0), 0.0)
    return chdtrc(1, values), surplus


def by_logit(cells: ItemCells, left: Vec) -> tuple[Vec, Vec]:
    """Return each item's p-value by a score test in a logit, and the change of its share, given the offers.

    A logit with an effect for every label is fitted to both periods together. The score of an item's change, net of
    those effects, is compared with its variance over offers. So a market that is not a logit raises no false alarm as
    long as offers come from the same source in both periods. Where an item is offered more often in one period, offers
    with and without it get separate effects: the choices it takes from other items are not a change of tastes.
    """
    from scipy.special import stdtr

    tallies = cells.tallies * left
    label = np.unique(np.column_stack([cells.label, _strata(cells)[cells.owner]]), axis=0, return_inverse=True)[1]
    n_labels, n_offers, n_items = int(label.max()) + 1, int(cells.owner.max()) + 1, len(cells.items)
    chosen = np.bincount(label, tallies.sum(axis=0) * left, n_labels)
    used = np.flatnonzero((chosen[label] > 0.0) & (left > 0.0))
    none = np.ones(n_items), np.zeros(n_items)
    if not used.size or n_labels > MAX_LABELS:
        return none
    where = cells.owner[used], label[used]
    inside = np.zeros((n_offers, n_labels))
    inside[where] = 1.0
    counts = np.zeros((2, n_offers, n_labels))
    counts[0][where], counts[1][where] = tallies[:, used]
    totals = counts.sum(axis=2)
    shares = fit_logit(inside, counts.sum(axis=0))
    first, second = (np.diag(number @ shares) - (shares.T * number) @ shares for number in totals)
    explained = second @ np.linalg.pinv(first + second, rcond=1e-10, hermitian=True)
    to_item = np.zeros((n_labels, n_items))
    to_item[label, cells.item] = 1.0
    residual = counts - totals[:, :, np.newaxis] * shares
    scores = (residual[1] - residual.sum(axis=0) @ explained.T) @ to_item
    information = np.einsum("li,lk,ki->i", to_item, second - explained @ second, to_item)
    squares = (scores**2).sum(axis=0)
    effective = squares**2 / np.maximum((scores**4).sum(axis=0), 1e-300)
    expected = np.minimum(*(number @ (shares @ to_item) for number in totals))
    usable = (expected >= MIN_EXPECTED_CHOICES) & (information > 0.1) & (effective >= MIN_OFFERS)
    variance = np.where(usable, np.maximum(information, squares * n_offers / max(n_offers - 1.0, 1.0)), 1.0)
    surplus = scores.sum(axis=0)
    p_values = np.where(
        usable, 2.0 * stdtr(np.maximum(effective - 1.0, 1.0), -np.abs(surplus) / np.sqrt(variance)), 1.0
    )
    shown = (totals.sum(axis=0) @ (inside @ to_item > 0.0)).clip(1e-300)
    of_item = shares @ to_item
    spread = totals.sum(axis=0) @ (of_item * (1.0 - of_item)) / shown
    return p_values, np.where(usable, surplus / np.where(usable, information, 1.0) * spread, 0.0).clip(-1.0, 1.0)


def _strata(cells: ItemCells) -> Codes:
    """Group offers by the presence of the items that are offered much more often in one period."""
    inside = np.zeros((len(cells.offers), len(cells.items)))
    inside[cells.owner, cells.item] = 1.0
    totals = np.array([np.bincount(cells.owner, row) for row in cells.tallies])
    first, second = totals @ inside / np.maximum(totals.sum(axis=1, keepdims=True), 1e-300)
    shift = np.abs(second - first)
    apart = [place for place in np.argsort(-shift)[:MAX_APART].tolist() if shift[place] > MAX_SHIFT]
    strata: Codes = (inside[:, apart] @ 2.0 ** np.arange(len(apart))).astype(np.int64)
    return strata


def fit_logit(inside: Vec, counts: Vec) -> Vec:
    """Fit a logit by maximum likelihood (minorisation, then Newton steps); return its shares, offers by labels."""
    totals, chosen = counts.sum(axis=1), counts.sum(axis=0)
    worth = np.where(chosen > 0.0, 1.0, 0.0)
    for _ in range(50):
        worth = chosen / np.maximum((totals / np.maximum(inside @ worth, 1e-300)) @ inside, 1e-300)
        worth /= max(float(worth.max()), 1e-300)
    shares: Vec = _shares(inside, worth)
    for _ in range(30):
        slope = chosen - totals @ shares
        if np.abs(slope).max() <= 1e-8 * max(1.0, float(totals.sum())):
            break
        bend = np.diag(totals @ shares) - (shares.T * totals) @ shares
        step = np.linalg.pinv(bend, rcond=1e-10, hermitian=True) @ slope
        worth = worth * np.exp(np.clip(step, -1.0, 1.0))
        shares = _shares(inside, worth)
    return shares


def _shares(inside: Vec, worth: Vec) -> Vec:
    attraction = inside * worth
    shares: Vec = attraction / np.maximum(attraction.sum(axis=1, keepdims=True), 1e-300)
    return shares


def mean_change(cells: ItemCells) -> Vec:
    """Return the mean change of each item's share, offers weighted as in a difference of two means."""
    first, second = np.maximum(cells.period_totals(cells.tallies), 1e-300)
    weights = first * second / (first + second)
    change = cells.by_item(weights * (cells.tallies[1] / second - cells.tallies[0] / first))
    return change / np.maximum(cells.by_item(weights), 1e-300)


def price_p_value(strata: Iterable[tuple[Vec, Codes, Vec]]) -> float:
    """Test whether choices depend on prices, by shuffling the choices within each offer.

    The statistic is the sum of the prices of what was chosen, each less the item's mean price in the offer. Its
    variance over all ways to shuffle the choices is exact (Hoeffding 1951), and its distribution is taken as normal.
    Each stratum is an offer: the weight of each record, the position of the chosen item, and the price of every item.
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
    return erfc(abs(total) / sqrt(2.0 * variance)) if variance > 1e-12 else nan


def logit_price_p_value(strata: Mapping[Any, tuple[Vec, Codes, Vec]]) -> float:
    """Test whether choices depend on prices given the offers: the score test of a price coefficient in a logit.

    The strata are those of ``price_p_value``, by group and offer; every item of every group has an effect. The score,
    net of these effects, is compared with its variance over offers at prices. So a market that is not a logit raises
    no false alarm as long as prices do not depend on what else is offered. NaN with too few offers.
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

    Each table is an offer: a row for each group, a column for each item, the same for all offers. Returns the p-value
    (NaN where no two groups can be compared), and by how many percentage points each group chooses each item more often
    than all groups together.
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
        return nan, np.zeros((0, 0))
    statistic = excess.ravel() @ np.linalg.pinv(spread, rcond=1e-9, hermitian=True) @ excess.ravel()
    freedom = np.linalg.matrix_rank(spread, tol=1e-9 * np.abs(spread).max(), hermitian=True)
    return float(chdtrc(freedom, statistic)), 100.0 * excess / np.maximum(seen, 1.0)[:, None]
