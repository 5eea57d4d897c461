"""The command ``rankstream report``: a page about a model and its choices, for people who start no server."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankstream._core.files import same_file, write_whole
from rankstream._core.terminal import print_json, print_plain
from rankstream.cli.options import AsJson, ModelFile, ReadingOptions, Replicates, reading_options

if TYPE_CHECKING:
    from rankstream.cli.reporting import Wanted


@reading_options()
def report(
    model: ModelFile,
    data: Annotated[Path, typer.Option(help="The choices that the model was fitted to.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("report.html"),
    margins: Annotated[
        Path | None,
        typer.Option(help="A CSV table of items, as for 'decide': the page then has the best offer and its worth."),
    ] = None,
    at_most: Annotated[int | None, typer.Option(min=0, help="With --margins: the most items in the offer.")] = None,
    top: Annotated[int, typer.Option(min=1, max=100, help="How many customer types.")] = 10,
    replicates: Replicates = 50,
    intervals: Annotated[
        bool, typer.Option("--intervals/--no-intervals", help="Whether shares have intervals, from refits.")
    ] = True,
    rivals: Annotated[
        str, typer.Option(help="Models to compare with, joined by commas, as 'compare' knows them; usual ones without.")
    ] = "",
    folds: Annotated[int, typer.Option(min=2, max=20, help="How many parts are held out in turn to compare.")] = 5,
    compare: Annotated[
        bool, typer.Option("--compare/--no-compare", help="Whether to compare with other kinds of models.")
    ] = True,
    budget: Annotated[float, typer.Option(min=0.0, help="With --margins: seconds for the search.")] = 10.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed for intervals, folds and searches.")] = 0,
    as_json: AsJson = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Write a page on a model: fit, drift, types, substitution, best offer.

    Example: rankstream report model.json --data choices.csv -o report.html
    """
    from rankstream.cli.reporting import Wanted, make_report

    check_page(out, [path for path in (model, data, margins, reading.contents, reading.rejects) if path is not None])
    names = [name.strip() for name in rivals.split(",") if name.strip()]
    wanted = Wanted(
        model, data, margins, at_most, top, replicates if intervals else None, names, folds if compare else None,
        budget, seed,
    )  # fmt: skip
    text, content = make_report(wanted, reading)
    write_whole(out, text)
    show_report(out, text, content, wanted, as_json)


def check_page(out: Path, others: list[Path]) -> None:
    """Refuse what would fail only after the work is done, or would overwrite what was read."""
    if not out.parent.is_dir():
        raise ValueError(f"There is no folder {out.parent} to save {out.name} in: make it first.")
    if out.is_dir():
        raise ValueError(f"{out} is a folder: name a file for the page with --out.")
    for other in others:
        if same_file(out, other):
            raise ValueError(f"--out names {out}, which is {other}: name a file for the page alone.")


def show_report(out: Path, text: str, content: dict[str, Any], wanted: "Wanted", as_json: bool) -> None:
    """Say what was written."""
    size = len(text.encode())
    if as_json:
        print_json({"report": str(out), "bytes": size, **content})
        return
    print_plain(f"Saved {out} ({size / 1000:,.0f} kB): open it in a browser.")
    if wanted.margins is None:
        print_plain("With --margins and a table of items it also shows the best offer and its worth.")
