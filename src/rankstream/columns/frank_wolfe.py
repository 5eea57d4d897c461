"""Jagabathula and Rusmevichientong's estimator: Frank-Wolfe over rankings on a smooth loss, and its limit."""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Vec
from rankstream._core.watch import Deadline
from rankstream.columns.data import MakeOracle, observe, on_top
from rankstream.columns.interior_point import minimise
from rankstream.columns.losses import KullbackLeibler, Loss, named_loss
from rankstream.columns.pricing import Pricing
from rankstream.columns.solved import Limits, Minimum, ProvenFit
from rankstream.columns.squared import SquaredSearch
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.oracles import Ties

HALVINGS = 50


@dataclass(frozen=True, eq=False)
class FrankWolfe(ProvenFit):
    """The model of least loss, averaged over observations; that loss is what the authors call limit of rationality."""


def fit_frank_wolfe(
    data: ChoiceCounts | ArrayLike,
    assortments: Assortments | None = None,
    *,
    loss: str = "squared-l2",
    corrective: bool = False,
    tolerance: float = 1e-4,
    max_iterations: int = 2000,
    max_seconds: float = np.inf,
    oracle: MakeOracle | None = None,
    ties: Ties = "random",
    seed: int = 0,
) -> FrankWolfe:
    """Move towards the ranking that the loss's gradient asks for, as far as is best, until the gap is small enough.

    Parameters
    ----------
    data : ChoiceCounts, or array of frequencies
        The choices; frequencies need ``assortments`` as well.
    assortments : Assortments, optional
        The offers that frequencies belong to.
    loss : "squared-l2" or "kl"
        What is minimised, averaged over the observations.
    corrective : bool
        Whether the weights of all rankings so far are chosen anew at every step, by Wolfe's method for
        ``"squared-l2"`` and by interior-point steps for ``"kl"``: that reaches any tolerance in a few dozen steps,
        where plain ones gain one digit for ten times the work.
    tolerance : float
        The proven gap at which it ends, in units of the loss.
    max_iterations : int
        How often the oracle is asked at most.
    max_seconds : float
        The most seconds; what is not proven by then is reported as such.
    oracle : callable, optional
        From assortments to an oracle; without it ``oracles.auto``.
    ties : "random", "first" or "last"
        Which of the rankings that choose alike from all offers is kept.
    seed : int
        Seed for the ties.

    >>> offers = Assortments([("tea", "pie"), ("tea", "pie", "nothing")])
    >>> found = fit_frank_wolfe([0.4, 0.6, 0.5, 0.2, 0.3], offers, corrective=True, tolerance=1e-9)
    >>> found.proven, round(found.value, 4)
    (True, 0.0043)

    """
    started = perf_counter()
    number_between("tolerance", tolerance, 0.0)
    number_between("max_seconds", max_seconds, 0.0)
    whole_number("max_iterations", max_iterations, least=1)
    limits = Limits(tolerance, max_iterations=max_iterations, max_seconds=max_seconds)
    observed = observe(data, assortments)
    smooth = named_loss(loss, observed)
    pricing = observed.pricing(oracle, ties, seed)
    begun = perf_counter()
    if not corrective:
        found = conditional_gradient(smooth, pricing, limits)
    elif isinstance(smooth, KullbackLeibler):
        found = minimise(smooth, pricing, limits)
    else:
        search, deadline = SquaredSearch(observed, pricing), Deadline(max_seconds)
        found = search.run(observed.frequencies, tolerance, max_rounds=max_iterations, watch=deadline)
    model = observed.model(found.orders, found.weights, ties, seed)
    seconds = found.seconds | {"start": begun - started, "total": perf_counter() - started}
    proven = found.value - found.bound <= tolerance
    return FrankWolfe(model, found.value, found.bound, proven, found.iterations, len(found.orders), seconds)


def conditional_gradient(loss: Loss, pricing: Pricing, limits: Limits) -> Minimum:
    """Frank-Wolfe with exact line search, from the mixture of all items on top."""
    offers, began = pricing.assortments, perf_counter()
    mass: dict[tuple[int, ...], float] = {}
    for first in on_top(offers):
        mass[tuple(first.tolist())] = mass.get(tuple(first.tolist()), 0.0) + 1.0 / offers.n_items
    point = sum((weight * offers.vertex(order) for order, weight in mass.items()), np.zeros(offers.n_coordinates))
    bound, iterations, seconds = -np.inf, 0, {"master": 0.0, "pricing": 0.0}
    while iterations < limits.max_iterations:
        iterations += 1
        value, slope = loss.value(point[loss.places]), loss.slope(point[loss.places])
        costs = np.zeros(offers.n_coordinates)
        costs[loss.places] = slope
        start = perf_counter()
        priced = pricing.cheapest(costs)
        seconds["pricing"] += perf_counter() - start
        bound = max(bound, value - loss.room(priced.bound, float(slope @ point[loss.places])))
        if value - bound <= limits.tolerance or perf_counter() - began > limits.max_seconds:
            break
        start = perf_counter()
        vertex = offers.vertex(priced.rankings[0])
        step = best_step(loss, point[loss.places], (vertex - point)[loss.places])
        point = point + step * (vertex - point)
        mass = {order: (1.0 - step) * weight for order, weight in mass.items()}
        order = tuple(priced.rankings[0].tolist())
        mass[order] = mass.get(order, 0.0) + step
        seconds["master"] += perf_counter() - start
    orders, weights = np.array(list(mass), dtype=np.int64), np.array(list(mass.values()))
    weights /= weights.sum()
    point = weights @ np.array([offers.vertex(order) for order in orders])
    return Minimum(orders, weights, point, loss.value(point[loss.places]), bound, iterations, seconds)


def best_step(loss: Loss, point: Vec, direction: Vec) -> float:
    """The best share of the way to go, by halving; never all of it, where a loss may be infinite."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        rising = float(loss.slope(point + middle * direction) @ direction) > 0.0
        low, high = (low, middle) if rising else (middle, high)
    return low
