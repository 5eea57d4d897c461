"""Small vector functions that several distances share."""

from math import sqrt

import numpy as np

from rankstream._core.types import Vec

TINY = 1e-300  # what a logarithm is taken of instead of 0


def softmax(scores: Vec) -> Vec:
    """Positive numbers that sum to 1, proportional to exp(scores)."""
    out: Vec = scores - scores.max()
    np.exp(out, out=out)
    out *= 1.0 / np.add.reduce(out)
    return out


def norm_of(vector: Vec, q: float) -> float:
    """The l_q norm, scaled so that no power overflows."""
    if q == 2.0:
        return sqrt(float(vector @ vector))
    sizes = np.abs(vector)
    top = float(sizes.max())
    if top == 0.0:
        return 0.0
    return top * float(np.power(((sizes / top) ** q).sum(), 1.0 / q))


def norm_direction(vector: Vec, q: float) -> Vec:
    """The gradient of the l_q norm: a vector of unit l_(q / (q - 1)) norm; 0 at 0."""
    norm = norm_of(vector, q)
    if norm == 0.0:
        return np.zeros_like(vector)
    direction: Vec = np.sign(vector) * (np.abs(vector) / norm) ** (q - 1.0)
    return direction
