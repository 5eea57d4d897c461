"""The worth of a better model: what the offer that each model picks really earns, in percent of the best offer.

The paper's markets (mixed logit, 10 items, 20 offers) and markets of 30 random rankings, 2,000 and 10,000 choices,
margins uniform in [0.2, 1], at most 4 items. Models see the same choices, so that differences are paired by market. Run
with ``python benchmarks/worth.py [markets]``; 20 by default.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from typing import Any

import numpy as np

from next_offer import true_model
from rankstream import Assortments, ChoiceCounts, RankingModel, estimate
from rankstream._core.types import Vec
from rankstream.data.simulate import market
from rankstream.decide import best_offer
from rankstream.decide.offer_values import earnings

METHODS = ("mnl", "latent-class", "markov-chain", "nearest", "max-entropy")
AT_MOST, RANKINGS = 4, 30


def truth_of(kind: str, seed: int) -> tuple[Any, Assortments]:
    """A market's true model, and the offers that choices come from."""
    one = market(seed)
    if kind == "paper":
        return true_model(one), one.assortments
    random, n_all = np.random.default_rng(seed), len(one.truth.items)
    orders = np.array([random.permutation(n_all) for _ in range(RANKINGS)])
    weights = random.dirichlet(np.ones(RANKINGS))
    return RankingModel.from_codes(one.truth.items, orders, weights, n_all - 1), one.assortments


def earned(kind: str, seed: int, choices: int) -> Vec:
    """What each method's pick earns by the truth, as a part of the best."""
    truth, offers = truth_of(kind, seed)
    random = np.random.default_rng(100 + seed)
    margins = dict(zip(truth.items[:-1], random.uniform(0.2, 1.0, len(truth.items) - 1), strict=True))
    gains = np.array([*margins.values(), 0.0])
    shares = np.maximum(truth.probabilities(offers), 0.0) / offers.n_offers
    counts = ChoiceCounts(offers, random.multinomial(choices, shares / shares.sum()))
    best = best_offer(truth, margins, at_most=AT_MOST).value
    picks = []
    for method in METHODS:
        model = estimate(counts, method=method).model
        picks.append(best_offer(model, margins, at_most=AT_MOST, no_choice=truth.items[-1]).menu)
    return earnings(truth, picks, gains) / best


def main(markets: int) -> None:
    """Print a table per kind of market and number of choices."""
    for kind in ("paper", "rankings"):
        for choices in (2_000, 10_000):
            table = 100 * np.array([earned(kind, seed, choices) for seed in range(markets)])
            print(f"\n{kind}, {choices:,} choices, {markets} markets")
            for number, method in enumerate(METHODS):
                lead = table[:, -1] - table[:, number]
                error = lead.std(ddof=1) / np.sqrt(markets)
                against = "" if method == METHODS[-1] else f"   max-entropy earns {lead.mean():5.2f} ({error:.2f}) more"
                print(f"  {method:14}{table[:, number].mean():7.2f} % of the best{against}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
