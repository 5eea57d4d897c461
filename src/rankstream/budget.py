"""Fitting within a time budget: the best model so far, with its certificate, whatever the size of the data."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rankstream import corrective, distances, oracles
from rankstream.counts import ChoiceCounts
from rankstream.entropy import has_small_program
from rankstream.entropy_estimate import entropy_estimate, raw_certificate
from rankstream.estimation import Method, make_solver
from rankstream.runs import Estimate, Run
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

    Max-entropy is not cut short: ``"auto"`` takes it only where its exact program is small. Otherwise the fully
    corrective engine goes on until the certified gap is small enough or the time is up; where the oracle is inexact,
    the paper's solver, until the error is. Both weigh offers by their observations while they fit; the certificate is
    that of the plain l2 distance, as for max-entropy. ``watch`` is told what is going on and how much of the budget is
    used.
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
    offers = counts.assortments
    weighted = distances.L2(offers, weights=distances.observation_weights(counts))
    oracle = oracles.auto(offers, seed=seed)
    with interrupts() as asked:

        def enough(rounds: int, error: float, rankings: int) -> bool:
            tell(f"round {rounds:,}, error {error:.5f}, {rankings:,} rankings")
            return bool(asked) or time.monotonic() - start >= seconds

        if hasattr(oracle, "cheapest_by_first"):
            found = corrective.fit(offers, counts, weighted, oracle, "random", tolerance, "gap", ROUNDS, seed, enough)
            return replace(found, certificate=raw_certificate(found.model, counts, oracle))
        run = Run(make_solver(offers, weighted, "mirror-descent", oracle, "random", ROUNDS, seed), tolerance)
        for _ in range(ROUNDS):
            run.advance(counts)
            if run.converged or enough(run.state.round, run.state.mae, len(run.state.weights)):
                break
        found = run.result()
        return replace(found, certificate=raw_certificate(found.model, counts, oracle))


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """A list that is empty until Ctrl-C is pressed, which then waits for the round to end; twice does not wait."""
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(number: int, _: object) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
