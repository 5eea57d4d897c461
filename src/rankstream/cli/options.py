"""The options that several commands share; those for reading choices are declared once, and come as one object."""

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from rankstream._core.files import same_file
from rankstream._core.terminal import print_note

if TYPE_CHECKING:
    from rankstream.data.readers import Reading

Command = Callable[..., None]


def words(*known: str) -> Callable[[], list[str]]:
    """What a shell may complete an option with."""
    return lambda: list(known)


def choice(text: str, *known: str) -> Any:
    """An option that takes one of these words: the help shows them, the shell completes them, others are refused."""

    def check(context: typer.Context, option: typer.CallbackParam, value: str | None) -> str | None:
        if value is not None and value not in known and not context.resilient_parsing:
            from rankstream.cli.asking import did_you_mean

            choices = ", ".join(map(repr, known))
            raise ValueError(f"{option.opts[0]} is {value!r}{did_you_mean(value, known)}: choose one of {choices}.")
        return value

    return typer.Option(metavar=f"[{'|'.join(known)}]", autocompletion=words(*known), callback=check, help=text)


Data = Annotated[
    Path,
    typer.Argument(help="Choices as CSV, JSON lines, Parquet, PrefLib or Excel; a quoted glob names several files."),
]
ModelFile = Annotated[Path, typer.Argument(help="A model file, as 'fit' writes it.")]
Behind = Annotated[Path | None, typer.Option(help="The choices that the model was fitted to, for intervals.")]
Replicates = Annotated[
    int, typer.Option(min=2, max=10_000, help="With --data: how many refits the intervals come from.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FORMATS = ("transactions", "long", "wide", "counts", "rankings")
REMEMBERED = (
    *("outside_share", "no_choice", "format", "columns", "encoding", "separator", "sheet", "partitions"),
    *("price_columns", "price_levels"),
)
"""What a model remembers of how its choices were read."""


@dataclass(frozen=True)
class ReadingOptions:
    """How a file of choices is read: options of ``readers.read`` that a command with ``reading_options`` takes."""

    outside_share: Annotated[
        float | None, typer.Option(min=0.0, max=0.999, help="The share assumed to have bought nothing.")
    ] = None
    no_choice: Annotated[
        str | None, typer.Option(help="The item in every offer that an empty choice means: the no-choice item.")
    ] = None
    format: Annotated[str | None, choice("What a row is; without it, the columns decide.", *FORMATS)] = None
    columns: Annotated[
        str | None,
        typer.Option(
            help="Which column is what: item=alt,chosen=choice or items=car_av:1;bus_av:2; as JSON where a name has "
            "a comma."
        ),
    ] = None
    contents: Annotated[
        Path | None, typer.Option(help="A table that lists the items of each numbered offer: offer_id and item.")
    ] = None
    separator: Annotated[
        str | None, typer.Option(help="What joins the items of an offer or ranking; without it, the rows decide.")
    ] = None
    encoding: Annotated[
        str | None, typer.Option(help="The encoding of text files, such as latin-1; utf-8 without it.")
    ] = None
    sheet: Annotated[str | None, typer.Option(help="The sheet of an Excel workbook that has several.")] = None
    partitions: Annotated[
        str | None, typer.Option(help="Columns that are in the names of folders, such as store for store=north/.")
    ] = None
    price_columns: Annotated[
        str | None,
        typer.Option(
            help="Where prices are: a column of a long table, columns of a wide one (price_tea,price_cake or "
            "tea=p1,cake=p2), or 'offered' where offers contain them (tea@3.50)."
        ),
    ] = None
    price_levels: Annotated[
        str | None,
        typer.Option(help='How many levels prices are put into, or JSON: {"tea": [3, 3.5]}; else one for each price.'),
    ] = None
    on_error: Annotated[str, choice("At a bad record: stop, or skip it and report.", "stop", "skip")] = "stop"
    rejects: Annotated[Path | None, typer.Option(help="Where to write the records that were skipped.")] = None
    _source: str = ""
    _levels: Any = None

    def read(self, path: Path, **more: Any) -> "Reading":
        """Read a file so, with more options of ``readers.read``; what was skipped is reported on standard error."""
        from rankstream.data.readers import read

        given = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        given |= {"prices": given.pop("price_columns"), "price_levels": self._levels or levels_in(self.price_levels)}
        given["partitions"] = [name.strip() for name in self.partitions.split(",")] if self.partitions else ()
        try:
            found = read(path, **given, **more)
        except ValueError as error:
            if not self._source:
                raise
            raise ValueError(f"{str(error).rstrip('.')} ({self._source}).") from None
        if found.problems.total:
            print_note(found.problems.summary())
        return found

    def as_fitted(self, model: Any) -> "ReadingOptions":
        """The same options; where none is given, as the model's own choices were read.

        Format and columns belong together: whoever gives one of them, gives both.
        """
        noted = model.about.get("reading")
        noted = noted if isinstance(noted, dict) else {}
        own = {name: noted.get(name) for name in REMEMBERED if getattr(self, name) is None}
        if self.format is not None or self.columns is not None:
            own |= {"format": None, "columns": None}
        if self.no_choice is not None:
            own["outside_share"] = None
        known: dict[str, Any] = {name: value for name, value in own.items() if _fits(name, value)}
        told = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in known.items())
        columns = known.get("price_columns", self.price_columns)
        levels = model.price_levels if columns is not None and self.price_levels is None else None
        source = f"read as the model's own choices were, with {told}: give other options to read it otherwise"
        return replace(self, **known, _source=source if known else "", _levels=levels)

    def to_note(self) -> dict[str, Any]:
        """What a model remembers of it."""
        return {name: getattr(self, name) for name in REMEMBERED}


def _fits(name: str, value: Any) -> bool:
    """Whether a value that a model file remembers is of the kind that the option takes."""
    if name == "outside_share":
        return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 0.999
    return isinstance(value, str) and (name != "format" or value in FORMATS)


def levels_in(words: str | None) -> Any:
    """The levels that --price-levels says: a number, or those of each item as JSON."""
    from rankstream.data.prices import PriceLevels

    if words is None or words == "occurring":
        return "occurring"
    if words.strip().isdecimal() and int(words) > 0:
        return int(words)
    try:
        found = json.loads(words)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"""--price-levels is {words!r}: give a number, such as 3, or JSON: {{"tea": [3, 3.5]}}.""")
    return PriceLevels(found)


def _check_rejects(rejects: Path, others: list[Path]) -> None:
    for other in others:
        if same_file(rejects, other):
            raise ValueError(f"--rejects names {rejects}, which is {other}: name a file for the rejects alone.")


def reading_options(*, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Give a command the options of ``ReadingOptions``, or all but some; its parameter ``reading`` is what they say."""
    hints = get_type_hints(ReadingOptions, include_extras=True)
    options = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(ReadingOptions)
        if field.name not in without and not field.name.startswith("_")
    ]

    def extend(command: Command) -> Command:
        @wraps(command)
        def extended(*values: Any, **named: Any) -> None:
            said = {option.name: named.pop(option.name) for option in options if option.name in named}
            if said.get("rejects") is not None:
                _check_rejects(said["rejects"], [value for value in named.values() if isinstance(value, Path)])
            command(*values, reading=ReadingOptions(**said), **named)

        signature = inspect.signature(command)
        own = [parameter for name, parameter in signature.parameters.items() if name != "reading"]
        found = signature.replace(parameters=[*own, *options])
        extended.__signature__ = found  # type: ignore[attr-defined]
        extended.__annotations__ = {one.name: one.annotation for one in found.parameters.values()}
        return extended

    return extend
