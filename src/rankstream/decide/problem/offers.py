"""The offers that are allowed: margins, costs and constraints over the items of a model, checked and propagated."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeAlias, TypedDict, TypeVar

import numpy as np

from rankstream._core import Bytes, Codes, Label, Mask, Vec, number_between, whole_number
from rankstream.data.prices import PriceLevels
from rankstream.decide.problem.items import ItemNames, Numbers, margin_vector, names_of, number_vector
from rankstream.decide.problem.rules import FREE, IN, OUT, LimitRow, Rows, Rules, make_rows
from rankstream.models.entropy.model import EntropyModel

P = ParamSpec("P")
R = TypeVar("R")
Pairs: TypeAlias = Iterable[Any] | Mapping[Any, Any]
"""Pairs of items in a list, one pair, or a dict."""
ROUNDING_SLACK = 1e-9
"""Relative to the capacity: sums of spaces may exceed it by rounding."""


class Constraints(TypedDict, total=False):
    """The keywords of constraints; see ``best_offer``."""

    costs: Numbers | None
    at_most: int | None
    at_least: int | None
    must: Iterable[Label]
    never: Iterable[Label]
    requires: Pairs
    excludes: Pairs
    listing_costs: Numbers | None
    space: Numbers | None
    capacity: float | None
    ladders: Pairs
    present: Any
    changes: int | None
    no_choice: Label | None


def constrained(function: Callable[P, R]) -> Callable[P, R]:
    """Show the keywords of ``Constraints`` in the signature of a function that takes them as ``**constraints``.

    >>> from typing import Unpack
    >>> def pick(model: Any, **constraints: Unpack[Constraints]) -> None: ...
    >>> list(signature(constrained(pick)).parameters)[:3]
    ['model', 'costs', 'at_most']
    """
    original = signature(function)
    lists = {"must", "never", "requires", "excludes", "ladders"}
    keywords = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=() if name in lists else None, annotation=kind)
        for name, kind in Constraints.__annotations__.items()
    ]
    others = [part for part in original.parameters.values() if part.kind is not Parameter.VAR_KEYWORD]
    function.__dict__["__signature__"] = original.replace(parameters=[*others, *keywords])
    return function


@dataclass(frozen=True, eq=False)
class OfferProblem:
    """A model, its margins, costs and space, and the constraints on offers; items are numbered.

    ``state`` is 1 for items that must be in the offer, -1 for those that cannot, and 0 for free ones, after
    propagating the constraints. ``nothing`` is the number of the no-choice item, or -1: it is not counted, constrained
    or free. With price ``levels``, ``rows`` allow one level of each item. ``present`` is today's offer, if given.
    """

    model: Any
    margins: Vec
    costs: Vec
    space: Vec
    capacity: float
    least: int
    most: int
    state: Bytes
    nothing: int
    rows: Rows
    levels: PriceLevels | None = None
    present: Mask | None = None

    @property
    def names(self) -> ItemNames:
        """The names of items and levels."""
        return ItemNames(self.items, self.nothing, self.levels)

    @property
    def items(self) -> tuple[Label, ...]:
        """The model's items."""
        items: tuple[Label, ...] = self.model.items
        return items

    @property
    def free(self) -> Codes:
        """The items to decide about."""
        return np.flatnonzero(self.state == FREE)

    @property
    def must(self) -> Codes:
        """The required items, without the no-purchase option."""
        return np.flatnonzero(self.state == IN)

    @property
    def always(self) -> Mask:
        """The items of every offer: required items and the no-purchase option."""
        offer_mask: Mask = self.state == IN
        if self.nothing >= 0:
            offer_mask[self.nothing] = True
        return offer_mask

    @cached_property
    def rules(self) -> Rules:
        """The rules for all items of an offer."""
        capacity = self.capacity * (1.0 + ROUNDING_SLACK) + ROUNDING_SLACK * float(self.space.max(initial=0.0))
        return Rules(self.space, capacity, self.least, self.most, self.rows)

    @cached_property
    def free_rules(self) -> Rules:
        """The rules for the free items, numbered from 0, given the required ones."""
        return self.rules.left(self.free, self.state == IN)

    @cached_property
    def valued_changes(self) -> dict[bytes, tuple[list[Any], list[Any]]]:
        """A cache of single changes to offers, those left to value and those valued (``moves.single_changes``)."""
        return {}

    @cached_property
    def untilted(self) -> "OfferProblem":
        """The same problem before a maximum-entropy model was adjusted to the data: similar values, far sooner."""
        model = self.model
        if not isinstance(model, EntropyModel) or not model.duals.any():
            return self
        return replace(self, model=EntropyModel(model.prior, model.assortments, np.zeros_like(model.duals)))

    def is_feasible(self, offer_mask: Mask) -> bool:
        """Whether an offer meets all constraints; ``offer_mask`` is a mask of its items."""
        offer_mask = offer_mask.copy()
        if self.nothing >= 0:
            offer_mask[self.nothing] = False
        return bool(
            offer_mask[self.state == IN].all()
            and not offer_mask[self.state == OUT].any()
            and self.rules.allow(offer_mask)
        )

    def offer(self, offer_mask: Mask) -> tuple[Label, ...]:
        """Return the items of an offer in the model's order, without the no-purchase option."""
        return tuple(self.items[code] for code in np.flatnonzero(offer_mask))

    def labels(self, offer_mask: Mask) -> tuple[Label, ...]:
        """Return the items of an offer in the model's order, and last the no-purchase option, if there is one."""
        items = self.offer(offer_mask)
        return items if self.nothing < 0 else (*items, self.items[self.nothing])

    def by_item(self, numbers: Mapping[Label, float]) -> dict[Label, float]:
        """Return the same numbers under the items' own names, without prices."""
        levels = self.levels
        return {label if levels is None else levels.of(label)[0]: number for label, number in numbers.items()}

    @property
    def possible_sizes(self) -> range:
        """The possible numbers of items, by sizes alone: pairs and space may exclude more."""
        return range(max(self.least, self.must.size), min(self.most, self.must.size + self.free.size) + 1)

    def of_size(self, size: int) -> "OfferProblem":
        """Return the same problem for offers of exactly ``size`` items."""
        return replace(self, least=size, most=size)


