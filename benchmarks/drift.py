"""How fast a change is noticed and how often nothing is, with a change detector and with plain cumulative counts.

Two simulated markets share their offers (20 of 11 items); after 20,000 choices from the first the second takes over.
Errors are mean absolute differences of the sparse model from the true probabilities, medians over the seeds. False
alarms are counted on markets that do not change. Run with ``python benchmarks/drift.py``; a smaller number of quiet
records per market as an argument makes it quicker. ``python benchmarks/drift.py kinds 100000`` counts false alarms in
quiet markets of other sizes alone, at the default threshold, and in markets whose offers change but not their tastes.
The settings of the detector were chosen on seeds 0 to 9 and 2000 to 2009.
``python benchmarks/drift.py items 1000`` counts the false verdicts of ``drift_report`` on so many pairs of periods that
share few offers.
"""

import math
import sys
import time

import numpy as np

from rankstream import Assortments, ChoiceCounts, Live, RankingModel, Record, drift_report
from rankstream._core.types import Codes, Vec
from rankstream.data import simulate
from rankstream.streams.detector import ChangeDetector

SEEDS, QUIET_SEEDS, BEFORE, BATCH = range(100, 110), range(3000, 3010), 20_000, 50
LATER = (1_000, 2_000, 5_000, 20_000)
KINDS = {
    "6 items, 10 offers": (5, 10),
    "11 items, 40 offers": (10, 40),
    "16 items, 60 offers": (15, 60),
    "11 items, 300 offers": (10, 300),
}
SHARES = (0.5, 0.2, 0.1)
THRESHOLDS = (6.0, 8.0, 10.0, 15.0)


def records_of(offers: Assortments, coordinates: Codes) -> list[Record]:
    """Choices as records."""
    owners, members = offers.owner[coordinates].tolist(), offers.members[coordinates].tolist()
    return [Record(offers.offers[o], offers.items[i]) for o, i in zip(owners, members, strict=True)]


def switch(seed: int) -> tuple[list[int], Vec]:
    """The alarms after a switch, and the errors at the switch and later: detector, half-life and cumulative counts."""
    market, other = simulate.market(seed), simulate.market(1000 + seed)
    offers, random = market.assortments, np.random.default_rng(seed)
    detecting, fading, plain = (
        Live(publish="sparse", **settings) for settings in ({}, {"half_life": 500.0}, {"detect": False})
    )
    errors, done = [], 0
    truths = (market.frequencies(), other.truth.probabilities(offers))
    for truth, until in ((truths[0], BEFORE), *((truths[1], BEFORE + later) for later in LATER)):
        records = records_of(offers, simulate.draw_choices(offers, truth, until - done, random))
        lives = (detecting, fading, plain)
        for start in range(0, len(records), BATCH):
            for live in lives:
                live.observe(records[start : start + BATCH])
        errors.append([np.abs(live.model.probabilities(offers) - truth).mean() for live in lives])
        done = until
    return [alarm.record - BEFORE for alarm in detecting.alarms], np.array(errors)


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


def quiet_kinds(records: int) -> None:
    """Print the false alarms in quiet markets of several sizes, at the default threshold, and what they cost."""
    for name, (n_items, n_offers) in KINDS.items():
        alarms, most, spent = 0, 0.0, {"detector": 0.0, "with": 0.0, "without": 0.0}
        for seed in QUIET_SEEDS:
            market, random = simulate.market(seed, n_items, n_offers=n_offers), np.random.default_rng(5000 + seed)
            offers = market.assortments
            drawn, detector = (
                simulate.draw_choices(offers, market.frequencies(), records, random),
                ChangeDetector(offers),
            )
            began = time.process_time()
            for start in range(0, records, BATCH):
                detector.observe_coordinates(drawn[start : start + BATCH])
                most = max(most, detector.statistic)
            spent["detector"] += time.process_time() - began
            alarms += len(detector.alarms)
            batches = np.split(drawn[:10_000], 10)
            for name_of, live in (("with", Live(publish="sparse")), ("without", Live(publish="sparse", detect=False))):
                live.observe(records_of(offers, drawn[:1]))  # which compiles and builds programs
                for batch in batches:
                    given = records_of(offers, batch)
                    began = time.process_time()
                    live.observe(given)
                    spent[name_of] += time.process_time() - began
        count = len(QUIET_SEEDS) * records
        each = [
            1e6 * spent["detector"] / count,
            *(1e2 * spent[part] / len(QUIET_SEEDS) for part in ("with", "without")),
        ]
        print(
            f"{name}: {alarms} false alarms in {count:,} records, evidence at most {most:.1f}; the detector takes "
            f"{each[0]:.2f} ms per 1,000 records, a stream with it {each[1]:.2f} and without {each[2]:.2f}",
            flush=True,
        )


def changing_offers(is_logit: bool, n_offers: int, records: int, seed: int) -> int:
    """How many alarms there are if small offers of few items give way to larger ones of all, and tastes stay."""
    random, items, offers = np.random.default_rng(seed), 12, dict[tuple[int, ...], None]()
    for number, low, high, among in ((60, 2, 3, 8), (n_offers, 4, 8, items)):
        for _ in range(number):
            size = int(random.integers(low, high + 1))
            offers[(*sorted(random.permutation(among)[:size].tolist()), items)] = None
    market = Assortments(offers, range(items + 1))
    if is_logit:  # of five kinds of customers with strong tastes
        worth = np.exp(2.5 * random.normal(size=(5, items + 1)))[:, market.members]
        sums = np.add.reduceat(worth, market.indptr[:-1], axis=1)
        shares = (worth / sums[:, market.owner]).mean(axis=0)
    else:
        types = [random.permutation(items + 1).tolist() for _ in range(10)]
        shares = RankingModel(range(items + 1), types, np.full(10, 0.1)).probabilities(market)
    detector, early = ChangeDetector(market), np.diff(market.indptr)[market.owner] <= 4
    for part in (early, ~early):
        weights = np.where(part, shares, 0.0)
        detector.observe_coordinates(random.choice(shares.size, records, p=weights / weights.sum()))
    return len(detector.alarms)


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
        records = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
        quiet_kinds(records)
        for is_logit, n_offers in ((True, 60), (True, 400), (False, 60), (False, 400)):
            each = [changing_offers(is_logit, n_offers, 10_000, seed) for seed in QUIET_SEEDS]
            name = "five logits" if is_logit else "ten rankings"
            print(
                f"{name}, 60 offers and then {n_offers} others, 10,000 records each: {sum(each)} false alarms in "
                f"{len(each)} streams",
                flush=True,
            )
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
    print("median error             detector  half-life  cumulative counts")
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
        alarms = sum(false_alarms(seed, threshold, quiet) for seed in QUIET_SEEDS)
        million = len(QUIET_SEEDS) * quiet / 1e6
        per_record = (time.perf_counter() - began) / (1e6 * million)
        print(
            f"threshold {threshold:4.0f}: {alarms / million:8.1f} false alarms per million records "
            f"({alarms} in {million:g} million; bound for a perfect prediction {1e6 * math.exp(-threshold):.3g}), "
            f"{1e6 * per_record:.0f} microseconds per record"
        )


if __name__ == "__main__":
    main()
