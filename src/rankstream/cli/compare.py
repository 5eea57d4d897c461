"""The command ``rankstream compare``: from a file of choices to a table, JSON or a picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rankstream._core.terminal import print_json, print_plain, progress
from rankstream.cli.options import Data, ReadingOptions, choice, reading_options

if TYPE_CHECKING:
    from rankstream.data.splits import Holdout
    from rankstream.evaluate.comparison import Comparison


@reading_options()
def compare(
    data: Data,
    models: Annotated[str, typer.Option(help="Names of models joined by commas; all without it.")] = "",
    holdout: Annotated[
        str,
        choice("What is held out: whole offers, single choices, or later lines.", "assortments", "choices", "time"),
    ] = "assortments",
    folds: Annotated[int, typer.Option(min=2, help="How many parts are held out in turn.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed for the folds and the models' random starts.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; a likelihood of -inf is null.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the differences, in this file (.png, .svg, .pdf or .jpg).")
    ] = None,
    *,
    reading: ReadingOptions,
) -> None:
    """Find out which kind of model predicts your data best.

    On choices held out, by how much, and whether that is more than noise.

    Example: rankstream compare choices.csv --folds 5
    """
    from rankstream.evaluate.compare import compare as compare_models
    from rankstream.plots.saving import check_picture

    if plot is not None:
        check_picture(plot)
    read = reading.read(data, parts=folds + 1 if holdout == "time" else None)
    counts = list(read.groups.values()) or read.counts
    names = [name.strip() for name in models.split(",")] if models else None
    with progress("splitting") as tell:
        found = compare_models(counts, names, holdout=cast("Holdout", holdout), folds=folds, seed=seed, watch=tell)
    if as_json:
        print_json(as_content(found))
    else:
        print_plain(found.table())
    if plot is not None:
        draw_differences(found, plot)


def as_content(found: "Comparison") -> dict[str, Any]:
    """The comparison as JSON."""
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


def draw_differences(found: "Comparison", path: Path) -> None:
    """The differences between the models as a picture; its format follows from the name."""
    from matplotlib.figure import Figure

    from rankstream import plots
    from rankstream.plots.saving import save_picture

    figure = Figure(figsize=(7, 1.4 + 0.45 * len(found.rows)), layout="constrained")
    plots.comparison(found, figure.subplots())
    save_picture(figure, path)
