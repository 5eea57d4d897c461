"""Distances by name, the best smoothing, and weights of offers by their number of observations."""

import re
from math import inf, sqrt
from typing import Literal

import numpy as np

from rankstream._core.arguments import number_between, whole_number
from rankstream.data import Assortments, ChoiceCounts
from rankstream.distances.bilinear import MIN_WEIGHT
from rankstream.distances.kl import KL
from rankstream.distances.max_difference import MaxDifference
from rankstream.distances.norms import L1, L2, HighNorm, LInf, LowNorm
from rankstream.distances.protocol import Distance

NAMES = "'l1', 'l2', 'linf', 'l' and any number above 1 such as 'l1.5', 'squared-l2', 'max-difference', 'kl'"
Weights = tuple[float, ...] | None


def make(name: str | Distance, assortments: Assortments, smoothing: float = 0.0, weights: Weights = None) -> Distance:
    """Create a distance by name; return an object as it is."""
    if not isinstance(name, str):
        if isinstance(name, type) or not hasattr(name, "respond"):
            raise ValueError(f"{name!r} is neither a distance nor the name of one: see distances.make.")
        return name
    match = re.fullmatch(r"(squared-)?l(inf|\d+(?:\.\d+)?)", name)
    if match:
        q = number_between(f"The q of {name!r}", float(match[2]), 1.0)
        if not match[1]:
            return norm(q, assortments, smoothing, weights)
        if 2.0 <= q < inf:
            return HighNorm(assortments, smoothing, weights, q, squared=True)
        raise ValueError(f"The distance {name!r} is not smooth: only l_q norms with 2 <= q < infinity can be squared.")
    if name == "max-difference":
        return MaxDifference(assortments, smoothing, weights)
    if name == "kl":
        if smoothing:
            raise ValueError("The distance 'kl' takes no smoothing: its floor keeps it bounded.")
        return KL(assortments, weights)
    raise ValueError(f"Unknown distance {name!r}: choose one of {NAMES}.")


def norm(q: float, assortments: Assortments, smoothing: float = 0.0, weights: Weights = None) -> Distance:
    """Create the l_q norm with the dual domain and potential of the paper's Table "MD constants"."""
    number_between("q", q, 1.0)
    plain: dict[float, type[L1 | L2 | LInf]] = {1.0: L1, 2.0: L2, inf: LInf}
    if q in plain:
        return plain[q](assortments, smoothing, weights)
    if q < 2.0:
        return LowNorm(assortments, smoothing, weights, q)
    return HighNorm(assortments, smoothing, weights, q)


def optimal_smoothing(distance: Distance, horizon: int) -> float:
    """Return the smoothing that minimises the bound of Theorem "s-FTL" on the plain norm after ``horizon`` rounds.

    It minimises 2 G^2 / (smoothing * (T + 1)) + smoothing * max |potential| (Table "smoothed rates").
    """
    whole_number("horizon", horizon, least=1)
    if distance.largest_potential == 0.0:  # the dual domain is a single point
        return 1.0
    return sqrt(2.0 * distance.grad_bound**2 / (distance.largest_potential * (horizon + 1.0)))


def observation_weights(counts: ChoiceCounts, kind: Literal["root", "share"] = "root") -> tuple[float, ...]:
    """Return a weight per offer from its number of observations: square roots for norms, shares for KL.

    Equal numbers give weights of 1. Offers with observations weigh at least 1e-100, the smallest allowed weight.
    """
    if kind not in ("root", "share"):
        raise ValueError(f"Unknown kind of weights {kind!r}: choose 'root' or 'share'.")
    totals = counts.totals
    if not totals.any():
        raise ValueError("There are no observations to take weights from: observe some choices first.")
    relative = totals * (counts.assortments.n_offers / totals.sum())
    weights = np.sqrt(relative) if kind == "root" else relative
    return tuple(np.where(totals > 0.0, np.maximum(weights, MIN_WEIGHT), 0.0).tolist())
