"""Slow twins of the kernels of distances: bisection where they take Newton steps."""

import numpy as np

from rankstream._core.types import Vec


def shrink(size: float, price: float, power: float) -> float:
    """The y with y + price * y^(power - 1) = size, between 0 and size."""
    low, high = 0.0, size
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle + price * middle ** (power - 1.0) < size else (low, middle)
    return high


def project_onto_power_ball(point: Vec, power: float) -> Vec:
    """The point itself inside the ball; else every size is shrunk at the price that brings it to the boundary."""
    sizes = np.abs(point)
    if float((sizes**power).sum()) <= 1.0:
        return point
    low, high = 0.0, 1.0

    def shrunk(price: float) -> Vec:
        return np.array([shrink(size, price, power) for size in sizes])

    while float((shrunk(high) ** power).sum()) > 1.0:
        high *= 2.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float((shrunk(middle) ** power).sum()) > 1.0 else (low, middle)
    out: Vec = np.sign(point) * shrunk(high)
    return out
