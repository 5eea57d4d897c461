"""The command ``rankstream compare``: from a file of choices to a table, JSON or a picture."""

from pathlib import Path
from typing import Any, cast

from rankstream import plots
from rankstream._core.terminal import print_json, print_plain, progress
from rankstream.choice_files import read_choices
from rankstream.data.splits import Holdout
from rankstream.evaluate import compare
from rankstream.evaluate.comparison import Comparison
from rankstream.plots.saving import check_picture, save_picture


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
    found_data = read_choices(data, parts=folds + 1 if holdout == "time" else None, **reading)
    counts = list(found_data.groups.values()) or found_data.counts
    with progress("splitting") as tell:
        found = compare(
            counts,
            models,
            holdout=cast(Holdout, holdout),
            folds=folds,
            seed=seed,
            watch=tell,
        )
    if as_json:
        print_json(as_content(found))
    else:
        print_plain(found.table())
    if plot is not None:
        draw(found, plot)
    return found


def as_content(found: Comparison) -> dict[str, Any]:
    """The comparison as what JSON can hold."""
    return {
        "winner": found.winner,
        "verdict": found.verdict,
        "holdout": found.holdout,
        "epsilon": found.epsilon,
        "observations": found.observations,
        "uniform": found.uniform,
        "hindsight": found.hindsight,
        "models": found.to_records(),
    }


def draw(found: Comparison, path: Path) -> None:
    """The differences between the models as a picture; its format follows from the name."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 1.4 + 0.45 * len(found.rows)), layout="constrained")
    plots.comparison(found, figure.subplots())
    save_picture(figure, path)
