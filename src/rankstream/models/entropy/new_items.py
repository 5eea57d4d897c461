"""Items that were never offered: what they are worth to each class of a law over rankings, by their attributes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rankstream._core.types import Vec
from rankstream.data.assortments import Assortments
from rankstream.data.attributes import Attributes, Rows
from rankstream.models.answers import OUTSIDE_NAMES
from rankstream.models.entropy.ranking_laws import RankingLaw, plackett_luce
from rankstream.models.parametric.attribute_logit import ITEM_EFFECTS, ITEM_SQUARES

MIN_WORTH = 1e-3  # of an item relative to the mean of its class: less says nothing about attributes
MAX_LOG = 300.0  # of a worth, so that none is infinite
MIN_VARIANCE = 1e-12  # of log worths, so that none is divided by 0
N_DRAWS = 4000  # of part-worths, for intervals of importance
MIN_NORM = 1e-9  # of residuals: less is rounding
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
    ``random``, it is drawn around that, for intervals. New items do not change the order of the others, because
    Plackett-Luce classes are consistent under deletion. So a tilted law stays the same on them, with the same duals and
    the same normaliser.

    >>> law = plackett_luce(["tea", "pie", "cake", "rum"], [[8.0, 1.0, 2.0, 4.0]])
    >>> table = Attributes(("tea", "pie", "cake", "rum"), {"size": [4, 1, 2, 3]})
    >>> add_items(law, table, 4, {"egg": {"size": 2.5}})[0].attraction.round(2).tolist()
    [[0.45, 0.06, 0.11, 0.22, 0.16]]
    """
    coded, unknown = attributes.code(new)
    regression, centre = explain_worths(prior, attributes, n_known)
    worth = np.exp(np.clip(regression.predict(coded - centre, random), -MAX_LOG, MAX_LOG))
    return plackett_luce((*prior.items, *new), np.hstack([prior.attraction, worth]), prior.class_weights), unknown


class Importance(NamedTuple):
    """The share of what items are worth that an attribute explains, and the ends of its interval."""

    share: float
    low: float
    high: float


class WorthRegression:
    """Bayesian ridge regressions of log worths, classes by items, on coded rows with a mean of 0.

    What the classes have in common, their mean, is regressed on its own, and so is how each deviates from it. An effect
    of an item that all classes share is noise in the mean alone: a few items tell how classes differ by attributes.
    Each of these parts is averaged over ridges by their marginal likelihoods. The last ridge gives every new item the
    average log worth and has about half of the weight in advance. So attributes are used as far as they help.
    """

    def __init__(self, worth: Vec, class_weights: Vec, rows: Vec) -> None:
        self.class_weights, self.rows, ridges = class_weights / class_weights.sum(), rows, np.array(RIDGES)
        self.logs = np.log(np.maximum(worth, MIN_WORTH * worth.mean(axis=1, keepdims=True)))
        parts = np.vstack([mean := self.class_weights @ self.logs, self.logs - mean])
        deviations, self.freedom = parts - parts.mean(axis=1, keepdims=True), len(rows) - 1.0 + ITEM_EFFECTS
        values, self.vectors = np.linalg.eigh(rows.T @ rows)
        self.inverse = 1.0 / (np.maximum(values, 0.0) + ridges[:, np.newaxis])  # eigenvalues, for each ridge
        slopes, scales = deviations @ rows @ self.vectors, self.inverse[:, np.newaxis]
        self.part_worths = (slopes * scales) @ self.vectors.T  # ridges, parts, columns
        squares = (deviations**2).sum(axis=1) - (slopes**2 * scales).sum(axis=2) + ITEM_SQUARES
        self.weights, self.variances = self._weigh(squares, len(RIDGES)), squares / self.freedom
        average = np.einsum("rp,rpc->pc", self.weights, self.part_worths)
        self.mean_part_worths: Vec = average[0] + average[1:]
        self.residuals = deviations - average @ rows.T

    def _weigh(self, squares: Vec, before: float) -> Vec:
        """Return the weights of ridges by their squared errors, a row for each; ``before`` is that of the last one."""
        determinants = np.log(self.inverse * np.array(RIDGES)[:, np.newaxis]).sum(axis=1, keepdims=True)
        heights = 0.5 * (determinants - self.freedom * np.log(squares))
        weights: Vec = np.exp(heights - heights.max(axis=0))
        weights[-1] *= before
        weights /= weights.sum(axis=0)
        return weights

    def predict(self, rows: Vec, random: np.random.Generator | None = None) -> Vec:
        """Return the log worths of new items, classes by items; with ``random``, drawn with the errors of a new item.

        Errors follow Student's t, and go together among the classes as far as their residuals do.
        """
        answers = self.part_worths @ rows.T
        expected = np.einsum("rp,rpi->pi", self.weights, answers)
        if random is not None:
            spread = 1.0 + 1.0 / len(self.rows) + self.inverse @ ((rows @ self.vectors) ** 2).T  # ridges by items
            variance = np.einsum("rp,rpi->pi", self.weights, (answers - expected) ** 2)
            variance += np.einsum("rp,ri->pi", self.weights * self.variances, spread)
            unit = self.residuals / np.maximum(np.linalg.norm(self.residuals, axis=1, keepdims=True), MIN_NORM)
            drawn = unit @ random.normal(size=(len(self.rows), len(rows)))
            drawn *= np.sqrt(self.freedom / random.chisquare(self.freedom, len(rows)))
            expected = expected + np.sqrt(variance) * drawn
        worths: Vec = expected[0] + expected[1:] + self.logs.mean(axis=1, keepdims=True)
        return worths

    def importance(self, columns: Sequence[str], interval: float, random: np.random.Generator) -> dict[str, Importance]:
        """Return the share of the variance of log worths that each attribute explains, given the column of each row.

        Here all classes have the same ridge and errors of the same variance, and their errors go together: an attribute
        that explains a little of each class by chance explains nothing. Intervals are of the posterior.
        """
        deviations = self.logs - self.logs.mean(axis=1, keepdims=True)
        slopes = self.class_weights[:, np.newaxis] * (deviations @ self.rows)
        slopes /= float(self.class_weights @ (deviations**2).sum(axis=1)) + MIN_VARIANCE
        part_worths = self.part_worths[:, :1] + self.part_worths[:, 1:]
        squares = (deviations * (deviations - part_worths @ self.rows.T)).sum(
            axis=2
        ) @ self.class_weights + ITEM_SQUARES
        which = random.choice(len(RIDGES), size=N_DRAWS, p=self._weigh(squares[:, np.newaxis], 1.0)[:, 0])
        used = len(self.vectors) - self.inverse.sum(axis=1) * RIDGES  # part-worths that are not shrunk away
        scale = np.sqrt(squares[which] / random.chisquare(np.maximum(self.freedom - used, MIN_FREEDOM)[which]))
        shifts = random.normal(size=(N_DRAWS, len(self.vectors))) * np.sqrt(self.inverse[which]) @ self.vectors.T
        drawn = (slopes * part_worths).sum(axis=1)[which] + slopes.sum(axis=0) * shifts * scale[:, np.newaxis]
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
