"""The commands and their options; the work is done in modules of their own, loaded when they are needed."""

from pathlib import Path
from typing import Annotated

import typer

from rankstream.options import (
    KINDS,
    METHODS,
    PERIODS,
    AsJson,
    Columns,
    Contents,
    Data,
    Format,
    ModelFile,
    NoChoice,
    OnError,
    OutsideShare,
    Rejects,
    Top,
    words,
)


def demo(
    out: Annotated[Path, typer.Option(help="The folder for model.json and demo.png.")] = Path("rankstream-demo"),
    seed: Annotated[int, typer.Option(min=0, help="The market and its choices.")] = 0,
    per_round: Annotated[int, typer.Option(min=1, max=10_000_000, help="New choices per round.")] = 200,
    tolerance: Annotated[float, typer.Option(min=0.0, help="Stop at this mean absolute error.")] = 1e-3,
    max_rounds: Annotated[int, typer.Option(min=1, help="Stop after this many rounds at the latest.")] = 10_000,
    json: AsJson = False,
) -> None:
    """Watch a model being estimated from simulated choices."""
    from rankstream import demo as demonstration

    demonstration.run(out, seed, per_round, tolerance, max_rounds, json)


def fit(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The model file to write.")] = Path("model.json"),
    method: Annotated[
        str, typer.Option(help="auto, max-entropy or primal-dual.", autocompletion=words(*METHODS))
    ] = "auto",
    budget: Annotated[
        float,
        typer.Option(min=0.0, help="Seconds, then the best model so far with its certificate, by any method."),
    ] = 60.0,
    tolerance: Annotated[float, typer.Option(min=0.0, help="When it is good enough.")] = 1e-3,
    outside_share: Annotated[
        str | None,
        typer.Option(help="The share assumed to have bought nothing; several, as 0.2,0.4, show how much it matters."),
    ] = None,
    no_choice: NoChoice = None,
    offer: Annotated[
        str | None, typer.Option(help="With several shares: what to predict, items joined by ';'; else everything.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Ties between rankings, and the starts of priors.")] = 0,
    json: AsJson = False,
    format: Format = None,  # noqa: A002
    columns: Columns = None,
    contents: Contents = None,
    on_error: OnError = "stop",
    rejects: Rejects = None,
) -> None:
    """Estimate a model from a file of choices, and save it."""
    from rankstream import fit_command

    fit_command.run(
        data, out, method, budget, tolerance, seed, json, outside_share, no_choice, offer,
        format=format, columns=columns, contents=contents, on_error=on_error, rejects=rejects,
    )  # fmt: skip


def predict(
    model: ModelFile,
    offer: Annotated[
        list[str] | None, typer.Option(help="Items joined by ';', or a JSON list; may be given again.")
    ] = None,
    offers: Annotated[Path | None, typer.Option(help="A text file with an offer in every line.")] = None,
    interval: Annotated[float | None, typer.Option(help="Also intervals, such as 0.95; needs --data.")] = None,
    data: Annotated[Path | None, typer.Option(help="The choices that the model was fitted to.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The simulated choices behind intervals.")] = 0,
    json: AsJson = False,
    outside_share: OutsideShare = None,
    no_choice: NoChoice = None,
    format: Format = None,  # noqa: A002
    columns: Columns = None,
    contents: Contents = None,
    on_error: OnError = "stop",
    rejects: Rejects = None,
) -> None:
    """Tell how likely each item of an offer is to be chosen."""
    from rankstream import model_commands

    model_commands.predict(
        model, offer or [], offers, json, interval, data, seed, outside_share=outside_share, no_choice=no_choice,
        format=format, columns=columns, contents=contents, on_error=on_error, rejects=rejects,
    )  # fmt: skip


def show(
    model: ModelFile,
    top: Top = 10,
    seed: Annotated[int, typer.Option(min=0, help="The types drawn from a max-entropy model.")] = 0,
    json: AsJson = False,
) -> None:
    """Show customer types, shares, and who gains when an item goes."""
    from rankstream import model_commands

    model_commands.show(model, top, json, seed)


