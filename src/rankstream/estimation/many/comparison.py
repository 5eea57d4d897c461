"""Test which markets differ significantly from all others together."""

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankstream._core.terminal import plural
from rankstream._core.types import Label
from rankstream.data.drift import Control, adjust, drift_report
from rankstream.data.readers.tallies import Market, Tallies
from rankstream.estimation.many.markets import name_of


@dataclass(frozen=True)
class Difference:
    """One market against all others: the test over all offers it shares with them, and the item that differs most.

    ``adjusted`` is corrected for all markets; ``change`` is the item's share here minus its share elsewhere. ``item``
    and ``change`` are None if no item differs significantly.
    """

    market: Market
    offers: int
    statistic: float
    freedom: int
    p_value: float
    adjusted: float
    differs: bool
    item: Label | None = None
    change: float | None = None


@dataclass(frozen=True)
class Differences:
    """All markets that could be compared, most significant first; those ``alone`` share no offer with others."""

    markets: tuple[Difference, ...]
    alone: tuple[Market, ...]
    level: float
    control: Control

    @property
    def differing(self) -> tuple[Difference, ...]:
        """The markets that differ significantly."""
        return tuple(market for market in self.markets if market.differs)

    def __str__(self) -> str:
        number, of = len(self.differing), plural(len(self.markets), "market")
        verb = "differs" if number == 1 else "differ"
        lines = [f"{number} of {of} {verb} from the others ({self.control}, level {self.level:g})"]
        for row in self.differing:
            item = "" if row.change is None else f": {row.item} {100 * row.change:+.1f} points"
            lines.append(f"{name_of(row.market)}{item} (p = {row.adjusted:.2g})")
        if self.alone:
            lines.append(f"{len(self.alone)} share{'s' if len(self.alone) == 1 else ''} no offer with others")
        return "\n".join(lines)


def compare_markets(tallies: Tallies, level: float, control: Control) -> Differences:
    """Test every market against all others together; see ``Markets.compare``."""
    from scipy.special import chdtrc

    if tallies.format == "rankings":
        raise ValueError("Rankings answer every offer, so that offers are not independent: compare choices only.")
    whole: dict[Any, dict[Any, float]] = defaultdict(dict)
    for (offer, item), weight in tallies.together().items():
        whole[offer][item] = weight
    found, alone = list[Difference](), list[Market]()
    for market, tally in tallies.tallies():
        rest = {
            (offer, item): weight for offer in {offer for offer, _ in tally} for item, weight in whole[offer].items()
        }
        for outcome, weight in tally.items():
            rest[outcome] -= weight
        rest = {outcome: weight for outcome, weight in rest.items() if weight > 0.0}
        if not rest:
            alone.append(market)
            continue
        report = drift_report(tallies.count(rest), tallies.count(tally), level=level, control=control)
        statistic = sum(movement.statistic for movement in report.movements)
        freedom = sum(movement.freedom for movement in report.movements)
        p_value = float(chdtrc(freedom, statistic)) if freedom else 1.0
        most = (report.items[0].item, report.items[0].change) if report.items else (None, None)
        found.append(Difference(market, len(report.movements), statistic, freedom, p_value, p_value, False, *most))
    adjusted = adjust(np.array([row.p_value for row in found]), control).tolist()
    rows = [
        replace(row, adjusted=allowed, differs=allowed <= level) for row, allowed in zip(found, adjusted, strict=True)
    ]
    rows.sort(key=lambda row: (row.p_value, row.market))
    return Differences(tuple(rows), tuple(alone), level, control)
