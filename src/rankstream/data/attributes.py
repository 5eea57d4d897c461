"""Attributes of items, such as brand and size: what is known of an item that was rarely offered, or never."""

import csv
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from itertools import zip_longest
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from rankstream._core.types import Label, Mask, Vec

MAX_COLUMNS = 100  # of numbers and levels; part-worths of more would hardly be told apart
SPARE_ITEMS = 3  # items beyond one for each column, without which the columns explain anything
Rows = Mapping[Any, Mapping[str, Any]]
"""The attributes of each item: by item, then by column."""


@dataclass(frozen=True, eq=False)
class Attributes:
    """A table of items with columns of numbers or words; the no-purchase option, such as "nothing", has no row.

    For a fit, numbers are standardised, and each word of a column is a level. Items that differ in no column are
    allowed: their own choices tell them apart.

    Parameters
    ----------
    items : items
        One for each row.
    columns : mapping from names to values
        The values of each column, in the order of the items: all numbers, or all words.

    Examples
    --------
    >>> table = Attributes(["tea", "pie", "cake", "rum"], {"size": [250, 100, 150, 500]})
    >>> table.design(["rum", "nothing"])[0].round(2).tolist()
    [[1.62], [0.0]]
    """

    items: Sequence[Label]
    columns: Mapping[str, Sequence[Any]]

    def __post_init__(self) -> None:
        size, columns = 0, {}
        for name, values in self.columns.items():
            numeric = any(_number(value) is not None for value in values)
            cells = tuple(_cell(name, *pair, numeric) for pair in zip(self.items, values, strict=True))
            if (differing := len(set(cells))) < 2:
                raise ValueError(f"The attribute {name!r} is the same for all {len(cells)} items: remove it.")
            columns[str(name)], size = cells, size + (1 if numeric else differing - 1)
        object.__setattr__(self, "items", tuple(self.items))
        object.__setattr__(self, "columns", columns)
        most = max(0, min(MAX_COLUMNS, len(self.items) - SPARE_ITEMS))
        if not 0 < size <= most:
            raise ValueError(
                f"{len(self.items)} items allow 1 to {most} columns of attributes, and these have {size} (words count "
                "as one less than they have levels): leave some out."
            )

    @cached_property
    def _rows(self) -> dict[str, dict[str, Any]]:
        names, cells = [str(item).strip() for item in self.items], zip(*self.columns.values(), strict=True)
        return {name: dict(zip(self.columns, row, strict=True)) for name, row in zip(names, cells, strict=True)}

    def extend(self, rows: Rows) -> "Attributes":
        """Return a table with more items; columns that this table lacks are ignored."""
        whole = {**self._rows, **rows}
        return Attributes(tuple(whole), {name: [row.get(name) for row in whole.values()] for name in self.columns})

    def without(self, items: Iterable[Label]) -> Rows:
        """Return the rows of all other items."""
        known = {str(item).strip() for item in items}
        rows = zip(self.items, self._rows.items(), strict=True)
        return {item: row for item, (name, row) in rows if name not in known}

    def to_content(self) -> dict[str, Any]:
        """Return the arguments of a table with the same rows, for JSON."""
        return {"items": list(self.items), "columns": {name: list(cells) for name, cells in self.columns.items()}}

    @cached_property
    def coded(self) -> list[str]:
        """The column behind each column of ``matrix``: one of numbers, or one for each level."""
        numeric = {name: isinstance(cells[0], float) for name, cells in self.columns.items()}
        return [name for name, cells in self.columns.items() for _ in ([0] if numeric[name] else set(cells))]

    @cached_property
    def matrix(self) -> Vec:
        """A row for each item: standardised numbers, and for each level 1 or 0 less its share of the items."""
        return self.code(self._rows)[0]

    def design(self, items: Iterable[Label]) -> tuple[Vec, Mask]:
        """Return the coded rows of these items, 0 for those without a row, and which of them have one."""
        place = {name: number for number, name in enumerate(self._rows)}
        places = np.array([place.get(str(item).strip(), -1) for item in items])
        return np.where(places[:, np.newaxis] >= 0, self.matrix[places], 0.0), places >= 0

    def code(self, rows: Rows) -> tuple[Vec, list[str]]:
        """Return the coded rows of new items, and a sentence for each level that no item of this table has.

        Such a level counts as average. Columns that this table lacks are ignored.
        """
        numbers, sentences = [], []
        for item, row in rows.items():
            coded: list[float] = []
            for name, values in self.columns.items():
                value: Any = _cell(name, item, row.get(name), isinstance(values[0], float))
                if isinstance(value, float):
                    coded.append((value - float(np.mean(values))) / float(np.std(values)))
                    continue
                known = value in values
                coded += [
                    known * ((value == level) - values.count(level) / len(values)) for level in sorted(set(values))
                ]
                if not known:
                    sentences.append(f"No item of the fit has the {name} {value!r} of {item!r}: it counts as average.")
            numbers.append(coded)
        return np.array(numbers), sentences


