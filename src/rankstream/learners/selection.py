"""Learners by name, and the paper's six methods."""

import re
from collections.abc import Callable
from typing import Any

from rankstream import distances
from rankstream.data.assortments import Assortments
from rankstream.distances import Distance
from rankstream.learners.frank_wolfe import FollowTheLeader, NaiveFrankWolfe
from rankstream.learners.mirror_descent import DualAveraging, MirrorDescent, StronglyConvexMirrorDescent
from rankstream.learners.protocol import Learner

BY_NAME: dict[str, Callable[[int], Learner[Any]]] = {
    "mirror-descent": lambda horizon: MirrorDescent(horizon=horizon),
    "strongly-convex-mirror-descent": lambda _: StronglyConvexMirrorDescent(),
    "follow-the-leader": lambda _: FollowTheLeader(),
    "naive-frank-wolfe": lambda _: NaiveFrankWolfe(),
    "dual-averaging": lambda _: DualAveraging(),
}

# The methods of the computational study: which form the norm takes, and which learner plays against it.
PAPER_METHODS: dict[str, tuple[str, str]] = {
    "MD_ns": ("plain", "mirror-descent"),
    "MD_smth": ("smoothed", "strongly-convex-mirror-descent"),
    "MD_sq": ("squared", "strongly-convex-mirror-descent"),
    "FW_dyn": ("smoothed", "follow-the-leader"),
    "FW_naive": ("smoothed", "naive-frank-wolfe"),
    "FW_sq": ("squared", "naive-frank-wolfe"),
    "F-W": ("smoothed", "naive-frank-wolfe"),
}


def make(name: str | Learner[Any], horizon: int) -> Learner[Any]:
    """A learner by its name with the horizon set where it needs one, or the object itself."""
    if not isinstance(name, str):
        if isinstance(name, type) or not hasattr(name, "play"):
            raise ValueError(f"{name!r} is neither the name of a learner nor a learner: see learners.make.")
        return name
    if name not in BY_NAME:
        raise ValueError(f"Unknown learner {name!r}: choose one of {', '.join(map(repr, BY_NAME))}.")
    return BY_NAME[name](horizon)


def match(
    distance: str | Distance,
    learner: str | Learner[Any],
    assortments: Assortments,
    horizon: int,
    smoothing: float | None = None,
    weights: tuple[float, ...] | None = None,
) -> tuple[Distance, Learner[Any]]:
    """A distance and a learner that fit, from names or objects.

    Parameters
    ----------
    distance : str or Distance
        A name is made for the assortments; an object is returned as it is.
    learner : str or Learner
        A name is tuned to the horizon; an object is returned as it is.
    assortments : Assortments
        The offers.
    horizon : int
        For how many rounds a named learner and a chosen smoothing are tuned.
    smoothing : float, optional
        That of a named distance; without it none, or the best for the horizon where the learner needs some. With an
        object it is a ValueError.
    weights : tuple of floats, optional
        One per offer, for a named distance.

    Examples
    --------
    >>> distance, _ = match("l2", "follow-the-leader", Assortments([("tea", "pie")]), horizon=799)
    >>> round(distance.smoothing, 3)
    0.1
    """
    player = make(learner, horizon)
    if not isinstance(distance, str):
        if smoothing is not None:
            raise ValueError("smoothing works with the name of a distance only: set it on the distance object instead.")
        return distance, player
    plain = distances.make(distance, assortments, 0.0 if smoothing is None else smoothing, weights)
    if smoothing is None and player.needs_smoothing and not plain.smooth:
        return distances.make(distance, assortments, distances.optimal_smoothing(plain, horizon), weights), player
    return plain, player


def paper_method(
    name: str, assortments: Assortments, norm: str = "l2", horizon: int = 10_000
) -> tuple[Distance, Learner[Any]]:
    """One of the paper's methods, its smoothing and step set as the paper does for a horizon (Appendix G).

    "F-W" is what FW_naive and FW_dyn both are in the static setting. Squares exist for l_q with 2 <= q < infinity.

    Examples
    --------
    >>> distance, learner = paper_method("MD_smth", Assortments([("tea", "pie")]), horizon=799)
    >>> round(distance.smoothing, 3), learner
    (0.1, StronglyConvexMirrorDescent(power=1.0))
    """
    if name not in PAPER_METHODS:
        raise ValueError(f"Unknown method {name!r} of the paper: choose one of {', '.join(map(repr, PAPER_METHODS))}.")
    if norm != "linf" and not re.fullmatch(r"l\d+(\.\d+)?", norm):
        raise ValueError(f"The paper's methods are for l_q norms such as 'l1', 'l2' and 'linf', not for {norm!r}.")
    form, learner = PAPER_METHODS[name]
    return match(f"squared-{norm}" if form == "squared" else norm, learner, assortments, horizon)
