"""Availability matrices, as scikit-learn has them: from rows of features and choices to ChoiceCounts."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rankstream._core.types import Codes, Label, Mask, Vec
from rankstream.data.assortments import Assortments, as_offer
from rankstream.data.counts import ChoiceCounts


def count_availability(
    available: Mask,
    chosen: Codes,
    weight: Vec,
    before: ChoiceCounts | None = None,
    make: Callable[[Assortments], ChoiceCounts] = ChoiceCounts,
) -> tuple[ChoiceCounts, bool]:
    """Counts of rows of an availability matrix, items being column numbers; and whether there were new offers or items.

    Offers are numbered by their columns, not by their rows, so that the order of the rows does not matter.

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
    """The labels of a frame's columns, and whether they are more than the default 0, 1, ...; none for plain arrays."""
    if not hasattr(X, "columns"):
        return [], False
    names = list(as_offer("The list of columns", X.columns))
    return names, names != list(range(len(names)))


def choice_columns(chosen: Any, names: list[Label], named: bool, outside_allowed: bool) -> Codes:
    """The column of every choice: all by name, or all by position where names are no numbers.

    The position one past the last column is the outside option, where that is allowed.
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
