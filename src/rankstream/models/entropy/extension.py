"""Items that were never offered: what they are worth to each class of a law over rankings, by their attributes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankstream._core.types import Vec
from rankstream.data.assortments import Assortments
from rankstream.data.attributes import Attributes, Rows
from rankstream.models.answers import OUTSIDE_NAMES
from rankstream.models.base import finite_array
from rankstream.models.entropy.ranking_laws import RankingLaw, plackett_luce

MIN_WORTH = 1e-3  # of an item relative to the mean of its class: less says nothing about attributes
RIDGES = (*np.geomspace(0.1, 1000.0, 9).tolist(), 1e9)  # tried; with the last, every new item counts as average


@dataclass(frozen=True, eq=False)
class Extension:
    """How a law grows by items with attributes.

    A new item with the coded attributes x is worth ``mean * exp(level[k] + part_worths[k] @ x)`` to class k, where
    the mean is over the items with attributes. New items do not change the order of the others: Plackett-Luce classes
    are consistent under deletion. So a tilted law stays the same on them, with the same duals and the same normaliser.
    """

    attributes: Attributes
    level: Vec
    part_worths: Vec

    def extend(self, prior: RankingLaw, rows: Rows) -> tuple[RankingLaw, list[str]]:
        """Return the law with more items, and what is to be said about levels that no item of the fit has."""
        coded, unknown = self.attributes.code(rows)
        mean = prior.attraction[:, self.attributes.design(prior.items)[1]].mean(axis=1, keepdims=True)
        worth = mean * np.exp(self.level[:, np.newaxis] + self.part_worths @ coded.T)
        return plackett_luce((*prior.items, *rows), np.hstack([prior.attraction, worth]), prior.class_weights), unknown

    def to_content(self) -> dict[str, Any]:
        """Return the content of a file."""
        table = self.attributes
        content = {
            "items": list(table.items),
            "columns": {name: list(values) for name, values in table.columns.items()},
        }
        return content | {"level": self.level.tolist(), "part_worths": self.part_worths.tolist()}

    @classmethod
    def from_content(cls, content: Mapping[str, Any], classes: int) -> "Extension":
        """Return what ``to_content`` wrote, for a law of so many classes."""
        table = Attributes(tuple(content["items"]), content["columns"])
        part_worths = finite_array("part-worths", content["part_worths"], (classes, table.matrix.shape[1]))
        return cls(table, finite_array("levels", content["level"], (classes,)), part_worths)


def attributes_of(offers: Assortments, attributes: Attributes) -> Attributes:
    """Return the rows of the items of these offers, which all need one but for the outside option."""
    if offers.order:
        raise ValueError("Attributes do not work with an order of the items, such as price levels: leave one out.")
    nothing = set() if offers.no_choice_code is None else {offers.items[offers.no_choice_code]}
    outside = {item for item in offers.items if str(item).strip().lower() in OUTSIDE_NAMES}
    return attributes.among(offers.items, outside | nothing)


def explain_worths(law: RankingLaw, attributes: Attributes, part_worths: Vec | None) -> tuple[Vec, Vec]:
    """Return level and part-worths of each class; without part-worths, by ridge regression of its log worths.

    The ridge is the one that best predicts what an item is worth that is left out, for all classes together.
    """
    table, rated = attributes.design(law.items)
    rows, worth = table[rated], law.attraction[:, rated] / law.attraction[:, rated].mean(axis=1, keepdims=True)
    if part_worths is not None:
        return (np.log(np.maximum(worth, 1e-12)) - part_worths @ rows.T).mean(axis=1), part_worths
    logs = np.log(np.maximum(worth, MIN_WORTH))
    level = logs.mean(axis=1, keepdims=True)
    costs, solutions = [], []
    for ridge in RIDGES:  # rows have a mean of 0, so that level and part-worths do not depend on each other
        solutions.append(np.linalg.solve(rows.T @ rows + ridge * np.eye(rows.shape[1]), rows.T))
        smoother = rows @ solutions[-1] + 1.0 / len(rows)
        errors = (logs - level) @ (np.eye(len(rows)) - smoother) / (1.0 - np.diag(smoother))
        costs.append(float(law.class_weights @ (errors**2).sum(axis=1)))
    return level[:, 0], (logs - level) @ solutions[int(np.argmin(costs))].T
