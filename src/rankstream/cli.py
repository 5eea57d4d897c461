"""The command line: thin commands over the library; bad input is one sentence and exit code 2."""

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

Data = Annotated[
    Path, typer.Argument(help="Choices as CSV, JSON lines, Parquet or PrefLib; a quoted glob names several files.")
]
ModelFile = Annotated[Path, typer.Argument(help="A model file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Format = Annotated[
    str | None, typer.Option(help="transactions, long, wide, counts or rankings; without it, told by the columns.")
]
OnError = Annotated[str, typer.Option(help="At a bad record: stop, or skip and tell.")]
Rejects = Annotated[Path | None, typer.Option(help="Where to write the records that were skipped.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        from rankstream import __version__

        typer.echo(f"rankstream {__version__}")
        raise typer.Exit


@app.callback()
def rankstream(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Non-parametric choice models, estimated and certified while the choices arrive.

    Begin with 'rankstream demo'. With choices of your own, 'fit' makes a model file.
    Then 'predict', 'show' and 'plot' tell what is in it.
    """


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for model.json and demo.png.")] = Path("rankstream-demo"),
    seed: Annotated[int, typer.Option(min=0, help="The market and its choices.")] = 0,
    per_round: Annotated[int, typer.Option(min=1, max=10_000_000, help="New choices per round.")] = 200,
    tolerance: Annotated[float, typer.Option(min=0.0, help="Stop at this mean absolute error.")] = 1e-3,
    max_rounds: Annotated[int, typer.Option(min=1, help="Stop after this many rounds at the latest.")] = 10_000,
) -> None:
    """Watch a model being estimated from simulated choices."""
    from rankstream import demo as demonstration

    demonstration.run(out, seed, per_round, tolerance, max_rounds)


@app.command()
def fit(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="The model file to write.")] = Path("model.json"),
    method: Annotated[str, typer.Option(help="auto, max-entropy or primal-dual.")] = "auto",
    budget: Annotated[
        float,
        typer.Option(min=0.0, help="Seconds, then the best model so far with its certificate, by any method."),
    ] = 60.0,
    tolerance: Annotated[float, typer.Option(min=0.0, help="When it is good enough.")] = 1e-3,
    seed: Annotated[int, typer.Option(min=0, help="Ties between rankings, and the starts of priors.")] = 0,
    json: AsJson = False,
    format: Format = None,  # noqa: A002
    on_error: OnError = "stop",
    rejects: Rejects = None,
) -> None:
    """Estimate a model from a file of choices, and save it."""
    from rankstream import fit_command

    fit_command.run(data, out, method, budget, tolerance, seed, json, format=format, on_error=on_error, rejects=rejects)


@app.command()
def predict(
    model: ModelFile,
    offer: Annotated[list[str] | None, typer.Option(help="Items joined by ';'; may be given again.")] = None,
    offers: Annotated[Path | None, typer.Option(help="A text file with an offer in every line.")] = None,
    interval: Annotated[float | None, typer.Option(help="Also intervals, such as 0.95; needs --data.")] = None,
    data: Annotated[Path | None, typer.Option(help="The choices that the model was fitted to.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The simulated choices behind intervals.")] = 0,
    json: AsJson = False,
) -> None:
    """Tell how likely each item of an offer is to be chosen."""
    from rankstream import model_commands

    model_commands.predict(model, offer or [], offers, json, interval, data, seed)


@app.command()
def show(
    model: ModelFile,
    top: Annotated[int, typer.Option(min=1, help="How many customer types.")] = 10,
    json: AsJson = False,
) -> None:
    """Show customer types, shares, and who gains when an item goes."""
    from rankstream import model_commands

    model_commands.show(model, top, json)


@app.command()
def plot(
    model: ModelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The picture to write: .png, .svg or .pdf.")],
    kind: Annotated[str, typer.Option(help="segments, substitution, or fit, which needs --data.")] = "segments",
    data: Annotated[Path | None, typer.Option(help="Choices to hold against the model.")] = None,
    top: Annotated[int, typer.Option(min=1, max=100, help="How many customer types.")] = 10,
    places: Annotated[int, typer.Option(min=1, help="How many of their favourites tell types apart.")] = 2,
    offer: Annotated[str | None, typer.Option(help="For substitution: items joined by ';', not all.")] = None,
    format: Format = None,  # noqa: A002
    on_error: OnError = "stop",
    rejects: Rejects = None,
) -> None:
    """Draw customer types, who gains, or the fit to data."""
    from rankstream import plot_command

    plot_command.run(model, out, kind, data, top, places, offer, format=format, on_error=on_error, rejects=rejects)


@app.command()
def stream(
    source: Annotated[str, typer.Argument(help="A growing file of JSON lines, or '-' for standard input.")],
    out: Annotated[Path, typer.Option(help="The folder; what is in it is resumed.")] = Path("rankstream-stream"),
    every: Annotated[float, typer.Option(min=0.0, help="Save at least so often, in seconds.")] = 5.0,
    half_life: Annotated[float | None, typer.Option(min=1.0, help="Choices after which one weighs half.")] = None,
    window: Annotated[int | None, typer.Option(min=1, help="Only so many of the latest choices count.")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Rounds of the solver per batch; 20 without it.")] = None,
    to_end: Annotated[bool, typer.Option("--to-end", help="Stop at the end of the file instead of waiting.")] = False,
    on_error: Annotated[str, typer.Option(help="At a bad line: stop, or skip and count.")] = "stop",
    seed: Annotated[int | None, typer.Option(min=0, help="Ties between rankings; 0 without it.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Follow choices as they arrive, and keep a current model."""
    from rankstream import stream_command

    live = {"half_life": half_life, "window": window, "rounds": rounds, "seed": seed}
    stream_command.run(source, out, every, to_end, on_error, json, live)


@app.command()
def compare(
    data: Data,
    models: Annotated[str, typer.Option(help="Names joined by commas; without it, all.")] = "",
    holdout: Annotated[str, typer.Option(help="What is tested: assortments, choices or time.")] = "assortments",
    folds: Annotated[int, typer.Option(min=2, help="How many parts are tested; of time, in the order of lines.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="The dealing out, and the models' starts.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON; a likelihood of -inf is null.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Also draw the differences, in this file.")] = None,
    format: Format = None,  # noqa: A002
    on_error: OnError = "stop",
    rejects: Rejects = None,
) -> None:
    """Tell which kind of model predicts your data best.

    On choices held out, by how much, and whether that is more than noise.
    """
    from rankstream import compare_command

    names = [name.strip() for name in models.split(",")] if models else None
    compare_command.run(
        data, names, holdout, folds, seed, json, plot, format=format, on_error=on_error, rejects=rejects
    )


@app.command()
def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(help="Names or numbers of figures, or paths of settings files; all of them without any."),
    ] = None,
    instances: Annotated[int, typer.Option(min=1, help="Simulated markets per cell.")] = 100,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at a time.")] = 2,
    out: Annotated[Path, typer.Option(help="The folder; what is in it is not run again.")] = Path("rankstream-study"),
) -> None:
    """Rerun the paper's computational study, figure by figure."""
    from rankstream.experiments import study

    try:
        study.reproduce(figures or [], instances, jobs, out)
    except KeyboardInterrupt:
        typer.echo(f"Interrupted: the runs that ended are in {out}, call again to go on.", err=True)
        raise typer.Exit(130) from None


def main() -> None:
    """Run the command line; what is wrong with the input goes to standard error."""
    try:
        app()
    except (ValueError, OSError) as error:
        typer.echo(f"rankstream: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
