"""Catching up: make a run ready to go on with counts that have changed since its last round."""

from rankstream.data.counts import ChoiceCounts
from rankstream.distances import observation_weights
from rankstream.growth import grow
from rankstream.reweighing import can_reweigh, reweigh
from rankstream.solver.runs import Run


def catch_up(run: Run, counts: ChoiceCounts, memory: float, weigh: bool = True) -> None:
    """Let new offers join, let offers weigh by their observations, and let earlier rounds count for at most ``memory``.

    Weights follow where the distance and the learner allow it (``reweighing``), and only if they should (``weigh``).

    >>> from rankstream import Assortments, Solver, distances, learners, oracles
    >>> counts = ChoiceCounts(Assortments([("tea", "nothing")]), [6, 4])
    >>> offers = counts.assortments
    >>> run = Run(Solver(offers, distances.L2(offers), learners.DualAveraging(), oracles.auto(offers)), tolerance=0.0)
    >>> _ = run.advance_many(counts.target(), 100)
    >>> more = counts.extend([("pie", "nothing")])
    >>> more.observe(("pie", "nothing"), "pie", count=30)
    >>> catch_up(run, more, memory=2)
    >>> run.solver.distance.offer_weights.round(2).tolist(), run.state.sums.total_weight
    ([0.71, 1.22], 2.0)
    """
    if run.solver.assortments != counts.assortments:
        run.solver, run.state = grow(run.solver, run.state, counts.assortments)
    if weigh and counts.observations and can_reweigh(run.solver):
        run.solver, run.state = reweigh(run.solver, run.state, observation_weights(counts))
    run.state.forget(memory * run.solver.learner.round_weight(run.state.round + 1))
