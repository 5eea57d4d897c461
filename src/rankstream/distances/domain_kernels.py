"""The built-in distances in compiled code: what ``chunk_kernels`` asks of a dual domain, by its number."""

import numpy as np

from rankstream._core.compilation import inner
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
