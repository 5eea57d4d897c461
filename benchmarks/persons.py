"""Intervals for choices of which each person makes several: coverage if replicates draw choices, or persons.

    python benchmarks/persons.py [--markets 40] [--seed 8301] [--method max-entropy]

Each person has a logit of their own and makes as many choices, each from a random one of 12 offers. The truth is the
share of each item over all persons there are. An interval of 95 % should cover it in 95 % of the cases.
"""

import argparse
from itertools import product

import numpy as np
import pandas as pd

import rankstream as rs
from rankstream._core.types import Vec

ITEMS, OFFERS, PEOPLE = 6, 12, 200_000  # people behind the truth
SPREADS, SIZES = (0.0, 2.0), ((100, 5), (100, 20), (400, 5))  # of tastes; persons and choices of each
REPLICATES = 20


def market(
    random: np.random.Generator, spread: float, persons: int, choices: int
) -> tuple[pd.DataFrame, dict[tuple[str, ...], Vec]]:
    """Records of choices with persons, and the true shares of the offers they are from."""
    mean = random.normal(size=ITEMS)
    sizes = random.integers(2, ITEMS, size=OFFERS)
    offers = [np.sort(random.choice(ITEMS, size=size, replace=False)) for size in sizes.tolist()]
    everybody = np.exp(mean + spread * random.normal(size=(PEOPLE, ITEMS)))
    truth, rows = {}, []
    for offer in offers:
        worth = everybody[:, offer]
        truth[tuple(map(str, offer))] = (worth / worth.sum(axis=1, keepdims=True)).mean(axis=0)
    for person in range(persons):
        for number in random.integers(OFFERS, size=choices).tolist():
            worth = everybody[person, offers[number]]
            item = random.choice(offers[number], p=worth / worth.sum())
            rows.append({"person": person, "offered": ";".join(map(str, offers[number])), "chosen": str(item)})
    return pd.DataFrame(rows), truth


def coverage(records: pd.DataFrame, known: dict[tuple[str, ...], Vec], method: str, seed: int) -> list[float]:
    """How often intervals cover the truth, and their mean width: for replicates of choices, then of persons."""
    offers = [tuple(offer.split(";")) for offer in dict.fromkeys(records["offered"])]
    truth, answers = np.concatenate([known[offer] for offer in offers]), list[float]()
    for columns in ({}, {"person": "person"}):
        counts = rs.read_counts(records, columns=columns)
        _, low, high = rs.Bootstrap(counts, method, REPLICATES, seed).bounds(rs.Assortments(offers))
        answers += [float(((low <= truth) & (truth <= high)).mean()), float((high - low).mean())]
    return answers


def main() -> None:
    """Print a table: a row for each kind of market."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markets", type=int, default=40)
    parser.add_argument("--seed", type=int, default=8301)
    parser.add_argument("--method", default="max-entropy")
    options = parser.parse_args()
    print("| tastes, persons x choices | choices: coverage, width | persons: coverage, width |\n|---|---|---|")
    for spread, (persons, choices) in product(SPREADS, SIZES):
        rows = []
        for seed in range(options.seed, options.seed + options.markets):
            records, truth = market(np.random.default_rng(seed), spread, persons, choices)
            rows.append(coverage(records, truth, options.method, seed))
        by_choice, width, by_person, wider = np.mean(rows, axis=0)
        cells = f"{by_choice:.3f}, {width:.3f} | {by_person:.3f}, {wider:.3f}"
        print(f"| {'alike' if spread == 0.0 else 'different'}, {persons} x {choices} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
