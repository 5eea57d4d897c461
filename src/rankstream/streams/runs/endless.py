"""Playing on: a run that follows counts as they change, for as long as choices come, in memory that does not grow."""

import numpy as np

from rankstream._core.threads import one_blas_thread
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.data.vertex_kernels import add_choices
from rankstream.oracles import QuickOracle
from rankstream.oracles.search.local import hurried
from rankstream.solver.loop import Solver, State
from rankstream.solver.runs import Run
from rankstream.streams.runs.offer_weights import catch_up

MIN_RANKING_SHARE = 1e-6  # the share of a model below which a ranking is dropped (benchmarks/streams.py)
QUICK_ROUNDS, MAX_QUICK_RANKINGS = 5, 100  # at a time, and kept, of a market that is followed quickly (``pace``)


def endless(solver: Solver, state: State | None = None) -> Run:
    """A run that keeps no history, from its beginning or from a state."""
    run = Run(solver, tolerance=0.0, keep_history=False)
    if state is not None:
        run.state = state
    return run


def advance(run: Run, counts: ChoiceCounts, memory: float, rounds: int) -> None:
    """Play so many rounds on the counts as they are, with all earlier ones counting for at most ``memory``.

    Offers weigh by their observations (``catch_up``). With nothing yet, or all forgotten, the model stays as it is.
    With a ``QuickOracle``, it is 5 rounds and a memory of 100 at most, and 100 rankings are kept.
    """
    if isinstance(run.solver.oracle, QuickOracle):
        with one_blas_thread():
            _play_quickly(run, counts, min(memory, MAX_QUICK_RANKINGS), min(rounds, QUICK_ROUNDS))
        return
    catch_up(run, counts, memory)
    prune(run)
    if counts.observations:
        with hurried(run.solver.oracle):
            run.advance_many(counts.target(), rounds)


def _play_quickly(run: Run, counts: ChoiceCounts, memory: float, rounds: int) -> None:
    catch_up(run, counts, memory)
    prune(run, MAX_QUICK_RANKINGS)
    for _ in range(rounds if counts.observations else 0):
        run.state = run.solver.step(run.state, counts)
        if isinstance(run.solver.oracle, QuickOracle):
            run.solver.oracle.follow()


def prune(run: Run, most: int | None = None) -> None:
    """Drop rankings that have faded to a negligible share, so that a model does not grow with its past.

    With ``most``, the lightest leave until there are no more than that, and the oldest of equal ones first.
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
    sums, weights, offers = run.state.sums, run.state.weights, run.solver.assortments
    least = MIN_RANKING_SHARE * sums.total_weight
    faded = [key for key, weight in weights.items() if weight < least]
    if most is not None and len(weights) - len(faded) > most:
        faded = sorted(weights, key=weights.__getitem__)[: len(weights) - most]
    if not faded or not isinstance(offers, Assortments):
        return
    rankings = np.frombuffer(b"".join(faded), dtype=np.int64).reshape(len(faded), -1)
    gone = np.array([weights.pop(key) for key in faded])
    add_choices(rankings, -gone, offers.indptr, offers.members, sums.vertex)
    np.maximum(sums.vertex, 0.0, out=sums.vertex)  # what nobody chooses any more, up to rounding
    factor = sums.total_weight / sum(weights.values())
    sums.vertex *= factor
    run.state.weights = {key: weight * factor for key, weight in weights.items()}
