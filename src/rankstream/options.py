"""The options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer


def words(*known: str) -> Callable[[], list[str]]:
    """What a shell may complete an option with."""
    return lambda: list(known)


FORMATS = ("transactions", "long", "wide", "counts", "rankings")
KINDS = ("segments", "substitution", "fit", "shares")
METHODS = ("auto", "max-entropy", "primal-dual")
PERIODS = ("hour", "day", "week", "month", "year")

Data = Annotated[
    Path, typer.Argument(help="Choices as CSV, JSON lines, Parquet or PrefLib; a quoted glob names several files.")
]
ModelFile = Annotated[Path, typer.Argument(help="A model file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Format = Annotated[
    str | None,
    typer.Option(
        help="transactions, long, wide, counts or rankings; without it, told by the columns.",
        autocompletion=words(*FORMATS),
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(help="Which column is what, as item=alt,chosen=choice or items=car_av:1;bus_av:2."),
]
Contents = Annotated[Path | None, typer.Option(help="A table of what each numbered offer holds: offer_id and item.")]
OnError = Annotated[
    str, typer.Option(help="At a bad record: stop, or skip and tell.", autocompletion=words("stop", "skip"))
]
Rejects = Annotated[Path | None, typer.Option(help="Where to write the records that were skipped.")]
NoChoice = Annotated[
    str | None, typer.Option(help="The item in every offer that an empty choice means: the no-choice item.")
]
OutsideShare = Annotated[
    float | None, typer.Option(min=0.0, max=0.999, help="The share assumed to have bought nothing.")
]
Top = Annotated[int, typer.Option(min=1, max=1000, help="How many customer types.")]
