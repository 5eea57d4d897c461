"""The command ``rankstream reproduce``: rerun the paper's study from a checkout of the repository."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

import rankstream
from rankstream.cli.options import AsJson


def reproduce(
    figures: Annotated[list[str] | None, typer.Argument()] = None,
    instances: Annotated[int, typer.Option(min=1, help="Simulated markets per combination of settings.")] = 100,
    jobs: Annotated[int, typer.Option(min=1, help="Number of parallel processes.")] = 2,
    out: Path = Path("rankstream-study"),
    seed: Annotated[int, typer.Option(min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Rerun the study of Ho-Nguyen and Kılınç-Karzan's paper, figure by figure. Needs a checkout of the repository.

    Example: rankstream reproduce 2 --instances 10

    Options:
    figures: Names or numbers of figures, or paths of settings files (default: all figures).
    out: Folder for the results; finished runs in it are not repeated.
    seed: Random seed for the first market; the others count up from it.
    """  # noqa: RUF002
    study = load_study()
    try:
        study.reproduce(figures or [], instances, jobs, out, seed, as_json)
    except KeyboardInterrupt:
        typer.echo(f"Interrupted. Finished runs are in {out}: run the command again to continue.", err=True)
        raise typer.Exit(1) from None


def load_study() -> Any:
    """Import ``experiments/study.py`` of the checkout that this package, or the current folder, belongs to."""
    for root in (Path(rankstream.__file__).parents[2], Path.cwd()):
        if (root / "experiments" / "study.py").is_file() and (root / "src" / "rankstream").is_dir():
            if str(root) not in sys.path:
                sys.path.insert(0, str(root))
            return import_module("experiments.study")
    raise ValueError(
        "The paper's study is not part of the installed package: clone the repository and run "
        "`rankstream reproduce` (or `make reproduce`) in its root folder."
    )
