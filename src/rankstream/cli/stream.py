"""The command ``rankstream stream``: follow choices as they arrive, and save a current model."""

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankstream._core.terminal import as_json as to_json
from rankstream._core.terminal import plural, print_note, print_plain
from rankstream.cli.options import SALES, ReadingOptions, choice, levels_in, reading_options, shell_words
from rankstream.reports.origin import certificate_words

if TYPE_CHECKING:
    from rankstream.data.prices import PriceLevels
    from rankstream.streams.sources.follower import Follower


@reading_options(
    without=(
        *("outside_share", "format", "contents", "encoding", "sheet", "partitions", "rejects", "separator"),
        "price_levels",
        *SALES,
    )
)
def stream(
    source: Annotated[str, typer.Argument(help="Growing file of JSON Lines or CSV, or '-' for standard input.")],
    out: Path = Path("rankstream-stream"),
    every: Annotated[float, typer.Option(min=0.0, help="Seconds between saves.")] = 5.0,
    half_life: str | None = None,
    window: Annotated[str | None, typer.Option(help="Use only the latest N choices, or those of the last 7d.")] = None,
    detect: Annotated[bool | None, typer.Option("--detect/--no-detect")] = None,
    threshold: Annotated[float | None, typer.Option(min=0.0)] = None,
    rounds: Annotated[int | None, typer.Option(min=1, max=1_000_000)] = None,
    publish: Annotated[str | None, choice("max-entropy", "sparse")] = None,
    to_end: Annotated[bool, typer.Option("--to-end")] = False,
    separator: str | None = None,
    price_levels: str | None = None,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON Lines.")] = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Follow choices as they arrive, and keep a current model.

    Example: rankstream stream choices.jsonl --out shop

    Options:
    out: Output folder; a stream saved there is resumed.
    half_life: Number of choices, or time (7d, 12h), after which a choice counts half. With --detect, this is for the
        recent choices that are compared with all (default: 500).
    detect: Restart the model when tastes change: when recent choices predict new ones clearly better. Default: yes,
        without a half-life or window, while every record is one choice.
    threshold: Evidence needed for an alarm (default: 15). Higher: fewer false alarms, later detection.
    rounds: Solver rounds per batch of records read (default: 20). Each adds one ranking to the sparse model.
    publish: Kind of model in model.json (default: max-entropy, which predicts best; sparse has few rankings).
    to_end: Stop at the end of the file instead of waiting for more.
    separator: Separator between the items of an offer (default: ';').
    price_levels: Price levels of every item that has a price, as JSON: {"tea": [3, 3.5]}.
    seed: Random seed of the solver: for starting points, and for the choice between equally good rankings (default: 0).
    """
    from rankstream._core.files import own_folder
    from rankstream.streams.sources.follower import Follower
    from rankstream.streams.sources.rotation import LostSourceError

    live: dict[str, Any] = {"half_life": half_life, "window": window, "threshold": threshold, "rounds": rounds}
    live |= {"seed": seed, "publish": publish, "prices": given_levels(price_levels)}
    lines = {"columns": reading.columns, "no_choice": reading.no_choice, "separator": separator}
    lines |= {"prices": reading.price_columns, "decimal": reading.decimal, "dates": reading.dates}
    with own_folder(out, remedy="stop it first, or choose another folder with --out"):
        follower = Follower(source, out, {"detect": detect, **live}, lines, reading.on_error)
        try:
            follow(follower, every, to_end, as_json)
        except LostSourceError as lost:
            print_note(f"rankstream: {shell_words(str(lost))}")
            raise typer.Exit(1) from None


def given_levels(words: str | None) -> "PriceLevels | None":
    """Parse --price-levels, which must list the levels because a stream has no records yet."""
    if words is None:
        return None
    from rankstream.data.readers.prices import checked_levels

    levels = checked_levels(levels_in(words))
    if isinstance(levels, str | int):
        raise ValueError(
            f"--price-levels is {words!r}, but a stream needs its levels before the first record: give them as "
            """JSON, such as {"tea": [3, 3.5]}."""
        )
    return levels


def follow(follower: "Follower", every: float, to_end: bool, as_json: bool) -> None:
    """Follow the source until its end or a signal, and save the state in any case."""
    if follower.resumed and not as_json:
        print_plain(f"Resuming after {plural(follower.live.records, 'record')} of {follower.source}.")
    last, printed = time.monotonic(), -1
    with follower.signals():
        try:
            for step in follower.steps(to_end):
                follower.take(step)
                if time.monotonic() - last >= every or len(follower.live.alarms) > follower.told:
                    follower.save()
                    last, printed = time.monotonic(), follower.live.records
                    with unless_hung_up(follower):
                        print_plain(_status(follower, as_json))
        finally:
            follower.save()
    with unless_hung_up(follower):
        if follower.live.records != printed or not printed:
            print_plain(_status(follower, as_json))
        for note in follower.reader.dialect.notes:
            print_note(note)
        if follower.live.detector is not None and follower.live.detector.stopped is not None:
            print_note("Changes of tastes are not detected, because a record has a count other than 1.")
        if follower.stopped:
            records = plural(follower.live.records, "record")
            print_note(f"Stopped: {records} saved in {follower.out}. Run the same command again to continue.")
        elif follower.unfinished:
            print_note(f"The last line of {follower.source} has no line break yet: waiting for the rest.")


@contextmanager
def unless_hung_up(follower: "Follower") -> Iterator[None]:
    """Treat output to a closed terminal as a signal to stop, not as an error."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        follower.stopped = True


def _status(follower: "Follower", as_json: bool) -> str:
    live, at, changes = follower.live, follower.at, follower.live.alarms[follower.told :]
    follower.told += len(changes)
    content: dict[str, Any] = {"records": live.records, "line": at.place.number, "skipped": at.skipped}
    if live.ready and live.counts is not None:
        certificate = live.certificate
        content |= {
            "offers": live.counts.assortments.n_offers,
            "items": live.n_items,
            "rankings": live.rankings,
            "served": live.serves,
            "distance": certificate.upper,
            "proven_least_distance": certificate.lower,
            "gap": certificate.gap,
        }
    if live.detect:
        content |= {"waiting": live.waiting, "alarms": len(live.alarms), "changes": list(map(asdict, changes))}
    if live.remark:
        content |= {"waiting": live.waiting, "remark": live.remark}
    if as_json:
        return to_json(content, indent=None)
    shown = f"{plural(live.records, 'record')} saved"
    if "gap" in content:
        words = certificate_words(content["distance"], content["proven_least_distance"], content["gap"])
        items = content["items"] - (live.model.no_choice is not None)
        shown += f"; {plural(content['offers'], 'different offer')}, {plural(items, 'different item')}. {words}"
    for alarm in changes:
        shown += f". Change detected at choice {alarm.record:,} (evidence began near {alarm.since:,}): counts restart"
    skipped = plural(at.skipped, "bad line")
    return shown + (f". {skipped} skipped." if at.skipped else ".") + (f" {live.remark}" if live.remark else "")
