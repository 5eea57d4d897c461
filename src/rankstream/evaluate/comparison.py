"""The result of a comparison of models: scores by fold, paired differences, a table, and a verdict in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankstream._core.types import Vec

HELD_OUT = {"assortments": "whole offers", "choices": "single choices", "person": "persons", "time": "later periods"}
HEADINGS = ("model", "log-likelihood", "behind the best", "unmixed", "RMSE", "MAE", "fit s", "size")
WIDTHS = (16, 18, 18, 9, 8, 8, 8, 16)


@dataclass(frozen=True)
class Score:
    """One model on one fold; the likelihoods are in nats per choice, the errors weighted by observations."""

    log_likelihood: float
    raw_log_likelihood: float
    rmse: float
    mae: float
    seconds: float
    size: int


@dataclass(frozen=True)
class Row:
    """One model over all folds, and how far it is behind the winner, with paired differences.

    ``margin`` is half the width of the 95 % interval of the difference, with Student's t for the number of folds.
    """

    name: str
    scores: tuple[Score, ...]
    unit: str
    behind: float
    behind_error: float
    margin: float

    def mean(self, field: str) -> float:
        """The mean of one of the fields of the scores."""
        return float(np.mean([getattr(score, field) for score in self.scores]))

    def error(self, field: str) -> float:
        """The standard error of that mean."""
        return standard_error(np.array([getattr(score, field) for score in self.scores]))

    @property
    def seconds(self) -> float:
        """The median time of a fit, so that compilation in the first does not count."""
        return float(np.median([score.seconds for score in self.scores]))

    @property
    def within_noise(self) -> bool:
        """Whether this model is not significantly worse than the winner."""
        return not self.behind > self.margin


@dataclass(frozen=True)
class Comparison:
    """Models ranked by held-out likelihood, best first.

    ``uniform`` is the score of a uniform guess, ``hindsight`` the highest possible score.
    """

    rows: tuple[Row, ...]
    holdout: str
    epsilon: float
    observations: float
    uniform: float
    hindsight: float

    @property
    def winner(self) -> str:
        """The model with the highest mean likelihood, significantly or not."""
        return self.rows[0].name

    @property
    def verdict(self) -> str:
        """A sentence: which model wins, by how much, and whether that is significant."""
        best, *others = self.rows
        if not others:
            return f"{best.name} is the only model: there is nothing to compare it with."
        near = [row for row in others if row.within_noise]
        far = [row for row in others if not row.within_noise]
        guess = best.name == "uniform"
        if not near:
            return f"{'A uniform guess' if guess else best.name} predicts significantly better than {_listed(far)}."
        if guess:
            are = "is" if len(near) == 1 else "are"
            sentence = f"No model predicts better than a uniform guess, but {_listed(near)} {are} close."
        else:
            held = HELD_OUT[self.holdout].split()[-1]
            small = f"Too few {held} were held out to tell any model from a uniform guess: keep the default method. "
            warning = small if any(row.name == "uniform" for row in near) else ""
            ahead = f"{best.name} is ahead, but not significantly" + ("" if warning else f" ahead of {_listed(near)}")
            if all(round(row.behind, 4) == 0.0 for row in near):
                ahead = f"{best.name} predicts as well as {' and '.join(row.name for row in near)}"
            sentence = f"{warning}{ahead}."
        return sentence + (f" Significantly behind: {_listed(far)}." if far else "")

    def table(self) -> str:
        """The ranked table as text, with the verdict below."""
        first = max(WIDTHS[0], *(len(row.name) for row in self.rows))
        lines = [
            f"{name:<{first}}" + "".join(f"{cell:>{width}}" for cell, width in zip(others, WIDTHS[1:], strict=True))
            for name, *others in (HEADINGS, *map(_cells, self.rows))
        ]
        choices = f"{round(self.observations, 1):,.12g} choices"  # fractional with an assumed share
        how = f"{len(self.rows[0].scores)} folds, {HELD_OUT[self.holdout]} held out, {choices}"
        scale = (
            f"Log-likelihood per choice: higher is better; after ± is half a 95 % interval ({how} tested). A uniform "
            f"guess has {self.uniform:.4f}; no model can exceed {self.hindsight:.4f}. Every prediction is mixed with "
            f"{100 * self.epsilon:g} % of a uniform guess, so that one choice with probability 0 does not decide; "
            "'unmixed' is without it. Behind the best: mean difference, fold by fold. RMSE, MAE: root mean squared and "
            "mean absolute error of shares. Fit s: seconds per fit. Size: what the model stores."
        )
        return "\n".join([self.verdict, "", *lines, "", scale])

    def __repr__(self) -> str:
        return f"Comparison({self.verdict})"

    def to_latex(self) -> str:
        r"""The ranked table for a paper; it needs the LaTeX package booktabs.

        The best model is in bold, and so are those that are not significantly worse.
        """
        heads = [heading.replace("%", r"\%") for heading in HEADINGS]
        lines = [
            r"\begin{tabular}{l" + "r" * (len(heads) - 1) + "}",
            r"\toprule",
            " & ".join(heads) + r" \\",
            r"\midrule",
        ]
        for row in self.rows:
            name, *cells = (cell.replace("±", r"$\pm$").replace("_", r"\_") for cell in _cells(row))
            lines.append(" & ".join([rf"\textbf{{{name}}}" if row.within_noise else name, *cells]) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        names = ("winner", "verdict", "holdout", "epsilon", "observations", "uniform", "hindsight")
        return {**{name: getattr(self, name) for name in names}, "models": self.to_records()}

    def to_records(self) -> list[dict[str, Any]]:
        """One dictionary per model, for a data frame or JSON."""
        fields = ("log_likelihood", "raw_log_likelihood", "rmse", "mae")
        return [
            {"model": row.name}
            | {field: row.mean(field) for field in fields}
            | {f"{field}_error": row.error(field) for field in fields if field != "raw_log_likelihood"}
            | {"behind": row.behind, "behind_error": row.behind_error, "within_noise": row.within_noise}
            | {"seconds": row.seconds, "size": row.mean("size"), "unit": row.unit, "folds": len(row.scores)}
            for row in self.rows
        ]


def ranked(scores: dict[str, list[Score]], units: dict[str, str]) -> tuple[Row, ...]:
    """Rows ordered by their mean log-likelihood, with the differences to the first."""
    heights = {name: np.array([score.log_likelihood for score in rows]) for name, rows in scores.items()}
    best = max(heights, key=lambda name: float(heights[name].mean()))
    rows = []
    for name in sorted(heights, key=lambda name: -float(heights[name].mean())):
        apart = heights[best] - heights[name]
        error = 0.0 if name == best else standard_error(apart)
        rows.append(
            Row(name, tuple(scores[name]), units[name], float(apart.mean()), error, student(len(apart)) * error)
        )
    return tuple(rows)


def standard_error(values: Vec) -> float:
    """The standard error of the mean of independent values."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def student(folds: int) -> float:
    """Return the 97.5 % point of Student's t for the mean of ``folds`` values."""
    from scipy.special import stdtrit  # slow to import, and only comparisons need it

    return float(stdtrit(folds - 1, 0.975)) if folds > 1 else np.nan


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        f"{row.mean('log_likelihood'):.4f} ± {student(len(row.scores)) * row.error('log_likelihood'):.4f}",
        "-" if row.behind_error == 0.0 == row.behind else f"{row.behind:.4f} ± {row.margin:.4f}",
        f"{row.mean('raw_log_likelihood'):.4f}",
        f"{row.mean('rmse'):.4f}",
        f"{row.mean('mae'):.4f}",
        f"{row.seconds:.3f}",
        f"{row.mean('size'):.0f} {row.unit}" if row.unit else "-",
    )


def _listed(rows: Sequence[Row]) -> str:
    texts = [f"{row.name} ({row.behind:.4f} ± {row.margin:.4f})" for row in rows]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
