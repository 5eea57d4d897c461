"""Endless runs: follow counts as they change, for as long as choices arrive, in constant memory.

The paper fixes the distance. When the weights of offers change, the past is read as a game under the new distance: the
same rankings answered the same costs, all reduced by one factor, so that every dual is still in the domain. So
``certificate(...).gap`` still holds. The learner's regret bound is for a fixed distance, and starts again.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from rankstream._core.threads import one_blas_thread
from rankstream._core.types import Vec
from rankstream.data import Assortments, ChoiceCounts
from rankstream.data.vertex_kernels import add_choices
from rankstream.distances import observation_weights
from rankstream.learners import DualAveraging
from rankstream.learners.players import Moved
from rankstream.oracles import QuickOracle
from rankstream.oracles.search.local import hurried
from rankstream.solver.loop import Solver, State
from rankstream.solver.runs import Run
from rankstream.streams.runs.growth import can_reweigh, grow

MIN_RANKING_SHARE = 1e-6  # of a model: rankings below it are dropped (benchmarks/streams.py)
QUICK_ROUNDS, MAX_QUICK_RANKINGS = 5, 100  # per block, and in the model, with a quick oracle (``pace``)


def reweigh(solver: Solver, state: State, weights: Iterable[float]) -> tuple[Solver, State]:
    """Continue a run with other weights of the offers; return a new solver and state.

    For ``L1`` and ``L2`` without smoothing. An offer whose new weight is 0 keeps its old one, because costs that were
    already played cannot be undone: leave it out with a target that has no data for it. The learner's state is
    converted to the new weights.

    Examples
    --------
    >>> from rankstream import Assortments, distances, learners, oracles
    >>> offers = Assortments([("tea", "nothing"), ("pie", "nothing")])
    >>> solver = Solver(offers, distances.L2(offers), learners.DualAveraging(), oracles.auto(offers))
    >>> state = solver.init()
    >>> for _ in range(100):
    ...     state = solver.step(state, [0.5, 0.5, 0.25, 0.75])
    >>> heavier, state = reweigh(solver, state, [1.0, 3.0])
    >>> heavier.distance.offer_weights.tolist(), heavier.certificate(state).gap < 0.5
    ([1.0, 3.0], True)
    """
    distance = solver.distance
    if not can_reweigh(solver):
        kinds = f"{type(distance).__name__} with {type(solver.learner).__name__}"
        raise ValueError(
            f"{kinds} cannot be reweighted: 'l1' and 'l2' without smoothing can, with dual averaging or mirror descent."
        )
    old: Vec = distance.offer_weights  # type: ignore[attr-defined]
    new = np.fromiter(weights, np.float64)
    new = np.where(new > 0.0, new, old) if new.shape == old.shape else new
    reweighted: Any = replace(distance, weights=tuple(new.tolist()))  # type: ignore[type-var]
    after = Solver(solver.assortments, reweighted, solver.learner, solver.oracle)
    if not state.round:
        return after, after.init()
    if not old.all():
        raise ValueError("An offer has weight 0 so far, which cannot change: start with a small weight.")
    ratio = (new / old)[reweighted.assortments.owner]
    moved = state.copy()
    smaller = float(ratio.min(where=moved.sums.dual != 0.0, initial=ratio.max()))
    moved.sums.dual *= smaller / ratio
    moved.sums.answer *= smaller
    moved.sums.offset *= smaller
    moved.learner = _learner(after, moved, ratio)
    return after, moved


def _learner(solver: Solver, state: State, ratio: Vec) -> Any:
    learner, distance, before = solver.learner, solver.distance, state.learner
    if isinstance(learner, DualAveraging):
        return learner.lead(distance, before.pulls * ratio, before.squares, state.sums.total_weight)
    dual = distance.prox(-before.image * ratio)
    return Moved(dual, distance.mirror(dual), learner.step_size(distance))  # type: ignore[attr-defined]


def catch_up(run: Run, counts: ChoiceCounts, memory: float, weigh: bool = True) -> None:
    """Add new offers, weight offers by their observations, and limit the weight of earlier rounds to ``memory``.

    With ``weigh``, weights follow the counts if the distance and the learner allow it (``reweigh``).

    Examples
    --------
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


def endless(solver: Solver, state: State | None = None) -> Run:
    """Return a run without history, from its beginning or from a state."""
    run = Run(solver, tolerance=0.0, keep_history=False)
    if state is not None:
        run.state = state
    return run


def advance(run: Run, counts: ChoiceCounts, memory: float, rounds: int) -> None:
    """Play rounds on the current counts, with a weight of at most ``memory`` for all earlier ones.

    Offers are weighted by their observations (``catch_up``). Without observations, the model stays as it is. With a
    ``QuickOracle`` there are at most 5 rounds, a memory of 100, and 100 rankings.
    """
    if isinstance(run.solver.oracle, QuickOracle):
        with one_blas_thread():
            catch_up(run, counts, min(memory, MAX_QUICK_RANKINGS))
            prune(run, MAX_QUICK_RANKINGS)
            for _ in range(min(rounds, QUICK_ROUNDS) if counts.observations else 0):
                run.state = run.solver.step(run.state, counts)
                if isinstance(run.solver.oracle, QuickOracle):
                    run.solver.oracle.follow()
        return
    catch_up(run, counts, memory)
    prune(run)
    if counts.observations:
        with hurried(run.solver.oracle):
            run.advance_many(counts.target(), rounds)


def prune(run: Run, most: int | None = None) -> None:
    """Drop rankings of negligible weight, so that a model does not grow without bound.

    With ``most``, also drop the lightest until no more are left, older ones first. Their weight goes to all others in
    proportion, in the weights and in the sum of vertices alike. So the mean vertex, and with it a certificate's
    ``upper``, belongs to the published model. ``lower`` comes from duals alone, so certificates stay valid.

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
    np.maximum(sums.vertex, 0.0, out=sums.vertex)  # rounding can leave tiny negative numbers
    factor = sums.total_weight / sum(weights.values())
    sums.vertex *= factor
    run.state.weights = {key: weight * factor for key, weight in weights.items()}
