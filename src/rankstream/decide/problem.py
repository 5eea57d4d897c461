"""What may be offered: margins, costs and constraints over the items of a model, checked and thought through."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Bytes, Codes, Label, Mask, Vec
from rankstream.data.prices import PriceLevels
from rankstream.decide.constraints import Pairs
from rankstream.decide.margins import Numbers, margin_vector, number_vector
from rankstream.decide.naming import CodePairs, ItemNames, names_of
from rankstream.decide.rows import FREE, IN, OUT, Row, Rows, make_rows

FITS = 1e-9
"""Relative to the capacity: sums of spaces that exceed it by no more than rounding still fit."""


@dataclass(frozen=True, eq=False)
class OfferProblem:
    """A model, what its items earn, cost and fill, and which offers are feasible; items are known by their numbers.

    ``state`` says of every item whether it must be (1), cannot be (-1) or may be (0) in the offer, with all that
    follows from the constraints thought through. ``nothing`` is the number of the no-choice item, or -1: it is not
    counted, not constrained and not free. Items at price levels have ``levels``, and ``excludes`` then contains all
    pairs of levels of an item.
    """

    model: Any
    margins: Vec
    costs: Vec
    space: Vec
    capacity: float
    least: int
    most: int
    state: Bytes
    requires: Codes
    excludes: Codes
    nothing: int
    rows: Rows = field(default_factory=Rows)
    levels: PriceLevels | None = None

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
    def room(self) -> float:
        """The largest sum of spaces that counts as fitting."""
        return self.capacity * (1.0 + FITS) + FITS * float(self.space.max(initial=0.0))

    def is_feasible(self, held: Mask) -> bool:
        """Whether an offer keeps all constraints; ``held`` says for every item whether it is in it."""
        own = held.copy()
        if self.nothing >= 0:
            own[self.nothing] = False
        size = int(own.sum())
        return bool(
            self.least <= size <= self.most
            and (own[self.state == IN]).all()
            and not (own[self.state == OUT]).any()
            and float(self.space[own].sum()) <= self.room
            and not (own[self.requires[:, 0]] & ~own[self.requires[:, 1]]).any()
            and not (own[self.excludes[:, 0]] & own[self.excludes[:, 1]]).any()
            and self.rows.allow(own)
        )

    def labels(self, held: Mask) -> tuple[Label, ...]:
        """The items of an offer in the model's order, and last the no-choice item where there is one."""
        own = tuple(item for item, there in zip(self.items, held, strict=True) if there)
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
    items, nothing, label = names.items, names.nothing, names.leave
    own = len(set(names.owner.tolist())) - (nothing >= 0)
    least = 0 if at_least is None else whole_number("at_least", at_least)
    most = own if at_most is None else min(own, whole_number("at_most", at_most))
    sizes = number_vector("space", items, names.at_levels("space", space), label)
    if (sizes < 0.0).any():
        bad = int(np.argmin(sizes))
        raise ValueError(f"The space of {items[bad]!r} is {sizes[bad]:g}: it must be at least 0.")
    if (space is None) != (capacity is None):
        raise ValueError("Space and capacity belong together: say what items fill, and how much there is.")
    state, one_of = _states(names, must, never)
    needs, only_with = _requires(_pairs("requires", names, requires))
    bans = [pair for first, second in _pairs("excludes", names, excludes) for pair in product(first, second)]
    bans += names.one_level_each() + names.ladders(ladders)
    held = OfferProblem(
        model=model,
        margins=margin_vector(items, names.margins(margins, costs), label),
        costs=number_vector("listing cost", items, names.at_levels("listing cost", listing_costs), label),
        space=sizes,
        capacity=np.inf if capacity is None else number_between("capacity", capacity, 0.0),
        least=max(least, 0 if nothing >= 0 else 1),
        most=most,
        state=state,
        requires=np.array(needs, dtype=np.int64).reshape(-1, 2),
        excludes=np.array(bans, dtype=np.int64).reshape(-1, 2),
        nothing=nothing,
        rows=make_rows(len(items), [*one_of, *only_with, *names.changes(present, changes)]),
        levels=names.levels,
    )
    return _thought_through(held)


