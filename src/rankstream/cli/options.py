"""The options that several commands share; those for reading choices are declared once, and come as one object."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from rankstream._core.terminal import print_note

if TYPE_CHECKING:
    from rankstream.data.readers import Reading

Command = Callable[..., None]


def words(*known: str) -> Callable[[], list[str]]:
    """What a shell may complete an option with."""
    return lambda: list(known)


Data = Annotated[
    Path, typer.Argument(help="Choices as CSV, JSON lines, Parquet or PrefLib; a quoted glob names several files.")
]
ModelFile = Annotated[Path, typer.Argument(help="A model file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FORMATS = ("transactions", "long", "wide", "counts", "rankings")


@dataclass(frozen=True)
class ReadingOptions:
    """How a file of choices is read: options of ``readers.read`` that a command with ``reading_options`` takes."""

    outside_share: Annotated[
        float | None, typer.Option(min=0.0, max=0.999, help="The share assumed to have bought nothing.")
    ] = None
    no_choice: Annotated[
        str | None, typer.Option(help="The item in every offer that an empty choice means: the no-choice item.")
    ] = None
    format: Annotated[
        str | None,
        typer.Option(
            help="transactions, long, wide, counts or rankings; without it, told by the columns.",
            autocompletion=words(*FORMATS),
        ),
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(help="Which column is what, as item=alt,chosen=choice or items=car_av:1;bus_av:2."),
    ] = None
    contents: Annotated[
        Path | None, typer.Option(help="A table of what each numbered offer holds: offer_id and item.")
    ] = None
    encoding: Annotated[str | None, typer.Option(help="Of text files: utf-8 without it; latin-1, say.")] = None
    on_error: Annotated[
        str, typer.Option(help="At a bad record: stop, or skip and tell.", autocompletion=words("stop", "skip"))
    ] = "stop"
    rejects: Annotated[Path | None, typer.Option(help="Where to write the records that were skipped.")] = None

    def read(self, path: Path, **more: Any) -> "Reading":
        """Read a file so, with more options of ``readers.read``; what was skipped is told on standard error."""
        from rankstream.data.readers import read

        found = read(path, **vars(self), **more)
        if found.problems.total:
            print_note(found.problems.summary())
        return found


def reading_options(*, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Give a command the options of ``ReadingOptions``, or all but some; its parameter ``reading`` is what they say."""
    hints = get_type_hints(ReadingOptions, include_extras=True)
    options = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(ReadingOptions)
        if field.name not in without
    ]

    def extend(command: Command) -> Command:
        @wraps(command)
        def extended(*values: Any, **named: Any) -> None:
            said = {option.name: named.pop(option.name) for option in options if option.name in named}
            command(*values, reading=ReadingOptions(**said), **named)

        signature = inspect.signature(command)
        own = [parameter for name, parameter in signature.parameters.items() if name != "reading"]
        found = signature.replace(parameters=[*own, *options])
        extended.__signature__ = found  # type: ignore[attr-defined]
        extended.__annotations__ = {one.name: one.annotation for one in found.parameters.values()}
        return extended

    return extend
