"""What may be offered: margins, costs and constraints over the items of a model, checked and thought through."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeAlias, TypedDict, TypeVar

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Bytes, Codes, Label, Mask, Vec
from rankstream.data.prices import PriceLevels
from rankstream.decide.problem.item_names import ItemNames, names_of
from rankstream.decide.problem.margins import Numbers, margin_vector, number_vector
from rankstream.decide.problem.rules import FREE, IN, OUT, LimitRow, Rows, Rules, make_rows
from rankstream.models.entropy.model import EntropyModel

P = ParamSpec("P")
R = TypeVar("R")
Pairs: TypeAlias = Iterable[Any] | Mapping[Any, Any]
"""Pairs of items in a list, one pair, or a dict."""
ROUNDING_SLACK = 1e-9
"""Relative to the capacity: sums of spaces that exceed it by no more than rounding still fit."""


class Constraints(TypedDict, total=False):
    """The keywords; ``best_offer`` says what each means."""

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
    own = signature(function)
    lists = {"must", "never", "requires", "excludes", "ladders"}
    shown = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=() if name in lists else None, annotation=kind)
        for name, kind in Constraints.__annotations__.items()
    ]
    named = [one for one in own.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    function.__dict__["__signature__"] = own.replace(parameters=[*named, *shown])
    return function


@dataclass(frozen=True, eq=False)
class OfferProblem:
    """A model, what its items earn, cost and fill, and which offers are feasible; items are known by their numbers.

    ``state`` says of every item whether it must be (1), cannot be (-1) or may be (0) in the offer, with all that
    follows from the constraints thought through. ``nothing`` is the number of the no-choice item, or -1: it is not
    counted, not constrained and not free. Items at price levels have ``levels``, and ``rows`` then allow one level of
    each. ``present`` is what is on offer now, where that was said.
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
        """What names stand for."""
        return ItemNames(self.items, self.nothing, self.levels)

    @property
    def items(self) -> tuple[Label, ...]:
        """The model's items."""
        found: tuple[Label, ...] = self.model.items
        return found

    @property
    def free(self) -> Codes:
        """The items that may be offered or not."""
        return np.flatnonzero(self.state == FREE)

    @property
    def must(self) -> Codes:
        """The items that have to be offered, without the no-choice item."""
        return np.flatnonzero(self.state == IN)

    @property
    def always(self) -> Mask:
        """What every offer has: the items that have to be offered, and the no-choice item."""
        held: Mask = self.state == IN
        if self.nothing >= 0:
            held[self.nothing] = True
        return held

    @cached_property
    def rules(self) -> Rules:
        """What all items of an offer must keep."""
        room = self.capacity * (1.0 + ROUNDING_SLACK) + ROUNDING_SLACK * float(self.space.max(initial=0.0))
        return Rules(self.space, room, self.least, self.most, self.rows)

    @cached_property
    def free_rules(self) -> Rules:
        """What constrains the free items alone, numbered from 0, once those that must be offered took their place."""
        return self.rules.left(self.free, self.state == IN)

    @cached_property
    def valued_changes(self) -> dict[bytes, list[Any]]:
        """The single changes to each offer whose values are known (``moves.single_changes``)."""
        return {}

    @cached_property
    def untilted(self) -> "OfferProblem":
        """The same problem before a maximum-entropy model was adjusted to the data: similar values, far sooner."""
        model = self.model
        if not isinstance(model, EntropyModel) or not model.duals.any():
            return self
        return replace(self, model=EntropyModel(model.prior, model.assortments, np.zeros_like(model.duals)))

    def is_feasible(self, held: Mask) -> bool:
        """Whether an offer keeps all constraints; ``held`` says for every item whether it is in it."""
        own = held.copy()
        if self.nothing >= 0:
            own[self.nothing] = False
        return bool(own[self.state == IN].all() and not own[self.state == OUT].any() and self.rules.allow(own))

    def offer(self, held: Mask) -> tuple[Label, ...]:
        """The items of an offer in the model's order, without the no-choice item."""
        return tuple(self.items[code] for code in np.flatnonzero(held))

    def labels(self, held: Mask) -> tuple[Label, ...]:
        """The items of an offer in the model's order, and last the no-choice item where there is one."""
        own = self.offer(held)
        return own if self.nothing < 0 else (*own, self.items[self.nothing])

    def by_item(self, numbers: Mapping[Label, float]) -> dict[Label, float]:
        """The same numbers under the items' own names, where these have prices."""
        levels = self.levels
        return {label if levels is None else levels.of(label)[0]: number for label, number in numbers.items()}

    @property
    def possible_sizes(self) -> range:
        """How many items an offer can have, by sizes alone: pairs and space may exclude more."""
        return range(max(self.least, self.must.size), min(self.most, self.must.size + self.free.size) + 1)

    def of_size(self, size: int) -> "OfferProblem":
        """The same for offers of exactly ``size`` items."""
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
    """Check all that a user can say of a decision; what contradicts itself is a ValueError of one sentence."""
    names = names_of(model, no_choice)
    items, nothing, label, here = names.items, names.nothing, names.leave, names.present(present)
    own = len(set(names.owner.tolist())) - (nothing >= 0)
    least = 0 if at_least is None else whole_number("at_least", at_least)
    most = own if at_most is None else min(own, whole_number("at_most", at_most))
    sizes = number_vector("space", items, names.at_levels("space", space), label)
    if (sizes < 0.0).any():
        bad = int(np.argmin(sizes))
        raise ValueError(f"The space of {items[bad]!r} is {sizes[bad]:g}: it must be at least 0.")
    if (space is None) != (capacity is None):
        raise ValueError("Give space and capacity together: the space that each item takes, and the total.")
    state, one_of = _states(names, must, never)
    needs = [LimitRow(first, second, 0, "requires") for first, second in _pairs("requires", names, requires)]
    bans = [LimitRow(first + second, (), 1, "excludes") for first, second in _pairs("excludes", names, excludes)]
    limits = [*names.one_level_each(), *names.ladders(ladders), *names.changes(here, changes)]
    problem = OfferProblem(
        model=model,
        margins=margin_vector(items, names.margins(margins, costs), label),
        costs=number_vector("listing cost", items, names.at_levels("listing cost", listing_costs), label),
        space=sizes,
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


def _states(names: ItemNames, must: Iterable[Label], never: Iterable[Label]) -> tuple[Bytes, list[LimitRow]]:
    """What is said of single items, and the rows of items that must be there at any of their levels."""
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
        state[names.nothing] = OUT  # always there, and never counted or decided about
    return state, rows


def _pairs(name: str, names: ItemNames, pairs: Pairs) -> list[tuple[list[int], list[int]]]:
    """The numbers that both sides of each pair stand for."""
    given: list[Any] = list(pairs.items()) if isinstance(pairs, Mapping) else list(pairs)
    if len(given) == 2 and not any(isinstance(pair, tuple | list) for pair in given):
        given = [tuple(given)]  # one pair, not in a list
    found = []
    for pair in given:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"{name} contains {pair!r}: give pairs of items, such as ('cream', 'tea').")
        first, second = (names.codes(name, item) for item in pair)
        if set(first) & set(second):
            raise ValueError(f"{name} contains the pair of {names.items[first[0]]!r} with itself: give two items.")
        found.append((first, second))
    return found


def _contradiction(problem: OfferProblem, state: Bytes) -> str:
    """Why no offer keeps all constraints, given what followed from them until they could not be kept."""
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
    """Any feasible offer, or a ValueError that there is none: by an integer program, as constraints may be many."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # rarely needed, and slow to import

    held: Mask = problem.state == IN
    rules = problem.free_rules
    if problem.free.size:
        table = np.vstack([np.ones(problem.free.size), rules.space, rules.rows.factors])
        most = np.append([rules.most, rules.capacity], rules.rows.limits)
        limits = LinearConstraint(table, np.append(rules.least, np.full(most.size - 1, -np.inf)), most)
        found = milp(problem.costs[problem.free], integrality=1, bounds=Bounds(0, 1), constraints=limits)
        if found.x is not None:
            held[problem.free[found.x > 0.5]] = True
    if not problem.is_feasible(held):
        raise ValueError("No offer meets all constraints: relax a size, a capacity or a pair.")
    return held
