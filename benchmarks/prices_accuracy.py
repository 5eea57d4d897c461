"""Prices nobody has seen: predictions and earnings under price levels, against logits with a price coefficient.

    python benchmarks/prices_accuracy.py [--quick] [--markets 8] [--results FILE] [--print] [--markdown]

Four items at three price levels and an item "nothing"; 30 of the 255 ways to offer and price them are seen. Customers
are simulated: a mixed logit with price coefficients, a ranking of items with a threshold (the most one pays), or one of
16 rankings of items at levels. Each model predicts all other ways, and picks the offer and prices that it thinks earn
most (price less cost); what that pick earns in truth is a share of the best there is. Results are kept in a file of
JSON lines, and what is there is not computed again. Markets are those of seeds from 7001 on.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np

import rankstream as rs
from rankstream.evaluate.compare import fit_by_method
from rankstream.models import ChoiceModel

FIRST_SEED, SEEN, ITEMS, LEVELS, PEOPLE = 7001, 30, 4, 3, 20_000
SIZES = (2_000, 10_000, 50_000)
NOTHING = "nothing"
Vec = np.ndarray[Any, np.dtype[np.float64]]
Utilities = Callable[[np.random.Generator, Vec], tuple[Vec, Vec]]


def mixed_logit(random: np.random.Generator, prices: Vec) -> tuple[Vec, Vec]:
    """Constants and price coefficients that vary from customer to customer, and Gumbel tastes for items."""
    constants = random.normal(2.0, 1.0, ITEMS) + random.normal(size=(PEOPLE, ITEMS))
    slopes = np.exp(random.normal(-0.3, 0.6, (PEOPLE, 1, 1)))
    tastes = constants + random.gumbel(size=(PEOPLE, ITEMS))
    return tastes[:, :, np.newaxis] - slopes * prices, random.gumbel(size=PEOPLE)


def threshold(random: np.random.Generator, prices: Vec) -> tuple[Vec, Vec]:
    """The favourite among what costs at most what one pays, whatever it costs (Jagabathula and Rusmevichientong)."""
    worth = random.exponential(size=(PEOPLE, ITEMS)) * np.exp(random.normal(size=ITEMS))
    most = random.uniform(1.0, 6.0, (PEOPLE, 1, 1))
    return np.where(prices <= most, worth[:, :, np.newaxis], -1.0 - prices), np.zeros(PEOPLE)


def rankings(random: np.random.Generator, prices: Vec) -> tuple[Vec, Vec]:
    """A few rankings of items at levels, cheaper levels first, with "nothing" somewhere."""
    kinds = 16
    places = -np.sort(-random.normal(size=(kinds, *prices.shape)), axis=2)
    kind = random.choice(kinds, size=PEOPLE, p=random.dirichlet(np.ones(kinds)))
    return places[kind], (random.normal(size=kinds) - 0.3)[kind]


TRUTHS: dict[str, Utilities] = {"mixed logit": mixed_logit, "threshold": threshold, "rankings": rankings}


class Market:
    """Customers, price levels, what they choose from every offer, and what that earns."""

    def __init__(self, truth: str, seed: int) -> None:
        random = np.random.default_rng(seed)
        prices = np.sort(random.uniform(1.0, 5.0, (ITEMS, LEVELS)).round(2), axis=1)
        names = [f"item {number}" for number in range(ITEMS)]
        self.levels = rs.PriceLevels(dict(zip(names, prices.tolist(), strict=True)))
        utility, leaving = TRUTHS[truth](random, prices)
        ways = [way for way in product(range(LEVELS + 1), repeat=ITEMS) if min(way) < LEVELS]
        asked = [{n: prices[i, way[i]] for i, n in enumerate(names) if way[i] < LEVELS} for way in ways]
        order = self.levels.order
        offers = [self.levels.offer({**offer, NOTHING: None}) for offer in asked]
        self.every = rs.Assortments(offers, [*self.levels.labels, NOTHING], order)
        cost = dict(zip(names, (0.5 * prices[:, 0]).tolist(), strict=True))
        priced = [self.levels.of(self.every.items[code]) for code in self.every.members.tolist()]
        self.margins = np.array([0.0 if price is None else price - cost[str(item)] for item, price in priced])
        self.shares = np.concatenate([self._shares(way, utility, leaving) for way in ways])
        self.seen = np.sort(random.choice(len(ways), size=SEEN, replace=False))
        self.random = random

    @staticmethod
    def _shares(way: tuple[int, ...], utility: Vec, leaving: Vec) -> Vec:
        there = [utility[:, item, level] for item, level in enumerate(way) if level < LEVELS]
        best = np.argmax(np.column_stack([*there, leaving]), axis=1)
        return np.asarray(np.bincount(best, minlength=len(there) + 1) / PEOPLE)

    def counts(self, choices: int, ordered: bool = True) -> rs.ChoiceCounts:
        """Choices from the ways that are seen, as many from each; drawn anew at every call with the same seed."""
        random = np.random.default_rng([choices, int(self.seen.sum())])
        ends = self.every.indptr
        tallies = [random.multinomial(choices // SEEN, self.shares[ends[j] : ends[j + 1]]) for j in self.seen]
        offers = [self.every.offers[j] for j in self.seen]
        order = self.every.order if ordered else None
        return rs.ChoiceCounts(rs.Assortments(offers, self.every.items, order), np.concatenate(tallies))

    def judge(self, model: ChoiceModel) -> tuple[float, float]:
        """The error on ways that were not seen, and what the model's pick of all ways earns, as a share of the best."""
        predicted = model.probabilities(self.every)
        unseen = ~np.isin(self.every.owner, self.seen)
        error = float(np.sqrt(np.mean((predicted - self.shares)[unseen] ** 2)))
        starts = self.every.indptr[:-1]
        thought, true = (np.add.reduceat(self.margins * p, starts) for p in (predicted, self.shares))
        return error, float(true[np.argmax(thought)] / true.max())