def make_problem(
    model: Any,
    margins: Numbers | None,
    *,
    costs: Numbers | None = None,
    at_most: int | None = None,
    at_least: int | None = None,
    must: Iterable[Label] = (),
    never: Iterable[Label] = (),
    requires: Pairs = (),
    excludes: Pairs = (),
    listing_costs: Numbers | None = None,
    space: Numbers | None = None,
    capacity: float | None = None,
    ladders: Pairs = (),
    present: Any = None,
    changes: int | None = None,
    no_choice: Label | None = None,
) -> OfferProblem:
    """Check the arguments of a decision and propagate its constraints; raise a ValueError if they contradict."""
    names = names_of(model, no_choice)
    items, nothing, label, here = names.items, names.nothing, names.leave, names.present(present)
    n_items = len(set(names.owner.tolist())) - (nothing >= 0)
    least = 0 if at_least is None else whole_number("at_least", at_least)
    most = n_items if at_most is None else min(n_items, whole_number("at_most", at_most))
    state, one_of = _states(names, must, never)
    needs = [LimitRow(first, second, 0, "requires") for first, second in _pairs("requires", names, requires)]
    bans = [LimitRow(first + second, (), 1, "excludes") for first, second in _pairs("excludes", names, excludes)]
    limits = [*names.one_level_each(), *names.ladders(ladders), *names.changes(here, changes)]
    problem = OfferProblem(
        model=model,
        margins=margin_vector(items, names.margins(margins, costs), label),
        costs=number_vector("listing cost", items, names.at_levels("listing cost", listing_costs), label),
        space=_spaces(names, space, capacity),
        capacity=np.inf if capacity is None else number_between("capacity", capacity, 0.0),
        least=max(least, 0 if nothing >= 0 else 1),
        most=most,
        state=state,
        nothing=nothing,
        rows=make_rows(len(items), [*one_of, *needs, *bans, *limits]),
        levels=names.levels,
        present=None if here is None else np.isin(np.arange(len(items)), here),
    )
    state = problem.state.copy()
    if not problem.rules.follow(state):
        raise ValueError(_contradiction(problem, state))
    return replace(problem, state=state)


def _spaces(names: ItemNames, space: Numbers | None, capacity: float | None) -> Vec:
    spaces = number_vector("space", names.items, names.at_levels("space", space), names.leave)
    if (spaces < 0.0).any():
        bad = int(np.argmin(spaces))
        raise ValueError(f"The space of {names.items[bad]!r} is {spaces[bad]:g}: it must be at least 0.")
    if (space is None) != (capacity is None):
        raise ValueError("Give space and capacity together: the space that each item takes, and the total.")
    return spaces


