"""The command ``rankstream decide``: which offer to make, by a saved model and a table of items."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankstream._core.terminal import print_answer, print_note, progress
from rankstream._core.watch import process_seconds
from rankstream.cli.items import Items, read_items, word_pairs
from rankstream.cli.markets import decide_markets, names_elsewhere, per_market, refuse
from rankstream.cli.options import AsJson, ModelFile, ReadingOptions, choice, reading_options, shell_words
from rankstream.models.fit_warnings import fit_warnings, interval_words
from rankstream.models.item_names import all_names, named_constraints, offer_in
from rankstream.reports.origin import warning_lines

if TYPE_CHECKING:
    from rankstream._core.watch import Watch
    from rankstream.data.readers import Reading
    from rankstream.decide.decision import Decision

QUIET_SECONDS = 1.0
"""Seconds before progress is shown."""
MIN_SEARCH_PART = 0.3
"""The part of the budget that is left for the search, however long the choices took to read."""
TIME_SLICES, FOUR_WEEKS = 52, 28 * 86400.0  # not tuned
"""Into how many equal parts choices are split by time to find the recent ones, and how many seconds are recent."""


@per_market(together=True, takes_choices=lambda named: named["safe"] or named["next_one"])
@reading_options()
def decide(
    model: ModelFile,
    margins: Annotated[Path, typer.Option()],
    at_most: Annotated[int | None, typer.Option(min=0, help="Maximum number of items in the offer.")] = None,
    at_least: Annotated[int | None, typer.Option(min=0, help="Minimum number of items in the offer.")] = None,
    must: Annotated[list[str] | None, typer.Option(help="Item that must be offered; repeat for several.")] = None,
    never: Annotated[list[str] | None, typer.Option(help="Item that must not be offered; repeat for several.")] = None,
    requires: list[str] | None = None,
    excludes: list[str] | None = None,
    capacity: Annotated[float | None, typer.Option(min=0.0)] = None,
    ladder: list[str] | None = None,
    present: str | None = None,
    changes: Annotated[int | None, typer.Option(min=0, help="Maximum number of items to add, drop or reprice.")] = None,
    data: Path | None = None,
    intervals: Annotated[bool, typer.Option("--intervals/--no-intervals")] = True,
    currency: Annotated[str, typer.Option(help="Currency of the margins, such as EUR.")] = "",
    safe: Annotated[bool, typer.Option("--safe")] = False,
    next_one: Annotated[bool, typer.Option("--next")] = False,
    strategy: Annotated[str, choice("thompson", "greedy", "ucb")] = "thompson",
    top: Annotated[int, typer.Option(min=1, max=1000, help="How many of the best offers to list.")] = 3,
    budget: Annotated[float, typer.Option(min=0.0)] = 60.0,
    plot: Annotated[Path | None, typer.Option(help="Also save a chart of the offers and of value by size.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for searches, samples and intervals.")] = 0,
    as_json: AsJson = False,
    items: Annotated[Path | None, typer.Option(help="CSV table of new items, for a model with attributes.")] = None,
    *,
    reading: ReadingOptions,
) -> None:
    """Find the offer that earns most, and what it earns.

    Example: rankstream decide model.json --margins items.csv --at-most 6

    Options:
    margins: CSV table with the columns item and margin, or item, unit_cost and price.
    requires: "cream:tea" offers cream only with tea; repeat for several.
    excludes: "tea:cake" never offers both; repeat for several.
    capacity: Total shelf space; the table of items needs a column space.
    ladder: "small:large" never prices small above large; repeat for several.
    present: Current offer, such as "tea@3.50;cake@4.00". "recent" is the most frequent offer of the last four weeks
        (the default if the choices are known).
    data: Choices the model was fitted to (default: that file, if it is in the model's folder).
    intervals: Compute 95 % intervals by refitting the model to resampled choices.
    safe: Also find the offer with the best worst case (needs --data).
    next_one: Suggest the offer to try next instead, to learn while earning (needs --data).
    strategy: With --next: how to balance learning and earning.
    budget: CPU seconds (per market), except start-up and one-time compilation. Ctrl-C stops with the best offer so far.
    """
    from rankstream.models.files import load_model

    began, level = process_seconds(), 0.95 if intervals else None
    if safe and next_one:
        raise ValueError("--safe and --next cannot be combined: use one of them.")
    asked = {
        "at_most": at_most, "at_least": at_least, "must": must, "never": never, "requires": requires,
        "excludes": excludes, "ladder": ladder, "capacity": capacity,
    }  # fmt: skip
    if model.is_dir():
        alone = {"--safe": safe, "--next": next_one, "--plot": plot, "--present": present, "--items": items}
        refuse("all markets at once (choose one with --market)", alone | {"--changes": changes is not None})

        def choices(loaded: Any) -> Any:
            with suppress(*() if data else (ValueError, OSError)):  # the folder of an earlier version has none
                return reading.as_fitted(loaded).read(data or model).counts
            return None

        given: dict[str, Any] = {"budget": budget, "seed": seed, "interval": level}
        decide_markets(model, margins, partial(constraints, asked=asked), choices, currency, as_json, **given)
        return
    if plot is not None:
        from rankstream._core.files import check_picture  # brings everything that can be drawn

        check_picture(plot)
    if items is not None and (safe or next_one):
        raise ValueError("--items does not work with --safe or --next, which need choices of all items: leave it out.")
    loaded: Any = load_model(model) if items is None else load_model(model).with_items(items)
    reading = reading.as_fitted(loaded)
    table, said = said_of_items(loaded, model, margins, reading, asked)
    said["changes"] = changes
    needing = "--present recent" if present == "recent" else "--safe" if safe else "--next" if next_one else ""
    known = choices_of(model, loaded, data, reading, needing)
    counts = None if known is None or items is not None else known.counts  # no intervals for items without choices
    recent = present == "recent" or (present is None and known is not None)
    said["present"] = present_offer(known) if recent else None if present is None else offer_in(present, loaded)
    budget = max(MIN_SEARCH_PART * budget, budget - (process_seconds() - began))
    with progress_watch() as watch:
        if next_one:
            from rankstream.decide.next import next_offer

            kind: Any = strategy
            found: Any = next_offer(counts, table.margins, kind, budget=budget, seed=seed, watch=watch, **said)
        elif safe:
            from rankstream.decide.safe import safe_offer

            found = safe_offer(counts, table.margins, model=loaded, budget=budget, seed=seed, watch=watch, **said)  # type: ignore[arg-type]
        else:
            from rankstream.decide.best import best_offer

            found = best_offer(
                loaded, table.margins, top=top, budget=budget, counts=counts, seed=seed, watch=watch,
                interval=level, **said,
            )  # fmt: skip
            if counts is not None and level and found.interval is None:
                from rankstream.decide.intervals import PART_FOR_REFITS  # loads every kind of model

                spent, refits = process_seconds() - began, found.context.refit_seconds
                needed = 10 * ceil((spent + (refits or 2.0 * spent)) / (10.0 * PART_FOR_REFITS))
                print_note(f"No intervals: the refits did not finish in time. Try --budget {needed}.")
    show(found, as_json, loaded.about, currency)
    if plot is not None:
        draw(found.best if safe else found.decision if next_one else found, plot)


def said_of_items(
    model: Any, file: Path, margins: Path, reading: ReadingOptions, asked: dict[str, Any]
) -> tuple[Items, dict[str, Any]]:
    """Read the table of items, and return it with what was said at the shell, as ``best_offer`` takes it."""
    names, levels = all_names(model), model.price_levels
    own = model.no_choice if levels is None or levels.of(model.no_choice)[1] is None else None
    nothing = reading.no_choice if own is None else str(own)
    nothing = nothing if nothing in names else None
    table = read_items(margins, names, nothing, None if levels is None else levels.items, names_elsewhere(file, model))
    said = constraints(table, names, asked)
    return table, said | {"no_choice": None if nothing is None else names[nothing], "costs": table.unit_costs}


def constraints(table: Items, names: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """What options say about offers, and the table about items, as ``best_offer`` takes it."""
    capacity = asked.get("capacity")
    if capacity is not None and table.space is None:
        raise ValueError("--capacity needs the space that each item takes: add a column space to the table of items.")
    words: dict[str, Any] = {option: asked.get(option) or [] for option in ("must", "never")}
    for option in ("requires", "excludes", "ladder"):
        words[option] = word_pairs(f"--{option}", asked.get(option) or [], names)
    found = named_constraints(words, names, "--{} names")
    return found | {
        "ladders": found.pop("ladder"),
        "at_most": asked.get("at_most"),
        "at_least": asked.get("at_least"),
        "listing_costs": table.listing_costs,
        "space": None if capacity is None else table.space,
        "capacity": capacity,
    }


def choices_of(path: Path, model: Any, data: Path | None, reading: ReadingOptions, asked: str) -> "Reading | None":
    """The choices behind a model: those given, or the file that it was fitted to where that is beside the model.

    Without --data, a file that cannot be read so or has changed is not used; where an option asked for them, that is
    an error.
    """
    noted = model.about.get("data")
    noted = noted if isinstance(noted, dict) else {}
    beside = path.parent / Path(str(noted.get("file", ""))).name
    if data is None and noted.get("digest") is not None and beside.is_file():
        with suppress(ValueError, OSError):
            found = reading.read(beside, time_slices=TIME_SLICES)
            if found.counts.digest() == noted["digest"]:
                return found
    if data is None and asked:
        raise ValueError(f"{asked} needs the choices that the model was fitted to: add --data.")
    return None if data is None else reading.read(data, time_slices=TIME_SLICES)


def present_offer(known: "Reading | None") -> Any:
    """The most frequent offer of the last four weeks; of all choices where their times are not known."""
    from rankstream.decide.context import most_frequent_offer

    if known is None:
        return None
    if known.slices is None or known.slice_times is None:
        return most_frequent_offer(known.counts)
    begin, parts = known.slice_times[-1][1] - FOUR_WEEKS, zip(known.slices, known.slice_times, strict=True)
    late = [part for part, (first, _) in parts if first >= begin] or known.slices[-1:]
    often = [sum(times) for times in zip(*(part.totals for part in late), strict=True)]
    return late[-1].assortments.offers[often.index(max(often))]


@contextmanager
def progress_watch() -> "Iterator[Watch]":
    """A watch that shows progress after a second, and ends the search at Ctrl-C; a wrong answer is exit code 1."""
    from rankstream._core.watch import Deadline, interrupts
    from rankstream.decide.verification import WrongAnswerError

    with interrupts() as asked, progress("searching for the best offer") as tell:
        clock = Deadline(QUIET_SECONDS)

        def watch(text: str, share: float = 1.0) -> bool:  # noqa: ARG001
            if clock(text):
                tell(text, 0.0)
            return bool(asked)

        try:
            yield watch
        except WrongAnswerError as error:
            print_note(f"rankstream: {error}")
            raise typer.Exit(1) from None
    if asked:
        print_note("Interrupted: this is the best so far.")


def show(found: Any, as_json: bool, about: dict[str, Any], currency: str = "") -> None:
    """Print a decision, a safe offer or the next offer, after the warnings about the model's fit."""
    from rankstream.decide.decision import Decision, Units, change_lines, explanation, named, summary

    lines, units = [shell_words(line) for line in warning_lines(about)], Units(currency=currency)
    if getattr(found, "interval", None) is not None:
        lines.append(f"In brackets: {interval_words(about)}.")
    if isinstance(found, Decision):
        changes, sizes = change_lines(found, units), found.by_size if found.knows_sizes else {}
        lines += [*changes, *([""] if changes else []), *summary(found, units)]
        lines += [f"  {units.amount(runner.value)}  {named(runner.offer)}" for runner in found.runners_up[1:]]
        lines += ["", *explanation(found, units)[1:]]
        values = ", ".join(f"{size}: {units.customers * value:.4g}" for size, value in sizes.items())
        lines += [f"\nBest value by number of items: {values}."] if len(sizes) > 1 else []
    else:
        lines.append(str(found))
    told = {"warnings": list(map(shell_words, fit_warnings(about))), "interval_name": interval_words(about)}
    print_answer(as_json, {**found.to_json(), **told}, "\n".join(lines))


def draw(found: "Decision", path: Path) -> None:
    """Value by size, and the offer against its runners-up, as a picture."""
    from rankstream._core.files import save_picture
    from rankstream.cli.pictures import new_figure
    from rankstream.plots.fits import runners_up, value_by_size

    if found is None:
        raise ValueError("There is nothing to draw without data: leave out --plot.")
    figure = new_figure(11, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    value_by_size(found, left)
    runners_up(found, right)
    save_picture(figure, path)
