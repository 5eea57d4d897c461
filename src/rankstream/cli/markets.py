"""Folders of markets: fit and query all of them; the other commands delegate to this module."""

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer
from rich.cells import cell_len, set_cell_size

from rankstream._core.terminal import headed, plural, print_answer, print_json, print_note, print_plain, shown
from rankstream.cli.options import shell_words, unused_columns, with_options
from rankstream.models.item_names import all_names
from rankstream.reports.origin import warning_lines

if TYPE_CHECKING:
    from rankstream.cli.options import Command, ReadingOptions
    from rankstream.data.readers import Account
    from rankstream.estimation.many.results import Markets

Finish = Callable[[dict[str, Any], dict[str, str]], None]
MOST_SHOWN = 10  # markets in a table that fits a terminal; --json has all
MarketOption = Annotated[
    str | None, typer.Option("--market", help='With a folder of markets: use only this market, such as "Old Town".')
]


def refuse(what: str, given: dict[str, Any]) -> None:
    """Raise a ValueError if any of these options is given."""
    for option, value in given.items():
        if value not in (None, False):
            raise ValueError(f"{option} does not work with {what}: leave it out.")


def fit_markets(data: Path, by: str, reading: "ReadingOptions", as_json: bool, **how: Any) -> None:
    """Estimate a model for every market and print a summary; ``how`` are options of ``estimate_many``."""
    from rankstream.data.readers.options import ReadOptions
    from rankstream.estimation.many.run import estimate_many

    refuse("many markets", {"--rejects": reading.rejects, "--partitions": reading.partitions})
    known = {field.name for field in fields(ReadOptions)}
    options = {name: value for name, value in reading.arguments().items() if name in known}
    columns, source, account = [name.strip() for name in by.split(",") if name], data, None
    if reading.stock is not None:
        source, account = _counted_sales(data, columns, reading)
        columns, options = list(source.by), {}
    try:
        markets = estimate_many(source, columns, on_error=reading.on_error, **how, **options)
    except KeyboardInterrupt:
        print_note(f"Finished markets are in {how['out']}: run the same command again to continue.")
        raise
    content = describe(markets, unused_columns(markets.tallies, as_json))
    if account is not None:
        content["account"] = account.to_json()
        print_note(shell_words(account.summary()))
    print_answer(as_json, content, as_text(content))
    if content["failed"]:
        raise typer.Exit(1 if any(row.status == "done" for row in markets.rows) else 2)


def _counted_sales(data: Path, by: list[str], reading: "ReadingOptions") -> "tuple[Any, Account]":
    """Read the choices of all markets from receipts and a stock log, with the account of the reading."""
    from rankstream.data.readers.sales.shop import open_shop

    options = reading.arguments()
    tables = {"receipts": data, **{name: options.pop(name, None) for name in ("stock", "visits", "prices")}}
    return open_shop(tables, by=by, **options).tallies()


