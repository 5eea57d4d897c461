"""Items in a decision: their names, with all price levels of an item, and checked numbers for them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any, TypeAlias

import numpy as np

from rankstream._core import Codes, Label, Vec, listed, whole_number
from rankstream.data import PriceLevels, plain
from rankstream.decide.problem.rules import LimitRow
from rankstream.models.prices import levels_of

Numbers: TypeAlias = Mapping[Any, float] | float | Any
"""A dict, a pandas Series or one number for all items."""


def no_choice_of(model: Any, no_choice: Label | None) -> Label | None:
    """Return the no-purchase option: the given one, or that of the model."""
    label = plain(no_choice) if no_choice is not None else getattr(model, "no_choice", None)
    if label is not None and label not in model.items:
        raise ValueError(f"The no-purchase option {label!r} is not one of the model's: they are {listed(model.items)}.")
    return label


def margin_vector(items: tuple[Label, ...], margins: Numbers, nothing: Label | None) -> Vec:
    """Return what a sale of each item earns; every item but no-choice, which earns 0, needs a margin.

    >>> margin_vector(("tea", "pie", "no"), {"tea": 2, "pie": 3.5}, "no")
    array([2. , 3.5, 0. ])
    """
    given = as_mapping("margin", items, margins, [item for item in items if item != nothing])
    if given.get(nothing, 0.0) != 0.0 and not isinstance(margins, int | float | np.number):
        raise ValueError(f"The no-purchase option {nothing!r} has the margin {given[nothing]:g}: leave it out.")
    for item in items:
        if item != nothing and item not in given:
            raise ValueError(f"The item {item!r} has no margin: give what a sale of it earns, 0 if nothing.")
    return np.array([0.0 if item == nothing else given[item] for item in items])


def number_vector(name: str, items: tuple[Label, ...], numbers: Numbers | None, nothing: Label | None) -> Vec:
    """Return numbers for some items, or one for all but the no-purchase option; 0 for the others."""
    if numbers is None:
        return np.zeros(len(items))
    given = as_mapping(name, items, numbers, [item for item in items if item != nothing])
    if given.get(nothing, 0.0) != 0.0:
        raise ValueError(f"The no-purchase option {nothing!r} has the {name} {given[nothing]:g}: leave it out.")
    return np.array([given.get(item, 0.0) for item in items])


def as_mapping(name: str, items: Iterable[Label], numbers: Numbers, everything: list[Label]) -> dict[Label, float]:
    """Return finite numbers by item; a single number applies to all items in ``everything``."""
    if isinstance(numbers, int | float | np.number) and not isinstance(numbers, bool):
        pairs: Any = [(item, numbers) for item in everything]
    elif hasattr(numbers, "items") and callable(numbers.items):
        pairs = list(numbers.items())
    else:
        raise ValueError(f"Every item needs a {name}: give a dict, a Series or one number, not {numbers!r}.")
    known, found = set(items), {}
    for item, value in pairs:
        label = plain(item)
        if label not in known:
            raise ValueError(f"There is a {name} of {label!r}, which the model lacks: its items are {listed(known)}.")
        if isinstance(value, bool | str) or not np.isscalar(value) or not np.isfinite(float(value)):  # type: ignore[arg-type]
            raise ValueError(f"The {name} of {label!r} is {value!r}: it must be a finite number.")
        if label in found:
            raise ValueError(f"The item {label!r} has two values for its {name}: give one.")
        found[label] = float(value)  # type: ignore[arg-type]
    return found


def names_of(model: Any, no_choice: Label | None) -> "ItemNames":
    """Return the names of a model; ``no_choice`` is the no-purchase option, by default that of the model.

    The model's option does not count if it has a price.
    """
    label, levels, items = no_choice_of(model, no_choice), levels_of(model), tuple(model.items)
    if label is not None and levels is not None and levels.of(label)[1] is not None:
        if no_choice is not None:
            raise ValueError(f"The no-purchase option {label!r} has a price: choose one that means buying nothing.")
        label = None
    return ItemNames(items, -1 if label is None else items.index(label), levels)


@dataclass(frozen=True, eq=False)
class ItemNames:
    """The items of a model, and the numbers of all levels of items with prices, cheapest first.

    >>> names = ItemNames(("tea @ 3.00", "no", "tea @ 3.50"), 1, PriceLevels({"tea": [3, 3.5]}))
    >>> names.codes("must", "tea"), names.codes("must", "tea @ 3.50"), names.owner.tolist()
    ([0, 2], [2], [0, 1, 0])
    """

    items: tuple[Label, ...]
    nothing: int
    levels: PriceLevels | None

    @cached_property
    def number(self) -> dict[Label, int]:
        """The number of every item of the model."""
        return {item: code for code, item in enumerate(self.items)}

    @cached_property
    def own(self) -> dict[Label, list[int]]:
        """The numbers of the levels of every item that has some."""
        if self.levels is None:
            return {}
        numbers: dict[Label, list[int]] = {}
        for label in self.levels.labels:
            numbers.setdefault(self.levels.of(label)[0], []).append(self.number[label])
        return numbers

    @cached_property
    def owner(self) -> Codes:
        """For every item of the model, a number that it shares with the other levels of the same item."""
        owner = np.arange(len(self.items))
        for codes in self.own.values():
            owner[codes] = min(codes)
        return owner

    @cached_property
    def prices(self) -> Vec:
        """The price of every item of the model; NaN for those without one."""
        pairs = [(None if self.levels is None else self.levels.of(item)[1]) for item in self.items]
        return np.array([np.nan if price is None else price for price in pairs], dtype=np.float64)

    def codes(self, name: str, item: Any) -> list[int]:
        """Return the numbers of an item; ``name`` is the keyword for error messages."""
        label = plain(item)
        if label not in self.number and label in self.own:
            return self.own[label]
        if label not in self.number:
            known = listed(self.number)
            raise ValueError(f"{name} names {label!r}, which is not an item of the model: its items are {known}.")
        if self.number[label] == self.nothing:
            raise ValueError(f"{name} names the no-purchase option {label!r}, which is always on offer: leave it out.")
        return [self.number[label]]

    def labels(self, offer: Any) -> tuple[Label, ...]:
        """Return the labels of an offer, which may map items to prices."""
        return self.levels.offer(offer) if self.levels is not None and isinstance(offer, Mapping) else tuple(offer)

    def at_levels(self, name: str, numbers: Any) -> Any:
        """Return numbers by label: an item's number applies to each of its levels."""
        if not self.own or not hasattr(numbers, "items") or not callable(numbers.items):
            return numbers
        out: dict[Label, Any] = {}
        for item, value in numbers.items():
            codes = self.own.get(plain(item), [])
            for label in [self.items[code] for code in codes] or [plain(item)]:
                if label in out:
                    raise ValueError(f"The item {label!r} has two values for its {name}: give one.")
                out[label] = value
        return out

    def margins(self, margins: Numbers | None, costs: Numbers | None) -> Numbers:
        """Return what a sale earns: the given margins and, with costs, prices minus costs."""
        if not self.own:
            if costs is not None:
                raise ValueError("The model has no prices, so costs cannot be used: give margins.")
            if margins is None:
                raise ValueError("There are no margins: give what a sale of each item earns.")
            return margins
        if margins is None and costs is None:
            raise ValueError("There are neither margins nor costs: give what a sale earns, or what each item costs.")
        given: Any = margins if hasattr(margins, "keys") else {}
        for item in map(plain, given.keys()):
            if item in self.own:
                raise ValueError(
                    f"The margin of {item!r} depends on its price: give costs, or a margin for each level, "
                    f"such as {self.items[self.own[item][0]]!r}."
                )
        if costs is None:
            return margins
        priced = {self.items[code] for codes in self.own.values() for code in codes}
        others = [item for item in self.items if item not in priced and item != self.leave]
        found = {} if margins is None else as_mapping("margin", self.items, margins, others)
        for item, cost in self._costs(costs).items():
            for code in self.own[item]:
                label = self.items[code]
                if label in found:
                    raise ValueError(f"The item {label!r} has a margin, and {item!r} a cost: leave one of them out.")
                found[label] = float(self.prices[code]) - cost
        for item, codes in self.own.items():
            if not any(self.items[code] in found for code in codes):
                raise ValueError(f"The item {item!r} has no cost: give what a sale of it costs, 0 if nothing.")
        return found

    @property
    def leave(self) -> Label | None:
        """The no-purchase option, if there is one."""
        return None if self.nothing < 0 else self.items[self.nothing]

    def _costs(self, costs: Numbers) -> dict[Label, float]:
        given = as_mapping("cost", [*self.own, *self.items], costs, list(self.own))
        for item in given:
            if item not in self.own:
                raise ValueError(f"The item {item!r} has a cost, but no price of its own: give its margin.")
        return given

    def one_level_each(self) -> list[LimitRow]:
        """Return rows of levels that exclude each other: an offer has an item at one level."""
        return [LimitRow(codes, (), 1, "levels") for codes in self.own.values() if len(codes) > 1]

    def ladders(self, ladders: Any) -> list[LimitRow]:
        """Return pairs of levels at which the first item would cost more than the second: they exclude each other."""
        all_steps: list[Any] = list(ladders.items() if isinstance(ladders, Mapping) else ladders)
        if all_steps and not any(isinstance(steps, tuple | list) for steps in all_steps):
            all_steps = [tuple(all_steps)]  # one ladder, not in a list
        rows = []
        for steps in all_steps:
            if not isinstance(steps, tuple | list) or len(steps) < 2:
                raise ValueError(
                    f"ladders contains {steps!r}: give items from cheap to expensive, as ('small', 'large')."
                )
            for step in steps:
                if plain(step) not in self.own:
                    known = listed(self.own) if self.own else "none"
                    raise ValueError(f"ladders names {step!r}, which has no price: items with one are {known}.")
            if len(set(steps)) < len(steps):
                raise ValueError(f"ladders contains an item twice, in {steps!r}: list each step once.")
            for low, high in combinations([self.own[plain(step)] for step in steps], 2):
                wrong = [(a, b) for a, b in product(low, high) if self.prices[a] > self.prices[b]]
                rows += [LimitRow(pair, (), 1, "ladders") for pair in wrong]
        return rows

    def present(self, present: Any) -> list[int] | None:
        """Return the numbers of today's offer, without the no-purchase option; None if it is not given."""
        if present is None:
            return None
        if isinstance(present, str) or not isinstance(present, Iterable):
            raise ValueError(f"present is {present!r}: give the items on offer, with their prices if they have some.")
        here = []
        for label in self.labels(present):
            if plain(label) == self.leave and self.nothing >= 0:
                continue
            codes = self.codes("present", label)
            if len(codes) > 1:
                example = self.items[codes[0]]
                raise ValueError(f"present names {label!r} without a price: give one, such as {example!r}.")
            here += codes
        owners = [int(self.owner[code]) for code in here]
        if len(set(owners)) < len(owners):
            raise ValueError("present lists an item twice: list it once, at one price.")
        return here

    def changes(self, here: list[int] | None, changes: int | None) -> list[LimitRow]:
        """Limit the number of items that are added, dropped or repriced: present items count -1, new items +1.

        The second row, on new labels, follows from the first, but makes searches shorter.
        """
        if changes is None:
            return []
        if here is None:
            raise ValueError("changes needs present: give today's offer.")
        most, owners = whole_number("changes", changes), {int(self.owner[code]) for code in here}
        absent = [code for code in range(len(self.items)) if code != self.nothing and code not in here]
        new = [code for code in absent if self.owner[code] not in owners]
        return [LimitRow(new, here, most - len(here), "changes"), LimitRow(absent, (), most, "changes")]
