"""Frames whose columns come and go: brought to the items known so far, with the new ones behind them."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from rankstream._core.types import Codes, Label, Vec


def align(X: Any, names: list[Label], items: list[Label], may_add: bool) -> tuple[Vec, list[Label], Codes]:
    """The matrix with one column per item, the items, and where each column of X went.

    Items that X does not name are not available in it; new ones come last, where they are allowed.

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
