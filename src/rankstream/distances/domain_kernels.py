"""Dual domains in compiled code: projections onto them.

What ``chunk_kernels`` asks of the built-in distances comes first, by the number of their domain.
"""

import numpy as np

from rankstream._core.compilation import compiled, inner
from rankstream._core.types import Vec

BALL, BOX, SIMPLEX = 0, 1, 2


@inner
def euclidean(vector: Vec) -> float:
    """The Euclidean norm."""
    total = 0.0
    for k in range(vector.size):
        total += vector[k] * vector[k]
    return float(np.sqrt(total))


@inner
def towards(domain: int, vector: Vec, sign: float, smoothing: float, radius: float, out: Vec) -> None:
    """The dual that maximises sign * <vector, y> - smoothing * potential(y)."""
    if domain == BALL:
        size = euclidean(vector)
        # without smoothing always the radius: 0 is never divided by
        length = radius if size >= radius * smoothing else size / smoothing
        factor = sign * length / size if size > 0.0 else 0.0
        for k in range(vector.size):
            out[k] = vector[k] * factor
    elif domain == BOX:
        for k in range(vector.size):
            if smoothing > 0.0:
                out[k] = min(max(sign * vector[k] / smoothing, -1.0), 1.0)
            else:
                out[k] = np.sign(sign * vector[k])
    else:
        top = -np.inf
        for k in range(vector.size):
            # the largest exponent is taken out, so that exp cannot overflow
            top = max(top, sign * vector[k])
        total = 0.0
        for k in range(vector.size):
            if smoothing > 0.0:
                out[k] = np.exp((sign * vector[k] - top) / smoothing)
            else:
                # all on the first of the largest; only where all are 0 they tie on purpose: the uniform start
                out[k] = 1.0 if sign * vector[k] == top and (total == 0.0 or top == 0.0) else 0.0
            total += out[k]
        for k in range(vector.size):
            out[k] /= total


@inner
def largest(domain: int, lifted: Vec, smoothing: float, radius: float) -> float:
    """The distance: the maximum of <lifted, y> - smoothing * potential(y)."""
    value = 0.0
    if domain == BALL:
        size = euclidean(lifted)
        if size >= radius * smoothing:
            return radius * size - 0.5 * smoothing * radius * radius
        return 0.5 * size * size / smoothing
    if domain == BOX:
        for k in range(lifted.size):
            size = abs(lifted[k])
            value += size - 0.5 * smoothing if size >= smoothing else 0.5 * size * size / smoothing
        return value
    top = -np.inf
    for k in range(lifted.size):
        top = max(top, lifted[k])
    if smoothing > 0.0:
        for k in range(lifted.size):
            value += np.exp((lifted[k] - top) / smoothing)
        return float(top + smoothing * np.log(value))
    return float(top)


@inner
def potential_of(domain: int, dual: Vec) -> float:
    """The potential of a dual."""
    total = 0.0
    for k in range(dual.size):
        # 0 log 0 is 0: a number above 0 stands in, and the factor makes it vanish
        total += dual[k] * np.log(max(dual[k], 1e-300)) if domain == SIMPLEX else 0.5 * dual[k] * dual[k]
    return total


@inner
def lift(domain: int, point: Vec, frequencies: Vec, scale: Vec, out: Vec) -> None:
    """B (x - p): weighted, and for the simplex stacked on its negative."""
    size = point.size
    for k in range(size):
        out[k] = scale[k] * (point[k] - frequencies[k])
        if domain == SIMPLEX:
            out[size + k] = -out[k]


@compiled
def project_onto_power_ball(point: Vec, power: float, out: Vec) -> None:
    """The Euclidean projection onto the unit ball of the l_power norm, power > 2, to machine precision.

    Solves y_i + multiplier * y_i^(power - 1) = |point_i| for every i, and log(sum of y_i^power) = 0 for the multiplier,
    by Newton steps in its logarithm, where the equation is nearly straight for large multipliers. A Newton step from 0
    and the multiplier at which the y_i without their first term would do are the first bracket.
    """
    q = power / (power - 1.0)
    total, slope, high = 0.0, 0.0, 0.0
    for i in range(point.size):
        size = abs(point[i])
        out[i] = size
        total += size**power
        slope += power * size ** (2.0 * power - 2.0)
        high += size**q
    if total > 1.0:
        high = high ** (1.0 / q)
        # a point so far out that its powers overflow has no Newton step from multiplier 0
        low = total * np.log(total) / slope if slope < np.inf else 0.0
        multiplier = low if 0.0 < low < high else high
        low = 0.0
        for _ in range(100):
            total, slope = 0.0, 0.0
            for i in range(point.size):
                y = shrink(abs(point[i]), multiplier, power)
                out[i] = y
                if y > 0.0:
                    inner = y ** (power - 2.0)
                    total += inner * y * y
                    slope += power * inner * inner * y * y / (1.0 + multiplier * (power - 1.0) * inner)
            excess = np.log(total)
            # still outside the ball: the multiplier is too low
            if excess > 0.0:
                low = multiplier
            else:
                high = multiplier
            if abs(excess) <= 1e-15 or high - low <= 1e-16 * high:
                break
            # the step in log multiplier, cut so that exp cannot overflow
            multiplier *= np.exp(min(50.0, excess * total / (multiplier * slope)))
            if not low < multiplier < high:
                # outside the bracket: its middle on the scale of logarithms
                multiplier = np.sqrt(low * high) if low > 0.0 else 0.01 * high
    for i in range(point.size):
        if point[i] < 0.0:
            out[i] = -out[i]


@compiled
def shrink(size: float, multiplier: float, power: float) -> float:
    """The y >= 0 with y + multiplier * y^(power - 1) = size: by Newton's method from above, where it always falls."""
    if size == 0.0 or multiplier == 0.0:
        return size
    y = min(size, (size / multiplier) ** (1.0 / (power - 1.0)))
    for _ in range(100):
        curved = multiplier * y ** (power - 2.0)
        step = (y + curved * y - size) / (1.0 + (power - 1.0) * curved)
        y -= step
        if abs(step) <= 4e-16 * y:
            break
    return float(y)
