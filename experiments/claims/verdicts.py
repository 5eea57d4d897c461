"""What a claim is, and the statistics that decide one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from experiments.tables import Results
from rankstream._core.types import Vec

Found = Mapping[str, Results]
SAME = 1.15
STRONG = 0.8


@dataclass(frozen=True)
class Verdict:
    """Whether a claim holds, and the figures that say so."""

    holds: Literal["holds", "does not hold", "holds in part"]
    measured: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: where it is made, what it says in our words, the parts it needs, and how to decide it."""

    where: str
    says: str
    needs: tuple[str, ...]
    decide: Callable[[Found], Verdict]

    def verdict(self, found: Found) -> Verdict | None:
        """The verdict, or None where a part it needs was not run."""
        return self.decide(found) if all(name in found and len(found[name]) for name in self.needs) else None


def yes_no(holds: bool, measured: str) -> Verdict:
    """A verdict without conditions."""
    return Verdict("holds" if holds else "does not hold", measured)


def graded(good: int, total: int, measured: str, condition: str = "") -> Verdict:
    """All cases: it holds; most: it holds in part, and the condition says where; otherwise it does not hold."""
    if good == total:
        return Verdict("holds", measured)
    if 2 * good > total:
        return Verdict("holds in part", f"{measured} {condition}".strip())
    return Verdict("does not hold", measured)


def resting_on(runs: Results) -> str:
    """A sentence to add where all runs are of one instance, so that nothing is known of how others would differ."""
    return " All of it on one instance, so without standard errors." if len(runs.values("instance")) == 1 else ""


def difference(first: Results, second: Results, metric: str) -> tuple[float, float]:
    """The mean of first - second over the instances of both, and its standard error."""
    one, two = _by_instance(first, metric), _by_instance(second, metric)
    gaps = np.array([one[number] - two[number] for number in sorted(one.keys() & two.keys())])
    return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(gaps.size)) if gaps.size > 1 else float("inf")


def less(first: Results, second: Results, metric: str) -> bool:
    """Whether the first is smaller by more than two standard errors of the paired difference."""
    mean, error = difference(first, second, metric)
    return mean < -2.0 * error and mean < 0.0


def _by_instance(cell: Results, metric: str) -> dict[int, float]:
    return {row.run.instance: value for row, value in zip(cell.rows, cell.column(metric).tolist(), strict=True)}


def spread(cells: list[Results], metric: str) -> float:
    """The largest mean divided by the smallest."""
    means = [cell.mean(metric) for cell in cells]
    return max(means) / min(means)


def spearman(first: Vec, second: Vec) -> float:
    """Spearman's rank correlation, ties given their mean rank."""
    one, two = _ranks(first), _ranks(second)
    return float(np.corrcoef(one, two)[0, 1])


def correlated(runs: Results, first: str, second: str, note: str = "") -> Verdict:
    """Rank correlation over all runs, and over the means of the cells."""
    over_runs = spearman(runs.column(first), runs.column(second))
    cells = list(runs.cells())
    means = [np.array([cell.mean(name) for cell in cells]) for name in (first, second)]
    over_cells = spearman(*means)
    text = (
        f"Spearman's correlation is {over_runs:.3f} over {len(runs)} runs and {over_cells:.3f} over the means of "
        f"{len(cells)} cells{note}."
    )
    if over_runs < STRONG <= over_cells:
        return Verdict("holds in part", f"{text} Between cells, not between instances of one cell.")
    return yes_no(over_runs >= STRONG, text)


def _ranks(values: Vec) -> Vec:
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Vec = (ends - (counts - 1) / 2.0)[where]
    return ranks
