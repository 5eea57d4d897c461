"""The command ``rankstream open``: show files of choices as a page in the browser."""

import json
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from rankstream._core.terminal import as_json as to_json
from rankstream._core.terminal import print_plain
from rankstream.cli.fit import METHODS
from rankstream.cli.options import AsJson, ReadingOptions, choice, levels_in, reading_options
from rankstream.cli.serve import missing

LOG_NAME = "log.sqlite3"


@reading_options(without=("between",))
def open(  # noqa: A001
    sources: list[Path],
    folder: Path | None = None,
    by: str | None = None,
    method: Annotated[str, choice(*METHODS, text="Estimation method, as in 'fit'.")] = "auto",
    budget: Annotated[float | None, typer.Option(min=0.0, help="CPU seconds for each fit.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    as_json: AsJson = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Open files of choices as a page in the browser, until Ctrl-C.

    Example: rankstream open choices.csv

    Options:
    sources: Files of choices, model files written by 'fit', or the data folder of a service.
    folder: Keep the data and models in this folder (default: delete them at the end).
    by: Make one market for each value of these columns, such as store.
    seed: Random seed of the solver: for starting points, and for the choice between equally good rankings.
    """
    try:
        from rankstream.service.run import run
    except ModuleNotFoundError as error:
        raise missing(error) from None
    from rankstream.service.hub import Options
    from rankstream.service.storage import tokens

    for source in sources:
        if not source.exists():
            raise ValueError(f"There is no file {source}: check its name and folder.")
    service = next((source for source in sources if (source / LOG_NAME).is_file()), None)
    if service is not None and (len(sources) > 1 or folder is not None):
        raise ValueError(f"{service} is the folder of a service: open it alone, without --folder.")
    folder = service or folder
    with nullcontext(str(folder)) if folder else TemporaryDirectory(prefix="rankstream-") as place:
        tasks = [] if service else tasks_of(sources, reading, by, {"method": method, "budget": budget, "seed": seed})
        page = f"/markets/{tasks[0]['market']}" if len(tasks) == 1 and not by else "/"
        link = tokens.PageLink(tokens.create(Path(place), ["*"], ["read", "write", "manage"], "rankstream open"), page)
        options = Options(learns=service is not None, link=link, seed=seed)
        with importing(Path(place), tasks) as begin:

            def ready(url: str) -> None:
                begin()
                address = link.start(url)
                words = f"Open {address} in a browser: the link is valid once, for a minute. Ctrl-C ends it."
                print_plain(to_json({"url": url, "open": address}, indent=None) if as_json else words)
                if browser:
                    webbrowser.open(address)

            run(Path(place), "127.0.0.1", port, options, ready)


def tasks_of(sources: list[Path], reading: ReadingOptions, by: str | None, fit: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the task of each file, for the process that imports them."""
    from rankstream.models.files import is_model
    from rankstream.service.storage.tokens import market_name

    options, levels = reading.arguments(), levels_in(reading.price_levels)
    if hasattr(levels, "levels"):
        options["price_levels"] = {str(item): list(prices) for item, prices in levels.levels.items()}
    tables = ("stock", "visits", "prices") if reading.stock is not None else ()
    for name, value in options.items():
        if isinstance(value, Path) or (name in tables and value not in (None, "paid")):
            options[name] = str(Path(value).absolute())
    columns = [name.strip() for name in by.split(",")] if by else []
    return [
        {
            "path": str(source.absolute()), "name": source.name, "market": market_name(source.stem), "by": columns,
            "model": is_model(source), "reading": options, "fit": fit,
        }
        for source in sources
    ]  # fmt: skip


@contextmanager
def importing(folder: Path, tasks: list[dict[str, Any]]) -> Iterator[Any]:
    """Create the markets of some files, and yield the function that starts the process to fill them."""
    from rankstream.service.processes.worker import start
    from rankstream.service.storage.ingest import make_market
    from rankstream.service.storage.log import market_row, open_log

    log = open_log(folder)
    for task in tasks:
        if market_row(log, task["market"]) is not None:
            raise ValueError(f"There is a market {task['market']!r} already: rename the file, or name another folder.")
        make_market(log, task["market"])
    log.close()
    started: list[Any] = []
    try:
        words = [str(folder), json.dumps(tasks)]
        yield lambda: started.append(start("processes.importer", *words, answers=False)) if tasks else None
    finally:
        for process in started:
            process.stdin.close()
            process.wait()