AttributeSource = Attributes | Rows | str | os.PathLike[str]
"""What ``read_attributes`` takes."""


def read_attributes(source: AttributeSource) -> Attributes:
    """Read a table of items and their attributes: a CSV file whose first column is the item, or a dict of dicts."""
    if isinstance(source, Attributes):
        return source
    rows = attribute_rows(source)
    names = dict.fromkeys(name for row in rows.values() for name in row)
    return Attributes(tuple(rows), {name: [row.get(name) for row in rows.values()] for name in names})


def attribute_rows(source: "str | os.PathLike[str] | Rows") -> Rows:
    """Return the attributes of each item, from a CSV file or as they are."""
    if isinstance(source, Mapping):
        return source
    rows: dict[str, dict[str, str]] = {}
    for number, line in enumerate(read_lines(Path(source), "a CSV file whose first column is the item"), start=2):
        item, *_ = line.values()
        if not item or item in rows:
            raise ValueError(f"Line {number} of {source} has the item {item!r}: give every item one line.")
        rows[item] = dict(list(line.items())[1:])
    return rows


def read_lines(path: Path, wanted: str) -> list[dict[str, str]]:
    """Return the lines of a small CSV file, by column; ``wanted`` says what to give if there is no file."""
    if not path.is_file():
        raise ValueError(f"There is no file {path}: give {wanted}.")
    try:
        text = path.read_bytes().decode("utf-8-sig")
        mark = max(",;", key=text.partition("\n")[0].count)  # of two counted equally often, the comma
        rows = csv.reader(StringIO(text, newline=""), delimiter=mark)
        heads, *lines = [[cell.strip() for cell in line] for line in rows if line] or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8 ({error}): save it as one.") from None
    if len(set(heads)) < len(heads):
        raise ValueError(f"{path} has a column twice: it has {heads}.")
    if not lines:
        raise ValueError(f"{path} has no items: add a line for each.")
    for number, line in enumerate(lines, start=2):
        if len(line) > len(heads):
            raise ValueError(f"Line {number} of {path} has more fields than columns: write 1.3, not 1,3.")
    if mark == ";":  # as in countries that write 1,3
        lines = [[re.sub(r"^([-+]?\d+),(\d+)$", r"\1.\2", cell) for cell in line] for line in lines]
    return [dict(zip_longest(heads, line, fillvalue="")) for line in lines]


def _cell(name: str, item: Label, value: Any, numeric: bool) -> float | str:
    text, number = "" if value is None else str(value).strip(), _number(value)
    if not text:
        raise ValueError(f"{name!r} of {item!r} is empty: give a value (the no-purchase option needs no row).")
    if numeric and number is None:
        raise ValueError(
            f"{name!r} of {item!r} is {text!r}, other items have numbers: give a number, or words for all."
        )
    return number if numeric and number is not None else text


def _number(value: Any) -> float | None:
    try:
        return float(value) if isfinite(float(value)) else None
    except (TypeError, ValueError):
        return None
