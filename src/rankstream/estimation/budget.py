"""Fitting within a time budget: the best model so far, with its certificate, whatever the size of the data."""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from time import monotonic
from typing import Any

from rankstream import distances, oracles
from rankstream._core.arguments import number_between
from rankstream._core.watch import Deadline, Watch, interrupts
from rankstream.columns import corrective
from rankstream.data.counts import ChoiceCounts
from rankstream.estimation.entropy_estimate import entropy_estimate
from rankstream.estimation.estimate import Method
from rankstream.models.entropy.fit import has_small_program
from rankstream.oracles.search import hurried
from rankstream.solver.make import make_solver
from rankstream.solver.runs import Estimate, Run

ROUNDS = 10_000


def fit_within(
    counts: ChoiceCounts,
    seconds: float = 60.0,
    method: Method = "auto",
    tolerance: float = 1e-3,
    seed: int = 0,
    watch: Callable[[str, float], None] | None = None,
    clock: Callable[[], float] = monotonic,
) -> Estimate[Any]:
    """A model of the counts in about so many seconds; Ctrl-C ends it early, with the model so far.

    ``"auto"`` is max-entropy where its exact program is small. Otherwise the fully corrective engine goes on until the
    certified gap is small enough or the time is up; where the oracle is inexact, the paper's solver, until the error
    is. The certificate is that of the l2 distance with offers weighed by their observations, which these minimise, and
    holds for whatever model there is; max-entropy gets it in the last tenth of the time, and has ``converged``
    only if its prior was not cut short either. Single steps are not interrupted, such as compiling (once), making
    tables and asking the oracle. ``watch`` is told what is going on and how much of the budget is used.
    """
    number_between("seconds", seconds, 0.0)
    with interrupts() as asked:
        deadline = Deadline(seconds, asked, watch, clock)
        if method == "max-entropy" or (method == "auto" and has_small_program(counts)):
            options: dict[str, Any] = {"tolerance": tolerance, "seed": seed}
            found = entropy_estimate(counts.assortments, counts, watch=deadline, proving=copy(deadline), **options)
            return replace(found, converged=found.converged and not deadline.stopped)
        return _nearest(counts, tolerance, seed, deadline)


def _nearest(counts: ChoiceCounts, tolerance: float, seed: int, watch: Watch) -> Estimate[Any]:
    """The mixture of rankings nearest to the counts, as far as it is found in time."""
    watch("preparing the oracle")
    offers = counts.assortments
    weighted = distances.L2(offers, weights=distances.observation_weights(counts))
    oracle = oracles.auto(offers, seed=seed)
    if hasattr(oracle, "cheapest_by_first"):
        return corrective.fit(offers, counts, weighted, oracle, "random", tolerance, "gap", ROUNDS, seed, watch)
    run = Run(make_solver(offers, weighted, "mirror-descent", oracle, "random", ROUNDS, seed), tolerance)
    with hurried(oracle):
        for _ in range(ROUNDS):
            run.advance(counts)
            state = run.state
            if run.converged or watch(f"round {state.round:,}, error {state.mae:.5f}, {len(state.weights):,} rankings"):
                break
    return run.result()