def describe(markets: "Markets", unused: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a summary of all markets for JSON."""
    rows, tallies, prices = markets.rows, markets.tallies, dict[str, Any]()
    if tallies.how.prices is not None:
        prices = {"prices_in_common": tallies.in_common, "price_levels": tallies.sharing}
    return {
        "models": str(markets.folder),
        "by": list(markets.by),
        "fitted": len(markets),
        "absent": sum(row.status == "absent" for row in rows),
        "choices": sum(row.choices or 0.0 for row in rows),
        "methods": dict(Counter(row.method for row in rows if row.method is not None)),
        **prices,
        "unused": unused,
        "failed": [{"market": row.market, "error": row.error} for row in rows if row.status == "failed"],
    }


def as_text(content: dict[str, Any]) -> str:
    """Return the summary as text."""
    number = f"{plural(content['choices'], 'choice')}; {plural(content['fitted'], 'market')}"
    methods = ", ".join(f"{name} for {n_markets:,}" for name, n_markets in content["methods"].items())
    lines = [*warning_lines(content), f"{number} by {', '.join(content['by'])}; method: {methods or 'none'}."]
    if "price_levels" in content:
        common = f"{100 * content['prices_in_common']:.0f} % of the offered prices occur in several markets"
        lines.append(f"Price levels: {content['price_levels']} ({common}).")
    failed = content["failed"]
    lines += [f"Failed: {shown(market['market'])}: {shown(market['error'])}" for market in failed[:MOST_SHOWN]]
    if len(failed) > MOST_SHOWN:
        lines.append(f"{len(failed) - MOST_SHOWN:,} more failed: see the column error of index.parquet.")
    saved = f"Saved {plural(content['fitted'], 'model')} in {content['models']}."
    return "\n".join([*lines, saved] if content["fitted"] else lines)


def market_files(folder: Path, market: str | None = None) -> dict[str, Path]:
    """Return the model files in a folder of markets by the name of the market: all of them, or one."""
    from rankstream.estimation.many.results import Markets

    markets = Markets.load(folder)
    rows = [markets.row(key) for key in ([market] if market is not None else markets)]
    if not rows:
        raise ValueError(f"No market of {folder} has a model: run 'fit --by' again.")
    return {row.market: folder / str(row.file) for row in rows}


def run_each(
    files: Mapping[str, Any],
    run: Callable[[str, Any], None],
    as_json: bool,
    finish: Finish | None = None,
) -> None:
    """Run a command for every market and print each output below the market's name, or one JSON document.

    A market that fails gets an error message, and the exit code is 1; if all fail, the first error is raised.
    ``finish`` receives all documents and errors instead of having them printed.
    """
    documents, errors = dict[str, Any](), dict[str, str]()
    for name, file in files.items():
        with headed(name) as heading:
            try:
                run(name, file)
                documents[name] = heading.documents[-1] if heading.documents else None
            except ValueError as error:
                errors[name] = shell_words(str(error))
                documents[name] = {"error": errors[name]}
        if heading.printed:
            print_plain("")
    if len(errors) == len(files):
        raise ValueError("{}: {}".format(*next(iter(errors.items()))))
    if finish is not None:
        finish(documents, errors)
    elif as_json:
        print_json({"markets": documents})
    for name, sentence in errors.items():
        print_note(f"{name}: {sentence}")
    if errors:
        raise typer.Exit(1)


def per_market(
    takes_choices: Callable[[dict[str, Any]], bool] = lambda _: False,
    together: bool = False,
    table: Callable[[dict[str, Any]], Finish | None] = lambda _: None,
) -> Callable[["Command"], "Command"]:
    """Let a command for a model file also take a folder of markets, and the option --market.

    The command runs once for each market, with the market's model file; the name of the market is added to the name of
    the files --out and --plot. If ``takes_choices`` returns True, --data defaults to the folder. A command that answers
    for all markets ``together`` gets the folder itself, unless --market names one market. ``table`` may return a
    function that prints the JSON of all markets as one table.
    """

    def extend(command: "Command") -> "Command":
        @wraps(command)
        def extended(*, market: str | None = None, **named: Any) -> None:
            folder: Path = named["model"]

            finish = table(named) if market is None else None

            def run(name: str, file: Path) -> None:
                changed: dict[str, Any] = {"model": file, "as_json": named["as_json"] or finish is not None}
                for option in ("out", "plot"):
                    if market is None and (out := named.get(option)) is not None:
                        changed[option] = out.with_name(f"{out.stem}-{quote(name, safe=' ;')}{out.suffix}")
                command(**named | changed)

            if market is not None and not folder.is_dir():
                raise ValueError(f"--market needs a folder of markets, and {folder} is not one: leave it out.")
            if folder.is_dir():
                refuse("a folder of markets", {"--rejects": named.get("rejects")})
                if named.get("data") is None and (takes_choices(named) or (together and market is not None)):
                    named["data"] = folder
            if market is not None:
                run(*next(iter(market_files(folder, market).items())))
            elif together or not folder.is_dir():
                command(**named)
            else:
                run_each(market_files(folder), run, named["as_json"], finish)

        option = inspect.Parameter("market", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=MarketOption)
        return with_options(extended, command, [option])

    return extend


def names_elsewhere(file: Path, model: Any) -> tuple[set[str], str | None]:
    """Return the names of all items in the folder of markets that a model belongs to, and their no-purchase option.

    Other models have none. The option is None where markets differ.
    """
    if "market" not in model.about or not (file.parent / "settings.json").is_file():
        return set(), None
    return _names_in(file.parent)


@lru_cache(maxsize=1)
def _names_in(folder: Path) -> tuple[set[str], str | None]:
    from rankstream.models.files import load_model

    models = [load_model(path) for path in market_files(folder).values()]
    nothing = {str(model.no_choice) for model in models if model.no_choice is not None}
    return {name for model in models for name in all_names(model)}, nothing.pop() if len(nothing) == 1 else None


def decision_lines(rows: dict[str, dict[str, Any]], currency: str) -> list[str]:
    """The decisions of all markets as the lines of a table, below what to be warned about, each warning once."""
    from rankstream.decide.decision import Units

    units, lines, warned = Units(currency=currency), [("market", "value", "gain", "offer")], dict[str, list[str]]()
    for name, row in rows.items():
        if "error" in row:
            continue
        around = row.get("context") or {}
        worth = f"{units.amount(row['expected'])}{units.ends(row.get('interval'))}"
        gain = "" if around.get("gain") is None else units.change(around["gain"]) + units.ends(around["gain_interval"])
        offer = ", ".join(map(shown, row["offer"])) + ("" if row["proven"] else " (not proven best)")
        far = (around.get("nearness") or {}).get("is_extrapolation")
        lines.append((shown(name), worth, gain, f"{offer} (extrapolation)" if far else offer))
        for warning in row["warnings"]:
            warned.setdefault(warning, []).append(shown(name))
    widths = [max(cell_len(line[place]) for line in lines) for place in range(3)]
    found = [f"Warning: {shown(text)} (In {', '.join(names)}.)" for text, names in warned.items()]
    for name, value, gain, offer in lines:
        found.append(f"{set_cell_size(name, widths[0])}  {value:>{widths[1]}}  {gain:>{widths[2]}}  {offer}")
    last = "Values are per 100 customers. The gain is against today's offer."
    names = {row["interval_name"] for row in rows.values() if row.get("interval")}
    return [*found, last + "".join(f" In brackets: {name}." for name in sorted(names))]
