"""The command ``rankstream decide``: which offer to make, by a saved model and a table of items."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankstream._core.terminal import plural, print_answer, print_note, progress
from rankstream._core.watch import process_seconds
from rankstream.cli.items import Items, read_items, word_pairs
from rankstream.cli.markets import Finish, decision_lines, names_elsewhere, per_market
from rankstream.cli.options import AsJson, ModelFile, ReadingOptions, choice, reading_options, shell_words
from rankstream.models.fit_warnings import fit_warnings, interval_words, noted
from rankstream.models.item_names import all_names, named_constraints, offer_in
from rankstream.reports.origin import period_of, warning_lines

if TYPE_CHECKING:
    from rankstream._core.watch import Watch
    from rankstream.data.readers import Reading
    from rankstream.decide.decision import Decision
    from rankstream.decide.lost_sales import LostSales

QUIET_SECONDS = 1.0
"""Seconds before progress is shown."""
MIN_SEARCH_PART = 0.3
"""The part of the budget that is left for the search, however long the choices took to read."""
TIME_SLICES = 52  # weeks of a year; not tuned
"""Into how many equal parts choices are split by time to find the recent ones, and how many seconds are recent."""


def table_of_markets(named: dict[str, Any]) -> Finish | None:
    """Return the function that prints the best offers of all markets as a table; None for other answers."""
    if named["safe"] or named["next_one"] or named["lost"]:
        return None

    def finish(rows: dict[str, Any], _: object) -> None:
        print_answer(named["as_json"], {"markets": rows}, "\n".join(decision_lines(rows, named["currency"])))
        if named["intervals"] and any("offer" in row and "interval" not in row for row in rows.values()):
            print_note("Some markets have no intervals: the refits did not finish in time. Allow more with --budget.")

    return finish


@per_market(takes_choices=lambda _: True, table=table_of_markets)
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
    lost: Annotated[bool, typer.Option("--lost-sales")] = False,
    since: str | None = None,
    strategy: Annotated[str, choice("thompson", "greedy", "ucb")] = "thompson",
    top: Annotated[int, typer.Option(min=1, max=1000, help="How many of the best offers to list.")] = 3,
    budget: Annotated[float, typer.Option(min=0.0)] = 60.0,
    plot: Annotated[Path | None, typer.Option(help="Also save a chart: best offers, and value by size.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for searches, samples and intervals.")] = 0,
    as_json: AsJson = False,
    items: Annotated[Path | None, typer.Option(help="CSV table of new items, for a model with attributes.")] = None,
    *,
    reading: ReadingOptions,
) -> None:
    """Find the offer that earns most, and what it earns.

    Example: rankstream decide model.json --margins items.csv --at-most 6

    Options:
    margins: CSV table with the columns item and margin; or item, price and unit_cost; or, if the model has price
        levels, item and unit_cost (prices come from the model).
    requires: "cream:tea" offers cream only with tea; repeat for several.
    excludes: "tea:cake" never offers both; repeat for several.
    capacity: Total shelf space; the table of items needs a column space.
    ladder: "small:large" never prices small above large; repeat for several.
    present: Today's offer, separated by ';', such as "tea;cake", or "tea@3.50;cake". "recent" is the most frequent of
        the last four weeks in the data (the default if the choices are known).
    data: Choices the model was fitted to (default: that file, if it is in the model's folder).
    intervals: Compute 95 % intervals by refitting the model to simulated choices.
    safe: Also find the offer with the best worst case (needs the choices).
    next_one: Suggest the offer to try next instead, to learn while earning (needs the choices).
    lost: Estimate instead what stock-outs cost, for a model of receipts and stock (needs its choices).
    since: With --lost-sales: count stock-outs from this time on, such as 2026-05-01.
    strategy: With --next: how to balance learning and earning.
    budget: CPU seconds (per market), except start-up and one-time compilation. Ctrl-C stops with the best offer so far.
    """
    from rankstream.models.files import load_model

    began, level = process_seconds(), 0.95 if intervals else None
    if safe + next_one + lost > 1:
        raise ValueError("--safe, --next and --lost-sales cannot be combined: use one of them.")
    if since is not None and not lost:
        raise ValueError("--since needs --lost-sales: add it.")
    asked = {
        "at_most": at_most, "at_least": at_least, "must": must, "never": never, "requires": requires,
        "excludes": excludes, "ladder": ladder, "capacity": capacity,
    }  # fmt: skip
    if plot is not None:
        from rankstream._core.files import check_picture  # brings everything that can be drawn

        check_picture(plot)
    if items is not None and safe:
        raise ValueError("--items does not work with --safe, which needs choices of all items: leave it out.")
    loaded: Any = load_model(model) if items is None else load_model(model).with_items(items)
    reading = reading.as_fitted(loaded)
    table, said = said_of_items(loaded, model, margins, reading, asked)
    said["changes"] = changes
    if lost:
        if data is None:
            raise ValueError("--lost-sales needs the receipts: add --data.")
        whole = reading.read(data)
        late = whole if since is None else reading.read(data, since=since)
        if late.account is None:
            raise ValueError("--lost-sales needs receipts with a stock log: add --stock.")
        from rankstream.decide.lost_sales import lost_sales

        with progress("refitting"):
            behind = whole.counts if intervals else None
            losses = lost_sales(loaded, late.account, table.margins, costs=said["costs"], counts=behind, seed=seed)
        print_answer(as_json, losses.to_json(), losses_text(losses, late, currency))
        return
    from rankstream.decide.context import most_frequent_offer, origin_of_offer, recent_choices  # loads numpy

    needing = "--present recent" if present == "recent" else "--safe" if safe else "--next" if next_one else ""
    known = choices_of(model, loaded, data, reading, needing)
    counts = None if known is None else known.counts
    recent = present == "recent" or (present is None and known is not None)
    if level and counts is not None and reading.outside_share is not None:
        level = None
        print_note("No intervals: there are none for an assumed share of customers who bought nothing.")
    if known is None:
        lacks = [*["comparison with today's offer"] * (present is None), *["intervals"] * (level is not None)]
        if present is None and changes is not None:
            raise ValueError("--changes counts from today's offer: add --present, or --data FILE.")
        if lacks and not as_json:
            why = "the file of choices is not in the model's folder"
            print_note(f"No {' and no '.join(lacks)}: {why}. Add --data FILE.")
    said["present"] = None if present is None or recent else offer_in(present, loaded)
    origin = ""
    if recent and known is not None:
        latest = recent_choices(known)
        said["present"] = most_frequent_offer(latest)
        if unknown := [str(item) for item in said["present"] if item not in set(loaded.items)]:
            what = f"its item {unknown[0]!r} is not in the model"
            raise ValueError(f"{data} is not the file the model was fitted to: {what}. Give that file.")
        origin = origin_of_offer(known, latest, said["present"])
    budget = max(MIN_SEARCH_PART * budget, budget - (process_seconds() - began))
    with progress_watch() as watch:
        if next_one:
            from rankstream.decide.next import next_offer

            kind: Any = strategy
            rows = None if items is None else loaded.attributes.extend(loaded.widened[1])
            found: Any = next_offer(
                counts, table.margins, kind, budget=budget, seed=seed, watch=watch, attributes=rows, **said
            )
        elif safe:
            from rankstream.decide.safe import safe_offer

            exact = counts if known is None or known.uncertain is None else known.uncertain
            found = safe_offer(exact, table.margins, model=loaded, budget=budget, seed=seed, watch=watch, **said)  # type: ignore[arg-type]
        else:
            from rankstream.decide.best import best_offer

            found = best_offer(
                loaded, table.margins, top=top, budget=budget, counts=counts, seed=seed, watch=watch,
                interval=None if "uncertain" in loaded.about else level, **said,
            )  # fmt: skip
            is_late = counts is not None and level and found.interval is None and "uncertain" not in loaded.about
            if is_late and not as_json:
                from rankstream.decide.intervals import PART_FOR_REFITS  # loads every kind of model

                spent, refits = process_seconds() - began, found.context.refit_seconds
                needed = 10 * ceil((spent + (refits or 2.0 * spent)) / (10.0 * PART_FOR_REFITS))
                less = "nor a correction for being the best of many offers"
                print_note(f"No intervals, {less}: the refits did not finish in time. Try --budget {needed}.")
    show(found, as_json, loaded.about, currency, origin)
    if plot is not None:
        draw(found.best if safe else found.decision if next_one else found, plot)


def losses_text(losses: "LostSales", late: "Reading", currency: str) -> str:
    """Say what stock-outs cost, as a table with a line for each item."""
    days, share = period_of(late.times), 100 * losses.met / losses.customers
    when, money = f", {days}" if days else "", f" Money is in {currency}." if currency else ""
    met = f"{round(losses.met):,} of {round(losses.customers):,} choices ({share:.1f} %)"
    lines = [f"{met} were made while an item was out of stock{when}.{money}", losses.table()]
    lines += [] if losses.total.low is None else ["In brackets: 95 % intervals from refits."]
    lines.append(
        "Units are what an item would have sold; money is net of what was bought instead, so it may be below 0."
    )
    return "\n".join([*lines, "Several items may be missing at once, so items need not add up to the total."])


def said_of_items(
    model: Any, file: Path, margins: Path, reading: ReadingOptions, asked: dict[str, Any]
) -> tuple[Items, dict[str, Any]]:
    """Read the table of items, and return it with what was said at the shell, as ``best_offer`` takes it."""
    names, levels = all_names(model), model.price_levels
    own = model.no_choice if levels is None or levels.of(model.no_choice)[1] is None else None
    elsewhere, usual = names_elsewhere(file, model)
    nothing = (reading.no_choice or usual) if own is None else str(own)
    nothing = nothing if nothing in names else None
    table = read_items(margins, names, nothing, None if levels is None else levels.items, elsewhere)
    said = constraints(table, names, asked, elsewhere)
    return table, said | {"no_choice": None if nothing is None else names[nothing], "costs": table.unit_costs}


def constraints(
    table: Items, names: dict[str, Any], asked: dict[str, Any], elsewhere: Collection[str]
) -> dict[str, Any]:
    """What options say about offers, and the table about items, as ``best_offer`` takes it.

    A constraint applies to the markets that have its items: one on items that are only ``elsewhere`` is left out, and
    what requires such an item is never offered.
    """
    capacity = asked.get("capacity")
    if capacity is not None and table.space is None:
        raise ValueError("--capacity needs the space that each item takes: add a column space to the table of items.")
    words: dict[str, Any] = {option: list(asked.get(option) or ()) for option in ("must", "never")}
    for option in ("requires", "excludes", "ladder"):
        pairs = word_pairs(f"--{option}", asked.get(option) or [], dict.fromkeys(elsewhere) | names)
        away = [pair for pair in pairs if any(item in elsewhere and item not in names for item in pair)]
        words[option] = [pair for pair in pairs if pair not in away]
        words["never"] += [first for first, _ in away if option == "requires" and first in names]
    words["never"] = [item for item in dict.fromkeys(words["never"]) if item in names or item not in elsewhere]
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
    fitted = noted(model.about, "data")
    beside = path.parent / Path(str(fitted.get("file", ""))).name
    if data is None and fitted.get("digest") is not None and beside.is_file():
        with suppress(ValueError, OSError):
            found = reading.read(beside, time_slices=TIME_SLICES)
            if found.counts.digest() == fitted["digest"]:
                return found
    if data is None and asked:
        raise ValueError(f"{asked} needs the choices that the model was fitted to: add --data.")
    with suppress(*() if asked or data != path.parent else (ValueError, OSError)):  # a folder of 0.3 has no choices
        return None if data is None else reading.read(data, time_slices=TIME_SLICES)
    return None


@contextmanager
def progress_watch() -> "Iterator[Watch]":
    """A watch that shows progress after a second, and ends the search at Ctrl-C; a wrong answer is exit code 1."""
    from rankstream._core.watch import Deadline, interrupts
    from rankstream.decide.offer_values import WrongAnswerError

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


def show(found: Any, as_json: bool, about: dict[str, Any], currency: str = "", origin: str = "") -> None:
    """Print a decision, a safe offer or the next offer, after the warnings about the model's fit."""
    from rankstream.decide.decision import Decision, Units, change_lines, explanation, named, summary

    lines, units = [shell_words(line) for line in warning_lines(about)], Units(currency=currency)
    if getattr(found, "interval", None) is not None:
        lines.append(f"In brackets: {interval_words(about)}.")
    if isinstance(found, Decision):
        changes, sizes = change_lines(found, units, origin), found.by_size if found.knows_sizes else {}
        lines += [*changes, *([""] if changes else []), *summary(found, units)]
        for place, runner in enumerate(found.runners_up[1:], 3):
            rank = {3: "Third best", 4: "Fourth best"}.get(place, f"Number {place}")
            lines.append(f"{rank}: {named(runner.offer)}, earns {units.amount(found.expect(runner.value))}.")
        lines += ["", *explanation(found, units)[1:]]
        best = [f"{plural(size, 'item')} {units.amount(found.expect(sizes[size]))}" for size in sizes if size]
        lines += [f"\nThe best offer of each size earns: {', '.join(best)}."] if len(best) > 1 else []
    else:
        lines.append(str(found))
    told = {"warnings": list(map(shell_words, fit_warnings(about))), "interval_name": interval_words(about)}
    print_answer(as_json, {**found.to_json(), **told}, "\n".join(lines))


def draw(found: "Decision", path: Path) -> None:
    """Value by size, and the offer against its runners-up, as a picture."""
    from rankstream._core.files import save_picture
    from rankstream.cli.plot import new_figure
    from rankstream.plots.fits import runners_up, value_by_size

    if found is None:
        raise ValueError("There is nothing to draw without data: leave out --plot.")
    figure = new_figure(11, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    value_by_size(found, left)
    runners_up(found, right)
    save_picture(figure, path)
