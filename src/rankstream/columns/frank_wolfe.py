"""Jagabathula and Rusmevichientong's estimator: Frank-Wolfe over rankings on a smooth loss, and its limit."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.old_names import old_keywords
from rankstream._core.types import Vec
from rankstream.columns.column_finder import ColumnFinder
from rankstream.columns.data import Limits, MakeOracle, Minimum, ProvenFit, observe, on_top
from rankstream.columns.losses import Loss, named_loss
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.oracles import Ties

LINE_SEARCH_HALVINGS = 50


@dataclass(frozen=True, eq=False)
class FrankWolfe(ProvenFit):
    """The model of least loss, averaged over observations; that loss is what the authors call limit of rationality."""


@old_keywords(max_iterations="max_rounds", max_seconds="budget")
def fit_frank_wolfe(
    data: ChoiceCounts | ArrayLike,
    assortments: Assortments | None = None,
    *,
    loss: str = "squared-l2",
    tolerance: float = 1e-4,
    max_rounds: int = 2000,
    budget: float = np.inf,
    oracle: MakeOracle | None = None,
    ties: Ties = "random",
    seed: int = 0,
) -> FrankWolfe:
    """Move towards the ranking that the loss's gradient asks for, as far as is best, until the gap is small enough.

    Every digit of the gap takes ten times the steps. ``methods.Nearest`` (for squares) and ``methods.Likelihood``
    choose the weights of all rankings anew at every step, and reach any tolerance in a few dozen.

    Parameters
    ----------
    data : ChoiceCounts, or array of frequencies
        The choices; frequencies need ``assortments`` as well.
    assortments : Assortments, optional
        The offers that frequencies belong to.
    loss : "squared-l2" or "kl"
        What is minimised, averaged over the observations.
    tolerance : float
        The proven gap at which it ends, in units of the loss.
    max_rounds, budget, oracle, ties, seed : optional
        As for ``fit_mle``.

    >>> offers = Assortments([("tea", "pie"), ("tea", "pie", "nothing")])
    >>> found = fit_frank_wolfe([0.4, 0.6, 0.5, 0.2, 0.3], offers, tolerance=0.01)
    >>> found.proven, found.bound <= 0.0043 <= found.value
    (True, True)

    """
    started = perf_counter()
    number_between("tolerance", tolerance, 0.0)
    number_between("budget", budget, 0.0)
    whole_number("max_rounds", max_rounds, least=1)
    limits = Limits(tolerance, max_rounds=max_rounds, budget=budget)
    observed = observe(data, assortments)
    smooth = named_loss(loss, observed)
    finder = observed.finder(oracle, ties, seed)
    begun = perf_counter()
    found = conditional_gradient(smooth, finder, limits)
    model = observed.model(found.orders, found.weights, ties, seed)
    seconds = found.seconds | {"start": begun - started, "total": perf_counter() - started}
    proven = found.value - found.bound <= tolerance
    return FrankWolfe(model, found.value, found.bound, proven, found.iterations, len(found.orders), seconds)


def conditional_gradient(loss: Loss, finder: ColumnFinder, limits: Limits) -> Minimum:
    """Frank-Wolfe with exact line search, from the mixture of all items on top."""
    offers, began = finder.assortments, perf_counter()
    mass: dict[tuple[int, ...], float] = {}
    for first in on_top(offers):
        mass[tuple(first.tolist())] = mass.get(tuple(first.tolist()), 0.0) + 1.0 / offers.n_items
    point = sum((weight * offers.vertex(order) for order, weight in mass.items()), np.zeros(offers.n_coordinates))
    bound, iterations, seconds = -np.inf, 0, {"master": 0.0, "pricing": 0.0}
    while iterations < limits.max_rounds:
        iterations += 1
        value, slope = loss.value(point[loss.places]), loss.slope(point[loss.places])
        costs = np.zeros(offers.n_coordinates)
        costs[loss.places] = slope
        start = perf_counter()
        answer = finder.cheapest(costs)
        seconds["pricing"] += perf_counter() - start
        bound = max(bound, value - loss.slack(answer.bound, float(slope @ point[loss.places])))
        if value - bound <= limits.tolerance or perf_counter() - began > limits.budget:
            break
        start = perf_counter()
        vertex = offers.vertex(answer.rankings[0])
        step = best_step(loss, point[loss.places], (vertex - point)[loss.places])
        point = point + step * (vertex - point)
        mass = {order: (1.0 - step) * weight for order, weight in mass.items()}
        order = tuple(answer.rankings[0].tolist())
        mass[order] = mass.get(order, 0.0) + step
        seconds["master"] += perf_counter() - start
    orders, weights = np.array(list(mass), dtype=np.int64), np.array(list(mass.values()))
    weights /= weights.sum()
    point = weights @ np.array([offers.vertex(order) for order in orders])
    return Minimum(orders, weights, point, loss.value(point[loss.places]), bound, iterations, seconds)


def best_step(loss: Loss, point: Vec, direction: Vec) -> float:
    """The best share of the way to go, by halving; never all of it, where a loss may be infinite."""
    low, high = 0.0, 1.0
    for _ in range(LINE_SEARCH_HALVINGS):
        middle = 0.5 * (low + high)
        rising = float(loss.slope(point + middle * direction) @ direction) > 0.0
        low, high = (low, middle) if rising else (middle, high)
    return low
