"""How often the test of rationality rejects at level 0.1: ranking models on and off the boundary, and a violation.

Three items, four offers: on two and three rankings of these the stretch's factor 2 was chosen. So four items and all
their pairs, triples and quadruple follow, with truths of 2, 3 and 5 random rankings that played no part in it. Run with
``python benchmarks/rationality.py [simulations]``; 400 by default.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from itertools import combinations, permutations

import numpy as np

from rankstream import Assortments, ChoiceCounts, rationality
from rankstream._core.types import Vec

OFFERS = Assortments([("a", "b", "c"), ("a", "b"), ("b", "c"), ("a", "c")])
VERTICES = np.array([OFFERS.vertex(order) for order in permutations(range(3))])
TRUTHS = {
    "all rankings alike": np.full(6, 1 / 6) @ VERTICES,
    "two opposite rankings": np.array([0.5, 0, 0, 0, 0, 0.5]) @ VERTICES,
    "three rankings": np.array([0.4, 0, 0.3, 0, 0, 0.3]) @ VERTICES,
    "one ranking": VERTICES[0],
    "a: 0.5 of three, 0.4 of two": np.array([0.5, 0.2, 0.3, 0.4, 0.6, 0.5, 0.5, 0.6, 0.4]),
}
FRESH = Assortments([offer for size in (2, 3, 4) for offer in combinations("abcd", size)])
LEVEL, SAMPLES = 0.1, 99


def fresh_truths() -> dict[str, Vec]:
    """Mixtures of few random rankings of four items."""
    random = np.random.default_rng(2026)
    truths = {}
    for count in (2, 3, 5):
        vertices = np.array([FRESH.vertex(random.permutation(4)) for _ in range(count)])
        truths[f"{count} random rankings of 4"] = random.dirichlet(np.full(count, 3.0)) @ vertices
    return truths


def rejected(offers: Assortments, truth: Vec, per_offer: int, simulations: int) -> tuple[float, float]:
    """The shares of simulations that either p-value rejects."""
    random = np.random.default_rng(0)
    parts = np.split(truth, offers.indptr[1:-1])
    found = np.zeros(2)
    for seed in range(simulations):
        counts = ChoiceCounts(offers, np.concatenate([random.multinomial(per_offer, part) for part in parts]))
        report = rationality(counts, samples=SAMPLES, seed=seed)
        found += (report.p_value is not None and report.p_value <= LEVEL, report.anytime_p_value <= LEVEL)
    return float(found[0] / simulations), float(found[1] / simulations)


def main(simulations: int) -> None:
    """Print one row per truth: bootstrap, and in brackets the anytime p-value."""
    print(f"{'':30}" + "".join(f"{size:>8} per offer" for size in (30, 200, 1000)))
    rows = [(OFFERS, name, truth) for name, truth in TRUTHS.items()]
    rows += [(FRESH, name, truth) for name, truth in fresh_truths().items()]
    for offers, name, truth in rows:
        cells = []
        for size in (30, 200, 1000):
            one, anytime = rejected(offers, truth, size, simulations)
            cells.append(f"{100 * one:8.1f} % ({100 * anytime:3.0f} %)")
        print(f"{name:30}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