OURS, WITH_PRICE = "max-entropy", ("mnl-price", "latent-class-price")
MODELS: dict[str, tuple[str, bool]] = {
    OURS: (OURS, True),
    "nearest": ("nearest", True),
    "mnl-price": ("mnl-price", True),
    "latent-class-price": ("latent-class-price", True),
    "mnl": ("mnl", False),
    "latent-class": ("latent-class", False),
}
"""Methods, and whether they know the order; those that do not get the same counts without it."""


def measure(truth: str, choices: int, seed: int) -> dict[str, Any]:
    """One market: error on unseen ways, share of the best earnings, and CPU seconds, by model."""
    market = Market(truth, seed)
    row: dict[str, Any] = {"truth": truth, "choices": choices, "seed": seed, "version": rs.__version__}
    for name, (method, ordered) in MODELS.items():
        counts = market.counts(choices, ordered)
        began = time.process_time()
        model = fit_by_method(method, counts)
        row[name] = [*market.judge(model), round(time.process_time() - began, 3)]
    return row


def spread(values: list[float]) -> str:
    """A mean and its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.1f} ± {error:.1f}"


def apart(cell: list[dict[str, Any]], place: int, scale: float) -> str:
    """Ours less the better of the two with a price coefficient, market by market, with its standard error."""
    sign = -1.0 if place else 1.0
    rival = min(WITH_PRICE, key=lambda model: sign * float(np.mean([row[model][place] for row in cell])))
    return spread([scale * (row[OURS][place] - row[rival][place]) for row in cell])


def show(rows: list[dict[str, Any]], markdown: bool) -> None:
    """A table for every truth: errors x 1000, then earnings in percent of the best; the last row is paired."""
    for truth in dict.fromkeys(row["truth"] for row in rows):
        cells = {size: [r for r in rows if r["truth"] == truth and r["choices"] == size] for size in SIZES}
        cells = {size: cell for size, cell in cells.items() if cell}
        markets = " / ".join(str(len(cell)) for cell in cells.values())
        print(f"\n**{truth}** ({markets} markets)\n" if markdown else f"\n{truth}; {markets} markets")
        heads = [f"RMSE, {size:,}" for size in cells] + [f"earnings, {size:,}" for size in cells]
        lines = [["model", *heads, "CPU s"], *([["---"] * (len(heads) + 2)] if markdown else [])]
        for model in MODELS:
            errors = [spread([1e3 * row[model][0] for row in cell]) for cell in cells.values()]
            earned = [spread([1e2 * row[model][1] for row in cell]) for cell in cells.values()]
            seconds = float(np.median([row[model][2] for cell in cells.values() for row in cell]))
            lines.append([model, *errors, *earned, f"{seconds:.1f}"])
        both = [apart(cell, 0, 1e3) for cell in cells.values()] + [apart(cell, 1, 1e2) for cell in cells.values()]
        lines.append(["ours less theirs", *both, ""])
        for line in lines:
            print("| " + " | ".join(line) + " |" if markdown else "".join(f"{text:>18}" for text in line))


def main() -> None:
    """Compute what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markets", type=int, default=8)
    parser.add_argument("--quick", action="store_true", help="one market, 2,000 choices, nothing kept")
    parser.add_argument("--results", type=Path, default=Path("prices_accuracy.jsonl"), help="where results are kept")
    parser.add_argument("--print", action="store_true", help="compute nothing")
    parser.add_argument("--markdown", action="store_true", help="print tables for the documentation")
    parser.add_argument("--jobs", type=int, default=-1, help="how many processes")
    options = parser.parse_args()
    kept = [] if options.quick or not options.results.exists() else options.results.read_text().splitlines()
    rows = [json.loads(line) for line in kept]
    done = {(row["truth"], row["choices"], row["seed"]) for row in rows}
    sizes, markets = (SIZES[:1], 1) if options.quick else (SIZES, options.markets)
    jobs = [(name, size, FIRST_SEED + m) for m in range(markets) for size in sizes for name in TRUTHS]
    jobs = [] if options.print else [job for job in jobs if job not in done]
    runs = joblib.Parallel(n_jobs=options.jobs, return_as="generator_unordered")
    for row in runs(joblib.delayed(measure)(*job) for job in jobs):
        rows.append(row)
        if not options.quick:
            with options.results.open("a") as file:
                file.write(json.dumps(row) + "\n")
    show(rows, options.markdown)


if __name__ == "__main__":
    main()
