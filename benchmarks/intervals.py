"""How often intervals of predicted shares contain the true one: on offers with data, and on offers nobody has seen.

Markets are the paper's (10 items, 20 or 300 offers, offers shown uniformly at random); every coordinate of every offer
counts once. Also the mean width of the intervals, the time of a bootstrap beside that of one fit, and how much of it
warm starts save. Run with
``python benchmarks/intervals.py [--quick]``.
"""

import sys
import time
from typing import Any

import numpy as np

from rankstream import Bootstrap, ChoiceCounts, models, simulate

KINDS: dict[str, dict[str, Any]] = {
    "max-entropy": {"method": "max-entropy"},
    "the same, from scratch": {"method": "max-entropy", "warm": False},
    "the same, prior kept": {"method": "max-entropy", "refit_prior": False},
    "nearest": {"method": "nearest"},
}


def measure(n_offers: int, choices: int, markets: int, replicates: int) -> None:
    """Print a row for each kind of bootstrap."""
    measured: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    for seed in range(1000, 1000 + markets):
        market = simulate.market(seed, n_offers=n_offers, n_test=50, unseen=True)
        counts = next(market.stream(first=choices))
        start = time.perf_counter()
        models.fit_max_entropy(counts)
        single = time.perf_counter() - start
        for kind, options in KINDS.items():
            measured[kind].append(one(market, counts, single, replicates, options))
    for kind, rows in measured.items():
        seen, width, unseen, wide, times = np.mean(rows, axis=0)
        line = f"{n_offers:>7}{choices:>9,}  {kind:22}{seen:>7.1%}{width:>8.3f}{unseen:>9.1%}{wide:>8.3f}{times:>9.0f}"
        print(line, flush=True)
    times_of = {kind: sum(row[-1] for row in rows) for kind, rows in measured.items()}
    ratio = times_of["max-entropy"] / times_of["the same, from scratch"]
    print(f"{'':18}max-entropy from where the first fit ended takes {ratio:.2f} of the time from scratch", flush=True)


def one(
    market: simulate.Market, counts: ChoiceCounts, single: float, replicates: int, options: dict[str, Any]
) -> list[float]:
    """Coverage and width on seen and on unseen offers, and the time in fits."""
    start = time.perf_counter()
    found = Bootstrap(counts, replicates=replicates, **options)
    spent = time.perf_counter() - start
    row: list[float] = []
    for offers in (market.assortments, market.test):
        true = market.truth.probabilities(offers)
        _, low, high = found.bounds(offers, 0.95)
        row += [float(((low <= true) & (true <= high)).mean()), float((high - low).mean())]
    return [*row, spent / single]


def main(quick: bool) -> None:
    """Print the table."""
    markets, replicates = (2, 20) if quick else (20, 100)
    print(f"{markets} markets ({max(2, markets // 5)} with 300 offers), {replicates} replicates, intervals of 95 %")
    titles = f"{'seen':>7}{'width':>8}{'unseen':>9}{'width':>8}{'fits':>9}"
    print(f"{'offers':>7}{'choices':>9}  {'refitted by':22}{titles}")
    small = next(simulate.market(0).stream())
    for options in KINDS.values():
        Bootstrap(small, replicates=2, **options)  # compiles
    for n_offers, choices in ((20, 2_000), (20, 10_000), (300, 10_000)):
        measure(n_offers, choices, markets if n_offers < 300 else max(2, markets // 5), replicates)


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
