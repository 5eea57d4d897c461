"""Other ways to weigh base models with little data: errors of the prior before any adjustment, relative to today's.

Held-out offers weigh the base models, and with 100 to 500 choices the weights jump from one draw to the next. Tried are
weights averaged over draws of the folds with replacement ("bagged"), and more choices that each model is given in
advance, which need evidence to leave equal weights. All use the same fits of the same folds. Run with
``python benchmarks/little_data.py [--markets 8] [--seed 7001]``; cells are geometric means of ratios over markets.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
from dataclasses import replace

import joblib
import numpy as np

from rankstream._core.types import Vec
from rankstream.data.observations import observed
from rankstream.models.entropy.ensemble import EM_STARTS, Fold, _Scored, fit_stack
from rankstream.models.entropy.guides import GUIDES, FittedGuide, Guide, guides_for
from truths import FEW_OFFERS, TRUTHS

DRAWS = 20  # of folds, for bagged weights
SIZES = (100, 200, 500)
MAKES = TRUTHS | {name: make for name, make in FEW_OFFERS.items() if name.endswith(", 8 offers")}
Weights = dict[Guide, float]


def weigh(guides: list[Guide], folds: list[Fold]) -> Weights:
    """The weights that held-out offers give."""
    kept, weights = _Scored(guides, folds).weights()
    return dict(zip(kept, weights.tolist(), strict=True))


def mean_of(parts: list[Weights]) -> Weights:
    """The mean of several weights, by the names of the guides."""
    every = {guide for part in parts for guide in part}
    return {guide: float(np.mean([part.get(guide, 0.0) for part in parts])) for guide in every}


def errors(name: str, choices: int, seed: int) -> dict[str, float]:
    """The error of the prior on unseen offers, for every way to weigh."""
    truth = MAKES[name](seed)
    data = observed(truth.counts(choices, seed))
    folds = list(fit_stack(data).folds)
    guides = [guide for guide in guides_for(data.assortments, GUIDES) if guide.name in folds[0].guides]
    random, known = np.random.default_rng(seed), {}

    def error(weights: Weights) -> float:
        total: Vec = np.zeros(truth.test.n_coordinates)
        for guide, weight in weights.items():
            if guide.name not in known:
                fitted: FittedGuide = replace(guide).fit(data, 0, EM_STARTS)
                known[guide.name] = fitted.probabilities(truth.test)
            total += weight * known[guide.name]
        return float(np.sqrt(np.mean((total - truth.shares(truth.test)) ** 2)))

    today = weigh(guides, folds)
    drawn = [[folds[k] for k in random.integers(len(folds), size=len(folds))] for _ in range(DRAWS)]
    bagged = mean_of([weigh(guides, part) for part in drawn])
    found = {"today": error(today), "bagged": error(bagged), "half bagged": error(mean_of([today, bagged]))}
    for before in (1.0, 3.0):
        more = [guide if guide.before == 0.0 else replace(guide, before=before) for guide in guides]
        found[f"{before:g} in advance"] = error(weigh(more, folds))
    return found


def main() -> None:
    """Print a table: truths by ways to weigh, and the mean of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markets", type=int, default=8)
    parser.add_argument("--seed", type=int, default=7001)
    options = parser.parse_args()
    cells = [(name, size) for size in SIZES for name in MAKES]
    jobs = [(name, size, options.seed + k) for name, size in cells for k in range(options.markets)]
    rows = joblib.Parallel(n_jobs=-1)(joblib.delayed(errors)(*job) for job in jobs)
    ways = list(rows[0])
    logs = np.log([[row[way] / row["today"] for way in ways] for row in rows]).reshape(len(cells), options.markets, -1)
    print("| truth, choices | " + " | ".join(ways) + " |\n" + "|---" * (len(ways) + 1) + "|")
    for (name, size), part in zip(cells, logs, strict=True):
        print(f"| {name}, {size} | " + " | ".join(f"{value:.3f}" for value in np.exp(part.mean(axis=0))) + " |")
    means, spread = logs.mean(axis=(0, 1)), logs.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(len(cells))
    print("| **all** | " + " | ".join(f"{np.exp(m):.3f} ± {s:.3f}" for m, s in zip(means, spread, strict=True)) + " |")


if __name__ == "__main__":
    main()
