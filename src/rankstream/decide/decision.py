"""Decision: an offer, what it is worth, what is proven of that, and why it is this one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from rankstream._core.types import Label, Mask
from rankstream.decide.problem import OfferProblem
from rankstream.decide.valuing import values


@dataclass(frozen=True)
class RunnerUp:
    """Another offer and its value."""

    offer: tuple[Label, ...]
    value: float


@dataclass(frozen=True)
class Lead:
    """How much the offer is worth beyond the runner-up, and the ends of an interval of that."""

    value: float
    low: float
    high: float

    @property
    def is_noise(self) -> bool:
        """Whether the data do not show which of the two is better."""
        return self.low <= 0.0


@dataclass(frozen=True, eq=False)
class Decision:
    """The best offer, as ``best_offer`` returns it.

    Attributes
    ----------
    offer : tuple of items
        The items to show, without the no-choice item; ``menu`` is what a customer sees, with it.
    value : float
        The expected margin per customer, less listing costs.
    bound : float
        No feasible offer is worth more.
    proven : bool
        Whether ``bound`` is ``value``, to 1e-9 of the largest margin.
    engine : str
        What searched, in words.
    runners_up : tuple of RunnerUp
        The next best offers, where ``top`` asked for them.
    shares : dict
        The share of every item of the menu; of items at price levels, under their own names.
    seconds : float
        How long it took.
    problem : OfferProblem
        Model, margins and constraints.
    error : float
        The standard error of a value by sampling; 0 where nothing was sampled.
    interval : pair of floats or None
        The ends of an interval of the value, where counts were given.
    lead : Lead or None
        How far the runner-up is behind, where counts were given.
    sizes : dict, or callable that makes it
        What ``by_size`` is read from.
    sizes_quick : bool
        Whether that callable is quick.

    """

    offer: tuple[Label, ...]
    value: float
    bound: float
    proven: bool
    engine: str
    runners_up: tuple[RunnerUp, ...]
    shares: dict[Label, float]
    seconds: float
    problem: OfferProblem = field(repr=False)
    error: float = 0.0
    interval: tuple[float, float] | None = None
    lead: Lead | None = None
    sizes: dict[int, float] | Callable[[], dict[int, float]] = field(default_factory=dict, repr=False)
    sizes_quick: bool = field(default=False, repr=False)

    @property
    def menu(self) -> tuple[Label, ...]:
        """The offer with the no-choice item, where there is one."""
        return self.problem.labels(self.held)

    @property
    def prices(self) -> dict[Label, float | None]:
        """The items of the offer under their own names, with their prices; None for those without one."""
        levels = self.problem.levels
        return dict((item, None) if levels is None else levels.of(item) for item in self.offer)

    @property
    def held(self) -> Mask:
        """For every item of the model, whether it is in the offer."""
        inside = set(self.offer)
        return np.array([item in inside for item in self.problem.items])

    @cached_property
    def by_size(self) -> dict[int, float]:
        """The best value for each number of items that is feasible: the worth of shelf space.

        Known with the offer where all offers were looked at, else by more searches when it is first asked for, for as
        long as the budget was; sizes that are not done by then are left out.
        """
        return self.sizes() if callable(self.sizes) else self.sizes

    @property
    def knows_sizes(self) -> bool:
        """Whether ``by_size`` is there already, or in no time."""
        return not callable(self.sizes) or self.sizes_quick or "by_size" in self.__dict__

    def explain(self) -> str:
        """What each item of the offer adds, and what the nearest rejected item would have cost, in sentences."""
        return "\n".join(explanation(self))

    def to_content(self) -> dict[str, Any]:
        """What JSON can write of it."""
        content: dict[str, Any] = {
            "offer": [str(item) for item in self.offer],
            "value": self.value,
            "bound": self.bound,
            "proven": self.proven,
            "engine": self.engine,
            "error": self.error,
            "runners_up": [{"offer": [str(i) for i in one.offer], "value": one.value} for one in self.runners_up],
            "shares": {str(item): share for item, share in self.shares.items()},
            "seconds": self.seconds,
        }
        if self.problem.levels is not None:
            content["prices"] = {str(item): price for item, price in self.prices.items()}
        if self.knows_sizes:
            content["by_size"] = {str(size): best for size, best in self.by_size.items()}
        if self.interval is not None:
            content["interval"] = list(self.interval)
        if self.lead is not None:
            lead = self.lead
            content["lead"] = {"value": lead.value, "low": lead.low, "high": lead.high, "is_noise": lead.is_noise}
        return content

    def __str__(self) -> str:
        return "\n".join(summary(self))


def named(items: tuple[Label, ...]) -> str:
    """Items in a sentence."""
    return ", ".join(str(item) for item in items) if items else "nothing"


def summary(found: Decision) -> list[str]:
    """The offer, what it is worth, and what is known of that."""
    lines = [f"Offer {named(found.offer)}: {found.value:.4g} per customer"]
    if found.interval is not None:
        lines[0] += f" [{found.interval[0]:.4g}, {found.interval[1]:.4g}]"
    if found.error:
        lines[0] += f", sampling error {found.error:.2g}"
    if found.proven:
        lines.append(f"No feasible offer is worth more: proven ({found.engine}).")
    else:
        lines.append(f"Not proven to be the best ({found.engine}): no offer is worth more than {found.bound:.4g}.")
    if found.runners_up:
        lead = found.value - found.runners_up[0].value
        text = f"The next best, {named(found.runners_up[0].offer)}, is worth {lead:.2g} less"
        if found.lead is not None:
            text += f" [{found.lead.low:.2g}, {found.lead.high:.2g}]"
            text += ": the data do not show which is better" if found.lead.is_noise else ": a lead beyond noise"
        lines.append(f"{text}.")
    return lines


def explanation(found: Decision) -> list[str]:
    """What each item adds, beginning with the most; then the nearest rejected items."""
    problem, held = found.problem, found.held
    inside = np.flatnonzero(held)
    without = []
    for number in inside.tolist():
        less = held.copy()
        less[number] = False
        without.append(less)
    adds = found.value - values(problem, without) if without else np.zeros(0)
    lines = [summary(found)[0] + "."]
    for place in np.argsort(-adds, kind="stable").tolist():
        code = int(inside[place])
        item = problem.items[code]
        share = found.shares[item if problem.levels is None else problem.levels.of(item)[0]]
        alone = not problem.nothing >= 0 and inside.size == 1
        what = "is all there is" if alone else f"adds {adds[place]:.3g}"
        if problem.state[code] > 0:
            what += " (it must be there)"
        lines.append(f"{item} {what}: {100 * share:.1f} % of customers take it.")
    return lines + _rejected(found)


def _rejected(found: Decision, most: int = 3) -> list[str]:
    """For the rejected items that come nearest, the best feasible offer with it: added, or for an item of the offer."""
    problem, held = found.problem, found.held
    offers, rows = [], []
    for code in problem.free[~held[problem.free]].tolist():
        for gone in (-1, *np.flatnonzero(held & (problem.state == 0)).tolist()):
            after = held.copy()
            after[code] = True
            if gone >= 0:
                after[gone] = False
            if problem.is_feasible(after):
                offers.append(after)
                rows.append((code, gone))
    if not offers:
        return []
    losses = found.value - values(problem, offers)
    lines: list[str] = []
    told: set[int] = set()
    for place in np.argsort(losses, kind="stable").tolist():
        code, gone = rows[int(place)]
        if code in told or len(told) == most:
            continue
        told.add(code)
        how = "to add" if gone < 0 else f"instead of {problem.items[gone]}"
        loss = losses[place]
        what = f"would cost {loss:.3g}" if loss > 1e-12 else "would change nothing" if loss > -1e-12 else "would pay"
        lines.append(f"{problem.items[code]} {how} {what}.")
    return lines
