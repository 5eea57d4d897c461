"""The command ``rankstream compare``: held-out comparison of models, as a table, JSON or a picture."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rankstream._core.terminal import print_answer, progress
from rankstream.cli.options import Data, ReadingOptions, choice, reading_options

if TYPE_CHECKING:
    from rankstream.data.observations import Holdout
    from rankstream.evaluate.comparison import Comparison

MOST_FOLDS = 5  # as in rs.compare


@reading_options(without=("between",))
def compare(
    data: Data,
    models: str = "",
    holdout: Annotated[str, choice("assortments", "choices", "person", "time")] = "assortments",
    folds: Annotated[int | None, typer.Option(min=2)] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for folds and starting points.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; a log-likelihood of -inf becomes null.")] = False,
    plot: Path | None = None,
    *,
    reading: ReadingOptions,
) -> None:
    """Find out which kind of model predicts your data best.

    Every model predicts choices that were held out; significant differences are marked.

    Example: rankstream compare choices.csv --folds 5

    Options:
    models: Models to compare, separated by commas: the methods of 'fit', and variants of nearest: nearest-l1,
        nearest-linf, frank-wolfe (default: all). See choose-a-method.md in docs/how-to.
    folds: Number of cross-validation folds (default: 5, or the number of offers if that is less).
    holdout: What to leave out for the test: whole offers (assortments), single choices, all choices of a person
        (person, which needs --columns person=YOUR_COLUMN), or later times (time).
    plot: Also save a chart of the differences (.png, .svg, .pdf or .jpg).
    """
    from rankstream._core.files import check_picture
    from rankstream.evaluate.compare import compare as compare_models

    if plot is not None:
        check_picture(plot)
    read = reading.read(data, time_slices=(folds or MOST_FOLDS) + 1 if holdout == "time" else None)
    counts = read.counts if holdout != "time" else read.slices or []
    if not counts:
        raise ValueError("--holdout time needs a time for every record: map it with --columns time=YOUR_COLUMN.")
    n_offers = int((read.counts.totals > 0.0).sum()) if holdout == "assortments" else MOST_FOLDS
    folds = folds or max(2, min(MOST_FOLDS, n_offers))
    names = [name.strip() for name in models.split(",")] if models else None
    with progress("splitting") as tell:
        result = compare_models(counts, names, holdout=cast("Holdout", holdout), folds=folds, seed=seed, watch=tell)
    print_answer(as_json, result.to_json(), result.table())
    if plot is not None:
        draw_differences(result, plot)


def draw_differences(result: "Comparison", path: Path) -> None:
    """Save a chart of the differences between the models."""
    from rankstream import plots
    from rankstream._core.files import save_picture
    from rankstream.cli.plot import new_figure

    figure = new_figure(7, 1.4 + 0.45 * len(result.rows))
    plots.comparison(result, figure.subplots())
    save_picture(figure, path)
