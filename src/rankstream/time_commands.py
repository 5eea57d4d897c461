"""The commands for choices that keep coming, and their options."""

from pathlib import Path
from typing import Annotated

import typer

from rankstream.options import AsJson, Columns, Contents, Format, NoChoice, OnError, Rejects, words


def stream(
    source: Annotated[str, typer.Argument(help="A growing file of JSON lines, or '-' for standard input.")],
    out: Annotated[Path, typer.Option(help="The folder; what is in it is resumed.")] = Path("rankstream-stream"),
    every: Annotated[float, typer.Option(min=0.0, help="Save at least so often, in seconds.")] = 5.0,
    half_life: Annotated[
        str | None,
        typer.Option(help="Choices, or time (7d, 12h), after which one weighs half; with --detect, in the copy: 500."),
    ] = None,
    window: Annotated[
        str | None, typer.Option(help="Only so many of the latest choices count, or those of a time (7d).")
    ] = None,
    detect: Annotated[bool, typer.Option("--detect", help="Begin again when the market has changed.")] = False,
    threshold: Annotated[
        float | None, typer.Option(min=0.0, help="With --detect: the evidence it takes, in nats; 15 without it.")
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="Rounds of the solver per batch; 20 without it, with --detect 50 per 50 choices."),
    ] = None,
    to_end: Annotated[bool, typer.Option("--to-end", help="Stop at the end of the file instead of waiting.")] = False,
    on_error: Annotated[
        str, typer.Option(help="At a bad line: stop, or skip and count.", autocompletion=words("stop", "skip"))
    ] = "stop",
    seed: Annotated[int | None, typer.Option(min=0, help="Ties between rankings; 0 without it.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Follow choices as they arrive, and keep a current model."""
    from rankstream import stream_command

    live = {"half_life": half_life, "window": window, "threshold": threshold, "rounds": rounds, "seed": seed}
    stream_command.run(source, out, every, to_end, on_error, json, {"detect": detect or None, **live})


def drift(
    before: Annotated[Path, typer.Argument(help="Choices (CSV, JSON lines, Parquet, PrefLib), or a model file.")],
    after: Annotated[Path | None, typer.Argument(help="The same of a later time.")] = None,
    at: Annotated[str | None, typer.Option(help="Instead: the time, as 2024-05-16, that divides the choices.")] = None,
    level: Annotated[float, typer.Option(help="Choices: the false findings allowed, by --control.")] = 0.05,
    control: Annotated[
        str,
        typer.Option(
            help="Choices: holm bounds any false finding, fdr their share.", autocompletion=words("holm", "fdr")
        ),
    ] = "holm",
    least: Annotated[float, typer.Option(min=0.0, max=1.0, help="Models: the least change of a share told.")] = 0.01,
    offers: Annotated[
        Path | None, typer.Option(help="Models: a file of offers; types are who choose alike from these.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many lines of each kind.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="With --offers: rankings drawn from max-entropy models.")] = 0,
    json: AsJson = False,
    no_choice: NoChoice = None,
    format: Format = None,  # noqa: A002
    columns: Columns = None,
    contents: Contents = None,
    on_error: OnError = "stop",
    rejects: Rejects = None,
) -> None:
    """Tell what changed between two files of choices, or two models."""
    from rankstream import drift_command

    drift_command.run(
        before, after, at, level, control, least, offers, top, seed, json,
        no_choice=no_choice, format=format, columns=columns, contents=contents, on_error=on_error, rejects=rejects,
    )  # fmt: skip
