"""What attributes of items bring: errors on offers never seen, and of an item that was never offered.

    python benchmarks/attributes.py [--markets 3] [--seed 8001] [--choices 200 2000] [--truths NAME ...] [--new-items]

Markets have 12 items with four attributes (three numbers, a word of three levels) and "nothing", and 40 offers of up to
five items to learn from. Errors are root mean squares of shares, times 1,000. On 100 other offers, the error with
attributes is divided by that of the default. With ``--new-items``, one of the items is in no offer: its share in 100
offers that have it is predicted by its attributes, and by the average item.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rankstream.models.entropy.extension import explain_worths

import rankstream as rs
from rankstream import Assortments, ChoiceCounts, EntropyModel
from rankstream._core.types import Vec
from rankstream.models.parametric.latent_class import mixed_shares

N_ITEMS, N_OFFERS, N_TEST, MAX_SIZE = 12, 40, 100, 5
ITEMS = [f"item {number}" for number in range(N_ITEMS)]
TRUTHS = {
    "one logit, no item effects": (1, 0.0, 1.0),
    "one logit, item effects 0.5": (1, 0.5, 1.0),
    "one logit, item effects 1": (1, 1.0, 1.0),
    "five classes, item effects 0.5": (5, 0.5, 2.0),
    "one logit, irrelevant attributes": (1, 1.0, 0.0),
    "five classes, irrelevant attributes": (5, 1.0, 0.0),
}
"""Classes, standard deviation of item effects, and that of part-worths in units of ``PART_WORTH``."""
PART_WORTH = 0.5


@dataclass(frozen=True)
class Market:
    """Items with attributes, and classes of equal size with a worth for each item."""

    table: rs.Attributes
    worth: Vec

    def shares(self, offers: Assortments) -> Vec:
        """The true shares."""
        classes = np.full(len(self.worth), 1.0 / len(self.worth))
        return mixed_shares(classes, self.worth, offers.indptr, offers.members)

    def error(self, model: Any, offers: Assortments, item: str | None = None) -> float:
        """The error of a model times 1,000, of all shares or of one item's."""
        errors = 1000.0 * (model.probabilities(offers) - self.shares(offers))
        chosen = np.ones(len(errors), bool) if item is None else offers.members == offers.items.index(item)
        return float(np.sqrt(np.mean(errors[chosen] ** 2)))


def make_market(truth: str, seed: int) -> Market:
    """A market of this truth."""
    classes, effect, part_worth = TRUTHS[truth]
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {name: random.normal(size=N_ITEMS).tolist() for name in ("size", "age", "weight")}
    columns["brand"] = random.permutation(np.resize(list("ABC"), N_ITEMS)).tolist()
    table = rs.Attributes(tuple(ITEMS), columns)
    tastes = random.normal(scale=PART_WORTH * part_worth, size=(classes, table.matrix.shape[1]))
    effects = random.normal(scale=effect, size=(classes if not part_worth else 1, N_ITEMS))
    utility = tastes @ table.matrix.T + effects
    return Market(table, np.exp(np.hstack([utility, random.normal(scale=0.5, size=(classes, 1))])))


def draw_offers(random: np.random.Generator, number: int, always: str | None, never: str | None) -> Assortments:
    """Different random offers of up to five items and nothing."""
    others = [item for item in ITEMS if item not in (always, never)]
    drawn: dict[tuple[str, ...], bool] = {}
    while len(drawn) < number:
        picked = random.choice(others, size=random.integers(1, MAX_SIZE + 1 - (always is not None)), replace=False)
        drawn[tuple(sorted([*picked.tolist(), *([] if always is None else [always])]))] = True
    return Assortments([(*offer, "nothing") for offer in drawn], [*ITEMS, "nothing"])


def draw_counts(market: Market, offers: Assortments, choices: int, random: np.random.Generator) -> ChoiceCounts:
    """Choices from these offers."""
    shares = market.shares(offers)
    return ChoiceCounts(offers, random.multinomial(choices, shares / shares.sum()))


def compare(truth: str, choices: int, seed: int) -> list[float]:
    """Errors with attributes and without, on offers never seen, and the CPU seconds of both fits."""
    market, random = make_market(truth, seed), np.random.default_rng([seed, choices])
    counts = draw_counts(market, draw_offers(random, N_OFFERS, None, None), choices, random)
    test, row = draw_offers(random, N_TEST, None, None), []
    for given in (market.table, None):
        start = time.process_time()
        model = rs.estimate(counts, method="max-entropy", attributes=given).model
        row += [market.error(model, test), time.process_time() - start]
    return row


def compare_new(truth: str, choices: int, seed: int) -> list[float]:
    """Errors of the share of an item that was never offered: by its attributes, and as the average item."""
    market, random = make_market(truth, seed), np.random.default_rng([seed, choices, 1])
    new = ITEMS[seed % N_ITEMS]
    offers = draw_offers(random, N_OFFERS, None, new)
    drawn = draw_counts(market, offers, choices, random)
    rest = Assortments(offers.offers, [item for item in offers.items if item != new])
    model = rs.estimate(ChoiceCounts(rest, drawn.tallies), method="max-entropy", attributes=market.table).model
    assert isinstance(model, EntropyModel)
    assert model.extension is not None
    place, test = ITEMS.index(new), draw_offers(random, N_TEST, new, None)
    row = {new: {name: values[place] for name, values in market.table.columns.items()}}
    table, none = model.extension.attributes, np.zeros_like(model.extension.part_worths)
    level, _ = explain_worths(model.prior, table, none)
    average = replace(model, extension=replace(model.extension, level=level, part_worths=none))
    return [market.error(one.with_items(row), test, new) for one in (model, average)]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markets", type=int, default=3)
    parser.add_argument("--seed", type=int, default=8001)
    parser.add_argument("--choices", type=int, nargs="+", default=[200, 2000])
    parser.add_argument("--truths", nargs="+", default=list(TRUTHS))
    parser.add_argument("--new-items", action="store_true")
    options = parser.parse_args()
    for truth in options.truths:
        for choices in options.choices:
            seeds = range(options.seed, options.seed + options.markets)
            measure = compare_new if options.new_items else compare
            rows = np.array([measure(truth, choices, seed) for seed in seeds])
            means = rows.mean(axis=0)
            if options.new_items:
                told = f"new item {means[0]:6.1f}, as the average item {means[1]:6.1f}"
            else:
                ratios = np.exp(np.log(rows[:, 0] / rows[:, 2]).mean())
                told = f"with attributes {means[0]:5.1f} ({means[1]:.1f} s), default {means[2]:5.1f} ({means[3]:.1f} s)"
                told += f", ratio {means[0] / means[2]:.2f} (geometric mean {ratios:.2f})"
            print(f"{truth:36} {choices:6}: {told}", flush=True)


if __name__ == "__main__":
    main()
