"""Runs: one fit of the study each, from its settings to its row."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments import metrics
from experiments.counting_oracle import CountingOracle
from experiments.instances import Instance
from experiments.methods import solver_of
from experiments.settings import StudyRun
from rankstream.data.counts import Target
from rankstream.solver.runs import Run as Fit

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from milp_oracle import MilpOracle

MARKS = range(5_000, 60_001, 5_000)
UPDATES = 50


@dataclass(frozen=True)
class StudyRow:
    """What a run gave: results that depend on its settings alone, and the seconds, which do not."""

    run: StudyRun
    results: dict[str, Any]
    times: dict[str, float]


def run_all(runs: Sequence[StudyRun]) -> list[StudyRow]:
    """Runs on one market, one after the other; those of a profile give several rows."""
    instance = Instance(runs[0])
    return [row for run in runs for row in KINDS[run.kind](run, instance)]


def static(run: StudyRun, instance: Instance) -> list[StudyRow]:
    """Every round has the true probabilities; with ``timed``, the oracle's seconds are taken apart."""
    if not run.timed:
        fit = Fit(solver_of(run, instance), run.tolerance)
        start = time.perf_counter()
        fit.advance_many(instance.target, run.max_rounds)
        return [_row(run, fit, instance, {"seconds": time.perf_counter() - start})]
    target = instance.target
    _warm_up(run, instance)
    oracle = CountingOracle(instance.oracle)
    fit = Fit(solver_of(run, instance, oracle), run.tolerance)
    start = time.perf_counter()
    for _ in range(run.max_rounds):
        if fit.advance(target):
            break
    seconds = time.perf_counter() - start
    times = {"seconds": seconds, "oracle_seconds": oracle.seconds, "oracle_ms": 1e3 * oracle.seconds / oracle.calls}
    return [_row(run, fit, instance, times)]


def dynamic(run: StudyRun, instance: Instance) -> list[StudyRow]:
    """Every round has the frequencies of all observations so far."""
    fit = Fit(solver_of(run, instance), run.tolerance)
    seconds, left = 0.0, run.max_rounds
    for frequencies, observations in instance.stream(run.per_round, run.first).blocks():
        start = time.perf_counter()
        fit.advance_block(frequencies[:left], observations[:left])
        seconds += time.perf_counter() - start
        left -= len(frequencies)
        if fit.converged or left <= 0:
            break
    row = _row(run, fit, instance, {"seconds": seconds})
    if run.method == "FW_naive":
        row.results["rounds_by_latest"] = rounds_by_latest(run, instance)
    return [row]


def rounds_by_latest(run: StudyRun, instance: Instance) -> int:
    """When the error against p_t, naive Frank-Wolfe's own target, is small enough: the rule's other reading."""
    fit, left = Fit(solver_of(run, instance), tolerance=0.0), run.max_rounds
    for frequencies, observations in instance.stream(run.per_round, run.first).blocks():
        fit.advance_block(frequencies[:left], observations[:left])
        left -= len(frequencies)
        enough = np.flatnonzero(fit.history.latest_mae <= run.tolerance)
        if enough.size:
            return int(enough[0]) + 1
        if left <= 0:
            break
    return run.max_rounds


def profile(run: StudyRun, instance: Instance) -> list[StudyRow]:
    """The errors each time another 5,000 observations have come, past the stopping rule, to 60,000."""
    fit = Fit(solver_of(run, instance), tolerance=0.0)
    marks, rows = list(MARKS), []
    for frequencies, observations in instance.stream(run.per_round, run.first).blocks():
        begin = 0
        for end in range(1, len(observations) + 1):
            if marks and observations[end - 1] >= marks[0]:
                fit.advance_block(frequencies[begin:end], observations[begin:end])
                rows.append(StudyRow(run, {"mark": marks.pop(0), **metrics.errors(fit, instance)}, {}))
                begin = end
        if not marks:
            return rows
        fit.advance_block(frequencies[begin:], observations[begin:])
    return rows


def resolving(run: StudyRun, instance: Instance) -> list[StudyRow]:
    """The same stream three ways: one round per update, solving again from scratch, and from the last dual."""
    frequencies, observations = next(instance.stream(run.per_round, run.first).blocks())
    rows = []
    for way in ("one round", "again", "again from the last dual"):
        calls, seconds, error = 0, 0.0, 0.0
        fit = Fit(solver_of(run, instance), tolerance=0.0)
        for number in range(UPDATES):
            now = slice(number, number + 1)
            start = time.perf_counter()
            if way == "one round":
                fit.advance_block(frequencies[now], observations[now])
                calls += 1
            else:
                last, fit = fit, Fit(solver_of(run, instance), run.tolerance)
                if way != "again":
                    fit.state.learner = last.state.learner
                fit.advance_many(Target(frequencies[number], None, observations[number]), run.max_rounds)
                calls += fit.state.round
            seconds += time.perf_counter() - start
            error += metrics.mean_error(fit.state.sums.mean_vertex, instance.truth) / UPDATES
        results = {"way": way, "calls": calls, "mean_truth_mae": error, **metrics.errors(fit, instance)}
        rows.append(StudyRow(run, results, {"seconds": seconds}))
    return rows


def solvers(run: StudyRun, instance: Instance) -> list[StudyRow]:
    """The same rounds twice: with our oracle, and with the paper's integer program in HiGHS."""
    rows = []
    tuned = replace(run, max_rounds=10_000)
    _warm_up(tuned, instance)
    for way, oracle in (("ours", instance.oracle), ("HiGHS", MilpOracle(instance.market.assortments))):
        counting = CountingOracle(oracle)
        fit = Fit(solver_of(tuned, instance, counting), run.tolerance)
        start = time.perf_counter()
        for _ in range(run.max_rounds):
            if fit.advance(instance.target):
                break
        times = {"seconds": time.perf_counter() - start, "oracle_seconds": counting.seconds}
        rows.append(StudyRow(run, {"way": way, "calls": counting.calls, **metrics.errors(fit, instance)}, times))
    return rows


def _warm_up(run: StudyRun, instance: Instance) -> None:
    """Load compiled code outside of the timing."""
    fit = Fit(solver_of(run, instance))
    for _ in range(5):
        fit.advance(instance.target)


def _row(run: StudyRun, fit: Fit, instance: Instance, times: dict[str, float]) -> StudyRow:
    results = {"converged": int(fit.converged), **metrics.errors(fit, instance), "gap": metrics.gap(fit)}
    if run.kind == "static":
        results["guarantee"] = metrics.guarantee(fit, instance)
    return StudyRow(run, results, times)


KINDS = {"static": static, "dynamic": dynamic, "profile": profile, "resolving": resolving, "solvers": solvers}
