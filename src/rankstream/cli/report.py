"""The command ``rankstream report``: write a page about a model and its choices."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankstream._core.files import check_target, same_file, write_whole
from rankstream._core.terminal import print_answer, print_json, progress
from rankstream.cli.decide import TIME_SLICES, progress_watch, said_of_items
from rankstream.cli.markets import market_files, per_market, run_each
from rankstream.cli.model_answers import check_choices, refitted_to
from rankstream.cli.options import AsJson, ModelFile, ReadingOptions, reading_options
from rankstream.cli.show import describe_model
from rankstream.models.item_names import offer_in

if TYPE_CHECKING:
    from rankstream.reports.make import Report

MAX_PERIODS = 13  # in the chart of shares over time: a fourth of the slices that date today's offer; not tuned


@per_market(together=True, takes_choices=lambda _: True)
@reading_options()
def report(
    model: ModelFile,
    data: Path | None = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file (HTML).")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    margins: Path | None = None,
    at_most: Annotated[int | None, typer.Option(min=0)] = None,
    present: str = "recent",
    currency: Annotated[str, typer.Option(help="Currency of the margins, such as EUR.")] = "",
    top: Annotated[int, typer.Option(min=1, max=100, help="Number of customer types to show.")] = 10,
    replicates: Annotated[int | None, typer.Option(min=2, max=10_000)] = None,
    intervals: Annotated[bool, typer.Option("--intervals/--no-intervals")] = True,
    budget: Annotated[float, typer.Option(min=0.0)] = 20.0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for intervals and searches.")] = 0,
    as_json: AsJson = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Write an HTML report about a model: what to do, what changed, who buys what, and how certain that is.

    Example: rankstream report model.json --data choices.csv --margins items.csv -o report.html

    Options:
    data: Choices the model was fitted to (a folder of markets contains them).
    margins: CSV table of items, as for 'decide'. The report then recommends what to offer.
    at_most: With --margins: maximum number of items in the offer.
    present: With --margins: today's offer, such as 'tea;cake'; "recent" is the most frequent of the last four weeks.
    replicates: Number of bootstrap refits for intervals, instead of the standard errors stored by 'fit'.
    intervals: Show intervals, from refits or from the standard errors stored by 'fit'.
    budget: With --margins: CPU seconds for the best offer and its intervals.
    """
    from rankstream.decide.decision import Units
    from rankstream.reports.make import combine

    if data is None:
        raise ValueError("A report needs the choices that the model was fitted to: add --data.")
    check_target(out, "the report with --out")
    for path in (model, data, margins, reading.contents, reading.rejects):
        if path is not None and same_file(out, path):
            raise ValueError(f"--out is {out}, which is also {path}: choose a separate file for the report.")
    named = {
        "margins": margins, "at_most": at_most, "present": present, "currency": currency, "top": top,
        "replicates": replicates, "intervals": intervals, "budget": budget, "seed": seed,
    }  # fmt: skip
    if not model.is_dir():
        page, content = make_report(model, data, title or f"What customers choose: {data.name}", named, reading)
        save_report(out, page.html, content, margins, as_json)
        return
    pages: dict[str, Report] = {}

    def make_page(name: str, file: Path) -> None:
        pages[name], content = make_report(file, data, name, named, reading)
        print_json(content)

    def finish(contents: dict[str, Any], errors: dict[str, str]) -> None:
        text = combine(pages, title or f"What customers choose: {model.name}", Units(currency=currency), errors)
        save_report(out, text, {"markets": contents}, margins, as_json)

    run_each(market_files(model), make_page, as_json, finish)


def make_report(
    file: Path, data: Path, title: str, named: dict[str, Any], reading: ReadingOptions
) -> "tuple[Report, dict[str, Any]]":
    """Read a model and its choices; return the report, and the content for ``--json``."""
    from rankstream.data.readers.reading import coarser
    from rankstream.data.readers.unused_columns import unused_in
    from rankstream.decide.context import most_frequent_offer, origin_of_offer, recent_choices
    from rankstream.decide.problem.offers import make_problem
    from rankstream.models.files import load_model
    from rankstream.reports.make import report as make

    model: Any = load_model(file)
    reading = reading.as_fitted(model)
    said: dict[str, Any] = {}
    if named["margins"] is not None:  # check the table of items before the work starts
        items, said = said_of_items(model, file, named["margins"], reading, {"at_most": named["at_most"]})
        make_problem(model, items.margins, **said)
        said["margins"] = items.margins
    choices = reading.read(data, time_slices=TIME_SLICES)
    latest = recent_choices(choices)
    recent = most_frequent_offer(latest)
    origin = origin_of_offer(choices, latest, recent) if named["present"] == "recent" else ""
    choices = coarser(replace(choices, unused=choices.unused or unused_in(model.about)), MAX_PERIODS)
    check_choices(model, choices.counts, data)
    refits: Any = None if named["intervals"] else "Intervals were turned off by --no-intervals."
    if "uncertain" in model.about:
        refits = "There are no intervals where offers are known in part: see 'predict --range' and 'decide --safe'."
    elif named["intervals"] and named["replicates"]:
        refits = refitted_to(model, choices.counts, named["replicates"], named["seed"])
    if said and named["present"] == "recent":
        said["present"] = recent
    elif said:
        said["present"] = offer_in(named["present"], model)
    options = {name: named[name] for name in ("currency", "top", "budget", "seed")}
    with progress_watch() as watch, progress("reporting"):
        page = make(
            model, choices, title=title, source=f"{file.name} and {data.name}", intervals=refits,
            watch=watch, today=origin, **options, **said,
        )  # fmt: skip
    read = {"file": str(data), "records": choices.rows, "format": choices.format, "skipped": choices.problems.total}
    read |= {"choices": choices.counts.observations, "offers": choices.counts.assortments.n_offers}
    described = describe_model(model, named["top"], None if isinstance(refits, str) else refits)
    return page, {"read": read, "model": described, **page.content}


def save_report(out: Path, text: str, content: dict[str, Any], margins: Path | None, as_json: bool) -> None:
    """Write the page, and print where it is."""
    write_whole(out, text)
    size = len(text.encode())
    words = f"Saved {out} ({size / 1000:,.0f} kB): open it in a browser."
    if margins is None:
        words += "\nAdd --margins with a table of items to see what to offer and what it would earn."
    print_answer(as_json, {"report": str(out), "bytes": size, **content}, words)
