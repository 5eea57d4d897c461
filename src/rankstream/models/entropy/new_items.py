"""Items that were never offered: what they are worth to each class of a law over rankings, by their attributes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rankstream._core.types import Vec
from rankstream.data.assortments import Assortments
from rankstream.data.attributes import Attributes, Rows
from rankstream.models.answers import OUTSIDE_NAMES
from rankstream.models.entropy.ranking_laws import RankingLaw, plackett_luce
from rankstream.models.parametric.mnl import PRIOR_EFFECTS, PRIOR_SQUARES

MIN_WORTH = 1e-3  # of an item relative to the mean of its class: less says nothing about attributes
MAX_LOG = 300.0  # of a worth, so that none is infinite
MIN_VARIANCE = 1e-12  # of log worths, so that none is divided by 0
N_DRAWS = 4000  # of part-worths, for intervals of importance
MIN_FREEDOM = 2.0  # degrees of freedom of an error
RIDGES = (*np.geomspace(0.1, 1000.0, 9).tolist(), 1e9)  # tried; with the last, every new item counts as average


def check_rows(offers: Assortments, attributes: Attributes) -> None:
    """Raise a ValueError if an item of these offers has no row, unless it is the no-purchase option."""
    if offers.order:
        raise ValueError("Attributes do not work with an order of the items, such as price levels: leave one out.")
    free = attributes.design(offers.items)[1] | (np.arange(offers.n_items) == offers.no_choice_code)
    for item in [item for code, item in enumerate(offers.items) if not free[code]]:
        if str(item).strip().lower() not in OUTSIDE_NAMES:
            raise ValueError(f"The attributes have no row for {item!r}, which was offered: add one.")


def add_items(
    prior: RankingLaw, attributes: Attributes, n_known: int, new: Rows, random: np.random.Generator | None = None
) -> tuple[RankingLaw, list[str]]:
    """Return the law with more items, and what is to be said about levels that no item of the fit has.

    The log of what an item is worth to a class is regressed on the attributes, for the first ``n_known`` items. With
    ``random``, it is drawn around that with the errors of items left out, for intervals: one draw from Student's t for
    all classes. New items do not change the order of the others, because Plackett-Luce classes are consistent under
    deletion. So a tilted law stays the same on them, with the same duals and the same normaliser.

    >>> law = plackett_luce(["tea", "pie", "cake", "rum"], [[8.0, 1.0, 2.0, 4.0]])
    >>> table = Attributes(("tea", "pie", "cake", "rum"), {"size": [4, 1, 2, 3]})
    >>> add_items(law, table, 4, {"egg": {"size": 2.5}})[0].attraction.round(2).tolist()
    [[0.45, 0.06, 0.11, 0.22, 0.16]]
    """
    coded, unknown = attributes.code(new)
    regression, centre = explain_worths(prior, attributes, n_known)
    drawn = 0.0 if random is None else regression.error * random.standard_t(regression.freedom, size=len(coded))
    worth = np.exp(np.clip(regression.predict(coded - centre) + drawn, -MAX_LOG, MAX_LOG))
    return plackett_luce((*prior.items, *new), np.hstack([prior.attraction, worth]), prior.class_weights), unknown


class Importance(NamedTuple):
    """The share of what items are worth that an attribute explains, and the ends of its interval."""

    share: float
    low: float
    high: float


class WorthRegression:
    """Ridge regressions of log worths, classes by items, on coded rows with a mean of 0, and their weights.

    Several ridges are tried; the last one gives every new item the average log worth. Each is weighted by how well it
    predicts what items are worth that are left out, for all classes together; that last one has about half of the
    weight in advance. So attributes are used as far as they help. ``error`` is the standard error of such a prediction.
    """

    def __init__(self, worth: Vec, class_weights: Vec, rows: Vec) -> None:
        self.class_weights, self.rows, size = class_weights, rows, len(rows)
        self.logs = np.log(np.maximum(worth, MIN_WORTH * worth.mean(axis=1, keepdims=True)))
        self.level = self.logs.mean(axis=1, keepdims=True)
        self.deviations, tried = self.logs - self.level, []
        for ridge in RIDGES:
            solution = np.linalg.solve(self._curvature(ridge), rows.T)
            smoother = rows @ solution + 1.0 / size
            errors = self.deviations @ (np.eye(size) - smoother) / (1.0 - np.diag(smoother))
            cost = float(class_weights @ (errors**2).sum(axis=1)) + PRIOR_SQUARES
            tried.append((cost, max(size - float(np.trace(smoother)), MIN_FREEDOM), self.deviations @ solution.T))
        self.costs, self.freedoms, self.part_worths = (np.array(part) for part in zip(*tried, strict=True))
        weights = (self.costs / self.costs.min()) ** (-0.5 * size)  # likelihoods of errors with an unknown variance
        weights[-1] *= len(RIDGES)
        self.weights = weights / weights.sum()
        self.mean_part_worths: Vec = np.tensordot(self.weights, self.part_worths, 1)
        self.error = float(np.sqrt(self.weights @ self.costs / (size + PRIOR_EFFECTS)))
        self.freedom = float(self.weights @ self.freedoms)

    def _curvature(self, ridge: float) -> Vec:
        curved: Vec = self.rows.T @ self.rows + ridge * np.eye(self.rows.shape[1])
        return curved

    def predict(self, rows: Vec) -> Vec:
        """Return the log worths of new items, classes by items."""
        expected: Vec = self.level + self.mean_part_worths @ rows.T
        return expected

    def importance(self, columns: Sequence[str], interval: float, random: np.random.Generator) -> dict[str, Importance]:
        """Return the share of the variance of log worths that each attribute explains, given the column of each row.

        Intervals are of the posterior: a ridge is drawn by its weight, then part-worths around its solution.
        """
        slopes = self.class_weights[:, np.newaxis] * (self.deviations @ self.rows)
        slopes /= float(self.class_weights @ (self.deviations**2).sum(axis=1)) + MIN_VARIANCE
        which = random.choice(len(RIDGES), size=N_DRAWS, p=self.weights)
        drawn = (slopes * self.part_worths).sum(axis=1)[which]
        for number, ridge in enumerate(RIDGES):
            chosen = which == number
            root = np.linalg.cholesky(np.linalg.inv(self._curvature(ridge)))
            freedom, variance = self.freedoms[number], self.costs[number] / len(self.rows)
            scale = np.sqrt(variance * freedom / random.chisquare(freedom, chosen.sum()))
            shifts = random.normal(size=(chosen.sum(), len(root))) @ root.T
            drawn[chosen] += slopes.sum(axis=0) * shifts * scale[:, np.newaxis]
        found = {}
        for name in dict.fromkeys(columns):
            own = drawn[:, np.array(columns) == name].sum(axis=1)
            ends = np.quantile(own, [0.5 - 0.5 * interval, 0.5 + 0.5 * interval]).tolist()
            found[name] = Importance(float(own.mean()), *ends)
        return found


def explain_worths(prior: RankingLaw, attributes: Attributes, n_known: int) -> tuple[WorthRegression, Vec]:
    """Return the regression of what items are worth to the classes of a law, and the mean row of these items."""
    table, rated = attributes.design(prior.items[:n_known])
    if not rated.any():
        raise ValueError("No item of the fit has attributes: add rows of items that were offered.")
    centre = table[rated].mean(axis=0)
    return WorthRegression(prior.attraction[:, :n_known][:, rated], prior.class_weights, table[rated] - centre), centre
