"""The account of ``read_sales``: how sales were matched with offers, and what was assumed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from rankstream._core.terminal import plural
from rankstream._core.types import Label

MAX_CONFLICT_SHARE = 0.05  # share of sales; with more conflicts, the stock log must be wrong. Not tuned
MIN_OFFER_CHOICES = 10  # of an offer: with fewer, its shares are off by 15 points or so
LEFT_OUT = {
    "duplicate": "repeated rows",
    "return": "returns and cancelled lines",
    "unknown item": "sales of items that the stock log does not list",
    "before": "sales before the first stock row of their store",
    "uncounted": "sales at times without a count of visits",
    "conflict": "sales of items that were not in stock",
}
"""Why sales are left out, by kind of problem."""


class Exposure(NamedTuple):
    """How many customers of a market saw an offer, and which listed items were out of stock at the time."""

    market: Any
    offered: tuple[Label, ...]
    missing: tuple[Label, ...]
    customers: float

    def with_outside(self, share: float, no_choice: str) -> "Exposure":
        """Return a copy with an assumed share of customers who bought nothing."""
        return self._replace(offered=(*self.offered, no_choice), customers=self.customers / (1.0 - share))


@dataclass(frozen=True)
class Account:
    """What ``read_sales`` did and assumed.

    ``sales`` are rows of receipts, and ``choices`` the units that became choices; ``several`` of the ``receipts`` have
    more than one unit. ``conflicts`` are units of items that were not in stock (``conflict_share`` of all), and
    ``rule`` is how they were treated. ``left_out`` counts rows by kind. ``small_offers`` of the ``offers`` have fewer
    than ten choices. ``unknown_time`` is the share of the sales period without a known offer. ``no_purchase`` are the
    ``visits`` without a purchase, ``shortfall`` the receipts in excess of the visits of their time, and ``assumed`` is
    the assumed share of no-purchases. ``ignored_items``, with ``ignored_sales`` of all sales, were ignored to reduce
    the number of offers from ``offers_before``. ``no_choice`` is the name of the no-purchase option. ``exposures`` are
    the offers and stock-outs that customers saw, for ``lost_sales``. ``between`` says how items that one snapshot lists
    and the next does not were treated, and ``uncertain`` how many choices are from offers that are known in part.
    ``doubtful_times`` are rows of receipts in an hour that a clock change repeats or skips.
    """

    stock_format: str
    sales: int
    choices: float
    receipts: int
    several: int
    conflicts: float
    conflict_share: float
    rule: str
    left_out: Mapping[str, int]
    offers: int
    small_offers: int
    unknown_time: float
    visits: int | None = None
    no_purchase: float | None = None
    shortfall: int = 0
    assumed: float | None = None
    per_receipt: str = "units"
    ignored_items: tuple[str, ...] = ()
    ignored_sales: float = 0.0
    offers_before: int = 0
    no_choice: str | None = None
    exposures: tuple[Exposure, ...] = field(default=(), repr=False)
    between: str = "present"
    uncertain: float = 0.0
    doubtful_times: int = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to doubt the counts."""
        warnings = []
        if self.conflict_share > MAX_CONFLICT_SHARE:
            warnings.append(
                f"{100 * self.conflict_share:.1f} % of the sales are of items that were not in stock. The stock log "
                "cannot be right: check its times and items."
            )
        if self.visits is not None and self.shortfall > MAX_CONFLICT_SHARE * max(1, self.visits):
            warnings.append(
                f"{plural(self.shortfall, 'receipt')} exceed the visits of their time. The counter at the door cannot "
                "be right, or its times are shifted."
            )
        return tuple(warnings)

    @property
    def doubt(self) -> str:
        """Say how many choices are from offers that are known in part, and how they count."""
        return (
            f"{self.uncertain:,.10g} of the choices are from offers that are known in part: an item that one snapshot "
            "lists and the next does not sold out at a time that was not logged. Each possible offer counts as far as "
            "it explains the choices."
        )

    def summary(self) -> str:
        """Return the account as a paragraph, warnings first."""
        rows = f"{plural(self.sales, 'row')} of receipts"
        lines = [f"Warning: {warning}" for warning in self.warnings]
        lines.append(
            f"{plural(self.choices, 'unit')} from {rows} were matched with offers (stock log: {self.stock_format})."
        )
        if self.conflicts:
            done = {"extend": "counted as on offer for that sale", "skip": "left out"}[self.rule]
            share = f"{plural(self.conflicts, 'unit')} ({100 * self.conflict_share:.1f} %)"
            lines.append(f"{share} sold while not in stock: {done}.")
        if self.between == "uncertain":
            lines.append(self.doubt)
        elif self.between == "last sale":
            lines.append("An item that one snapshot lists and the next does not counts as sold out at its last sale.")
        lines += [
            f"Left out: {number:,} {LEFT_OUT.get(kind, kind)}." for kind, number in self.left_out.items() if number
        ]
        if self.several:
            counted = {
                "units": "each unit is a choice",
                "first": "the first unit of each is its choice",
                "weighted": "their units share one choice",
                "single": "they are left out",
            }[self.per_receipt]
            part = 100 * self.several / max(1, self.receipts)
            lines.append(f"{part:.1f} % of {plural(self.receipts, 'receipt')} have more than one unit: {counted}.")
        if self.doubtful_times:
            doubtful = plural(self.doubtful_times, "row")
            hour = "an hour that a clock change repeats or skips"
            lines.append(f"{doubtful} of receipts are in {hour}: the first was taken.")
        if self.unknown_time > 0.0:
            lines.append(f"{100 * self.unknown_time:.1f} % of the time of sales has no known offer.")
        if self.ignored_items:
            lines.append(
                f"{plural(len(self.ignored_items), 'item')} with {100 * self.ignored_sales:.2g} % of the sales are "
                f"ignored, so that {self.offers_before:,} different offers become {self.offers:,}."
            )
        lines.append(f"{self.small_offers:,} of {plural(self.offers, 'offer')} have fewer than ten choices.")
        return " ".join([*lines, self._outside()])

    def _outside(self) -> str:
        if self.visits is not None:
            over = f"; {plural(self.shortfall, 'receipt')} exceed the visits of their time" if self.shortfall else ""
            bought = f"{plural(self.no_purchase or 0, 'visit')} of {self.visits:,} ended without a purchase"
            return f"{bought}{over}. This share is measured, not assumed."
        if self.assumed:
            return f"{100 * self.assumed:g} % are assumed to have bought nothing: no visits were given."
        return "The data do not include customers who bought nothing: give visits, or outside_share."

    def to_json(self) -> dict[str, Any]:
        """Return the numbers and sentences as plain JSON values, without the exposures."""
        plain = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "exposures"}
        return plain | {"left_out": dict(self.left_out), "warnings": list(self.warnings), "summary": self.summary()}
