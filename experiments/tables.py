"""Means over instances: the results by cell, as numbers, as CSV and as Markdown."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from experiments.fits import StudyRow
from experiments.settings import COLUMNS
from rankstream._core.types import Vec

METRICS = ("test_mae", "rankings", "rounds", "converged", "mae", "latest_mae", "truth_mae", "data_mae", "observations")
PROVEN = ("gap", "guarantee")


class Results:
    """Rows, and the columns of their settings and results; a selection is Results again."""

    def __init__(self, rows: Iterable[StudyRow]) -> None:
        self.rows = list(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, **settings: Any) -> "Results":
        """The rows with these settings; a tuple or list stands for any of its entries."""

        def fits(row: StudyRow) -> bool:
            for name, value in settings.items():
                allowed = value if isinstance(value, tuple | list) else (value,)
                if _value(row, name) not in allowed:
                    return False
            return True

        return Results(row for row in self.rows if fits(row))

    def column(self, name: str) -> Vec:
        """One number per row, in the rows' order."""
        return np.array([_value(row, name) for row in self.rows], dtype=np.float64)

    def values(self, name: str) -> list[Any]:
        """The different entries of a setting, sorted."""
        return sorted({_value(row, name) for row in self.rows})

    def mean(self, name: str) -> float:
        """The mean over the rows."""
        return float(self.column(name).mean())

    def error(self, name: str) -> float:
        """The standard error of the mean; NaN for a single row, of which none is known, and for infinite numbers."""
        column = self.column(name)
        if column.size < 2 or not np.isfinite(column).all():
            return float("nan")
        return float(column.std(ddof=1) / np.sqrt(column.size))

    def cells(self) -> Iterator["Results"]:
        """One selection for every combination of settings, its rows by instance."""
        groups: dict[tuple[Any, ...], list[StudyRow]] = {}
        for row in self.rows:
            settings = tuple(value for name, value in asdict(row.run).items() if name != "instance")
            groups.setdefault((*settings, row.results.get("way", ""), row.results.get("mark", 0)), []).append(row)
        for rows in groups.values():
            yield Results(sorted(rows, key=lambda row: row.run.instance))

    def setting(self, name: str) -> Any:
        """A setting that all rows share."""
        return _value(self.rows[0], name)


def _value(row: StudyRow, name: str) -> Any:
    if name in COLUMNS:
        return getattr(row.run, name)
    return row.results[name] if name in row.results else row.times[name]


def summary(results: Results, version: str) -> str:
    """A CSV table with a line per cell: settings, number of instances, and mean and standard error of every metric."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    settings = [name for name in COLUMNS if name != "instance"]
    names = [*METRICS, *PROVEN]
    writer.writerow(
        [*settings, "version", "instances", *(f"{kind}_{name}" for name in names for kind in ("mean", "se"))]
    )
    for cell in results.cells():
        has = [name in cell.rows[0].results for name in names]
        numbers = [
            f"{number:.6g}" if known else ""
            for name, known in zip(names, has, strict=True)
            for number in ((cell.mean(name), cell.error(name)) if known else (0.0, 0.0))
        ]
        writer.writerow([*(cell.setting(name) for name in settings), version, len(cell), *numbers])
    return out.getvalue()


def markdown(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(markdown(["method", "rounds"], [["MD_ns", "12"]]))
    | method | rounds |
    |---|---|
    | MD_ns | 12 |
    """
    rows = [header, ["---"] * len(header), *lines]
    body = ["|" + "|".join(row) + "|" if row[0] == "---" else "| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(body)


def latex(table: str) -> str:
    r"""A Markdown table as LaTeX, for the package booktabs.

    >>> print(latex("| method | MAE |\n|---|---|\n| MD_ns | **1** % |"))
    \begin{tabular}{ll}
    \toprule
    method & MAE \\
    \midrule
    MD\_ns & \textbf{1} \% \\
    \bottomrule
    \end{tabular}
    """
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    escaped = [[re.sub(r"([&%#_])", r"\\\1", cell).replace("±", r"$\pm$") for cell in row] for row in rows]
    bold = [[re.sub(r"\*\*(.+?)\*\*", r"\\textbf{\1}", cell) for cell in row] for row in escaped]
    head, body = bold[0], bold[2:]
    lines = [r"\begin{tabular}{" + "l" * len(head) + "}", r"\toprule", " & ".join(head) + r" \\", r"\midrule"]
    lines += [" & ".join(row) + r" \\" for row in body]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def grid(results: Results, down: Sequence[str], across: str, shown: Callable[[Results], str], label: str = "") -> str:
    """A table with combinations of settings down, the values of one setting across, and a text for every cell."""
    heads = results.values(across)
    tuples = list(dict.fromkeys(tuple(_value(row, name) for name in down) for row in results.rows))
    lines = []
    for values in tuples:
        chosen = results.where(**dict(zip(down, values, strict=True)))
        cells = [chosen.where(**{across: head}) for head in heads]
        lines.append([*map(str, values), *(shown(cell) if len(cell) else "" for cell in cells)])
    return markdown([*down, *(f"{label or across} {head}" for head in heads)], lines)


def with_error(name: str, digits: int = 4) -> Callable[[Results], str]:
    """A cell as mean and standard error, or as its mean where it is of one instance."""

    def shown(cell: Results) -> str:
        return plus_minus(f"{cell.mean(name):.{digits}f}", cell.error(name), digits)

    return shown


def plus_minus(mean: str, error: float, digits: int = 4) -> str:
    """A mean with its standard error, where that is known.

    >>> plus_minus("+0.0020", 0.001), plus_minus("0.0020", float("nan"))
    ('+0.0020 ± 0.0010', '0.0020')
    """
    return f"{mean} ± {error:.{digits}f}" if np.isfinite(error) else mean
