"""What ``methods.explain`` predicts with: CPU seconds as a weighted sum of terms in the sizes of the data.

    python benchmarks/work.py [--quick | --auto]

Markets are drawn with 6 to 40 items, 10 to 1,200 offers and 300 to 100,000 choices, mixtures of five logits. The
weights are nonnegative and make the relative errors small; they are those of ``SECONDS`` in estimation/methods/work.py.
The last columns are the seconds measured and predicted. A busy machine takes longer: run it on a quiet one. With
``--auto``, two markets of seed 901 with many offers are fitted by maximum entropy, and nothing else is measured.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time
from math import comb

import numpy as np
from scipy.optimize import nnls

from rankstream import Assortments, ChoiceCounts, simulate
from rankstream.estimation.methods import METHODS
from rankstream.estimation.methods.work import SECONDS, Sizes, sizes_of, terms
from rankstream.estimation.task import Task

CASES = (
    (6, 10, 5, 300), (6, 20, 5, 100_000), (8, 40, 4, 2_000), (10, 40, 5, 500), (10, 40, 5, 50_000), (10, 90, 5, 10_000),
    (10, 150, 5, 10_000), (10, 300, 5, 3_000), (10, 600, 5, 10_000), (10, 600, 5, 100_000), (14, 100, 7, 20_000),
    (14, 400, 4, 10_000), (20, 100, 10, 10_000), (20, 300, 10, 10_000), (20, 1_100, 3, 5_000), (20, 1_000, 2, 30_000),
    (30, 200, 15, 10_000), (40, 60, 10, 20_000), (40, 300, 5, 5_000),
)  # fmt: skip
"""Items, offers, the most items of an offer, choices."""


def market(n_items: int, n_offers: int, largest: int, choices: int, seed: int = 0) -> ChoiceCounts:
    """Random offers of some items, and choices by five logits."""
    random = np.random.default_rng([seed, n_items, n_offers])
    items = tuple(f"item {number}" for number in range(n_items))
    truth = simulate.mixed_mnl(items, 5, 5.0, random)
    menus: set[frozenset[int]] = {frozenset()}
    possible = sum(comb(n_items, size) for size in range(1, largest + 1))
    while len(menus) < 1 + min(n_offers, 9 * possible // 10):
        menus.add(frozenset(random.permutation(n_items)[: random.integers(1, largest + 1)].tolist()))
    offers = Assortments([[*(items[k] for k in sorted(m)), truth.items[-1]] for m in menus if m], truth.items)
    shares = truth.probabilities(offers)
    return ChoiceCounts(offers, random.multinomial(choices, shares / shares.sum()))


def measure(counts: ChoiceCounts) -> dict[str, float]:
    """CPU seconds of every method."""
    found = {}
    for name in SECONDS:
        start = time.process_time()
        METHODS[name]().model(Task(counts.assortments, counts))
        found[name] = time.process_time() - start
    return found


def show_many_offers() -> None:
    """Print the seconds that maximum entropy takes where offers are many, and those that are predicted."""
    METHODS["max-entropy"]().model(Task((small := market(5, 12, 3, 300)).assortments, small))  # compiles
    for n_items, n_offers, largest, choices in ((10, 600, 5, 10_000), (20, 1_139, 3, 5_000)):
        counts = market(n_items, n_offers, largest, choices, seed=901)
        start = time.process_time()
        METHODS["max-entropy"]().model(Task(counts.assortments, counts))
        predicted = float(np.array(SECONDS["max-entropy"]) @ np.array(terms(sizes_of(counts))["max-entropy"]))
        spent = time.process_time() - start
        print(f"{n_items} items, {n_offers:,} offers, {choices:,} choices: {spent:.1f} s, predicted {predicted:.1f}")


def main(quick: bool) -> None:
    """Measure, fit the weights, and print both."""
    measure(market(5, 12, 3, 300))  # compiles
    measure(market(20, 120, 10, 300))
    rows: list[tuple[Sizes, dict[str, float]]] = []
    for case in CASES[::4] if quick else CASES:
        counts = market(*case)
        rows.append((sizes_of(counts), measure(counts)))
        print(rows[-1], flush=True)
    for name in SECONDS:
        table = np.array([terms(sizes)[name] for sizes, _ in rows])
        seconds = np.array([times[name] for _, times in rows])
        weights = nnls(table / seconds[:, np.newaxis], np.ones(len(rows)))[0]
        ratios = table @ weights / seconds
        print(f"\n{name}: ({', '.join(f'{weight:.2g}' for weight in weights)}); predicted / measured from "
              f"{ratios.min():.2f} to {ratios.max():.2f}, median {np.median(ratios):.2f}")  # fmt: skip
        for (sizes, _), measured, ratio in zip(rows, seconds, ratios, strict=True):
            print(f"  {sizes.items:3} items, {sizes.offers:5,} offers, {sizes.choices:9,.0f} choices, "
                  f"{sizes.sets:5,} sets: {measured:7.2f} s, predicted {measured * ratio:7.2f}")  # fmt: skip


if __name__ == "__main__":
    show_many_offers() if "--auto" in sys.argv else main("--quick" in sys.argv)
