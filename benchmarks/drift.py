"""How fast a change is noticed and how often nothing is, with a change detector and with plain cumulative counts.

Two simulated markets share their offers (20 of 11 items); after 20,000 choices from the first the second takes over.
Errors are mean absolute differences of the served model from the true probabilities, medians over the seeds. False
alarms are counted on markets that do not change. Run with ``python benchmarks/drift.py``; a smaller number of quiet
records per market as an argument makes it quicker. ``python benchmarks/drift.py kinds 100000`` counts false alarms in
quiet markets of other sizes alone, at the default threshold; a third argument is the number of rounds for each block.
``python benchmarks/drift.py items 1000`` counts the false verdicts of ``drift_report`` on so many pairs of periods that
share few offers.
"""

import math
import sys
import time

import numpy as np

from rankstream import Assortments, ChoiceCounts, RankingModel, drift_report
from rankstream._core.types import Vec
from rankstream.data import simulate
from rankstream.solver.runs import Run
from rankstream.streams.detector import ChangeDetector
from rankstream.streams.runs.endless import advance, endless

SEEDS, BEFORE = range(10), 20_000
LATER = (1_000, 2_000, 5_000, 20_000)
KINDS = {"6 items, 10 offers": (5, 10), "11 items, 40 offers": (10, 40), "16 items, 60 offers": (15, 60)}
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
    own, plain, counts = detector.settings, endless(detector.published.solver), ChoiceCounts(offers)
    errors, done = [], 0
    truths = (market.frequencies(), other.truth.probabilities(offers))
    for truth, until in ((truths[0], BEFORE), *((truths[1], BEFORE + later) for later in LATER)):
        records = simulate.draw_choices(offers, truth, until - done, random)
        detector.observe_coordinates(records)
        for block in np.array_split(records, len(records) // own.block):
            counts.observe_coordinates(block)
            advance(plain, counts, own.memory, own.rounds)
        errors.append([error(run, truth) for run in (detector.published, detector.fast, plain)])
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


def quiet_kinds(records: int, rounds: int, markets: int = 10) -> None:
    """Print the false alarms in quiet markets of several sizes, at the default threshold."""
    for name, (n_items, n_offers) in KINDS.items():
        alarms, began = 0, time.process_time()
        for seed in range(2000, 2000 + markets):
            market = simulate.market(seed, n_items, n_offers=n_offers)
            detector, random = ChangeDetector(market.assortments, rounds=rounds), np.random.default_rng(5000 + seed)
            drawn = simulate.draw_choices(market.assortments, market.frequencies(), records, random)
            detector.observe_coordinates(drawn)
            alarms += len(detector.alarms)
        spent = 1e6 * (time.process_time() - began) / (markets * records)
        print(f"{name}: {alarms} false alarms in {markets * records:,} records, {spent:.0f} ms per 1,000", flush=True)


def false_verdicts(is_logit: bool, n_offers: int, size: int, pairs: int) -> tuple[int, int]:
    """How often two periods without a change, each with offers of its own, are said to differ; and pairs compared."""
    random, items = np.random.default_rng([is_logit, n_offers, size]), np.arange(9)
    alarms = compared = 0
    for _ in range(pairs):
        worth = np.exp(random.normal(size=9))
        rankings = sorted({tuple(random.permutation(items).tolist()) for _ in range(6)})
        model, periods = RankingModel(items.tolist(), rankings, random.dirichlet(np.ones(len(rankings)))), []
        for _ in range(2):
            offers = random_offers(n_offers, random)
            weights = worth[offers.members]
            logit = weights / np.add.reduceat(weights, offers.indptr[:-1])[offers.owner]
            counts = ChoiceCounts(offers)
            shares = logit if is_logit else model.probabilities(offers)
            counts.observe_coordinates(simulate.draw_choices(offers, shares, size, random))
            periods.append(counts)
        report = drift_report(*periods)
        if report.given_offers and report.tested_items:
            compared += 1
            alarms += report.changed
    return alarms, compared


def random_offers(number: int, random: np.random.Generator) -> Assortments:
    """Different offers of some of eight items, and of 8, which is in all of them."""
    found: set[tuple[int, ...]] = set()
    while len(found) < number:
        offer = (*np.flatnonzero(random.random(8) < 0.5).tolist(), 8)
        if len(offer) > 2:
            found.add(offer)
    return Assortments(sorted(found), range(9))


def item_effects(pairs: int) -> None:
    """Print how often tests of items at equal offers are wrong without a change, at a level of 5 %."""
    for is_logit in (True, False):
        for n_offers, size in ((20, 2_000), (20, 10_000), (60, 2_000), (60, 10_000)):
            alarms, compared = false_verdicts(is_logit, n_offers, size, pairs)
            print(
                f"{'a logit' if is_logit else 'six rankings'}, {n_offers} offers and {size:,} choices in each period: "
                f"{100 * alarms / max(compared, 1):.1f} % false verdicts in {compared:,} of {pairs:,} pairs"
            )


def main() -> None:
    """Print delays, errors and false alarms; with "items" those of the report on items alone."""
    if "kinds" in sys.argv:
        given = [int(text) for text in sys.argv[2:]]
        quiet_kinds(*[*given, *(100_000, 50)[len(given) :]])
        return
    if "items" in sys.argv:
        item_effects(int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
        return
    quiet = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    found = [switch(seed) for seed in SEEDS]
    first = [min((record for record in alarms if record > 0), default=math.inf) for alarms, _ in found]
    early = sum(record <= 0 for alarms, _ in found for record in alarms)
    print(
        f"{len(SEEDS)} switches: first alarm after {np.median(first):.0f} records (median), {max(first):.0f} (worst);"
    )
    after = [sum(record > 0 for record in alarms) for alarms, _ in found]
    print(
        f"  alarms per switch {np.mean(after):.1f}, exactly one after {after.count(1)} of {len(after)} switches, "
        f"before any switch {early}"
    )
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
