"""Drift reports: what changed between two periods, by offer and by item, with one verdict for both."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from rankstream._core import Label, Vec, number_between
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.item_changes import MIN_EXPECTED_CHOICES, ItemCells, ItemMovement, changed_items, count_comparable
from rankstream.data.observations import design_effect, observed, some_offers

Control = Literal["holm", "fdr"]
MIN_CHOICES = 30.0  # in each period; nothing is compared below. A rule of thumb, not tuned
MIN_SHARED = 0.5  # of the choices, in offers of both periods; below, a logit compares the items. Not tuned
LISTED_ITEMS = "An item is listed if it changed beyond what clearer changes (smaller p) explain. Its p is for the rest."


@dataclass(frozen=True)
class Movement:
    """One offer in two periods: its choices in each, the test, and the item whose share changed most.

    ``p_value`` is for this offer alone, ``adjusted`` is corrected for all offers tested. ``before`` and ``after`` are
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
    tested_items : int
        How many items had enough choices to be compared.
    given_offers : bool
        Whether items were compared through a logit, given the offers, because few offers occur in both periods.
    shortage : str
        Why nothing was compared; empty where something was.
    """

    movements: tuple[Movement, ...]
    appeared: tuple[tuple[Label, ...], ...]
    vanished: tuple[tuple[Label, ...], ...]
    level: float
    control: Control
    items: tuple[ItemMovement, ...] = ()
    tested_items: int = 0
    given_offers: bool = False
    shortage: str = ""

    @property
    def moved(self) -> tuple[Movement, ...]:
        """The offers that changed significantly."""
        return tuple(movement for movement in self.movements if movement.moved)

    @property
    def tested(self) -> int:
        """How many offers of both periods had enough choices to be compared."""
        return sum(movement.freedom > 0 for movement in self.movements)

    @property
    def changed(self) -> bool:
        """Whether any offer or item changed; ``level`` bounds the false-alarm rate of both together."""
        return bool(self.moved or self.items)

    @property
    def p_value(self) -> float:
        """The smallest p-value of all offers and items, corrected for the number of tests."""
        return min([1.0, *(offer.adjusted for offer in self.movements), *(item.p_value for item in self.items)])

    @property
    def verdict(self) -> str:
        """The result in one sentence, with how much could be compared."""
        every = len(self.movements) + len(self.appeared) + len(self.vanished)
        if self.shortage:
            return self.shortage
        if self.items:
            visible = [item for item in self.items if abs(item.change) >= 0.0005] or self.items
            most = 3 if len(visible) > 4 else 4
            names = ", ".join(f"{item.item} {100 * item.change:+.1f} points" for item in visible[:most])
            more = f" and {len(visible) - most} more" if len(visible) > most else ""
            condition = " on the same offers" if self.given_offers else ""
            return f"Tastes changed: {names}{more}{condition}."
        if self.moved:
            return f"Choices changed in {_offers(len(self.moved), self.tested)}, but no item changed across offers."
        if not self.tested and not self.tested_items:
            if not self.movements:
                return "No offer occurs in both periods, so nothing could be compared."
            return "No offer has enough choices in both periods, so nothing could be compared."
        if self.given_offers:
            items = f"{self.tested_items:,} {'item' if self.tested_items == 1 else 'items'}"
            return f"No change found in {items} on the same offers; {_offers(self.tested, every)} were tested alone."
        if 2 * self.tested < every:
            return f"No change found, but only {_offers(self.tested, every)} could be compared."
        return "No evidence that tastes changed: one model explains all of these choices."

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        of_report = ("level", "control", "changed", "verdict", "tested", "tested_items", "given_offers")
        of_offer = ("before", "after", "p_value", "adjusted", "moved", "item", "change")
        return {
            "compared": "choices",
            **{name: getattr(self, name) for name in of_report},
            "moved": len(self.moved),
            "items": [asdict(item) | {"item": str(item.item)} for item in self.items],
            "offers": [
                {"offer": list(map(str, movement.offer))}
                | {name: getattr(movement, name) for name in of_offer}
                | {"item": str(movement.item)}
                for movement in self.movements
            ],
            "appeared": [list(map(str, offer)) for offer in self.appeared],
            "vanished": [list(map(str, offer)) for offer in self.vanished],
        }

    def __str__(self) -> str:
        lines = [self.verdict]
        if self.tested:
            lines.append(f"{_offers(len(self.moved), self.tested)} changed ({self.control}, level {self.level:g})")
        for movement in self.moved:
            offer, points = ", ".join(map(str, movement.offer)), 100 * movement.change
            lines.append(f"{movement.item} {points:+.1f} points in ({offer}): p = {movement.adjusted:.2g}")
        for word, offers in (("new", self.appeared), ("no longer seen", self.vanished)):
            lines.extend(f"{word}: ({', '.join(map(str, offer))})" for offer in offers)
        return "\n".join(lines)


def _offers(some: int, every: int) -> str:
    return f"{some:,} of {every:,} {'offer' if every == 1 else 'offers'}"


def shortage(before: float, after: float) -> str:
    """Return a sentence that there are too few choices to compare; empty where there are enough.

    >>> shortage(40, 2)
    'Not enough choices yet: 40 before and 2 after, and a comparison needs 30 in each period.'
    """
    if min(before, after) >= MIN_CHOICES:
        return ""
    return (
        f"Not enough choices yet: {before:,.4g} before and {after:,.4g} after, and a comparison needs "
        f"{MIN_CHOICES:g} in each period."
    )


def drift_report(
    before: ChoiceCounts,
    after: ChoiceCounts,
    *,
    level: float = 0.05,
    control: Control = "holm",
    cumulative: bool = False,
) -> DriftReport:
    """Test whether tastes changed between two periods, offer by offer and item by item.

    Each offer of both periods gets Pearson's chi-square test of homogeneity, with rare items pooled until every
    expected number is at least 5; where nothing is left to compare the p-value is 1. Below 30 choices in a period
    nothing is compared.

    ``DriftReport.items`` are the items behind the changes, largest change first. Mantel and Haenszel's test over all
    offers with an item finds the most significant one. Its choices are left out and the test is repeated, until no item
    is significant at ``level`` (Bonferroni over all items). So one item that gains is one line, not each that loses.
    Price levels of one item, such as "tea @ 3.00", are one item.

    Where offers of both periods have less than half of the choices, items are compared through a logit with an effect
    for every item at every price (``item_changes.by_logit``): a change is then one on the same offers and prices.

    Offers and items get half of the level each, so that ``level`` bounds the false-alarm rate of both together.

    Parameters
    ----------
    before, after : ChoiceCounts
        The choices of two periods that share no choice. Counts that forget are tested by their effective numbers, and
        so are counts with ``persons``; all others must be whole choices, each counted once.
    level : float
        How often the test may be wrong, in the sense of ``control``; strictly between 0 and 1.
    control : "holm" or "fdr"
        ``"holm"`` keeps the probability of any false alarm below ``level``; ``"fdr"`` (Benjamini and Hochberg) the
        expected share of false alarms among all alarms, for offers independent of each other.
    cumulative : bool
        Whether ``after`` includes ``before``, which is then subtracted first.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    >>> before, after = ChoiceCounts(offers, [500, 500, 300, 700]), ChoiceCounts(offers, [510, 490, 450, 550])
    >>> print(drift_report(before, after))
    Tastes changed: pie +15.0 points.
    1 of 2 offers changed (holm, level 0.05)
    pie +15.0 points in (pie, nothing): p = 1.7e-11
    """
    if not 0.0 < number_between("level", level, 0.0, 1.0) < 1.0:
        raise ValueError(f"level is {level}: it must lie strictly between 0 and 1.")
    if control not in ("holm", "fdr"):
        raise ValueError(f"Unknown control {control!r}: choose 'holm' or 'fdr'.")
    for counts in (before, after):
        if not counts.forgets:
            counts.require_whole("A test for drift")
    common, tallies = _in_common(before, after)
    if cumulative:
        if before.forgets or after.forgets:
            raise ValueError("Counts that forget lack their earlier choices: compare periods that share no choices.")
        tallies[1] -= tallies[0]
        if tallies[1].min() < 0.0:
            offer = common.offers[common.owner[tallies[1].argmin()]]
            raise ValueError(f"{offer!r} has fewer choices after than before: after must include before.")
    seen = [observed(counts) for counts in (before, after) if counts.persons is not None]
    tallies /= max(
        [1.0, *(design_effect(one, one.frequencies(), by_item) for one in seen for by_item in (False, True))]
    )
    totals = np.add.reduceat(tallies, common.indptr[:-1], axis=1)
    short = shortage(*totals.sum(axis=1).tolist())
    if short and min(before.observations, after.observations) >= MIN_CHOICES:
        short += " Faded choices count for less, and choices that share a record count once."
    then, now = totals > 0.0
    shared = np.flatnonzero(then & now)
    pairs = [tallies[:, common.indptr[number] : common.indptr[number + 1]] for number in shared]
    tests = [(0.0, 0, 1.0) if short else _homogeneity(pair) for pair in pairs]
    # decided by numbers of choices alone, so that the tests stay valid
    given_offers = bool((totals[:, shared].sum(axis=1) < MIN_SHARED * np.maximum(totals.sum(axis=1), 1e-300)).any())
    tested_items, cells = 0, None
    if not short:
        fewer, where = some_offers(common, np.flatnonzero(then | now) if given_offers else shared)
        cells = ItemCells.of(list(fewer.offers), tallies[:, where])
        tested_items = count_comparable(cells, given_offers)
    families = 2 if tested_items and any(freedom for _, freedom, _ in tests) else 1
    adjusted = np.minimum(families * adjust(np.array([p for *_, p in tests]), control), 1.0)
    movements = [
        _movement(common.offers[number], pair, test, p_value, level)
        for number, pair, test, p_value in zip(shared, pairs, tests, adjusted.tolist(), strict=True)
    ]
    moved = {frozenset(movement.offer) for movement in movements if movement.moved}
    items = changed_items(cells, moved, level, families, given_offers) if cells and tested_items else ()
    return DriftReport(
        tuple(sorted(movements, key=lambda movement: movement.p_value)),
        tuple(common.offers[number] for number in np.flatnonzero(now & ~then)),
        tuple(common.offers[number] for number in np.flatnonzero(then & ~now)),
        *(level, control, tuple(sorted(items, key=lambda item: -abs(item.change))), tested_items, given_offers, short),
    )


def _movement(
    offer: tuple[Label, ...], table: Vec, test: tuple[float, int, float], adjusted: float, level: float
) -> Movement:
    """Describe the change of one offer, given its choices in a row for each period."""
    before, after = table.sum(axis=1).tolist()
    change = table[1] / after - table[0] / before
    largest = int(np.abs(change).argmax())
    return Movement(offer, before, after, *test, adjusted, adjusted <= level, offer[largest], float(change[largest]))


def _in_common(before: ChoiceCounts, after: ChoiceCounts) -> tuple[Assortments, Vec]:
    """Return the offers of either period, and the effective number of choices of each coordinate, a row per period."""
    known: dict[frozenset[Label], tuple[Label, ...]] = {}
    for counts in (before, after):
        for number in np.flatnonzero(counts.totals):
            known.setdefault(frozenset(counts.assortments.offers[number]), counts.assortments.offers[number])
    common = Assortments(known.values() or before.assortments.offers)
    tallies = np.zeros((2, common.n_coordinates))
    for row, counts in zip(tallies, (before, after), strict=True):
        whole, scale = counts.assortments, counts.effective_totals / np.maximum(counts.totals, 1e-300)
        for number in np.flatnonzero(counts.totals):
            place = common.place(whole.offers[number])
            choices = counts.tallies[whole.indptr[number] : whole.indptr[number + 1]]
            row[[place[item] for item in whole.offers[number]]] += choices * scale[number]
    return common, tallies


def _homogeneity(table: Vec) -> tuple[float, int, float]:
    """Return Pearson's statistic of a table of two rows, its degrees of freedom and its p-value.

    The rarest columns are pooled until both rows expect enough in every column. Which columns are pooled depends only
    on the sums of both periods, so the test stays valid.
    """
    from scipy.special import chdtrc

    needed = MIN_EXPECTED_CHOICES * table.sum() / table.sum(axis=1).min()
    table = table[:, np.argsort(table.sum(axis=0), kind="stable")]
    while table.shape[1] > 1 and table[:, 0].sum() < needed:
        merged = table[:, 1:].copy()
        merged[:, 0] += table[:, 0]
        table = merged[:, np.argsort(merged.sum(axis=0), kind="stable")]
    freedom = table.shape[1] - 1
    if freedom == 0:
        return 0.0, 0, 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    return statistic, freedom, float(chdtrc(freedom, statistic))


def adjust(p_values: Vec, control: Control) -> Vec:
    """Adjust p-values for multiple testing, by Holm's or by Benjamini and Hochberg's method.

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
