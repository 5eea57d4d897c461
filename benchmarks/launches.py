"""A new item in a stream: the error of its share over the first 1,000 records, with attributes and without.

    python benchmarks/launches.py [--markets 4] [--seed 8601] [--truths NAME ...]

Markets are those of ``attributes.py``: 12 items with four attributes, one of which is launched after 2,000 records of
30 offers. From then on, records are of 15 offers that have it. After so many of these records, the error is the root
mean square of its share in 50 offers that have it, times 1,000. A model that does not have the item yet predicts that
it gets an equal part of the offer. The mean is over all batches of 25 records.
"""

import argparse
import time
from typing import Any

import numpy as np

import rankstream as rs
from attributes import ITEMS, TRUTHS, Market, draw_counts, draw_offers, make_market
from rankstream import Assortments, Record

BEFORE, AFTER, BATCH = 2000, 1000, 25
SHOWN = (25, 50, 100, 300, 1000)


def records(market: Market, offers: Assortments, size: int, random: np.random.Generator) -> list[Record]:
    """So many choices from these offers, in random order."""
    counts = draw_counts(market, offers, size, random)
    pairs = [(offer, item) for offer in offers.offers for item in offer]
    drawn = [Record(*pair) for pair, count in zip(pairs, counts.tallies.astype(int), strict=True) for _ in range(count)]
    return [drawn[place] for place in random.permutation(len(drawn))]


def error(market: Market, model: Any, offers: Assortments, item: str) -> float:
    """The error of an item's share, times 1,000."""
    has = offers.members == offers.items.index(item)
    truth = market.shares(offers)[has]
    if item in model.items:
        shares = model.probabilities(Assortments(offers.offers, model.items))[has]
    else:
        shares = 1.0 / np.array([len(offer) for offer in offers.offers])
    return 1000.0 * float(np.sqrt(np.mean((shares - truth) ** 2)))


def launch(truth: str, seed: int) -> dict[str, list[float]]:
    """The errors after each batch, and the CPU seconds, with attributes and without."""
    market, random = make_market(truth, seed), np.random.default_rng([seed, BEFORE])
    new = ITEMS[seed % len(ITEMS)]
    old = draw_offers(random, 30, None, new)
    first = records(market, Assortments(old.offers, [item for item in old.items if item != new]), BEFORE, random)
    later = records(market, draw_offers(random, 15, new, None), AFTER, random)
    test, found = draw_offers(random, 50, new, None), dict[str, list[float]]()
    for name, table in (("without", None), ("with", market.table)):
        began, live = time.process_time(), rs.Live(attributes=table)
        live.observe(first)
        errors = []
        for start in range(0, AFTER, BATCH):
            live.observe(later[start : start + BATCH])
            errors.append(error(market, live.model, test, new))
        found |= {name: errors, f"{name}, CPU s": [time.process_time() - began]}
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markets", type=int, default=4)
    parser.add_argument("--seed", type=int, default=8601)
    parser.add_argument("--truths", nargs="+", default=list(TRUTHS))
    options = parser.parse_args()
    print("| truth | attributes | " + " | ".join(f"{size:,}" for size in SHOWN) + " | mean | CPU s |")
    print("|---" * (len(SHOWN) + 4) + "|")
    for truth in options.truths:
        rows = [launch(truth, options.seed + number) for number in range(options.markets)]
        for name in ("without", "with"):
            course = np.mean([row[name] for row in rows], axis=0)
            cells = [f"{course[size // BATCH - 1]:.1f}" for size in SHOWN]
            seconds = np.mean([row[f"{name}, CPU s"] for row in rows])
            print(f"| {truth} | {name} | {' | '.join(cells)} | {course.mean():.1f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
