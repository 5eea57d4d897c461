"""What attributes of items bring: errors on offers never seen, and of an item that was never offered.

    python benchmarks/attributes.py [--markets 3] [--seed 8001] [--choices 500 2000] [--truths NAME ...] [--rare|--new]

Markets have 12 items with four attributes (three numbers, a word of three levels) and "nothing", and 40 offers of up to
five items to learn from, which lack one of the items. Errors are root mean squares of shares, times 1,000. On 100 other
offers, the error with attributes is divided by that of the default (geometric mean). The share of the item that was
never offered, in 100 offers that have it, is predicted by its attributes, and by the average item. Two columns say what
could be had: the regression on attributes given the true worths of the other items, as with any number of choices, and
the true part-worths with an average effect, as with any number of items, too. Intervals are of ten of these offers; as
all of them have the same new item, it takes many markets to tell how many they cover. With ``--rare``, the item is in
two of the 40 offers, and the error of its share is printed for both. With ``--new``, the new item is all that is
measured: many markets in less time.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import time
from copy import copy
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np

import rankstream as rs
from rankstream import Assortments, ChoiceCounts
from rankstream._core.types import Codes, Vec
from rankstream.models.entropy import new_items
from rankstream.models.parametric.latent_class import mixed_shares

N_ITEMS, N_OFFERS, N_TEST, MAX_SIZE = 12, 40, 100, 5
ITEMS = [f"item {number}" for number in range(N_ITEMS)]
TRUTHS = {
    "one logit, no item effects": (1, 0.0, 1.0),
    "one logit, item effects 0.5": (1, 0.5, 1.0),
    "one logit, item effects 1": (1, 1.0, 1.0),
    "five classes, item effects 0.5": (5, 0.5, 2.0),
    "normal tastes, item effects 0.5": (500, 0.5, 2.0),
    "one logit, irrelevant attributes": (1, 1.0, 0.0),
    "five classes, irrelevant attributes": (5, 1.0, 0.0),
}
"""Classes, standard deviation of item effects, and that of part-worths in units of ``PART_WORTH``."""
PART_WORTH = 0.5
N_INTERVALS, REPLICATES, DRAWS = 10, 10, 6
"""Offers with intervals, refits behind them, and draws of what the new item is worth, for each refit."""


@dataclass(frozen=True)
class Market:
    """Items with attributes, and classes (or customers) of equal size with part-worths and a worth for each item."""

    table: rs.Attributes
    worth: Vec
    part_worths: Vec

    def with_log_worth(self, place: int, logs: Vec) -> "Market":
        """The market with another worth of one item."""
        worth = self.worth.copy()
        worth[:, place] = np.exp(logs)
        return replace(self, worth=worth)

    def probabilities(self, offers: Assortments) -> Vec:
        """The true shares, as a model gives them."""
        return self.shares(offers)

    def importance(self, others: Codes) -> dict[str, float]:
        """The true shares of the differences between some of the items that attributes explain."""
        logs, rows = np.log(self.worth[:, others]), self.table.matrix[others]
        apart = logs - logs.mean(axis=1, keepdims=True)
        shares = ((apart @ rows) * self.part_worths).sum(axis=0) / (apart**2).sum()
        return {name: float(shares[np.array(self.table.coded) == name].sum()) for name in self.table.columns}

    def shares(self, offers: Assortments) -> Vec:
        """The true shares."""
        classes = np.full(len(self.worth), 1.0 / len(self.worth))
        known = [ITEMS.index(str(item)) if item in ITEMS else N_ITEMS for item in offers.items]
        return mixed_shares(classes, self.worth[:, known], offers.indptr, offers.members)

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
    worth = np.exp(np.hstack([tastes @ table.matrix.T + effects, random.normal(scale=0.5, size=(classes, 1))]))
    return Market(table, worth, tastes)


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


def compare(truth: str, choices: int, seed: int, rare: bool, new_alone: bool) -> dict[str, float]:
    """Errors with attributes and without, of offers never seen and of an item never offered, or in two offers alone."""
    market, random = make_market(truth, seed), np.random.default_rng([seed, choices])
    new = ITEMS[seed % N_ITEMS]
    offers = draw_offers(random, N_OFFERS - 2 * rare, None, new).offers
    if rare:
        offers = (*offers, *draw_offers(random, 2, new, None).offers)
    items = [item for item in (*ITEMS, "nothing") if rare or item != new]
    counts = draw_counts(market, Assortments(offers, items), choices, random)
    test, found = draw_offers(random, N_TEST, None, new), {"seed": float(seed)}
    with_new, place = draw_offers(random, N_TEST, new, None), ITEMS.index(new)
    row = {new: {name: values[place] for name, values in market.table.columns.items()}}
    settings: dict[str, dict[str, Any]] = {"attributes": {"attributes": market.table}}
    for name, given in (settings if new_alone else settings | {"default": {}}).items():
        start = time.process_time()
        model = rs.estimate(counts, method="max-entropy", **given).model
        found |= {f"{name}, CPU s": time.process_time() - start, name: market.error(model, test)}
        if rare:
            found[f"rare item, {name}"] = market.error(model, with_new, new)
        elif given:
            found |= new_item_errors(market, counts, model, row, with_new)
    return found


def new_item_errors(
    market: Market, counts: ChoiceCounts, model: Any, row: dict[str, Any], offers: Assortments
) -> dict[str, float]:
    """Errors of the new item by its attributes and otherwise; and how often 95 % intervals cover its share."""
    (new,), few = row, Assortments(offers.offers[:N_INTERVALS], offers.items)
    found, place = {"new item": market.error(model.with_items(row), offers, new)}, ITEMS.index(new)
    many = copy(rs.Bootstrap(counts, "max-entropy", REPLICATES, model=model))
    many.models = many.models * DRAWS
    many = many.with_items(row)
    ends = [many.predict(offer, forced=True)[new] for offer in few.offers]
    truth = market.shares(few)[few.members == few.items.index(new)].tolist()
    found["covered"] = 100.0 * float(np.mean([end.low <= t <= end.high for end, t in zip(ends, truth, strict=True)]))
    found["width"] = 1000.0 * float(np.mean([end.high - end.low for end in ends]))
    others, rows = np.delete(np.arange(N_ITEMS), place), market.table.matrix
    centre = rows[others].mean(axis=0)
    with patch.object(new_items, "RIDGES", new_items.RIDGES[-1:]):
        found["average item"] = market.error(model.with_items(row), offers, new)
    shares = np.full(len(market.worth), 1.0 / len(market.worth))
    regression = new_items.WorthRegression(market.worth[:, others], shares, rows[others] - centre)
    known = {
        "true worths": regression.predict(rows[place : place + 1] - centre)[:, 0],
        "true part-worths": market.part_worths @ rows[place],
    }
    for name, logs in known.items():
        found[name] = market.error(market.with_log_worth(place, logs), offers, new)
    parts, exact = model.importance(), market.importance(others)
    inside = [part.low <= exact[name] <= part.high for name, part in parts.items()]
    return found | {"importance covered": 100.0 * float(np.mean(inside))}


def main() -> None:
    """Print a table, and keep its rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markets", type=int, default=3)
    parser.add_argument("--seed", type=int, default=8001)
    parser.add_argument("--choices", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--truths", nargs="+", default=list(TRUTHS))
    parser.add_argument("--rare", action="store_true", help="the item is in two of the 40 offers, instead of none")
    parser.add_argument("--new", action="store_true", help="the new item alone")
    options = parser.parse_args()
    for truth in options.truths:
        for choices in options.choices:
            seeds = range(options.seed, options.seed + options.markets)
            rows = [compare(truth, choices, seed, options.rare, options.new) for seed in seeds]
            means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0] if name != "seed"}
            told = ", ".join(f"{name} {mean:.1f}" for name, mean in means.items())
            print(f"{truth:36} {choices:6}: {compared(rows)}{told}", flush=True)


def compared(rows: list[dict[str, float]]) -> str:
    """Ratios of errors, geometric means with their standard errors: to the default, and to the average item."""
    told = ""
    for name, other in (
        ("attributes", "default"),
        ("rare item, attributes", "rare item, default"),
        ("new item", "average item"),
    ):
        if {name, other} <= rows[0].keys():
            logs = np.log([row[name] / row[other] for row in rows])
            error = np.std(logs, ddof=1) / np.sqrt(len(logs)) if len(logs) > 1 else np.nan
            told += f"{name} / {other} {np.exp(np.mean(logs)):.2f} (± {error:.2f}); "
    return told


if __name__ == "__main__":
    main()
