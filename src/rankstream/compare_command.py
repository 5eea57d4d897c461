"""The command ``rankstream compare``: from a file of choices to a table, JSON or a picture."""

import json
from math import isfinite
from pathlib import Path
from typing import Any, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from rankstream import plots
from rankstream.comparison import Comparison
from rankstream.evaluate import compare
from rankstream.pictures import check_picture, save_picture
from rankstream.readers import read
from rankstream.splits import Holdout


def run(
    data: Path,
    models: list[str] | None,
    holdout: str,
    folds: int,
    seed: int,
    as_json: bool,
    plot: Path | None,
    **reading: Any,
) -> Comparison:
    """Read (with the options of ``readers.read``), compare, print; what was skipped is told on standard error.

    There too goes the progress, but only on a terminal.
    """
    if plot is not None:
        check_picture(plot)
    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
    found_data = read(data, parts=folds + 1 if holdout == "time" else None, **reading)
    if found_data.problems.total:
        console.print(found_data.problems.summary())
    counts = list(found_data.groups.values()) or found_data.counts
    with Progress(
        TextColumn("{task.description}"), BarColumn(), console=console, disable=not console.is_terminal, transient=True
    ) as bar:
        task = bar.add_task("splitting", total=None)
        found = compare(
            counts,
            models,
            holdout=cast(Holdout, holdout),
            folds=folds,
            seed=seed,
            watch=lambda name, done, total: bar.update(task, description=name, completed=done, total=total),
        )
    text = json.dumps(as_content(found), indent=2, ensure_ascii=False, allow_nan=False) if as_json else found.table()
    Console(highlight=False, soft_wrap=True, markup=False, emoji=False).print(text)
    if plot is not None:
        draw(found, plot)
    return found


def as_content(found: Comparison) -> dict[str, Any]:
    """The comparison as what JSON can hold."""
    models = [
        {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in record.items()}
        for record in found.to_records()
    ]
    return {
        "winner": found.winner,
        "verdict": found.verdict,
        "holdout": found.holdout,
        "epsilon": found.epsilon,
        "observations": found.observations,
        "uniform": found.uniform,
        "hindsight": found.hindsight,
        "models": models,
    }


def draw(found: Comparison, path: Path) -> None:
    """The differences between the models as a picture; its format follows from the name."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 1.4 + 0.45 * len(found.rows)), layout="constrained")
    plots.comparison(found, figure.subplots())
    save_picture(figure, path)
