"""Availability matrices as scikit-learn hands them over: the checked rows of X and y that an estimator counts."""

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

from rankstream._core.types import Codes, Label, Mask, Vec
from rankstream.alignment import align
from rankstream.observations import choice_columns, column_names


class AvailabilityRows:
    """The part of an estimator that reads X and y; ``outside`` and ``new_items`` are its settings."""

    items_: list[Label]
    outside: str
    new_items: str
    _outside: bool

    def _read(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> tuple[Mask, Codes, Vec]:
        """Checked rows: which items were available, which one was chosen, and how much each row counts."""
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

    def _items_with(self, X: Any) -> list[Label]:
        """The items so far, and the new ones behind them where they may join."""
        names, named = column_names(X)
        return list(dict.fromkeys([*self.items_, *names])) if self._aligns(named) else self.items_

    def _available(self, matrix: Any, outside: bool) -> Mask:
        available: Mask = matrix != 0
        if not np.all((matrix == 0) | (matrix == 1)):
            warnings.warn("X holds other values than 0 and 1: every number but 0 counts as available.", stacklevel=3)
        if outside:
            available = np.column_stack([available, np.ones(len(available), dtype=bool)])
        empty = np.flatnonzero(~available.any(axis=1))
        if empty.size:
            raise ValueError(f"Row {empty[0]} of X offers nothing: every row needs an available item.")
        return available


def as_array(labels: list[Label]) -> Any:
    """Labels as an array of their type, or of objects where they are of several, or no scalars."""
    if len({type(label) for label in labels}) == 1 and isinstance(labels[0], str | int | float):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    for place, label in enumerate(labels):
        array[place] = label
    return array


def row_weights(sample_weight: Any, rows: Any) -> Vec:
    """How much each row counts; 1 without weights."""
    weight: Vec = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    if not weight.sum() > 0.0:
        raise ValueError("The sample weights are all zero: at least one choice must count.")
    return weight
