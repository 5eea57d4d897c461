"""Tricot trials: every farmer compares three varieties. Which model predicts them, and what fits them best?

Run it as ``python examples/tricot.py FILE.csv``. A row is a farmer with the varieties a, b and c and the letters of the
best and the worst (as in gosset's breadwheat), or a farmer's rank of one variety (as in nicabean). The overall answer
is taken where there is one. A farmer's ranking of three makes two choices, which are not those of two persons: standard
errors are a little too small.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

import rankstream as rs
from rankstream import methods

MODELS = ["max-entropy", "mnl", "latent-class", "markov-chain"]


def rankings(table: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    """Each farmer's varieties, best first; those with a missing or an impossible answer are left out."""
    names = {str(column).lower(): column for column in table.columns}
    if {"id", "item", "rank"} <= names.keys():
        yield from _from_ranks(table.rename(columns={column: name for name, column in names.items()}))
        return
    items = [column for name, column in names.items() if re.search(r"(^|_)[abc]$", name)][:3]
    best, worst = (_answer(list(names), kinds) for kinds in (("best", "pos"), ("worst", "neg")))
    if len(items) < 3 or best is None or worst is None:
        raise ValueError(f"The columns are {list(table.columns)}: there must be three varieties, a best and a worst.")
    for row in table[[*items, names[best], names[worst]]].itertuples(index=False):
        named = dict(zip("ABC", row[:3], strict=True))
        ends = [str(answer).strip().upper()[-1:] for answer in row[3:]]
        if ends[0] != ends[1] and set(ends) <= named.keys():
            middle = next(letter for letter in "ABC" if letter not in ends)
            yield tuple(str(named[letter]) for letter in (ends[0], middle, ends[1]))


def _from_ranks(table: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    if "trait" in table.columns:
        table = table[table["trait"] == _judged([str(trait) for trait in table["trait"].unique()])]
    for _, rows in table.groupby("id", sort=True):
        ordered = rows.sort_values("rank")
        if ordered["rank"].is_unique and ordered["item"].is_unique and len(ordered) > 1:
            yield tuple(map(str, ordered["item"]))


def _judged(traits: list[str]) -> str:
    """The trait that says most: the overall answer, else yield, else the first."""
    for word in ("overall", "yield"):
        for trait in traits:
            if word in trait.lower():
                return trait
    return traits[0]


def _answer(names: list[str], kinds: tuple[str, ...]) -> str | None:
    """The column of the best (or the worst), overall if there are several."""
    found = [name for name in names if name.endswith(kinds)]
    return next((name for name in found if name.startswith("overall")), found[0] if found else None)


def choices(table: pd.DataFrame) -> rs.ChoiceCounts:
    """A ranking of three is a choice from the three, and then from the two that are left; or the choices as written."""
    if {"offered", "chosen"} <= set(table.columns):
        return rs.read_counts(table)
    rows = [
        {"offered": list(ranking[place:]), "chosen": ranking[place]}
        for ranking in rankings(table)
        for place in range(len(ranking) - 1)
    ]
    if not rows:
        raise ValueError("No farmer ranks anything: look at the columns for the best and the worst.")
    return rs.read_counts(pd.DataFrame(rows))


def main(path: str) -> str:
    """The comparison, and the nearest mixture of rankings with what is proven about it."""
    counts = choices(pd.read_csv(path))
    offers = counts.assortments
    compared = rs.compare(counts, MODELS, holdout="choices", folds=5, seed=0)
    nearest = rs.estimate(counts, method=methods.Nearest(gap=1e-3))
    proven = nearest.certificate
    model = rs.estimate(counts, method="max-entropy").model
    best = sorted(model.predict(offers.items).items(), key=lambda pair: -pair[1])
    return "\n".join(
        [
            f"{Path(path).name}: {counts.observations:,.0f} choices from {offers.n_offers} offers of "
            f"{offers.n_items} varieties. {compared.verdict}",
            "",
            compared.table(),
            "",
            f"The nearest mixture of rankings has {len(nearest.model.weights)} of them, at the weighted l2 distance "
            f"{proven.upper:.3f}; none can be closer than {proven.lower:.3f}.",
            "If all were offered: " + ", ".join(f"{name} {share:.0%}" for name, share in best[:5]),
        ]
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Name one CSV file: python examples/tricot.py FILE.csv")
    print(main(sys.argv[1]))
