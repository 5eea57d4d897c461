"""Playing on: a run that follows counts as they change, for as long as choices come, in memory that does not grow."""

import numpy as np

from rankstream.data.counts import ChoiceCounts
from rankstream.oracles.search import hurried
from rankstream.solver.loop import Solver, State
from rankstream.solver.runs import Run
from rankstream.streams.reweighing import catch_up

NEGLIGIBLE = 1e-6  # the share of a model below which a ranking is dropped


def endless(solver: Solver, state: State | None = None) -> Run:
    """A run that keeps no history, from its beginning or from a state."""
    run = Run(solver, tolerance=0.0, keep_history=False)
    if state is not None:
        run.state = state
    return run


def play_on(run: Run, counts: ChoiceCounts, memory: float, rounds: int) -> None:
    """Play so many rounds on the counts as they are, with all earlier ones counting for at most ``memory``.

    Offers weigh by their observations (``catch_up``). With nothing yet, or all forgotten, the model stays as it is.
    """
    catch_up(run, counts, memory)
    prune(run)
    if counts.observations:
        with hurried(run.solver.oracle):
            run.advance_many(counts.target(), rounds)


def prune(run: Run) -> None:
    """Drop rankings that have faded to a negligible share, so that a model does not grow with its past.

    Their weight goes to all others in proportion, in the weights and in the sum of vertices alike: the mean vertex is
    that of the model as it is given out, and so is the distance ``upper`` of a certificate. ``lower`` comes from duals
    alone, which no ranking enters. So what is proven stays proven.

    >>> from rankstream import Assortments, distances, learners, oracles
    >>> offers = Assortments([("tea", "nothing")])
    >>> run = endless(Solver(offers, distances.L2(offers), learners.DualAveraging(), oracles.auto(offers)))
    >>> for shares in ([0.0, 1.0], [1.0, 0.0]):
    ...     for _ in range(50):
    ...         run.state.forget(1.0)
    ...         _ = run.advance(shares)
    >>> prune(run)
    >>> len(run.state.weights), run.state.sums.mean_vertex
    (1, array([1., 0.]))
    """
    sums, weights, vertex_of = run.state.sums, run.state.weights, run.solver.assortments.vertex
    least = NEGLIGIBLE * sums.total_weight
    faded = [key for key, weight in weights.items() if weight < least]
    if not faded:
        return
    for key in faded:
        sums.vertex -= weights.pop(key) * vertex_of(np.frombuffer(key, dtype=np.int64))
    np.maximum(sums.vertex, 0.0, out=sums.vertex)  # what nobody chooses any more, up to rounding
    factor = sums.total_weight / sum(weights.values())
    sums.vertex *= factor
    run.state.weights = {key: weight * factor for key, weight in weights.items()}
