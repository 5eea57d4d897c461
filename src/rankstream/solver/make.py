"""A solver from names: the distance, learner and oracle that fit together for these offers."""

from typing import Any

from rankstream import learners, oracles
from rankstream._core.arguments import whole_number
from rankstream.data.assortments import Assortments
from rankstream.distances import Distance
from rankstream.learners import Learner
from rankstream.oracles import Oracle, Ties
from rankstream.solver.loop import Solver


def make_solver(
    assortments: Assortments,
    distance: str | Distance,
    learner: str | Learner[Any],
    oracle: Oracle | None,
    ties: Ties,
    horizon: int,
    seed: int,
    smoothing: float | None = None,
    weights: tuple[float, ...] | None = None,
) -> Solver:
    """A solver from names or objects."""
    if not isinstance(assortments, Assortments):
        raise ValueError(f"The assortments must be an Assortments, not {type(assortments).__name__}.")
    if learner == "fully-corrective":
        raise ValueError(f"The learner {learner!r} plays no rounds one by one: use it with estimate.")
    if oracle is None:
        oracle = oracles.auto(assortments, ties, whole_number("seed", seed))
    if not hasattr(oracle, "cheapest"):
        raise ValueError(f"The oracle {oracle!r} has no method cheapest: leave it out, or see oracles.Oracle.")
    form, player = learners.match(distance, learner, assortments, horizon, smoothing, weights)
    return Solver(assortments, form, player, oracle)
