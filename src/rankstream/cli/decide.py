"""The command ``rankstream decide``: which offer to make, by a saved model and a table of items."""

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankstream._core.terminal import print_json, print_note, print_plain, progress
from rankstream.cli.items import Items, named_item, named_pairs, read_items
from rankstream.cli.options import AsJson, ModelFile, ReadingOptions, choice, reading_options
from rankstream.cli.pricing import all_names, as_asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rankstream._core.watch import Watch
    from rankstream.decide.decision import Decision

QUIET = 1.0
"""Seconds before progress is shown."""


@reading_options()
def decide(
    model: ModelFile,
    margins: Annotated[
        Path,
        typer.Option(
            help="A CSV table of items: item and margin, or unit_cost and price (unless the model has prices)."
        ),
    ],
    at_most: Annotated[int | None, typer.Option(min=0, help="The most items in the offer.")] = None,
    at_least: Annotated[int | None, typer.Option(min=0, help="The fewest items in the offer.")] = None,
    must: Annotated[list[str] | None, typer.Option(help="An item to offer; may be given again.")] = None,
    never: Annotated[list[str] | None, typer.Option(help="An item not to offer; may be given again.")] = None,
    requires: Annotated[
        list[str] | None, typer.Option(help='"cream:tea" offers cream only with tea; may be given again.')
    ] = None,
    excludes: Annotated[
        list[str] | None, typer.Option(help='"tea:cake" never offers both; may be given again.')
    ] = None,
    capacity: Annotated[
        float | None, typer.Option(min=0.0, help="How much space there is; needs a column space in the table.")
    ] = None,
    ladder: Annotated[
        list[str] | None, typer.Option(help='"small:large" never prices small above large; may be given again.')
    ] = None,
    present: Annotated[
        str | None, typer.Option(help='What is on offer now, such as "tea@3.50;cake@4.00"; needs --changes.')
    ] = None,
    changes: Annotated[
        int | None, typer.Option(min=0, help="The most items that come, go or change their price; needs --present.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The choices that the model was fitted to, for intervals.")] = None,
    safe: Annotated[
        bool, typer.Option("--safe", help="Also find the offer with the best worst case; needs --data.")
    ] = False,
    next_one: Annotated[
        bool, typer.Option("--next", help="Instead: the offer to try next, to learn and earn; needs --data.")
    ] = False,
    how: Annotated[
        str, choice("With --next: how to weigh learning against earning.", "thompson", "greedy", "ucb")
    ] = "thompson",
    top: Annotated[int, typer.Option(min=1, max=1000, help="How many of the best offers.")] = 3,
    budget: Annotated[
        float, typer.Option(min=0.0, help="Seconds for the search; Ctrl-C ends it with the best so far.")
    ] = 10.0,
    plot: Annotated[Path | None, typer.Option(help="Also draw value by size and the offers, in this file.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed for the starts of searches, for samples and for intervals.")
    ] = 0,
    as_json: AsJson = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Find the offer that earns most, and what that is worth.

    Example: rankstream decide model.json --margins items.csv --at-most 6
    """
    from rankstream.models.files import load_model
    from rankstream.plots.saving import check_picture

    if (safe or next_one) and data is None:
        raise ValueError("--safe and --next need the choices that the model was fitted to: give --data as well.")
    if safe and next_one:
        raise ValueError("--safe and --next are two different questions: ask one at a time.")
    if model.is_dir():
        from rankstream.cli.markets import decide_markets, refuse

        new = {"--ladder": ladder, "--present": present, "--changes": changes is not None}
        refuse("a folder of markets", {"--data": data, "--plot": plot} | new)
        said_of = partial(
            constraints, at_most=at_most, at_least=at_least, must=must, never=never, requires=requires,
            excludes=excludes, capacity=capacity,
        )  # fmt: skip
        decide_markets(model, margins, said_of, budget, seed, as_json)
        return
    if plot is not None:
        check_picture(plot)
    loaded: Any = load_model(model)
    names, reading, levels = all_names(loaded), reading.as_fitted(loaded), loaded.price_levels
    own = loaded.no_choice if levels is None or levels.of(loaded.no_choice)[1] is None else None
    nothing = reading.no_choice if own is None else str(own)
    nothing = nothing if nothing in names else None
    table = read_items(margins, names, nothing, None if levels is None else levels.items)
    said = constraints(table, names, at_most, at_least, must, never, requires, excludes, capacity)
    said["no_choice"] = None if nothing is None else names[nothing]
    said["costs"], said["changes"] = table.unit_costs, changes
    said["ladders"] = named_pairs("--ladder", ladder or [], names)
    said["present"] = None if present is None else as_asked(present, loaded)
    counts = None if data is None else reading.read(data).counts
    with told() as watch:
        if next_one:
            found: Any = _next(counts, table, how, said, budget, seed, watch)
        elif safe:
            from rankstream.decide.safety import safe_offer

            found = safe_offer(counts, table.margins, model=loaded, budget=budget, seed=seed, watch=watch, **said)  # type: ignore[arg-type]
        else:
            from rankstream.decide.choosing import best_offer

            found = best_offer(
                loaded, table.margins, top=top, budget=budget, counts=counts, seed=seed, watch=watch, **said
            )
    show(found, as_json)
    if plot is not None:
        draw(found.best if safe else found.decision if next_one else found, plot)


def constraints(
    table: Items,
    names: dict[str, Any],
    at_most: int | None,
    at_least: int | None,
    must: list[str] | None,
    never: list[str] | None,
    requires: list[str] | None,
    excludes: list[str] | None,
    capacity: float | None,
) -> dict[str, Any]:
    """What was said at the shell, as ``best_offer`` takes it."""
    if capacity is not None and table.space is None:
        raise ValueError("--capacity needs to know what items fill: add a column space to the table of items.")
    return {
        "at_most": at_most,
        "at_least": at_least,
        "must": [named_item("--must", text, names) for text in must or []],
        "never": [named_item("--never", text, names) for text in never or []],
        "requires": named_pairs("--requires", requires or [], names),
        "excludes": named_pairs("--excludes", excludes or [], names),
        "listing_costs": table.listing_costs,
        "space": None if capacity is None else table.space,
        "capacity": capacity,
    }


def _next(counts: Any, table: Items, how: str, said: dict[str, Any], budget: float, seed: int, watch: "Watch") -> Any:
    from rankstream.decide.learning import next_offer

    kind: Any = how
    return next_offer(counts, table.margins, kind, budget=budget, seed=seed, watch=watch, **said)


@contextmanager
def told() -> "Iterator[Watch]":
    """A watch that shows progress after a second, and ends the search at Ctrl-C; the best so far is the answer."""
    from rankstream._core.watch import Deadline, interrupts

    with interrupts() as asked, progress("looking for the best offer") as tell:
        clock = Deadline(QUIET)

        def watch(text: str, share: float = 1.0) -> bool:  # noqa: ARG001
            if clock(text):
                tell(text, 0.0, None)
            return bool(asked)

        yield watch
    if asked:
        print_note("Interrupted: this is the best so far.")


def show(found: Any, as_json: bool) -> None:
    """Print a decision, a safe offer or the next offer."""
    from rankstream.decide.decision import Decision, explanation, named

    if as_json:
        print_json(found.to_content())
        return
    print_plain(str(found))
    if not isinstance(found, Decision):
        return
    for one in found.runners_up[1:]:
        print_plain(f"  {one.value:.4g}  {named(one.offer)}")
    print_plain("")
    for line in explanation(found)[1:]:
        print_plain(line)
    sizes = found.by_size if found.knows_sizes else {}
    if len(sizes) > 1:
        print_plain("\nBest value by number of items: " + ", ".join(f"{n}: {v:.4g}" for n, v in sizes.items()) + ".")


def draw(found: "Decision", path: Path) -> None:
    """Value by size, and the offer against its runners-up, as a picture."""
    from matplotlib.figure import Figure

    from rankstream.plots.decisions import runners_up, value_by_size
    from rankstream.plots.saving import save_picture

    if found is None:
        raise ValueError("There is nothing to draw before any data: leave --plot out.")
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    value_by_size(found, left)
    runners_up(found, right)
    save_picture(figure, path)
