"""Compiled steps of Wolfe's nearest point method: a few corners of a polytope, and the weights that they need."""

from typing import NamedTuple

import numpy as np

from rankstream._core.compiling import compiled
from rankstream._core.types import Codes, Vec

DEPENDENT = 1e-6


class Corral(NamedTuple):
    """Affinely independent corners (the seats chosen) with weights that sum to 1, as in Wolfe's nearest point method.

    ``inverse`` is the inverse of 1 + the corners' inner products; ``known`` holds the number of corners.
    """

    known: Codes
    chosen: Codes
    weight: Vec
    inverse: Vec


@compiled
def add_multiple(out: Vec, factor: float, vector: Vec) -> None:
    """Add a multiple of a vector, as far as ``out`` goes."""
    for k in range(out.size):
        out[k] += factor * vector[k]


@compiled
def add_corner(corral: Corral, fresh: Codes) -> bool:
    """Take in one more corner without weight; False if it depends on the others, or if there is no room for it."""
    count, inverse, chosen = corral.known[0], corral.inverse, corral.chosen
    if count == corral.weight.size:
        return False
    products, turned = np.empty(count), np.zeros(count)
    for corner in range(count):
        same = 0
        for slot in range(fresh.size):
            same += 1 if fresh[slot] >= 0 and chosen[corner, slot] == fresh[slot] else 0
        products[corner] = 1.0 + same
    own = 1.0 + (fresh >= 0).sum()
    for corner in range(count):
        add_multiple(turned, products[corner], inverse[corner])
    rest = own - (products * turned).sum()
    if rest < DEPENDENT:
        return False
    for corner in range(count):
        add_multiple(inverse[corner, :count], turned[corner] / rest, turned)
        inverse[corner, count] = inverse[count, corner] = -turned[corner] / rest
    inverse[count, count] = 1.0 / rest
    chosen[count, :] = fresh
    corral.weight[count] = 0.0
    corral.known[0] = count + 1
    return True


@compiled
def drop_corner(corral: Corral, gone: int) -> None:
    """Take a corner out; the last one moves to its place."""
    last, inverse = corral.known[0] - 1, corral.inverse
    row = inverse[gone, : last + 1] / inverse[gone, gone]
    for corner in range(last + 1):
        if corner != gone:
            add_multiple(inverse[corner, : last + 1], -inverse[corner, gone], row)
    if gone != last:
        corral.chosen[gone, :] = corral.chosen[last]
        corral.weight[gone] = corral.weight[last]
        inverse[gone, : last + 1] = inverse[last, : last + 1]
        inverse[:last, gone] = inverse[:last, last]
        inverse[gone, gone] = inverse[last, last]
    corral.known[0] = last


@compiled
def settle(corral: Corral, aim: Vec, point: Vec) -> None:
    """Give the corners the weights of the point nearest to ``aim``, dropping those that it does not need."""
    weight, products = corral.weight, np.zeros(corral.known[0])
    for corner in range(products.size):
        for slot in range(corral.chosen.shape[1]):
            if corral.chosen[corner, slot] >= 0:
                products[corner] += aim[corral.chosen[corner, slot]]
    while True:
        count = corral.known[0]
        ones, best = np.zeros(count), np.zeros(count)
        for corner in range(count):
            add_multiple(best, products[corner], corral.inverse[corner])
            add_multiple(ones, 1.0, corral.inverse[corner])
        add_multiple(best, (1.0 - best.sum()) / ones.sum(), ones)
        step, leaves = 1.0, -1
        for corner in range(count):
            if best[corner] < DEPENDENT**2:
                share = weight[corner] / (weight[corner] - best[corner]) if weight[corner] > best[corner] else 0.0
                if leaves < 0 or share < step:
                    step, leaves = share, corner
        for corner in range(count):
            weight[corner] += step * (best[corner] - weight[corner])
        if leaves < 0 or count == 1:
            break
        products[leaves] = products[count - 1]
        drop_corner(corral, leaves)
    mix_corners(corral, point)


@compiled
def mix_corners(corral: Corral, point: Vec) -> None:
    """The point that the corners make with their weights, which are made to sum to 1."""
    count = corral.known[0]
    point[:] = 0.0
    corral.weight[:count] = np.maximum(corral.weight[:count], 0.0)
    corral.weight[:count] /= corral.weight[:count].sum()
    for corner in range(count):
        for slot in range(corral.chosen.shape[1]):
            if corral.chosen[corner, slot] >= 0:
                point[corral.chosen[corner, slot]] += corral.weight[corner]


@compiled
def renew(corral: Corral) -> None:
    """Take all corners in again, so that rounding does not pile up in the inverse."""
    count, kept = corral.known[0], corral.weight.copy()
    corral.known[0] = 0
    for corner in range(count):
        if add_corner(corral, corral.chosen[corner]):
            corral.weight[corral.known[0] - 1] = kept[corner]
