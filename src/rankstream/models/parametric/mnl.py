"""The multinomial logit: every item has one attraction, and is chosen in proportion to it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.old_names import old_keywords
from rankstream._core.types import Codes, Vec
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import observed
from rankstream.models.parametric.base import Fitted, fit_facts

SMOOTHING = 0.5  # imaginary choices of each item: see ``fit_mnl``


@dataclass(frozen=True, kw_only=True, eq=False)
class LogitModel(Fitted):
    """A multinomial logit: every item is chosen in proportion to its attraction.

    It also has the attributes of ``Fitted``.

    Attributes
    ----------
    attraction : array
        ``attraction[i]`` belongs to ``items[i]``; they sum to 1.
    """

    FORMAT: ClassVar[str] = "rankstream-logit-model"
    ARRAYS: ClassVar[dict[str, str]] = {"attraction": "n"}
    attraction: Vec

    def shares(self, indptr: Codes, members: Codes) -> Vec:
        """Return each item's attraction as a share of its offer's."""
        return logit_shares(self.attraction, indptr, members)

    def draw_orders(self, size: int, random: np.random.Generator) -> Codes:
        """Draw rankings from the top, in proportion to attraction."""
        return plackett_luce_orders(np.tile(self.attraction, (size, 1)), random)


@old_keywords(max_steps="max_rounds")
def fit_mnl(counts: ChoiceCounts, *, smoothing: float = SMOOTHING, max_rounds: int = 200, seed: int = 0) -> LogitModel:
    """Fit the maximum-likelihood logit, by Newton steps on the tallies; time does not grow with the observations.

    The optimum exists only if no group of items always beats the others. So every item also gets ``smoothing``
    imaginary choices from an offer of all items: an item without choices keeps a small attraction, and one that was
    never offered counts as average. Half a choice makes no difference with many data and predicts better with few;
    1e-6 is maximum likelihood. Nothing is random; ``seed`` exists for consistency with the other fits.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> counts = ChoiceCounts(Assortments([("tea", "pie"), ("pie", "cake")]), [600, 200, 100, 100])
    >>> fit_mnl(counts).predict(("tea", "cake"))
    {'tea': 0.74..., 'cake': 0.25...}
    """
    number_between("smoothing", smoothing, 1e-9)
    whole_number("max_rounds", max_rounds, least=1)
    whole_number("seed", seed)
    data = observed(counts)
    offered, chosen = _with_imaginary_offer(data, smoothing)
    utility = np.log(chosen.sum(axis=0) / offered.sum(axis=0))
    shown = chosen.sum(axis=1)
    converged, step_number = False, 0
    while not converged and step_number < max_rounds:
        step_number += 1
        step, decrease = _newton_step(utility, offered, chosen, shown)
        reach = float(np.ptp(step))
        # log(1 + r) / r is a step length that cannot overshoot if the third derivative is at most r times the second
        utility = utility + step * (np.log1p(reach) / reach if reach > 0.0 else 1.0)
        utility -= utility.max()
        converged = decrease <= 1e-18 * max(1.0, shown.sum())
    attraction = np.exp(utility) / np.exp(utility).sum()
    shares = logit_shares(attraction, data.assortments.indptr, data.assortments.members)
    facts = fit_facts(data, shares, step_number, converged)
    return LogitModel(**facts, n_parameters=len(attraction) - 1, attraction=attraction)


def logit_shares(attraction: Vec, indptr: Codes, members: Codes) -> Vec:
    """Return attractions as shares of their offers' sums."""
    values = attraction[members]
    shares: Vec = values / np.repeat(np.add.reduceat(values, indptr[:-1]), np.diff(indptr))
    return shares


def plackett_luce_orders(attraction: Vec, random: np.random.Generator) -> Codes:
    """Draw a ranking for each row of attractions, from the top in proportion to them."""
    clocks = random.exponential(size=attraction.shape) / np.maximum(attraction, 1e-300)
    return np.argsort(clocks, axis=1)


def _with_imaginary_offer(data: ChoiceCounts, smoothing: float) -> tuple[Vec, Vec]:
    """Return two matrices, offers by items: 1 if offered, and choices; the last row is the imaginary offer."""
    offers = data.assortments
    offered = np.zeros((offers.n_offers + 1, offers.n_items))
    chosen = np.zeros_like(offered)
    offered[offers.owner, offers.members] = 1.0
    chosen[offers.owner, offers.members] = data.tallies
    offered[-1], chosen[-1] = 1.0, smoothing
    return offered, chosen


def _newton_step(utility: Vec, offered: Vec, chosen: Vec, shown: Vec) -> tuple[Vec, float]:
    """Return the step that maximises the likelihood's quadratic model, and twice the predicted gain."""
    attraction = offered * np.exp(utility)
    shares = attraction / attraction.sum(axis=1, keepdims=True)
    expected = shown @ shares
    gradient = chosen.sum(axis=0) - expected
    curvature = np.diag(expected) - (shares * shown[:, None]).T @ shares
    scale = 1.0 / np.sqrt(expected)
    fixed = curvature * np.outer(scale, scale) + np.outer(expected * scale, expected * scale) / expected.sum()
    step = scale * np.linalg.solve(fixed, gradient * scale)
    return step, float(gradient @ step)