def plot(
    model: Annotated[Path, typer.Argument(help="A model file; for shares over time, a file of choices.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The picture to write: .png, .svg or .pdf.")],
    kind: Annotated[
        str,
        typer.Option(
            help="segments, substitution, fit (needs --data), or shares over time.", autocompletion=words(*KINDS)
        ),
    ] = "segments",
    data: Annotated[Path | None, typer.Option(help="Choices to hold against the model.")] = None,
    top: Annotated[int, typer.Option(min=1, max=100, help="How many customer types.")] = 10,
    places: Annotated[int, typer.Option(min=1, help="How many of their favourites tell types apart.")] = 2,
    offer: Annotated[
        str | None, typer.Option(help="For substitution and shares: items joined by ';', not all.")
    ] = None,
    period: Annotated[
        str | None,
        typer.Option(help="For shares: hour, day, week, month or year.", autocompletion=words(*PERIODS)),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Types of over two places of a max-entropy model.")] = 0,
    json: AsJson = False,
    outside_share: OutsideShare = None,
    no_choice: NoChoice = None,
    format: Format = None,  # noqa: A002
    columns: Columns = None,
    contents: Contents = None,
    on_error: OnError = "stop",
    rejects: Rejects = None,
) -> None:
    """Draw customer types, who gains, the fit, or shares over time."""
    from rankstream import plot_command

    plot_command.run(
        model, out, kind, data, top, places, offer, period, seed, json,
        outside_share=outside_share, no_choice=no_choice,
        format=format, columns=columns, contents=contents, on_error=on_error, rejects=rejects,
    )  # fmt: skip


def compare(
    data: Data,
    models: Annotated[str, typer.Option(help="Names joined by commas; without it, all.")] = "",
    holdout: Annotated[
        str,
        typer.Option(
            help="What is tested: assortments, choices or time.", autocompletion=words("assortments", "choices", "time")
        ),
    ] = "assortments",
    folds: Annotated[int, typer.Option(min=2, help="How many parts are tested; of time, in the order of lines.")] = 5,
    outside_share: OutsideShare = None,
    no_choice: NoChoice = None,
    seed: Annotated[int, typer.Option(min=0, help="The dealing out, and the models' starts.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON; a likelihood of -inf is null.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Also draw the differences, in this file.")] = None,
    format: Format = None,  # noqa: A002
    columns: Columns = None,
    contents: Contents = None,
    on_error: OnError = "stop",
    rejects: Rejects = None,
) -> None:
    """Tell which kind of model predicts your data best.

    On choices held out, by how much, and whether that is more than noise.
    """
    from rankstream import compare_command

    names = [name.strip() for name in models.split(",")] if models else None
    compare_command.run(
        data, names, holdout, folds, seed, json, plot, outside_share=outside_share, no_choice=no_choice,
        format=format, columns=columns, contents=contents, on_error=on_error, rejects=rejects,
    )  # fmt: skip


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(help="Names or numbers of figures, or paths of settings files; all of them without any."),
    ] = None,
    instances: Annotated[int, typer.Option(min=1, help="Simulated markets per cell.")] = 100,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at a time.")] = 2,
    out: Annotated[Path, typer.Option(help="The folder; what is in it is not run again.")] = Path("rankstream-study"),
    seed: Annotated[int, typer.Option(min=0, help="The first market; the others follow it.")] = 0,
    json: AsJson = False,
) -> None:
    """Rerun the paper's computational study, figure by figure."""
    from rankstream.experiments import study

    try:
        study.reproduce(figures or [], instances, jobs, out, seed, json)
    except KeyboardInterrupt:
        typer.echo(f"Interrupted: the runs that ended are in {out}, call again to go on.", err=True)
        raise typer.Exit(1) from None