def _states(names: ItemNames, must: Iterable[Label], never: Iterable[Label]) -> tuple[Bytes, list[Row]]:
    """What is said of single items, and the rows of items that must be there at any of their levels."""
    state = np.zeros(len(names.items), dtype=np.int8)
    rows: list[Row] = []
    for name, labels, mark in (("must", must, IN), ("never", never, OUT)):
        if isinstance(labels, str):
            raise ValueError(f"{name} is {labels!r}: give a list of items.")
        for label in labels:
            codes = names.codes(name, label)
            if mark == IN and len(codes) > 1:
                rows.append(((), codes, -1))
                continue
            for code in codes:
                if state[code] not in (FREE, mark):
                    item = names.items[code]
                    raise ValueError(f"The item {item!r} is named in both must and never: leave one out.")
                state[code] = mark
    for _, levels, _ in rows:
        if (state[list(levels)] == OUT).all():
            item = names.items[levels[0]]
            raise ValueError(f"No level of an item that must be there is left, not even {item!r}: leave one to offer.")
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
            raise ValueError(f"{name} contains the pair of {names.items[first[0]]!r} with itself: name two items.")
        found.append((first, second))
    return found


def _requires(pairs: list[tuple[list[int], list[int]]]) -> tuple[CodePairs, list[Row]]:
    """Pairs of which the second is a single item, and rows for those that require any level of one."""
    needs = [(code, second[0]) for first, second in pairs if len(second) == 1 for code in first]
    return needs, [(first, second, 0) for first, second in pairs if len(second) > 1]


def _thought_through(problem: OfferProblem) -> OfferProblem:
    """Fix all items whose state follows from others', and refuse what contradicts itself."""
    items, state = problem.items, problem.state.copy()
    changed = True
    while changed:
        changed = False
        for first, second, name in _implications(problem, state):
            if state[first] == IN and state[second] == (OUT if name == "requires" else IN):
                word = "requires" if name == "requires" else "excludes"
                raise ValueError(
                    f"The item {items[first]!r} must be offered and {word} {items[second]!r}, "
                    f"which {'cannot' if name == 'requires' else 'must'} be: the constraints contradict each other."
                )
            before = state[first], state[second]
            propagate(state, first, second, name == "requires")
            changed |= before != (state[first], state[second])
        before_rows = state.copy()
        if not problem.rows.follow(state):
            raise ValueError("No offer keeps must, requires and changes together: relax one of them.")
        changed |= bool((state != before_rows).any())
        filled = float(problem.space[state == IN].sum())
        if filled > problem.room:
            raise ValueError(
                f"The items that must be offered fill {filled:g} of a capacity of {problem.capacity:g}: raise it."
            )
        tight = (state == FREE) & (problem.space + filled > problem.room)
        changed |= bool(tight.any())
        state[tight] = OUT
    needed, possible = int((state == IN).sum()), int((state != OUT).sum())
    if problem.least > problem.most or needed > problem.most:
        raise ValueError(
            f"The offer must have at least {max(problem.least, needed)} items and at most {problem.most}: "
            "the constraints contradict each other."
        )
    if possible < problem.least:
        raise ValueError(
            f"The offer must have at least {problem.least} items, and only {possible} may be in it: ask for fewer."
        )
    return replace(problem, state=state)


def _implications(problem: OfferProblem, state: Bytes) -> Iterable[tuple[int, int, str]]:
    for first, second in problem.requires.tolist():
        yield first, second, "requires"
    for first, second in problem.excludes.tolist():
        yield (first, second, "excludes") if state[first] == IN else (second, first, "excludes")


def propagate(state: Bytes, first: int, second: int, required: bool) -> None:
    """What follows for two items from "first only with second" (required), or from "not both"."""
    if required:
        if state[first] == IN and state[second] == FREE:
            state[second] = IN
        if state[second] == OUT and state[first] == FREE:
            state[first] = OUT
    else:
        if state[first] == IN and state[second] == FREE:
            state[second] = OUT
        if state[second] == IN and state[first] == FREE:
            state[first] = OUT
