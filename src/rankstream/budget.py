"""Fitting within a time budget: the best model so far, with its certificate, whatever the size of the data."""

import time
from collections.abc import Callable
from typing import Any

from rankstream import distances
from rankstream.counts import ChoiceCounts
from rankstream.entropy_estimate import entropy_estimate
from rankstream.estimation import Method, make_solver
from rankstream.oracles.lattice import TooManyUnionsError
from rankstream.priors import plackett_luce
from rankstream.runs import Estimate, Run
from rankstream.soft_lattice import SoftLattice
from rankstream.validate import number_between

Watch = Callable[[str, float], None]
ROUNDS = 10_000


def fit_within(
    counts: ChoiceCounts,
    seconds: float = 60.0,
    method: Method = "auto",
    tolerance: float = 1e-3,
    seed: int = 0,
    watch: Watch | None = None,
) -> Estimate[Any]:
    """A model of the counts in about so many seconds; Ctrl-C ends it early, with the model so far.

    Max-entropy is not cut short: ``"auto"`` takes it only where its exact program is small. The paper's solver is: it
    stops at the tolerance or when the time is up, and one more oracle call certifies what it has. ``watch`` is told
    what is going on and how much of the budget is used.
    """
    number_between("seconds", seconds, 0.0)
    start = time.monotonic()

    def tell(text: str) -> None:
        if watch is not None:
            watch(text, min(1.0, (time.monotonic() - start) / seconds) if seconds > 0.0 else 1.0)

    if method == "max-entropy" or (method == "auto" and has_small_program(counts)):
        tell("maximum entropy")
        return entropy_estimate(counts.assortments, counts, tolerance=tolerance, seed=seed)
    tell("preparing the oracle")
    weighted = distances.L2(counts.assortments, weights=distances.observation_weights(counts))
    solver = make_solver(counts.assortments, weighted, "mirror-descent", None, "random", ROUNDS, seed)
    run, target, size = Run(solver, tolerance), counts.target(), 1
    try:
        while not run.converged and run.state.round < ROUNDS:
            begin = time.monotonic()
            run.advance_many(target, min(size, ROUNDS - run.state.round))
            now = time.monotonic()
            tell(f"round {run.state.round:,}, error {run.state.mae:.5f}, {len(run.state.weights):,} rankings")
            pace = (now - begin) / size
            if now - start + pace > seconds:
                break
            size = max(1, min(256, int(min(0.25, seconds - (now - start)) / max(pace, 1e-6))))
    except KeyboardInterrupt:
        if not run.state.round:
            raise
        tell("interrupted: going on with the model so far")
    return run.result()


def has_small_program(counts: ChoiceCounts) -> bool:
    """Whether the exact maximum-entropy program is small enough to be run a few dozen times."""
    offers = counts.assortments
    if offers.n_offers > 400:
        return False
    flat = plackett_luce(offers.items, [1.0] * offers.n_items)
    try:
        SoftLattice(offers, flat, most_states=2**13)
    except TooManyUnionsError:
        return False
    return True
