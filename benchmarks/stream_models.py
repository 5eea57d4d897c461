"""What a stream serves over time: its maximum-entropy model against its sparse one, and against a fit from scratch.

One market of the paper (10 items, 40 offers), batches of 500 choices, with and without a half-life; root mean squared
errors on 100 offers never made, and CPU seconds of the stream so far.

Run with ``python benchmarks/stream_models.py [seed]``.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time

import numpy as np

from rankstream import Live, Record, estimate, methods, simulate
from rankstream.models import ChoiceModel

BATCH, LAST = 500, 20_000
SHOWN = (500, 1_000, 2_000, 5_000, 10_000, 20_000)


def main(seed: int) -> None:
    """Print a table for each way of forgetting."""
    market = simulate.market(seed, n_offers=40, unseen=True)
    offers, true = market.assortments, market.truth.probabilities(market.test)
    drawn = simulate.draw_choices(offers, market.frequencies(), LAST, np.random.default_rng(seed))
    records = [Record(offers.offers[offers.owner[c]], offers.items[offers.members[c]]) for c in drawn.tolist()]

    def error(model: ChoiceModel) -> float:
        return 1e3 * float(np.sqrt(np.mean((model.probabilities(market.test) - true) ** 2)))

    for half_life in (None, 2_000.0):
        live, spent = Live(half_life=half_life), 0.0
        titles = "served | sparse | from scratch | CPU s so far |\n|---|---|---|---|---|"
        print(f"\n| choices, half-life {half_life or 'none'} | {titles}")
        for start in range(0, LAST, BATCH):
            began = time.process_time()
            live.observe(records[start : start + BATCH])
            spent += time.process_time() - began
            if start + BATCH in SHOWN and live.counts is not None:
                scratch = estimate(live.counts, method=methods.MaxEntropy()).model
                shown = [f"{error(model):.1f}" for model in (live.model, live.sparse, scratch)]
                print(f"| {start + BATCH:,} | {' | '.join(shown)} | {spent:.1f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
