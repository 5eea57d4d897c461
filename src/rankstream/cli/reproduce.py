"""The command ``rankstream reproduce``: the paper's study, in a folder from which it goes on when called again."""

from pathlib import Path
from typing import Annotated

import typer

from rankstream.cli.options import AsJson


def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(help="Names or numbers of figures, or paths of settings files; all of them without any."),
    ] = None,
    instances: Annotated[int, typer.Option(min=1, help="Simulated markets per cell.")] = 100,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at a time.")] = 2,
    out: Annotated[Path, typer.Option(help="The folder for the results; finished runs in it are kept.")] = Path(
        "rankstream-study"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed for the first market; the others count up from it.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Rerun the paper's computational study, figure by figure.

    Example: rankstream reproduce 2 --instances 10
    """
    from rankstream.experiments import study

    try:
        study.reproduce(figures or [], instances, jobs, out, seed, as_json)
    except KeyboardInterrupt:
        typer.echo(f"Interrupted: the runs that ended are in {out}, call again to go on.", err=True)
        raise typer.Exit(1) from None
