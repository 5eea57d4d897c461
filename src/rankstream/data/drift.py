"""Drift reports: which offers' frequencies moved beyond noise between two periods."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankstream._core.arguments import number_between
from rankstream._core.types import Codes, Label, Vec
from rankstream.data.counts import ChoiceCounts

Control = Literal["holm", "fdr"]
ENOUGH = 5.0  # expected choices in every cell, for the chi-square approximation


@dataclass(frozen=True)
class Movement:
    """One offer in two periods: its choices in each, the test, and the item whose share changed most.

    ``p_value`` is of this offer alone, ``adjusted`` allows for all the offers looked at. ``before`` and ``after`` are
    effective numbers of choices.
    """

    offer: tuple[Label, ...]
    before: float
    after: float
    statistic: float
    freedom: int
    p_value: float
    adjusted: float
    moved: bool
    item: Label
    change: float


@dataclass(frozen=True)
class ItemMovement:
    """An item whose share changed over all offers with it, beyond what the items before it in the report explain.

    ``change`` is the mean change of its share, offers weighed by how exactly both periods are known. ``p_value`` allows
    for all items. ``offers`` is the number of offers with it in both periods, ``moved`` how many of these moved.
    """

    item: Label
    change: float
    p_value: float
    offers: int
    moved: int


@dataclass(frozen=True)
class DriftReport:
    """All offers that were counted in both periods, most significant first; and those counted in only one.

    Attributes
    ----------
    movements : tuple of Movement
        The test of every offer of both periods, by its p-value.
    appeared, vanished : tuple of offers
        The offers that were counted only after, and only before.
    level : float
        The level of the test.
    control : "holm" or "fdr"
        What the level bounds: see ``drift_report``.
    items : tuple of ItemMovement
        The items behind the movements, the clearest first.

    """

    movements: tuple[Movement, ...]
    appeared: tuple[tuple[Label, ...], ...]
    vanished: tuple[tuple[Label, ...], ...]
    level: float
    control: Control
    items: tuple[ItemMovement, ...] = ()

    @property
    def moved(self) -> tuple[Movement, ...]:
        """The offers that moved beyond noise."""
        return tuple(movement for movement in self.movements if movement.moved)

    def __str__(self) -> str:
        lines = [f"{len(self.moved)} of {len(self.movements)} offers moved ({self.control}, level {self.level:g})"]
        for one in self.moved:
            offer = ", ".join(map(str, one.offer))
            lines.append(f"{one.item} {100 * one.change:+.1f} points in ({offer}): p = {one.adjusted:.2g}")
        for word, offers in (("new", self.appeared), ("no longer seen", self.vanished)):
            lines.extend(f"{word}: ({', '.join(map(str, offer))})" for offer in offers)
        return "\n".join(lines)


def drift_report(
    before: ChoiceCounts,
    after: ChoiceCounts,
    *,
    level: float = 0.05,
    control: Control = "holm",
    cumulative: bool = False,
) -> DriftReport:
    """Test, offer by offer, whether the choices of two periods can come from the same probabilities.

    By Pearson's chi-square test of homogeneity, with rare items pooled until every expected number is at least 5; where
    nothing is left to compare the p-value is 1.

    ``DriftReport.items`` says which items are behind that. The clearest one, by Mantel and Haenszel's test over all
    offers with it, comes first; then its choices are taken out, and the test is made again, until none is left beyond
    ``level`` (by Bonferroni's method for all items). So one item that gains is one line, not one for each that loses.

    Parameters
    ----------
    before, after : ChoiceCounts
        The choices of two periods that share no choice. Counts that forget are tested by their effective numbers;
        all others must be whole choices, each counted once.
    level : float
        How often the test may be wrong, in the sense of ``control``; strictly between 0 and 1.
    control : "holm" or "fdr"
        ``"holm"`` keeps the probability of any false alarm below ``level``; ``"fdr"`` (Benjamini and Hochberg) the
        expected share of false alarms among all alarms, for offers independent of each other.
    cumulative : bool
        Whether ``after`` includes ``before``, which is then subtracted first.

    >>> from rankstream import Assortments
    >>> offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    >>> before, after = ChoiceCounts(offers, [500, 500, 300, 700]), ChoiceCounts(offers, [510, 490, 450, 550])
    >>> print(drift_report(before, after))
    1 of 2 offers moved (holm, level 0.05)
    pie +15.0 points in (pie, nothing): p = 8.5e-12

    """
    if not 0.0 < number_between("level", level, 0.0, 1.0) < 1.0:
        raise ValueError(f"level is {level}: it must lie strictly between 0 and 1.")
    if control not in ("holm", "fdr"):
        raise ValueError(f"There is no control {control!r}: choose 'holm' or 'fdr'.")
    for counts in (before, after):
        if not counts.forgets:
            counts.require_whole("A test for drift")
    then, now = _tables(before), _tables(after)
    if cumulative:
        now = _taken_off(before, after, now, then)
    shared = [key for key in then if key in now]
    pairs = [np.array([[table[key][item] for item in then[key]] for table in (then, now)]) for key in shared]
    tests = [_homogeneity(pair) for pair in pairs]
    adjusted = adjust(np.array([p for *_, p in tests]), control)
    movements = []
    for key, pair, test, allowed in zip(shared, pairs, tests, adjusted.tolist(), strict=True):
        offer, (first, second) = tuple(then[key]), pair.sum(axis=1).tolist()
        change = pair[1] / second - pair[0] / first
        most = int(np.abs(change).argmax())
        largest = offer[most], float(change[most])
        movements.append(Movement(offer, first, second, *test, allowed, allowed <= level, *largest))
    items = _moved_items(movements, pairs, level)
    movements.sort(key=lambda movement: movement.p_value)
    appeared = tuple(tuple(now[key]) for key in now if key not in then)
    vanished = tuple(tuple(then[key]) for key in then if key not in now)
    return DriftReport(tuple(movements), appeared, vanished, level, control, items)


Tables = dict[frozenset[Label], dict[Label, float]]


def _tables(counts: ChoiceCounts) -> Tables:
    """For every offer with choices, the effective number of choices of each item; an offer given twice counts once."""
    offers, totals, effective = counts.assortments, counts.totals, counts.effective_totals
    found: Tables = {}
    for number in np.flatnonzero(totals > 0.0).tolist():
        tallies = counts.tallies[offers.indptr[number] : offers.indptr[number + 1]]
        table = found.setdefault(frozenset(offers.offers[number]), dict.fromkeys(offers.offers[number], 0.0))
        for item, tally in zip(offers.offers[number], tallies.tolist(), strict=True):
            table[item] += tally * float(effective[number] / totals[number])
    return found


def _taken_off(before: ChoiceCounts, after: ChoiceCounts, now: Tables, then: Tables) -> Tables:
    """What came after the first snapshot."""
    if before.forgets or after.forgets:
        raise ValueError("Counts that forget do not include what they were: compare periods that share no choices.")
    rest: Tables = {}
    for key in {**now, **then}:
        new, old = now.get(key, {}), then.get(key, {})
        left = {item: new.get(item, 0.0) - old.get(item, 0.0) for item in new or old}
        if min(left.values()) < 0.0:
            raise ValueError(f"{tuple(left)!r} has fewer choices after than before: after must include before.")
        if max(left.values()) > 0.0:
            rest[key] = left
    return rest


def _homogeneity(pair: Vec) -> tuple[float, int, float]:
    """Pearson's statistic of a table of two rows with rare columns pooled, its degrees of freedom and its p-value."""
    from scipy.stats import chi2

    table = _pooled(pair)
    freedom = table.shape[1] - 1
    if freedom == 0:
        return 0.0, 0, 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    return statistic, freedom, float(chi2.sf(statistic, freedom))


def _moved_items(movements: list[Movement], pairs: list[Vec], level: float) -> tuple[ItemMovement, ...]:
    """The items that moved over all offers, one after the other, each with the choices of those before it left out."""
    from scipy.stats import chi2

    if not movements:
        return ()
    labels = list(dict.fromkeys(item for movement in movements for item in movement.offer))
    code = {item: number for number, item in enumerate(labels)}
    members = np.array([code[item] for movement in movements for item in movement.offer])
    owner = np.repeat(np.arange(len(movements)), [len(movement.offer) for movement in movements])
    tallies = np.concatenate(pairs, axis=1)
    moved = np.array([movement.moved for movement in movements])[owner]
    change, left = _mean_change(tallies, owner, members), np.ones(owner.size)
    found: list[ItemMovement] = []
    while len(found) < len(labels):
        surplus, variance, expected = _surplus(tallies * left, owner, members)
        usable = (expected >= ENOUGH) & (variance > 0.0)
        values = np.where(usable, surplus**2 / np.where(usable, variance, 1.0), 0.0)
        clearest = int(values.argmax())
        p_value = min(1.0, float(chi2.sf(values[clearest], 1)) * len(labels))
        if p_value > level:
            break
        own = members == clearest
        item = ItemMovement(
            labels[clearest], float(change[clearest]), p_value, int(own.sum()), int((own & moved).sum())
        )
        found.append(item)
        left[own] = 0.0
    return tuple(found)


def _surplus(tallies: Vec, owner: Codes, members: Codes) -> tuple[Vec, Vec, Vec]:
    """For each item: how many more than expected chose it later, the variance of that, and the least expected number.

    Summed over offers, as in the test of Mantel and Haenszel; the variance is the hypergeometric one.
    """
    first, second = (np.bincount(owner, row) for row in tallies)
    total = np.maximum(first + second, 1e-300)
    share = tallies.sum(axis=0) / total[owner]
    spread = (first * second / np.maximum(total - 1.0, 1.0))[owner] * share * (1.0 - share)
    low, high = (np.bincount(members, number[owner] * share) for number in (first, second))
    surplus: Vec = np.bincount(members, tallies[1] - second[owner] * share).astype(np.float64)
    variance: Vec = np.bincount(members, spread).astype(np.float64)
    least: Vec = np.minimum(low, high)
    return surplus, variance, least


def _mean_change(tallies: Vec, owner: Codes, members: Codes) -> Vec:
    """The change of each item's share, offers weighed as a difference of two means weighs them."""
    first, second = (np.bincount(owner, row)[owner] for row in tallies)
    weights = first * second / (first + second)
    change = np.bincount(members, weights * (tallies[1] / second - tallies[0] / first))
    mean: Vec = change / np.bincount(members, weights)
    return mean


def _pooled(table: Vec) -> Vec:
    """The table with its rarest columns added up, so that both rows expect enough in every column left.

    Which columns are pooled depends on the sums of both periods only, so the test stays valid.
    """
    needed = ENOUGH * table.sum() / table.sum(axis=1).min()
    table = table[:, np.argsort(table.sum(axis=0), kind="stable")]
    while table.shape[1] > 1 and table[:, 0].sum() < needed:
        merged = table[:, 1:].copy()
        merged[:, 0] += table[:, 0]
        table = merged[:, np.argsort(merged.sum(axis=0), kind="stable")]
    return table


def adjust(p_values: Vec, control: Control) -> Vec:
    """P-values that allow for how many there are: by Holm's or by Benjamini and Hochberg's method.

    >>> adjust(np.array([0.01, 0.04, 0.03]), "holm"), adjust(np.array([0.01, 0.04, 0.03]), "fdr")
    (array([0.03, 0.06, 0.06]), array([0.03, 0.04, 0.04]))
    """
    order, size = np.argsort(p_values), p_values.size
    ranks = np.arange(size)
    ordered = p_values[order]
    if control == "holm":
        steps = np.maximum.accumulate(ordered * (size - ranks))
    else:
        steps = np.minimum.accumulate((ordered * size / (ranks + 1.0))[::-1])[::-1]
    adjusted = np.empty(size)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted
