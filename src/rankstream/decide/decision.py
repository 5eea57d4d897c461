"""Decision: an offer with its value, its proof, and the reasons for it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from rankstream._core import Deadline, Label, Mask
from rankstream._core.terminal import plural
from rankstream.decide.context import Context
from rankstream.decide.moves import least_gain, mask_of, single_changes
from rankstream.decide.offer_values import values
from rankstream.decide.problem.offers import OfferProblem


@dataclass(frozen=True)
class RunnerUp:
    """Another offer and its value."""

    offer: tuple[Label, ...]
    value: float


@dataclass(frozen=True)
class Lead:
    """How much more the offer is worth than the runner-up, with an interval."""

    value: float
    low: float
    high: float

    @property
    def is_noise(self) -> bool:
        """Whether the difference is not significant."""
        return self.low <= 0.0


@dataclass(frozen=True, eq=False)
class Decision:
    """The best offer, as ``best_offer`` returns it.

    Attributes
    ----------
    offer : tuple of items
        The items to show, without the no-purchase option; ``menu`` includes it.
    value : float
        The expected margin per customer, minus listing costs, by the model.
    overestimate : float
        By how much that is overestimated on average, as the offer is the best of many; measured by the refits behind
        intervals, 0 without them and for today's offer. ``expect`` takes it off.
    bound : float
        No feasible offer is worth more.
    proven : bool
        Whether ``bound`` is ``value``, to 1e-9 of the largest margin.
    engine : str
        Name of the search method.
    runners_up : tuple of RunnerUp
        The next best offers, if ``top`` is more than 1.
    shares : dict
        The share of every item of the menu; items at price levels have their own names.
    seconds : float
        Duration of the search.
    problem : OfferProblem
        Model, margins and constraints.
    interval : pair of floats or None
        The ends of an interval of the expected value, if counts were given.
    lead : Lead or None
        The lead over the runner-up, if counts were given.
    sizes : dict, or callable that returns it
        The source of ``by_size``.
    sizes_quick : bool
        Whether that callable is quick.
    context : Context or None
        Today's offer, the gain over it, single changes to it, and the nearest offers in the data.
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
    interval: tuple[float, float] | None = None
    lead: Lead | None = None
    sizes: dict[int, float] | Callable[[], dict[int, float]] = field(default_factory=dict, repr=False)
    sizes_quick: bool = field(default=False, repr=False)
    context: Context | None = field(default=None, repr=False)
    overestimate: float = 0.0

    @property
    def expected(self) -> float:
        """The value to expect: that by the model, minus its overestimate. Intervals are around it."""
        return self.expect(self.value)

    def expect(self, value: float) -> float:
        """Return what to expect of an offer with this value by the model: less, unless it is empty or today's."""
        exact = [0.0] if self.context is None or self.context.present is None else [0.0, self.context.present_value]
        return value if np.isclose(value, exact, 1e-9, 0.0).any() else value - self.overestimate

    @property
    def menu(self) -> tuple[Label, ...]:
        """The offer with the no-purchase option, if there is one."""
        return self.problem.labels(self.offer_mask)

    @property
    def prices(self) -> dict[Label, float | None]:
        """The items of the offer under their own names, with their prices; None for those without one."""
        levels = self.problem.levels
        return dict((item, None) if levels is None else levels.of(item) for item in self.offer)

    @property
    def offer_mask(self) -> Mask:
        """For every item of the model, whether it is in the offer."""
        return mask_of(self.problem, self.offer)

    @cached_property
    def by_size(self) -> dict[int, float]:
        """The best value for each feasible number of items: the value of shelf space.

        Some engines compute it with the offer. Otherwise the first access runs more searches, within the same budget;
        sizes that are not finished by then are left out.
        """
        return self.sizes() if callable(self.sizes) else self.sizes

    @property
    def knows_sizes(self) -> bool:
        """Whether ``by_size`` is known or quick to compute."""
        return not callable(self.sizes) or self.sizes_quick or "by_size" in self.__dict__

    def explain(self) -> str:
        """Explain what each item of the offer adds, and what the closest rejected items would have cost."""
        return "\n".join(explanation(self))

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        names = ("value", "overestimate", "expected", "bound", "proven", "engine")
        content: dict[str, Any] = {"offer": list(map(str, self.offer))}
        content |= {name: getattr(self, name) for name in names}
        content["runners_up"] = [{"offer": list(map(str, one.offer)), "value": one.value} for one in self.runners_up]
        content["shares"] = {str(item): share for item, share in self.shares.items()}
        content["seconds"] = self.seconds
        if self.problem.levels is not None:
            content["prices"] = {str(item): price for item, price in self.prices.items()}
        if self.knows_sizes:
            content["by_size"] = {str(size): best for size, best in self.by_size.items()}
        if self.interval is not None:
            content["interval"] = list(self.interval)
        if self.lead is not None:
            content["lead"] = asdict(self.lead) | {"is_noise": self.lead.is_noise}
        if self.context is not None:
            content["context"] = self.context.to_json()
        return content

    def __str__(self) -> str:
        return "\n".join(summary(self))


def named(items: tuple[Label, ...]) -> str:
    """Return items as part of a sentence."""
    return ", ".join(str(item) for item in items) if items else "nothing"


@dataclass(frozen=True)
class Units:
    """How to write values: per how many customers, and in which currency.

    Examples
    --------
    >>> Units(currency="EUR").amount(154.2371), Units(1).per(0.065437), Units().change(0.009731)
    ('15420 EUR', '0.0654 per customer', '+0.97')
    >>> Units().ends((1.44, 1.635))
    ' [144.0, 163.5]'
    """

    customers: int = 100
    currency: str = ""

    def amount(self, value: float, form: str = ".4g") -> str:
        """Return a value without its unit of customers."""
        return f"{self._digits(value, form)}{self.currency and ' '}{self.currency}"

    def change(self, value: float) -> str:
        """Return a difference, with its sign."""
        return self.amount(value, "+.4g")

    def per(self, value: float) -> str:
        """Return a value with its unit of customers."""
        many = "customer" if self.customers == 1 else f"{self.customers:,} customers"
        return f"{self.amount(value)} per {many}"

    def ends(self, ends: tuple[float, float] | None, form: str = ".4g") -> str:
        """Return an interval in brackets; empty without one."""
        if ends is None:
            return ""
        beside = max(abs(sum(ends)) / 2.0, (ends[1] - ends[0]) / 4.0)  # as many decimals as the value between them
        return f" [{', '.join(self._digits(end, form, beside) for end in ends)}]"

    def _digits(self, value: float, form: str, beside: float | None = None) -> str:
        amount, size = self.customers * value, self.customers * abs(value if beside is None else beside)
        if form[-1] == "f" or not 0.0 < size < np.inf:
            return f"{amount:{form}}"
        decimals = int(form[-2]) - 1 - int(np.floor(np.log10(size)))
        if size >= 0.1:  # cents at most
            return f"{round(amount, min(2, decimals)):{form[:-2]}{min(2, max(0, decimals))}f}"
        text = f"{amount:{form[:-2]}{min(3, int(form[-2]))}g}"
        return text if "e" not in text else f"{float(text):{form[:-3]}.12g}"  # 0.0000123, not 1.23e-05


PER_100 = Units()


def summary(found: Decision, units: Units = PER_100) -> list[str]:
    """Summarise a decision: the offer and its value, today's offer, how near the data are, and the proof."""
    worth = f"{units.per(found.expected)}{units.ends(found.interval)}"
    lines = [f"Best according to the model: {named(found.offer)}: earns {worth}"]
    if units.amount(found.value) != units.amount(found.expected):
        less = f"{units.amount(found.value)} minus {units.amount(found.overestimate, '.2g')}"
        lines.append(f"That is {less}: the best of many is overestimated, so every value but today's is reduced by it.")
    around = found.context
    if around is not None and around.nearness is not None:
        lines.append(around.nearness.sentence)
    if around is not None and around.present is not None:
        same = set(around.present) == set(found.offer)
        gain = f"{units.change(around.gain)}{units.ends(around.gain_interval)} compared with today's offer"
        lines.append("This is today's offer." if same else f"{gain}, which earns {units.amount(around.present_value)}.")
        if not same and around.gain_interval is not None and around.gain_interval[0] <= 0.0:
            lines[-1] += " The data do not show that it is better."
    if found.proven:
        how = "all offers were compared" if found.engine == "all offers" else f"search: {found.engine}"
        lines.append(f"Proven best: by this model, no feasible offer is worth more ({how}).")
    else:
        bound = units.amount(found.bound)
        lines.append(f"Not proven best (search: {found.engine}): by this model, no offer is worth more than {bound}.")
    if found.runners_up:
        lead = found.expected - found.expect(found.runners_up[0].value)
        text = f"The next best, {named(found.runners_up[0].offer)}, is worth {units.amount(lead, '.3g')} less"
        if found.lead is not None:
            text += units.ends((found.lead.low, found.lead.high), ".3g")
            text += ": the data do not show which is better" if found.lead.is_noise else ": a significant lead"
        lines.append(f"{text}.")
    return lines


def change_lines(found: Decision, units: Units = PER_100, origin: str = "") -> list[str]:
    """Describe today's offer, with its ``origin`` if it was not given, and the best single changes to it."""
    around = found.context
    if around is None or around.present is None:
        return []
    origin = origin or (f"shown {plural(around.present_shown, 'time')}" if around.present_shown else "")
    where = origin and f" ({origin})"
    lines = [f"Today's offer{where}: {named(around.present)}: earns {units.per(around.present_value)}"]
    pays = [change for change in around.changes if change.gain > least_gain(found.problem)]
    left = f" ({plural(around.unvalued, 'less likely one')} not valued in time)" if around.unvalued else ""
    if not pays:
        return [*lines, f"No single change to it would earn more{left}."]
    lines.append(f"Best single changes to it{left}:")
    for change in pays:
        noise = change.interval is not None and change.interval[0] <= 0.0
        unsure = " (may be chance)" if noise else ""
        lines.append(f"  {change.words}: {units.change(change.gain)}{units.ends(change.interval)}{unsure}")
    return lines


def explanation(found: Decision, units: Units = PER_100) -> list[str]:
    """Describe what each item adds, largest first; then the nearest rejected items."""
    problem, mask = found.problem, found.offer_mask
    inside = np.flatnonzero(mask)
    without = [mask & (np.arange(mask.size) != code) for code in inside]
    adds = [found.expected - found.expect(value) for value in values(problem, without).tolist()] if without else []
    lines = [summary(found, units)[0] + "."]
    for place in np.argsort(np.negative(adds), kind="stable").tolist():
        code = int(inside[place])
        item = problem.items[code]
        share = found.shares[item if problem.levels is None else problem.levels.of(item)[0]]
        less = f"{units.amount(abs(adds[place]), '.3g')} {'less' if adds[place] >= 0.0 else 'more'}"
        alone = not problem.nothing >= 0 and inside.size == 1
        what = "it is the whole offer" if alone else f"without it, the offer earns {less}"
        required = " It is required." if problem.state[code] > 0 else ""
        lines.append(f"{item} is taken by {100 * share:.1f} % of customers; {what}.{required}")
    return lines + _rejected(found, units)


def _rejected(found: Decision, units: Units, most: int = 3) -> list[str]:
    """Describe the nearest rejected items: the best feasible offer with each, added or swapped in."""
    close, lines = least_gain(found.problem), dict[Label, str]()
    for change in single_changes(found.problem, found.offer_mask, found.value, Deadline(0.0)):
        if change.comes is None or change.comes in lines or len(lines) == most:
            continue
        cost = found.expected - found.expect(change.value)
        what = f"cost {units.amount(cost, '.3g')}" if change.gain < -close else "change nothing"
        if change.gain > close:
            what = f"earn {units.amount(-cost, '.3g')} more: the search ran out of time"
        lines[change.comes] = f"{change.words} would {what}."
    return list(lines.values())
