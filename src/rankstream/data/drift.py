"""Drift reports: which offers' frequencies moved beyond noise between two periods."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rankstream._core.arguments import number_between
from rankstream._core.types import Label, Vec
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
class DriftReport:
    """All offers that were counted in both periods, most significant first; and those counted in only one."""

    movements: tuple[Movement, ...]
    appeared: tuple[tuple[Label, ...], ...]
    vanished: tuple[tuple[Label, ...], ...]
    level: float
    control: Control

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

    The periods must not share choices: with ``cumulative=True``, ``after`` is taken to include ``before``, which is
    taken off first. Pearson's chi-square test of homogeneity, with rare items pooled until every expected number is at
    least 5; where nothing is left to compare the p-value is 1. Forgetting counts are tested by their effective numbers,
    others must hold whole choices, each counted once. ``"holm"`` keeps the probability of any false finding below
    ``level``, ``"fdr"`` (Benjamini and Hochberg) the expected share of false ones among the findings, for offers
    independent of each other.

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
    movements.sort(key=lambda movement: movement.p_value)
    appeared = tuple(tuple(now[key]) for key in now if key not in then)
    vanished = tuple(tuple(then[key]) for key in then if key not in now)
    return DriftReport(tuple(movements), appeared, vanished, level, control)


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
