"""Margins, costs and space: checked numbers for every item of a model."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from rankstream._core.arguments import listed
from rankstream._core.types import Label, Vec
from rankstream.data.assortments import plain

Numbers: TypeAlias = Mapping[Any, float] | float | Any
"""A dict, a pandas Series or one number for all items."""


def no_choice_of(model: Any, no_choice: Label | None) -> Label | None:
    """Return the no-purchase option: the given one, or that of the model."""
    label = plain(no_choice) if no_choice is not None else getattr(model, "no_choice", None)
    if label is not None and label not in model.items:
        raise ValueError(f"The no-choice item {label!r} is not one of the model's: they are {listed(model.items)}.")
    return label


def margin_vector(items: tuple[Label, ...], margins: Numbers, nothing: Label | None) -> Vec:
    """Return what a sale of each item earns; every item but no-choice, which earns 0, needs a margin.

    >>> margin_vector(("tea", "pie", "no"), {"tea": 2, "pie": 3.5}, "no")
    array([2. , 3.5, 0. ])
    """
    given = as_mapping("margin", items, margins, [item for item in items if item != nothing])
    if given.get(nothing, 0.0) != 0.0 and not isinstance(margins, int | float | np.number):
        raise ValueError(f"The no-choice item {nothing!r} has the margin {given[nothing]:g}: it earns 0, leave it out.")
    for item in items:
        if item != nothing and item not in given:
            raise ValueError(f"The item {item!r} has no margin: give what a sale of it earns, 0 if nothing.")
    return np.array([0.0 if item == nothing else given[item] for item in items])


def number_vector(name: str, items: tuple[Label, ...], numbers: Numbers | None, nothing: Label | None) -> Vec:
    """Return numbers for some items, or one for all but the no-choice item; 0 for the others."""
    if numbers is None:
        return np.zeros(len(items))
    given = as_mapping(name, items, numbers, [item for item in items if item != nothing])
    if given.get(nothing, 0.0) != 0.0:
        raise ValueError(f"The no-choice item {nothing!r} has the {name} {given[nothing]:g}: leave it out.")
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
