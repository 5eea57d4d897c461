"""Check, align and count the rows of X and y that scikit-learn passes: availability matrices and choices."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from rankstream._core.types import Codes, Label, Mask, Vec
from rankstream.data import Assortments, ChoiceCounts, as_offer


def count_availability(
    available: Mask,
    chosen: Codes,
    weight: Vec,
    before: ChoiceCounts | None = None,
    make: Callable[[Assortments], ChoiceCounts] = ChoiceCounts,
) -> tuple[ChoiceCounts, bool]:
    """Count the rows of an availability matrix, by column number; also return whether there are new offers or items.

    Offers are numbered by their columns, so that the order of the rows does not matter.

    >>> rows = np.array([[True, True, False], [True, True, False], [False, True, True]])
    >>> counts, _ = count_availability(rows, np.array([0, 1, 2]), np.ones(3))
    >>> counts.assortments.offers, counts.tallies
    (((1, 2), (0, 1)), array([0., 1., 1., 1.]))
    """
    counted = weight > 0.0
    available, chosen, weight = available[counted], chosen[counted], weight[counted]
    rows, row_of = np.unique(available, axis=0, return_inverse=True)
    offers = [tuple(np.flatnonzero(row).tolist()) for row in rows]
    if before is None:
        counts, grew = make(Assortments(offers, range(available.shape[1]))), True
    else:
        known = set(before.assortments.offers)
        new = [offer for offer in offers if offer not in known]
        grew = bool(new) or available.shape[1] > before.assortments.n_items
        counts = before.extend(new, range(available.shape[1])) if grew else before.copy()
    starts = np.array([counts.assortments.coordinate(offer, offer[0]) for offer in offers])
    inside = np.cumsum(available, axis=1)[np.arange(len(chosen)), chosen] - 1
    counts.observe_coordinates(starts[row_of.ravel()] + inside, weight)
    return counts, grew


def column_names(X: Any) -> tuple[list[Label], bool]:
    """Return the columns of a frame, and whether they have names other than 0, 1, ...; empty for plain arrays."""
    if not hasattr(X, "columns"):
        return [], False
    names = list(as_offer("The list of columns", X.columns))
    return names, names != list(range(len(names)))


def choice_columns(chosen: Any, names: list[Label], named: bool, outside_allowed: bool) -> Codes:
    """Return the column of every choice: all by name, or all by position if names are not numbers.

    The position after the last column is the no-purchase option, if that is allowed.
    """
    column = {name: number for number, name in enumerate(names)}
    labels = chosen.tolist()
    by_name = [column.get(label, -1) for label in labels]
    if -1 not in by_name:
        return np.array(by_name, dtype=np.int64)
    numbers = named and any(isinstance(name, int | float) for name in names)
    by_position = [_position(label, len(names) + outside_allowed) for label in labels]
    if numbers or -1 in by_position:
        wrong = by_position if not numbers and max(by_name) < 0 else by_name
        row = wrong.index(-1)
        raise ValueError(f"Row {row}: unknown item {labels[row]!r}: it names none of the {len(names)} feature(s) of X.")
    return np.array(by_position, dtype=np.int64)


def _position(label: Any, size: int) -> int:
    return int(label) if isinstance(label, int | float) and label in range(size) else -1


def align(X: Any, names: list[Label], items: list[Label], may_add: bool) -> tuple[Vec, list[Label], Codes]:
    """Return a matrix with one column per item, the items, and the new position of each column of X.

    Items that X does not name are not available in it; new ones come last, if they are allowed.

    >>> align(np.array([[1, 1]]), ["pie", "tea"], ["tea", "cake"], may_add=True)
    (array([[1., 0., 1.]]), ['tea', 'cake', 'pie'], array([2, 0]))
    """
    order = list(dict.fromkeys([*items, *names]))
    if len(order) > len(items) and not may_add:
        raise ValueError(f"The item {order[len(items)]!r} was in no batch so far: add it with partial_fit first.")
    place = {item: number for number, item in enumerate(order)}
    positions = np.array([place[name] for name in names], dtype=np.int64)
    matrix = check_array(X)
    wide = np.zeros((len(matrix), len(order)))
    wide[:, positions] = matrix
    return wide, order, positions


class AvailabilityRows:
    """The part of an estimator that reads X and y; ``outside`` and ``new_items`` are its settings."""

    items_: list[Label]
    outside: str
    new_items: str
    _outside: bool

    def _read(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Mask, Codes, Vec]:
        """Return the available items, the choice and the weight of each row, or raise a ValueError."""
        if y is None:
            raise ValueError("This estimator requires y to be passed, but the target y is None.")
        names, named = column_names(X)
        positions: Codes | None = None
        if not reset and self._aligns(named):
            matrix, items, positions = align(X, names, self.items_, may_add=True)
        else:
            matrix = validate_data(self, X, reset=reset)
        names = names or list(range(matrix.shape[1]))
        chosen = np.asarray(y)
        if chosen.shape != matrix.shape[:1]:
            shape = chosen.shape
            raise ValueError(f"y must have one choice for each of the {len(matrix)} rows of X; its shape is {shape}.")
        codes = choice_columns(chosen, names, named, outside_allowed=self.outside == "auto" and not named)
        outside = bool((codes == len(names)).any())
        if outside:
            warnings.warn(
                f"Position {len(names)} is past the last column of X: it counts as none of these.", stacklevel=3
            )
        if reset:
            self._outside = outside
            self.items_ = [*names, len(names)] if outside else names
        elif positions is not None:
            codes = positions[codes]
        elif names != self.items_[: len(names)]:
            raise ValueError(f"The columns {names} of X are not those of the fit, {self.items_}: the items must stay.")
        available = self._available(matrix, outside or self._outside)
        missing = np.flatnonzero(~available[np.arange(len(codes)), codes])
        if missing.size:
            row = int(missing[0])
            items = self.items_ if positions is None else items
            raise ValueError(f"Row {row}: the choice {items[codes[row]]!r} is not in its offer: correct X or y.")
        return available, codes, row_weights(sample_weight, matrix)

    def _aligns(self, named: bool) -> bool:
        return named and self.new_items == "add" and hasattr(self, "model_")

    def _available(self, matrix: Any, outside: bool) -> Mask:
        available: Mask = matrix != 0
        if not np.all((matrix == 0) | (matrix == 1)):
            warnings.warn("X has other values than 0 and 1: every number but 0 counts as available.", stacklevel=3)
        if outside:
            available = np.column_stack([available, np.ones(len(available), dtype=bool)])
        empty = np.flatnonzero(~available.any(axis=1))
        if empty.size:
            raise ValueError(f"Row {empty[0]} of X offers nothing: every row needs an available item.")
        return available


def as_array(labels: list[Label]) -> Any:
    """Return labels as an array of their type, or of objects if they have several types or are not scalars."""
    if len({type(label) for label in labels}) == 1 and isinstance(labels[0], str | int | float):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    for place, label in enumerate(labels):
        array[place] = label
    return array


def sorted_order(labels: list[Label]) -> Codes:
    """Return the positions that sort the labels; labels that cannot be compared are sorted by type, then as text.

    >>> sorted_order(["tea", "pie"]).tolist(), sorted_order(["b", 2, 10]).tolist()
    ([1, 0], [1, 2, 0])
    """
    places: Codes = np.arange(len(labels))
    try:
        return np.array(sorted(places.tolist(), key=lambda place: labels[place]), dtype=np.int64)
    except TypeError:
        kinds = [(type(label).__name__, label if isinstance(label, int | float) else 0, str(label)) for label in labels]
        return np.array(sorted(places.tolist(), key=lambda place: kinds[place]), dtype=np.int64)


def row_weights(sample_weight: Any, rows: Any) -> Vec:
    """Return the weight of each row; 1 by default."""
    weight: Vec = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    if not weight.sum() > 0.0:
        raise ValueError("The sample weights are all zero: at least one choice must count.")
    return weight
