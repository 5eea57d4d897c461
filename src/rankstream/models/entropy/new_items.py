"""Items that were never offered: what they are worth to each class of a law over rankings, by their attributes."""

import numpy as np

from rankstream._core.types import Vec
from rankstream.data.assortments import Assortments
from rankstream.data.attributes import Attributes, Rows
from rankstream.models.answers import OUTSIDE_NAMES
from rankstream.models.entropy.ranking_laws import RankingLaw, plackett_luce
from rankstream.models.parametric.mnl import PRIOR_EFFECTS, PRIOR_SQUARES

MIN_WORTH = 1e-3  # of an item relative to the mean of its class: less says nothing about attributes
MAX_LOG = 300.0  # of a worth, so that none is infinite
MIN_FREEDOM = 2.0  # degrees of freedom of an error
RIDGES = (*np.geomspace(0.1, 1000.0, 9).tolist(), 1e9)  # tried; with the last, every new item counts as average


def attributes_of(offers: Assortments, attributes: Attributes) -> Attributes:
    """Return the rows of the items of these offers, which all need one but for the outside option."""
    if offers.order:
        raise ValueError("Attributes do not work with an order of the items, such as price levels: leave one out.")
    outside = {item for item in offers.items if str(item).strip().lower() in OUTSIDE_NAMES}
    outside |= set() if offers.no_choice_code is None else {offers.items[offers.no_choice_code]}
    return attributes.among(offers.items, outside)


def add_items(
    prior: RankingLaw, attributes: Attributes, rows: Rows, random: np.random.Generator | None = None
) -> tuple[RankingLaw, list[str]]:
    """Return the law with more items, and what is to be said about levels that no item of the fit has.

    The log of what an item is worth to a class is regressed on the attributes. With ``random``, it is drawn around that
    with the errors of items left out, for intervals: one draw from Student's t for all classes. New items do not change
    the order of the others, because Plackett-Luce classes are consistent under deletion. So a tilted law stays the same
    on them, with the same duals and the same normaliser.

    >>> law = plackett_luce(["tea", "pie", "cake", "rum"], [[8.0, 1.0, 2.0, 4.0]])
    >>> table = Attributes(("tea", "pie", "cake", "rum"), {"size": [4, 1, 2, 3]})
    >>> add_items(law, table, {"egg": {"size": 2.5}})[0].attraction.round(2).tolist()
    [[0.45, 0.06, 0.11, 0.22, 0.16]]
    """
    coded, unknown = attributes.code(rows)
    table, rated = attributes.design(prior.items)
    level, part_worths, error, freedom = explain_worths(prior.attraction[:, rated], prior.class_weights, table[rated])
    drawn = 0.0 if random is None else error * random.standard_t(freedom, size=len(coded))
    worth = np.exp(np.clip(level[:, np.newaxis] + part_worths @ coded.T + drawn, -MAX_LOG, MAX_LOG))
    return plackett_luce((*prior.items, *rows), np.hstack([prior.attraction, worth]), prior.class_weights), unknown


def explain_worths(worth: Vec, class_weights: Vec, rows: Vec) -> tuple[Vec, Vec, float, float]:
    """Return level and part-worths of each class, by ridge regression of log worths, classes by items, on coded rows.

    Several ridges are tried, the last of which gives every new item the average log worth. Their solutions are weighted
    by how well they predict what items are worth that are left out, for all classes together; that last one has about
    half of the weight in advance. So attributes are used as far as they help. With it come the standard error of such a
    prediction, and its degrees of freedom.
    """
    logs = np.log(np.maximum(worth, MIN_WORTH * worth.mean(axis=1, keepdims=True)))
    level, size = logs.mean(axis=1, keepdims=True), len(rows)
    tried: list[tuple[float, float, Vec]] = []
    for ridge in RIDGES:  # rows have a mean of 0, so that level and part-worths do not depend on each other
        solution = np.linalg.solve(rows.T @ rows + ridge * np.eye(rows.shape[1]), rows.T)
        smoother = rows @ solution + 1.0 / size
        errors = (logs - level) @ (np.eye(size) - smoother) / (1.0 - np.diag(smoother))
        cost = float(class_weights @ (errors**2).sum(axis=1)) + PRIOR_SQUARES
        tried.append((cost, size - float(np.trace(smoother)), solution))
    costs, freedoms, solutions = (np.array(part) for part in zip(*tried, strict=True))
    weights = (costs / costs.min()) ** (-0.5 * size)  # likelihoods of normal errors with an unknown variance
    weights[-1] *= len(RIDGES)
    weights /= weights.sum()
    error = np.sqrt(float(weights @ costs) / (size + PRIOR_EFFECTS))
    part_worths = (logs - level) @ np.tensordot(weights, solutions, 1).T
    return level[:, 0], part_worths, float(error), max(float(weights @ freedoms), MIN_FREEDOM)
