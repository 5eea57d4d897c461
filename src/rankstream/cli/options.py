"""Options that several commands share; those for reading choices are declared once, as one object."""

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from rankstream._core.files import same_file
from rankstream._core.terminal import print_note
from rankstream.models.fit_warnings import noted

if TYPE_CHECKING:
    from rankstream.data.readers import Reading
    from rankstream.data.readers.tallies import Tallies

Command = Callable[..., None]
OPTIONS_HEADING = "\n\nOptions:\n"
"""The heading in a docstring above the help of options that is too long for the signature."""


def choice(*known: str, text: str | None = None) -> Any:
    """Return an option that takes one of these words, with help and shell completion."""

    def check(context: typer.Context, option: typer.CallbackParam, value: str | None) -> str | None:
        if value is not None and value not in known and not context.resilient_parsing:
            from rankstream.models.item_names import did_you_mean

            choices = ", ".join(map(repr, known))
            raise ValueError(f"{option.opts[0]} is {value!r}{did_you_mean(value, known)}: choose one of {choices}.")
        return value

    shown = f"[{'|'.join(known)}]"
    return typer.Option(metavar=shown, autocompletion=lambda: list(known), callback=check, help=text)


Data = Annotated[
    Path,
    typer.Argument(
        help="File of choices: CSV, JSON Lines, Parquet, Excel or PrefLib (ranked ballots). Quote a glob for several."
    ),
]
ModelFile = Annotated[Path, typer.Argument(help="Model file written by 'fit', or folder written by 'fit --by'.")]
Behind = Annotated[Path | None, typer.Option(help="Choices the model was fitted to, for intervals by refits.")]
Replicates = Annotated[
    int, typer.Option(min=2, max=10_000, help="With --data: number of bootstrap refits for intervals.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FORMATS = ("transactions", "long", "wide", "counts", "rankings")
REMEMBERED = (
    *("outside_share", "no_choice", "format", "columns", "encoding", "separator", "sheet", "partitions"),
    *("price_columns", "price_levels", "decimal", "dates"),
)
"""The options that are saved with a model, to read its choices again."""
SALES = (
    *("stock", "visits", "price_list", "category", "per_receipt", "conflicts", "stock_format", "timezone", "between"),
)
"""Options for receipts, saved with a model if they were given."""
SALES_ARGUMENTS = (
    *("columns", "no_choice", "outside_share", "separator", "encoding", "sheet", "decimal", "dates"),
    *("price_levels", "on_error", "rejects", "prices", *(name for name in SALES if name != "price_list")),
)
"""Arguments of ``read_sales``."""
SHELL_NAMES = {"prices": "price_columns", "ladders": "ladder"}
"""Arguments of the library whose options have other names."""


@dataclass(frozen=True)
class ReadingOptions:
    """Options of ``readers.read`` that a command with ``reading_options`` takes.

    Options:
    outside_share: Assumed share of customers who bought nothing.
    no_choice: Name of the no-purchase option, such as nothing. It is in all offers; an empty choice means it was taken.
    format: What a row is (default: recognised from the columns).
    columns: Your columns, as role=column: offered=menu,chosen=bought, or JSON. Roles: docs/how-to/read-your-data.md.
    contents: Table with the items of each offer: columns offer_id and item.
    separator: Separator between items of an offer or ranking (default: recognised).
    encoding: Text encoding, such as latin-1 (default: utf-8).
    sheet: Sheet to read from an Excel workbook.
    partitions: Columns encoded in folder names, such as store for store=north/.
    price_columns: Where prices are: a column of a long table, columns of a wide one (price_tea,price_cake or
        tea=p1,cake=p2), or 'offered' where offers contain them (tea@3.50).
    price_levels: Number of price levels per item, or JSON: {"tea": [3, 3.5]} (default: one level per price).
    decimal: Decimal mark of prices and counts (default: recognised).
    dates: Order of day, month and year (default: recognised).
    stock: Stock log: what was on offer when (time, store, item, on_hand). The data are then read as receipts.
    visits: With --stock: visits counted at the door (time, count).
    price_list: With --stock: a price list (item, time, price), or 'paid' for the prices on receipts.
    category: With --stock: column of categories; each becomes a market.
    per_receipt: With --stock: what counts on a receipt of several units. Each unit (units, the default), the first
        unit (first), all as one choice (weighted), or none (single: only receipts of one unit count).
    conflicts: With --stock, for sales of items not in stock: extend the offer (default), skip the sale, or stop.
    stock_format: With --stock: format of the stock log (default: recognised).
    timezone: With --stock: time zone of times without one, such as Europe/Berlin.
    between: With --stock: an item that one snapshot lists and the next does not was on offer until then (present, the
        default), until its last sale (last sale), or until a time that is estimated (uncertain).
    on_error: What to do with a bad record: stop, or skip it and report it.
    rejects: File for skipped records.
    """

    outside_share: Annotated[float | None, typer.Option(min=0.0, max=0.999)] = None
    no_choice: str | None = None
    format: Annotated[str | None, choice(*FORMATS)] = None
    columns: str | None = None
    contents: Path | None = None
    separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    partitions: str | None = None
    price_columns: str | None = None
    price_levels: str | None = None
    decimal: Annotated[str | None, choice(".", ",")] = None
    dates: Annotated[str | None, choice("iso", "dmy", "mdy")] = None
    stock: str | None = None
    visits: str | None = None
    price_list: str | None = None
    category: str | None = None
    per_receipt: Annotated[str | None, choice("units", "first", "weighted", "single")] = None
    conflicts: Annotated[str | None, choice("extend", "skip", "stop")] = None
    stock_format: Annotated[str | None, choice("events", "snapshots", "intervals", "offers")] = None
    timezone: str | None = None
    between: Annotated[str | None, choice("present", "last sale", "uncertain")] = None
    on_error: Annotated[str, choice("stop", "skip")] = "stop"
    rejects: Path | None = None
    _source: str = ""
    _levels: Any = None
    _market: Any = None
    _model: Any = None

    def read(self, path: Path, **more: Any) -> "Reading":
        """Read a file, with more options of ``readers.read``; print a note on skipped records."""
        from rankstream.data.readers import read

        if self._market is not None:
            from rankstream.estimation.many.results import stored_choices

            if path.is_dir():
                return stored_choices(path, tuple(self._market.values()))
            more["where"] = self._market
        try:
            if self.stock is None:  # unused columns are saved with the model, so they are not examined again
                choices = read(path, **{"look": False} | self.arguments() | more)
            else:
                choices = self._read_sales(path, more)
        except ValueError as error:
            if not self._source:
                raise
            raise ValueError(f"{str(error).rstrip('.')} ({self._source}).") from None
        if choices.problems.total:
            print_note(shell_words(choices.problems.summary()))
        return choices

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of ``read``, or with a stock log those of ``read_sales``."""
        named = {name: value for name, value in vars(self).items() if not name.startswith("_") and name not in SALES}
        named |= {"prices": named.pop("price_columns"), "price_levels": self._levels or levels_in(self.price_levels)}
        named["partitions"] = [name.strip() for name in self.partitions.split(",")] if self.partitions else ()
        if self.stock is None:
            return named
        given = vars(self) | named | {"prices": self.price_list}
        return {name: given[name] for name in SALES_ARGUMENTS if given[name] is not None}

    def _read_sales(self, path: Path, more: dict[str, Any]) -> "Reading":
        from rankstream.data.readers import read_sales

        where = more.pop("where", None) or {}
        named = self.arguments() | {name: value for name, value in more.items() if name != "look"}
        if where:
            named["by"] = [column for column in where if column != self.category]
        choices = read_sales(path, **named)
        if choices.uncertain is not None and self._model is not None:
            from rankstream.estimation.uncertain import expected_choices

            choices = replace(choices, counts=expected_choices(choices.uncertain, self._model))
        if not where:
            return choices
        key: Any = tuple(where.values()) if len(where) > 1 else next(iter(where.values()))
        return replace(choices, counts=choices.groups[key], groups={})

    def as_fitted(self, model: Any) -> "ReadingOptions":
        """Return these options, with the options of the model's fit for those that are not given.

        Format and columns belong together: if one is given, neither comes from the fit.
        """
        fitted = noted(model.about, "reading")
        saved = {name: fitted.get(name) for name in (*REMEMBERED, *SALES) if getattr(self, name) is None}
        if self.format is not None or self.columns is not None:
            saved |= {"format": None, "columns": None}
        if self.no_choice is not None:
            saved["outside_share"] = None
        known: dict[str, Any] = {name: value for name, value in saved.items() if _fits(name, value)}
        words = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in known.items())
        columns = known.get("price_columns", self.price_columns)
        levels = model.price_levels if columns is not None and self.price_levels is None else None
        source = f"read with the options of the fit, {words}; pass other options to change that"
        market = noted(model.about, "market") or None
        return replace(self, **known, _source=source if known else "", _levels=levels, _market=market, _model=model)


def shell_words(sentence: str) -> str:
    """Rewrite the arguments in a message of the library as options of the command line.

    >>> shell_words("set separator=';', or map them, which half_life needs: columns='time=YOUR_COLUMN'.")
    "set --separator ';', or map them, which --half-life needs: --columns time=YOUR_COLUMN."
    """

    def option(match: re.Match[str]) -> str:
        name, value = SHELL_NAMES.get(match[1], match[1]), match[2] if match.re.groups > 1 else ""
        if value[:1] == "[":
            value = quote(",".join(re.findall("'([^']*)'", value)))
        elif value[:1] in ("'", '"'):
            value = quote(value[1:-1])
        return f"--{name.replace('_', '-')} {value}".rstrip()

    more = ("by", "half_life", "out", "since", "folds", "holdout")
    names = [*SHELL_NAMES, *(field.name for field in fields(ReadingOptions)), *more]
    words = re.sub(rf"\b({'|'.join(names)})=('[^']*'|\"[^\"]*\"|\['[^\]]*\]|\.\.\.|\d+)", option, sentence)
    alone = ("half_life", "since", "contents", "present", "may", "changes", "ladders")
    words = re.sub(rf"(?<![-\w])({'|'.join(alone)})(?= (?:names|needs)\b)", option, words)
    words = words.replace("drift_report", "'rankstream drift'").replace("pool=False", "--no-pool")
    return words.replace("attributes=...", "--attributes FILE")


def unused_columns(choices: "Reading | Tallies", as_json: bool) -> list[dict[str, Any]]:
    """Return the columns that a reading did not use, for JSON; print the notes on columns unless JSON is printed."""
    notes = [*choices.notes, *(column.sentence for column in choices.unused)]
    if notes and not as_json:
        print_note(shell_words("\n".join(notes)))
    return [
        {name: shell_words(fact) if isinstance(fact, str) else fact for name, fact in column.to_content().items()}
        for column in choices.unused
    ]


def _fits(name: str, value: Any) -> bool:
    if name == "outside_share":
        return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 0.999
    return isinstance(value, str) and (name != "format" or value in FORMATS)


def levels_in(words: str | None) -> Any:
    """Parse --price-levels: a number, or the levels of each item as JSON."""
    from rankstream.data.prices import PriceLevels

    if words is None or words == "occurring":
        return "occurring"
    if words.strip().isdecimal() and int(words) > 0:
        return int(words)
    try:
        levels = json.loads(words)
    except (ValueError, RecursionError):
        levels = None
    if not isinstance(levels, dict):
        raise ValueError(f"""--price-levels is {words!r}: give a number, such as 3, or JSON: {{"tea": [3, 3.5]}}.""")
    return PriceLevels(levels)


def with_options(extended: Command, command: Command, options: list[inspect.Parameter]) -> Command:
    """Replace the parameter ``reading`` in the signature of a command by these options."""
    parameters = [p for p in inspect.signature(command).parameters.values() if p.name != "reading"]
    signature = inspect.signature(command).replace(parameters=[*parameters, *options])
    extended.__signature__ = signature  # type: ignore[attr-defined]
    extended.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return extended


def reading_options(*, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Add the options of ``ReadingOptions`` to a command, which gets them as its parameter ``reading``."""
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
            reading = ReadingOptions(**{p.name: named.pop(p.name) for p in options if p.name in named})
            rejects = reading.rejects
            for path in named.values():
                if rejects is not None and isinstance(path, Path) and same_file(rejects, path):
                    also = f"--rejects is {rejects}, which is also {path}"
                    raise ValueError(f"{also}: choose a separate file for the rejects.")
            command(*values, reading=reading, **named)

        text, _, of_command = (inspect.getdoc(command) or "").partition(OPTIONS_HEADING)
        shared = (inspect.getdoc(ReadingOptions) or "").partition(OPTIONS_HEADING)[2]
        extended.__doc__ = f"{text}{OPTIONS_HEADING}{shared}\n{of_command}"  # the last help for an option counts
        return with_options(extended, command, options)

    return extend
