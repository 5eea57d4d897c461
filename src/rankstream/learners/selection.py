"""Learners by name."""

from collections.abc import Callable
from typing import Any

from rankstream import distances
from rankstream.data.assortments import Assortments
from rankstream.distances import Distance
from rankstream.learners.players import (
    DualAveraging,
    FollowTheLeader,
    MirrorDescent,
    NaiveFrankWolfe,
    StronglyConvexMirrorDescent,
)
from rankstream.learners.protocol import Learner

BY_NAME: dict[str, Callable[[int], Learner[Any]]] = {
    "mirror-descent": lambda horizon: MirrorDescent(horizon=horizon),
    "strongly-convex-mirror-descent": lambda _: StronglyConvexMirrorDescent(),
    "follow-the-leader": lambda _: FollowTheLeader(),
    "naive-frank-wolfe": lambda _: NaiveFrankWolfe(),
    "dual-averaging": lambda _: DualAveraging(),
}


def make(name: str | Learner[Any], horizon: int) -> Learner[Any]:
    """Create a learner by name, tuned to the horizon if it needs one; return an object as it is."""
    if not isinstance(name, str):
        if isinstance(name, type) or not hasattr(name, "play"):
            raise ValueError(f"{name!r} is neither a learner nor the name of one: see learners.make.")
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
    """Create a distance and a learner that work together, from names or objects.

    Parameters
    ----------
    distance : str or Distance
        A name is made for the assortments; an object is returned as it is.
    learner : str or Learner
        A name is tuned to the horizon; an object is returned as it is.
    assortments : Assortments
        The offers.
    horizon : int
        Number of rounds to which a named learner and the default smoothing are tuned.
    smoothing : float, optional
        Smoothing of a named distance. The default is none, or the best for the horizon if the learner needs some.
        Not allowed with a distance object.
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
