"""Whole rounds in compiled code, for the built-in distances and learners with the union-lattice oracle.

The same round as ``Solver.step``: price, answer, average, update. Distances and learners are known by small
numbers; settings and totals are packed in the order of the constants below. A learner's memory is its sum of pulls
(dual averaging) or its mirror image (the steps).
"""

import numpy as np

from rankstream._core.compilation import compiled, inner
from rankstream._core.types import Codes, Vec, Words
from rankstream.distances.domain_kernels import SIMPLEX, largest, lift, potential_of, towards
from rankstream.oracles.tables.lattice_kernels import cheapest_on_lattice

CONSTANT_STEP, FALLING_STEP, LEADER, NAIVE, AVERAGING = 0, 1, 2, 3, 4  # learners
SMOOTHING, RADIUS, STEP, POWER, FIRMNESS = 0, 1, 2, 3, 4  # settings
ERROR, LATEST_ERROR, DISTANCE, RANKINGS = 0, 1, 2, 3  # a row of the history
ROUND, TOTAL, ANSWER, OFFSET, POTENTIAL, SQUARES = 0, 1, 2, 3, 4, 5  # totals, in the order of their array


@inner
def next_dual(
    domain: int, learner: int, settings: Vec, totals: Vec, weight: float, mean: Vec, pull: Vec, memory: Vec, dual: Vec
) -> None:
    """The learner's move: ``mean`` is the lifted residual of the averages that it answers, ``pull`` the round's."""
    sign, firmness = -1.0, 1.0
    if learner <= FALLING_STEP:
        step = settings[STEP] * weight
        if learner == FALLING_STEP:
            step = weight / (settings[SMOOTHING] * totals[TOTAL])
        for k in range(dual.size):
            # minus the mirror image after the step; sign turns it round again
            pull[k] = pull[k] * -step - memory[k] * (1.0 - step * settings[SMOOTHING])
    elif learner == AVERAGING:
        totals[SQUARES] += (totals[ROUND] + 1.0) ** (2.0 * settings[POWER])
        total = settings[SMOOTHING] * totals[TOTAL] + settings[FIRMNESS] * np.sqrt(totals[SQUARES])
        for k in range(dual.size):
            memory[k] += weight * pull[k]
            pull[k] = memory[k] * (-1.0 / total)
    else:
        sign, firmness = 1.0, settings[SMOOTHING]
        for k in range(dual.size):
            pull[k] = mean[k]
    towards(domain, pull, sign, firmness, settings[RADIUS], dual)
    if learner <= FALLING_STEP:
        for k in range(dual.size):
            # on the simplex the image is kept from before the softmax, up to a constant: no logarithm of tiny duals
            memory[k] = -pull[k] if domain == SIMPLEX else dual[k]


@compiled
def play_rounds(
    domain: int,
    learner: int,
    settings: Vec,
    scale: Vec,
    rows: Vec,
    at_rest: int,
    tolerance: float,
    numbers: Codes,
    shape: Codes,
    program: Words,
    work: Vec,
    space: Codes,
    unforced: Codes,
    totals: Vec,
    vertex_sum: Vec,
    frequency_sum: Vec,
    dual_sum: Vec,
    dual: Vec,
    memory: Vec,
    points: Vec,
    duals: Vec,
    rankings: Codes,
    history: Vec,
) -> int:
    """Play up to ``len(rankings)`` rounds and stop once the mean absolute error is small enough.

    ``rows`` are the frequencies, one row for each round or one for all; the first ``at_rest`` rounds come before they
    have moved. ``points`` and ``duals`` have rows to work in. Returns how many rounds were played, 0 if
    costs overflowed; each leaves its ranking, and its row of ``history``.
    """
    size = rows.shape[1]
    costs, point, average, lifted, pull = points[0], points[1], points[2], duals[0], duals[1]
    for number in range(rankings.shape[0]):
        frequencies = rows[number if rows.shape[0] > 1 else 0]
        for k in range(size):
            costs[k] = scale[k] * (dual[k] - dual[size + k] if domain == SIMPLEX else dual[k])
        value = cheapest_on_lattice(costs, numbers, shape, program, work, space, unforced, rankings[number])
        # NaN, the only number that is not itself: the oracle refuses the costs
        if value != value:
            return 0
        for k in range(size):
            point[k] = 0.0
        for offer in range(numbers[0]):
            # the oracle leaves the chosen coordinates in the first row of its space
            point[space[0, offer]] = 1.0
        totals[ROUND] += 1.0
        weight = totals[ROUND] ** settings[POWER] if settings[POWER] != 0.0 else 1.0
        potential = potential_of(domain, dual) if settings[SMOOTHING] > 0.0 else 0.0
        offset = settings[SMOOTHING] * potential
        totals[TOTAL] += weight
        totals[ANSWER] += weight * value
        totals[POTENTIAL] += weight * potential
        error, latest = 0.0, 0.0
        for k in range(size):
            offset += costs[k] * frequencies[k]
            vertex_sum[k] += weight * point[k]
            frequency_sum[k] += weight * frequencies[k]
            error += abs(vertex_sum[k] - frequency_sum[k])
        totals[OFFSET] += weight * offset
        for k in range(dual.size):
            dual_sum[k] += weight * dual[k]
        for k in range(size):
            average[k] = frequency_sum[k] / totals[TOTAL]
            # the costs have been paid: from here their row is the mean vertex
            costs[k] = vertex_sum[k] / totals[TOTAL]
            latest += abs(costs[k] - frequencies[k])
        lift(domain, costs, average, scale, lifted)
        history[number, ERROR] = error / (totals[TOTAL] * size)
        history[number, LATEST_ERROR] = history[number, ERROR] if number < at_rest else latest / size
        history[number, DISTANCE] = largest(domain, lifted, settings[SMOOTHING], settings[RADIUS])
        if learner == NAIVE:
            lift(domain, costs, frequencies, scale, lifted)
        lift(domain, point, frequencies, scale, pull)
        next_dual(domain, learner, settings, totals, weight, lifted, pull, memory, dual)
        if history[number, ERROR] <= tolerance:
            return number + 1
    return int(rankings.shape[0])
