"""Guarantees before any data: the gap after a number of rounds, and the number of rounds for a gap."""

from functools import cache
from math import inf, log, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankstream import distances, learners
from rankstream._core.arguments import number_between, whole_number
from rankstream.data.assortments import Assortments
from rankstream.distances import Bilinear, Distance, HighNorm
from rankstream.learners import Learner, NaiveFrankWolfe


def guaranteed_gap(
    learner: str | Learner[Any],
    distance: str | Distance,
    assortments: Assortments,
    rounds: int,
    data_errors: ArrayLike | None = None,
    of_norm: bool = False,
) -> float:
    """Return a bound on D(x_bar, p) - min D(x, p) after a number of rounds, whatever the data are.

    It is the learner's regret bound (Theorems OMD, s-OMD, s-FTL) plus the data error of Theorem 2; for naive
    Frank-Wolfe it is the rate of Freund and Grigas (Appendix F), in which the data errors are divided by the smoothing.

    Parameters
    ----------
    learner : str or Learner
        The dual player; a name is tuned to the rounds.
    distance : str or Distance
        The distance. If a named norm is smoothed for the learner, the bound is for the norm itself.
    assortments : Assortments
        The offers.
    rounds : int
        The number of rounds.
    data_errors : array, optional
        |p_t - p|, round by round; by default the data are constant.
    of_norm : bool
        Whether to translate the bound for a smoothed or squared norm to the norm itself.

    Examples
    --------
    >>> offers = Assortments([("tea", "pie", "nothing"), ("tea", "nothing")])
    >>> guaranteed_gap("mirror-descent", "l2", offers, rounds=400)
    0.1
    """
    whole_number("rounds", rounds, least=1)
    form, player = learners.match(distance, learner, assortments, rounds)
    chosen = isinstance(distance, str) and not distances.make(distance, assortments).smoothing
    errors = None if data_errors is None else np.asarray(data_errors, dtype=np.float64)
    if errors is not None and errors.shape != (rounds,):
        raise ValueError(f"data_errors has the shape {errors.shape}: give {rounds} numbers, one per round.")
    if errors is not None and not (errors >= 0.0).all():
        raise ValueError(f"data_errors contains {errors[~(errors >= 0.0)][0]}: every error must be a number >= 0.")
    if isinstance(player, NaiveFrankWolfe):
        bound = naive_frank_wolfe_bound(player, form, rounds, errors)
    else:
        bound = player.regret_bound(form, rounds, constant=errors is None)
        if errors is not None:
            bound += data_error_bound(form, [player.round_weight(t) for t in range(1, rounds + 1)], errors)
    return translate_to_norm(form, bound) if of_norm or chosen else bound


def rounds_needed(
    learner: str | Learner[Any],
    distance: str | Distance,
    assortments: Assortments,
    epsilon: float,
    of_norm: bool = False,
    most: int = 10**15,
) -> int:
    """Return the first number of rounds at which the guarantee is at most ``epsilon``, on constant data.

    The model has at most that many rankings (Remark 2), so this also bounds its size. The guarantee of a learner with
    a fixed step may rise again later.

    Parameters
    ----------
    learner, distance, assortments : str or Learner, str or Distance, and Assortments
        As for ``guaranteed_gap``.
    epsilon : float
        The gap to guarantee, above 0.
    of_norm : bool
        As for ``guaranteed_gap``.
    most : int
        The most rounds to consider; if none of them guarantees ``epsilon``, a ValueError is raised.

    Examples
    --------
    >>> offers = Assortments([("tea", "pie", "nothing"), ("tea", "nothing")])
    >>> rounds_needed("mirror-descent", "l2", offers, epsilon=0.1)
    400
    """
    number_between("epsilon", epsilon, 1e-300)

    @cache
    def bound(rounds: int) -> float:
        return guaranteed_gap(learner, distance, assortments, max(1, rounds), of_norm=of_norm)

    def holds(rounds: int) -> bool:
        return bound(rounds) <= epsilon * (1.0 + 1e-12)

    if getattr(learner, "weighting", None) is not None:
        most = min(most, 20_000)  # weights without a formula are summed one by one
    grid = [1, *(int(1.05**k) + 1 for k in range(int(log(most) / log(1.05))))]
    high = next(filter(holds, grid), 0)
    if not high:
        raise ValueError(
            f"No number of rounds up to {most:.0e} guarantees {epsilon} (tried in steps of 5 %): tune the learner or "
            "the smoothing."
        )
    low = int(high / 1.2) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return max(1, high)


def data_error_bound(distance: Distance, round_weights: ArrayLike, data_errors: ArrayLike) -> float:
    """Return the bound of Theorem 2 on averaging and drift error: 2 L / total_weight * sum of weight_t * |p_t - p|."""
    return 2.0 * distance.lipschitz * float(np.average(np.asarray(data_errors), weights=np.asarray(round_weights)))


def naive_frank_wolfe_bound(
    learner: NaiveFrankWolfe, distance: Distance, rounds: int, data_errors: ArrayLike | None = None
) -> float:
    """Return the rate of Freund and Grigas, 2 D^2 / (a (T + 3)) + 4 D / (a (T + 1)(T + 2)) * sum of (t + 1) |p_t - p|.

    D is the diameter of the choice probabilities and a the smoothing. As a divides the data errors, the data must
    converge fast enough. Their bound 2 L D^2 / (k + 4) is for the point after k + 1 answers, so T = k + 1 here, where
    the paper prints T + 4. For weights t and affine distances only.
    """
    if learner.power != 1.0 or learner.weighting is not None or not distance.smoothing or not distance.affine:
        return inf
    diameter, smoothing = distance.grad_bound, distance.smoothing
    bound = 2.0 * diameter**2 / (smoothing * (rounds + 3.0))
    if data_errors is not None:
        weighted = float(np.arange(2, rounds + 2) @ np.asarray(data_errors, dtype=np.float64))
        stretch = float(distance.offer_weights.max()) if isinstance(distance, Bilinear) else 1.0
        bound += 4.0 * diameter * stretch * weighted / (smoothing * (rounds + 1.0) * (rounds + 2.0))
    return bound


def smoothing_error(distance: Distance) -> float:
    """Bound the error of smoothing a distance: smoothing * max |potential| (Lemma "smooth distances")."""
    return distance.smoothing * distance.largest_potential


def translate_to_norm(distance: Distance, bound: float) -> float:
    """Turn a bound on the suboptimality of a smoothed or squared norm into one for the norm itself."""
    if isinstance(distance, HighNorm) and distance.squared:
        return sqrt(2.0 * bound)
    return bound + smoothing_error(distance)


def data_error_rate(decay: float | Literal["geometric"], power: float = 0.0) -> tuple[float, bool]:
    """Return how fast the data error falls (Appendix C): the exponent of 1 / T, and whether there is a factor log(T).

    ``decay`` is r if |p_t - p| falls as t^-r, or "geometric"; ``power`` is the power of the averaging weights.
    """
    if decay == "geometric":
        return power + 1.0, False
    number_between("The decay", decay, 1e-300)
    return min(decay, power + 1.0), decay == power + 1.0
