"""The compiled loops that draw rankings from a tilted law, from the top, through the states of its program."""

import numpy as np

from rankstream._core.compilation import compiled, inner
from rankstream._core.types import Codes, Vec
from rankstream.models.parametric.em_kernels import next_visit


@inner
def weigh_class(state: int, steps: tuple[Codes, Codes, Codes], tilts: Vec, values: Vec, weights: Vec) -> None:
    """Tilt the attractions of a Plackett-Luce class for the items that the state decides about; their sum stays."""
    first, items, following = steps
    before, after = 0.0, 0.0
    for t in range(first[state], first[state + 1]):
        before += weights[items[t]]
        weights[items[t]] *= tilts[t] * values[following[t]]
        after += weights[items[t]]
    for t in range(first[state], first[state + 1]):
        weights[items[t]] *= before / after


@inner
def weigh_chain(
    state: int, steps: tuple[Codes, Codes, Codes], costs: Vec, values: Vec, left: Codes, weights: Vec
) -> None:
    """Tilt where a Markov chain goes next by what it expects from there."""
    first, items, following = steps
    gains = np.where(left > 0, values[state, : left.size], -np.inf)
    for t in range(first[state], first[state + 1]):
        gains[items[t]] = values[following[t], items[t]] - costs[t]
    weights *= np.exp(gains - gains.max())


@compiled
def draw_classes(
    draws: Vec, attraction: Vec, steps: tuple[Codes, Codes, Codes], tilts: Vec, values: Vec, out: Codes
) -> None:
    """A ranking of a Plackett-Luce class for every row of ``draws``, which has a number below 1 for each place."""
    for row in range(draws.shape[0]):
        left, state = np.ones(attraction.size, dtype=np.int64), steps[0].size - 2
        for place in range(attraction.size):
            weights = attraction * left
            weigh_class(state, steps, tilts, values, weights)
            state = take(weights, draws[row, place], left, steps, state, out[row], place)


@compiled
def draw_chains(
    draws: Vec, arrivals: Vec, moves: Vec, steps: tuple[Codes, Codes, Codes], costs: Vec, values: Vec, out: Codes
) -> None:
    """The same for a Markov chain."""
    for row in range(draws.shape[0]):
        left, state, weights = np.ones(arrivals.size, dtype=np.int64), steps[0].size - 2, arrivals.copy()
        for place in range(arrivals.size):
            if place > 0:
                next_visit(moves, out[row, place - 1], left, weights)
            weigh_chain(state, steps, costs, values, left, weights)
            state = take(weights, draws[row, place], left, steps, state, out[row], place)


@inner
def take(
    weights: Vec, draw: float, left: Codes, steps: tuple[Codes, Codes, Codes], state: int, out: Codes, place: int
) -> int:
    """Put an item that is drawn by its weight at a place; the state after it."""
    first, items, following = steps
    rest, item = draw * weights.sum(), -1
    for other in range(left.size):
        # rounding may leave a little at the end: the last that can come next takes it
        if left[other] and (item < 0 or (weights[other] > 0.0 and rest >= 0.0)):
            item = other
            rest -= weights[other]
    out[place], left[item] = item, 0
    for t in range(first[state], first[state + 1]):
        if items[t] == item:
            return int(following[t])
    return state
