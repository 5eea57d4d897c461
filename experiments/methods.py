"""The study's methods: the paper's, and the same with one setting changed."""

import re
from dataclasses import replace
from typing import Any

from experiments.instances import Instance
from experiments.settings import PAPER_METHODS, StudyRun
from rankstream import Assortments, distances
from rankstream.distances import Distance, HighNorm
from rankstream.learners import Learner, MirrorDescent, match
from rankstream.oracles import Oracle
from rankstream.solver.loop import Solver


def paper_method(
    name: str, assortments: Assortments, norm: str = "l2", horizon: int = 10_000
) -> tuple[Distance, Learner[Any]]:
    """Create one of the paper's methods, with the paper's smoothing and step for a horizon (Appendix G).

    "F-W" is the common form of FW_naive and FW_dyn on constant data. Squares exist for l_q with 2 <= q < infinity.

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


def parts_of(run: StudyRun, instance: Instance) -> tuple[Distance, Learner[Any]]:
    """The distance and the learner that a run names."""
    offers = instance.market.assortments
    learner: Any  # one of our own, a dataclass: the protocol does not say so
    distance, learner = paper_method(run.method, offers, run.norm, run.max_rounds)
    if run.smoothing != 1.0 and not (isinstance(distance, HighNorm) and distance.squared):
        distance = distances.make(run.norm, offers, distance.smoothing * run.smoothing)
    changes: dict[str, Any] = {}
    if run.power >= 0.0:
        changes["power"] = run.power
    if isinstance(learner, MirrorDescent) and run.step != 1.0:
        changes["step"] = replace(learner, **changes).step_size(distance) * run.step
    return distance, replace(learner, **changes) if changes else learner


def solver_of(run: StudyRun, instance: Instance, oracle: Oracle | None = None) -> Solver:
    """A solver for a run; another oracle may take the place of the instance's own."""
    distance, learner = parts_of(run, instance)
    return Solver(instance.market.assortments, distance, learner, instance.oracle if oracle is None else oracle)
