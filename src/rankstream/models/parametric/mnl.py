"""The multinomial logit: every item has one attraction, and is chosen in proportion to it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Codes, Vec
from rankstream._core.watch import unwatched
from rankstream.data.counts import ChoiceCounts
from rankstream.data.observations import observed
from rankstream.models.parametric.base import Fitted, climb_smooth, fit_facts

SMOOTHING = 0.5  # imaginary choices of each item: see ``fit_mnl``
# of ``fit_shrunk_logit``; chosen on markets of benchmarks/truths.py, seeds 7001 to 7020
SHRUNK_SMOOTHING = 0.1  # enough for an item that is never chosen: the prior does the rest
PRIOR_SQUARES, PRIOR_EFFECTS = 0.25, 1.0  # one item effect seen in advance, of this square: the variance stays above 0
MAX_VARIANCE_ROUNDS, VARIANCE_TOLERANCE = 50, 1e-3  # of the fixed point; the tolerance is relative
MIN_NEVER_NATS, MIN_NEVER_SHARE = 1.0, 0.01  # never-buyers who explain less, or are fewer, are left out
NEVER_ATTRACTION = 1e-9  # of other items to a never-buyer


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


def fit_mnl(counts: ChoiceCounts, *, smoothing: float = SMOOTHING, max_rounds: int = 200) -> LogitModel:
    """Fit the maximum-likelihood logit, by Newton steps on the tallies; time does not grow with the observations.

    The optimum exists only if no group of items always beats the others. So every item also gets ``smoothing``
    imaginary choices from an offer of all items: an item without choices keeps a small attraction, and one that was
    never offered counts as average. Half a choice makes no difference with many data and predicts better with few;
    1e-6 is maximum likelihood. Nothing is random.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> counts = ChoiceCounts(Assortments([("tea", "pie"), ("pie", "cake")]), [600, 200, 100, 100])
    >>> fit_mnl(counts).predict(("tea", "cake"))
    {'tea': 0.74..., 'cake': 0.25...}
    """
    number_between("smoothing", smoothing, 1e-9)
    whole_number("max_rounds", max_rounds, least=1)
    data = observed(counts)
    offered, chosen = with_imaginary_offer(data, smoothing)
    start = np.log(chosen.sum(axis=0) / offered.sum(axis=0))
    return _model(data, *_climb(start, offered, chosen, np.zeros((len(start), len(start))), max_rounds))


def fit_shrunk_logit(counts: ChoiceCounts) -> LogitModel:
    """Fit a logit whose utilities are shrunk towards their mean, as far as the choices support it (empirical Bayes).

    Utilities are normal around their mean; that of the no-purchase option is free. MacKay's fixed point estimates their
    variance: the sum of squared effects over the effective number of effects, ``sum(1 - posterior / prior variance)``,
    with posterior variances by Laplace's approximation. With many choices, this is maximum likelihood.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> counts = ChoiceCounts(Assortments([("tea", "pie"), ("pie", "cake")]), [6, 2, 1, 1])
    >>> fit_mnl(counts).predict(("tea", "cake"))["tea"], fit_shrunk_logit(counts).predict(("tea", "cake"))["tea"]
    (0.66..., 0.53...)
    """
    data = observed(counts)
    offered, chosen = with_imaginary_offer(data, SHRUNK_SMOOTHING)
    utility = np.log((chosen.sum(axis=0) + SMOOTHING) / (offered.sum(axis=0) + SMOOTHING))
    shrunk = (np.arange(len(utility)) != data.assortments.no_choice_code).astype(float)
    deviation = np.diag(shrunk) - np.outer(shrunk, shrunk) / max(1.0, shrunk.sum())  # from their mean
    variance, steps, converged = 1.0, 0, False
    for _ in range(MAX_VARIANCE_ROUNDS):
        utility, taken, climbed = _climb(utility, offered, chosen, deviation / variance)
        steps += taken
        _, curvature = _curvature(utility, offered, chosen.sum(axis=1))
        posterior = float(np.trace(deviation @ np.linalg.inv(curvature + deviation / variance)))
        effects = float(np.trace(deviation)) - posterior / variance
        squares = float(utility @ deviation @ utility)
        before, variance = variance, (squares + PRIOR_SQUARES) / (effects + PRIOR_EFFECTS)
        if converged := climbed and abs(variance - before) <= VARIANCE_TOLERANCE * before:
            break
    return _model(data, utility, steps, converged)


def fit_never_buyers(counts: ChoiceCounts) -> tuple[tuple[LogitModel, ...], Vec]:
    """Fit a shrunk logit beside customers who take nothing whatever is there; return both with their shares.

    The share of never-buyers and the utilities of the others have the greatest likelihood together, with half an
    imaginary choice of each item and one of somebody who is no never-buyer. Then the shrunk logit is fitted to the
    choices that are expected to be of the others. It is alone without a no-choice item, and where never-buyers would be
    less than a hundredth or gain less than a nat.

    Examples
    --------
    >>> from rankstream import Assortments
    >>> offers = Assortments([("tea", "no"), ("pie", "no"), ("cake", "no"), ("tea", "pie", "cake", "no")])
    >>> counts = ChoiceCounts(offers, [350, 650, 350, 650, 350, 650, 175, 175, 175, 475])
    >>> models, shares = fit_never_buyers(counts)  # of 1,000 each, 300 never buy
    >>> shares.round(1).tolist(), round(models[0].predict(("tea", "no"))["no"], 2)
    ([0.7, 0.3], 0.5)
    """
    data, plain = observed(counts), fit_shrunk_logit(counts)
    offers, code, tallies = data.assortments, data.assortments.no_choice_code, data.tallies
    if code is None:
        return (plain,), np.ones(1)
    n_items, nothing = offers.n_items, offers.members == code

    def others(point: Vec) -> tuple[Vec, Vec, float]:
        """Return the others' probabilities, their part of the choices, and the share of never-buyers."""
        never = 1.0 / (1.0 + np.exp(-point[-1]))
        share = logit_shares(np.exp(point[:-1] - point[:-1].max()), offers.indptr, offers.members)
        return share, np.where(nothing, (1.0 - never) * share / ((1.0 - never) * share + never), 1.0), never

    def cost(point: Vec) -> tuple[float, Vec]:
        share, part, never = others(point)
        thin, everything = tallies * part, logit_shares(np.exp(point[:-1] - point[:-1].max()), *whole)
        expected = np.add.reduceat(thin, offers.indptr[:-1])[offers.owner] * share
        slope = np.bincount(offers.members, thin - expected, n_items) + SMOOTHING * (1.0 - n_items * everything)
        by_never = float((tallies - thin).sum()) - never * (float(tallies.sum()) + 1.0)
        value = float(tallies @ np.log((1.0 - never) * share / part)) + SMOOTHING * float(np.log(everything).sum())
        return -value - np.log1p(-never), -np.append(slope, by_never)

    whole, utility = (np.array([0, n_items]), np.arange(n_items)), np.log(fit_mnl(data).attraction)
    found = climb_smooth(cost, np.append(utility, -1.0), {"maxiter": 200}, unwatched, "never-buyers")
    _, part, never = others(found.x)
    if never < MIN_NEVER_SHARE or cost(np.append(utility, -30.0))[0] - found.fun < MIN_NEVER_NATS:
        return (plain,), np.ones(1)
    worth = np.where(np.arange(n_items) == code, 0.0, np.log(NEVER_ATTRACTION))
    models = fit_shrunk_logit(ChoiceCounts(offers, tallies * part)), _model(data, worth, 0, True)
    return models, np.array([1.0 - never, never])