def _states(names: ItemNames, must: Iterable[Label], never: Iterable[Label]) -> tuple[Bytes, list[LimitRow]]:
    """Return the states of single items, and rows for items that must be offered at any of their levels."""
    state = np.zeros(len(names.items), dtype=np.int8)
    rows: list[LimitRow] = []
    for name, labels, mark in (("must", must, IN), ("never", never, OUT)):
        if isinstance(labels, str):
            raise ValueError(f"{name} is {labels!r}: give a list of items.")
        for label in labels:
            codes = names.codes(name, label)
            if mark == IN and len(codes) > 1:
                rows.append(LimitRow((), codes, -1, "must"))
                continue
            for code in codes:
                if state[code] not in (FREE, mark):
                    item = names.items[code]
                    raise ValueError(f"The item {item!r} is in both must and never: leave it out of one.")
                state[code] = mark
    for row in rows:
        if (state[list(row.minus)] == OUT).all():
            item = names.items[row.minus[0]]
            raise ValueError(f"All levels of an item that must be offered are excluded, such as {item!r}: allow one.")
    if names.nothing >= 0:
        state[names.nothing] = OUT  # always available, but not part of the decision
    return state, rows


def _pairs(name: str, names: ItemNames, pairs: Pairs) -> list[tuple[list[int], list[int]]]:
    raw: list[Any] = list(pairs.items()) if isinstance(pairs, Mapping) else list(pairs)
    if len(raw) == 2 and not any(isinstance(pair, tuple | list) for pair in raw):
        raw = [tuple(raw)]  # one pair, not in a list
    numbers = []
    for pair in raw:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"{name} contains {pair!r}: give pairs of items, such as ('cream', 'tea').")
        first, second = (names.codes(name, item) for item in pair)
        if set(first) & set(second):
            raise ValueError(f"{name} contains the pair of {names.items[first[0]]!r} with itself: give two items.")
        numbers.append((first, second))
    return numbers


def _contradiction(problem: OfferProblem, state: Bytes) -> str:
    """Explain why no offer meets all constraints; ``state`` is how far propagation got."""
    rows, items, inside = problem.rows, problem.items, state == IN
    for number in rows.broken(state).tolist():
        first, second = (np.flatnonzero(rows.factors[number] * sign > 0) for sign in (1, -1))
        keyword, first = rows.keywords[number], first[inside[first]]
        if keyword in ("requires", "excludes") and first.size:
            other, what = (second[0], "cannot") if keyword == "requires" else (first[-1], "must")
            return (
                f"The item {items[first[0]]!r} must be offered and {keyword} {items[other]!r}, "
                f"which {what} be: the constraints contradict each other."
            )
    if rows.broken(state).size:
        return "No offer meets must, requires and changes together: relax one of them."
    if (filled := float(problem.space[inside].sum())) > problem.rules.capacity:
        return f"The items that must be offered fill {filled:g} of a capacity of {problem.capacity:g}: raise it."
    least, possible = max(problem.least, int(inside.sum())), int((state != OUT).sum())
    if least > problem.most:
        return (
            f"The offer must have at least {least} items and at most {problem.most}: "
            "the constraints contradict each other."
        )
    return f"The offer must have at least {least} items, and only {possible} may be in it: ask for fewer."


def some_offer(problem: OfferProblem) -> Mask:
    """Return any feasible offer, by an integer program; raise a ValueError if there is none."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # rarely needed, and slow to import

    offer_mask: Mask = problem.state == IN
    rules = problem.free_rules
    if problem.free.size:
        table = np.vstack([np.ones(problem.free.size), rules.space, rules.rows.factors])
        most = np.append([rules.most, rules.capacity], rules.rows.limits)
        limits = LinearConstraint(table, np.append(rules.least, np.full(most.size - 1, -np.inf)), most)
        result = milp(problem.costs[problem.free], integrality=1, bounds=Bounds(0, 1), constraints=limits)
        if result.x is not None:
            offer_mask[problem.free[result.x > 0.5]] = True
    if not problem.is_feasible(offer_mask):
        raise ValueError("No offer meets all constraints: relax a size, a capacity or a pair.")
    return offer_mask
