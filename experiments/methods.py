"""The study's methods: the paper's, and the same with one setting changed."""

from dataclasses import replace
from typing import Any

from experiments.instances import Instance
from experiments.settings import StudyRun
from rankstream import distances, learners
from rankstream.distances import Distance, HighNorm
from rankstream.learners import Learner, MirrorDescent
from rankstream.oracles import Oracle
from rankstream.solver.loop import Solver


def parts_of(run: StudyRun, instance: Instance) -> tuple[Distance, Learner[Any]]:
    """The distance and the learner that a run names."""
    offers = instance.market.assortments
    learner: Any  # one of our own, a dataclass: the protocol does not say so
    distance, learner = learners.paper_method(run.method, offers, run.norm, run.max_rounds)
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