def logit_shares(attraction: Vec, indptr: Codes, members: Codes) -> Vec:
    """Return attractions as shares of their offers' sums."""
    values = attraction[members]
    shares: Vec = values / np.repeat(np.add.reduceat(values, indptr[:-1]), np.diff(indptr))
    return shares


def plackett_luce_orders(attraction: Vec, random: np.random.Generator) -> Codes:
    """Draw a ranking for each row of attractions, from the top in proportion to them."""
    clocks = random.exponential(size=attraction.shape) / np.maximum(attraction, 1e-300)
    return np.argsort(clocks, axis=1)


def with_imaginary_offer(data: ChoiceCounts, smoothing: float) -> tuple[Vec, Vec]:
    """Return two matrices, offers by items: 1 if offered, and choices; the last row is the imaginary offer."""
    offers = data.assortments
    offered = np.zeros((offers.n_offers + 1, offers.n_items))
    chosen = np.zeros_like(offered)
    offered[offers.owner, offers.members] = 1.0
    chosen[offers.owner, offers.members] = data.tallies
    offered[-1], chosen[-1] = 1.0, smoothing
    return offered, chosen


def _climb(utility: Vec, offered: Vec, chosen: Vec, penalty: Vec, max_rounds: int = 200) -> tuple[Vec, int, bool]:
    """Return the utilities of greatest likelihood less ``u @ penalty @ u / 2``, Newton's steps, and convergence."""
    shown = chosen.sum(axis=1)
    converged, step_number = False, 0
    while not converged and step_number < max_rounds:
        step_number += 1
        expected, curvature = _curvature(utility, offered, shown)
        gradient = chosen.sum(axis=0) - expected - penalty @ utility
        scale = 1.0 / np.sqrt(expected)
        step = scale * np.linalg.solve((curvature + penalty) * np.outer(scale, scale), gradient * scale)
        reach = float(np.ptp(step))
        # log(1 + r) / r is a step length that cannot overshoot if the third derivative is at most r times the second
        utility = utility + step * (np.log1p(reach) / reach if reach > 0.0 else 1.0)
        utility -= utility.max()
        converged = float(gradient @ step) <= 1e-18 * max(1.0, shown.sum())
    return utility, step_number, converged


def _curvature(utility: Vec, offered: Vec, shown: Vec) -> tuple[Vec, Vec]:
    """Return expected choices, and minus the likelihood's second derivative, made regular along equal utilities."""
    attraction = offered * np.exp(utility)
    shares = attraction / attraction.sum(axis=1, keepdims=True)
    expected = shown @ shares
    curvature = np.diag(expected) - (shares * shown[:, None]).T @ shares
    return expected, curvature + np.outer(expected, expected) / expected.sum()


def _model(data: ChoiceCounts, utility: Vec, steps: int, converged: bool) -> LogitModel:
    attraction = np.exp(utility) / np.exp(utility).sum()
    shares = logit_shares(attraction, data.assortments.indptr, data.assortments.members)
    facts = fit_facts(data, shares, steps, converged)
    return LogitModel(**facts, n_parameters=len(attraction) - 1, attraction=attraction)
