"""How fast a change is noticed and how often nothing is, with a change detector and with plain cumulative counts.

Two simulated markets share their offers (20 of 11 items); after 20,000 choices from the first the second takes over.
Errors are mean absolute differences of the served model from the true probabilities, medians over the seeds. False
alarms are counted on markets that do not change. Run with ``python benchmarks/drift.py``; a smaller number of quiet
records per market as an argument makes it quicker.
"""

import math
import sys
import time

import numpy as np

from rankstream import ChoiceCounts
from rankstream._core.types import Vec
from rankstream.data import simulate
from rankstream.solver.runs import Run
from rankstream.streams.detector import ChangeDetector
from rankstream.streams.playing import endless, play_on

SEEDS, BEFORE = range(10), 20_000
LATER = (1_000, 2_000, 5_000, 20_000)
SHARES = (0.5, 0.2, 0.1)
THRESHOLDS = (6.0, 8.0, 10.0, 15.0)


def error(run: Run, truth: Vec) -> float:
    """The mean absolute error of a model."""
    return float(np.abs(run.state.sums.mean_vertex - truth).mean())


def switch(seed: int) -> tuple[list[int], Vec]:
    """The alarms after a switch, and the errors at the switch and later: detector, copy and cumulative counts."""
    market, other = simulate.market(seed), simulate.market(1000 + seed)
    offers, random = market.assortments, np.random.default_rng(seed)
    detector = ChangeDetector(offers)
    own, plain, counts = detector.settings, endless(detector.served.solver), ChoiceCounts(offers)
    errors, done = [], 0
    truths = (market.frequencies(), other.truth.probabilities(offers))
    for truth, until in ((truths[0], BEFORE), *((truths[1], BEFORE + later) for later in LATER)):
        records = simulate.draw_choices(offers, truth, until - done, random)
        detector.observe_coordinates(records)
        for block in np.array_split(records, len(records) // own.block):
            counts.observe_coordinates(block)
            play_on(plain, counts, own.memory, own.rounds)
        errors.append([error(run, truth) for run in (detector.served, detector.fast, plain)])
        done = until
    return [alarm.record - BEFORE for alarm in detector.alarms], np.array(errors)


def partial_switch(seed: int, share: float) -> float:
    """After how many records the first alarm comes when only a share of the customers changes; infinite for none."""
    market, other = simulate.market(seed), simulate.market(1000 + seed)
    offers, random = market.assortments, np.random.default_rng(seed)
    detector = ChangeDetector(offers)
    mixed = (1.0 - share) * market.frequencies() + share * other.truth.probabilities(offers)
    for truth in (market.frequencies(), mixed):
        detector.observe_coordinates(simulate.draw_choices(offers, truth, BEFORE, random))
    return min((alarm.record - BEFORE for alarm in detector.alarms if alarm.record > BEFORE), default=math.inf)


def false_alarms(seed: int, threshold: float, records: int) -> int:
    """How many alarms there are on a market that does not change."""
    market, random = simulate.market(seed), np.random.default_rng(5000 + seed)
    detector, shares = ChangeDetector(market.assortments, threshold=threshold), market.frequencies()
    for size in [10_000] * (records // 10_000):
        detector.observe_coordinates(simulate.draw_choices(market.assortments, shares, size, random))
    return len(detector.alarms)


def main() -> None:
    """Print delays, errors and false alarms."""
    quiet = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    found = [switch(seed) for seed in SEEDS]
    first = [min((record for record in alarms if record > 0), default=math.inf) for alarms, _ in found]
    early = sum(record <= 0 for alarms, _ in found for record in alarms)
    print(
        f"{len(SEEDS)} switches: first alarm after {np.median(first):.0f} records (median), {max(first):.0f} (worst);"
    )
    print(f"  alarms per switch {np.mean([len(alarms) for alarms, _ in found]):.1f}, before any switch {early}")
    errors = np.median([table for _, table in found], axis=0)
    print("median error             detector  fast copy  cumulative counts")
    for row, when in zip(errors, ("before the switch", *(f"{later:,} records later" for later in LATER)), strict=True):
        print(f"  {when:22} {row[0]:8.4f}  {row[1]:9.4f}  {row[2]:17.4f}")
    for share in SHARES:
        delays = [partial_switch(seed, share) for seed in SEEDS]
        noticed = [delay for delay in delays if delay < math.inf]
        print(
            f"{100 * share:.0f} % of the customers change: {len(noticed)} of {len(delays)} switches noticed within "
            f"{BEFORE:,} records, after {np.median(noticed):.0f} (median)"
        )
    for threshold in THRESHOLDS:
        began = time.perf_counter()
        alarms = sum(false_alarms(seed, threshold, quiet) for seed in SEEDS)
        million = len(SEEDS) * quiet / 1e6
        per_record = (time.perf_counter() - began) / (1e6 * million)
        print(
            f"threshold {threshold:4.0f}: {alarms / million:8.1f} false alarms per million records "
            f"({alarms} in {million:g} million; bound for a perfect served model {1e6 * math.exp(-threshold):.3g}), "
            f"{1e6 * per_record:.0f} microseconds per record"
        )


if __name__ == "__main__":
    main()
