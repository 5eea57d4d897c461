"""The command ``rankstream stream``: follow choices as they arrive, and keep a current model on disk."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankstream._core.terminal import as_json as to_json
from rankstream._core.terminal import console as make_console
from rankstream.cli.options import words

if TYPE_CHECKING:
    from rankstream.streams.follower import Follower


def stream(
    source: Annotated[str, typer.Argument(help="A growing file of JSON lines, or '-' for standard input.")],
    out: Annotated[Path, typer.Option(help="The folder; what is in it is resumed.")] = Path("rankstream-stream"),
    every: Annotated[float, typer.Option(min=0.0, help="Save at least so often, in seconds.")] = 5.0,
    half_life: Annotated[
        str | None,
        typer.Option(help="Choices, or time (7d, 12h), after which one weighs half; with --detect, in the copy: 500."),
    ] = None,
    window: Annotated[
        str | None, typer.Option(help="Only so many of the latest choices count, or those of a time (7d).")
    ] = None,
    detect: Annotated[bool, typer.Option("--detect", help="Begin again when the market has changed.")] = False,
    threshold: Annotated[
        float | None, typer.Option(min=0.0, help="With --detect: the evidence it takes, in nats; 15 without it.")
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="Rounds of the solver per batch; 20 without it, with --detect 50 per 50 choices."),
    ] = None,
    to_end: Annotated[bool, typer.Option("--to-end", help="Stop at the end of the file instead of waiting.")] = False,
    on_error: Annotated[
        str, typer.Option(help="At a bad line: stop, or skip and count.", autocompletion=words("stop", "skip"))
    ] = "stop",
    seed: Annotated[int | None, typer.Option(min=0, help="Ties between rankings; 0 without it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """Follow choices as they arrive, and keep a current model.

    Example: rankstream stream choices.jsonl --out shop --detect
    """
    from rankstream.streams.follower import Follower

    live = {"half_life": half_life, "window": window, "threshold": threshold, "rounds": rounds, "seed": seed}
    follower = Follower(source, out, {"detect": detect or None, **live}, on_error)
    follow(follower, every, to_end, as_json)


def follow(follower: "Follower", every: float, to_end: bool, as_json: bool) -> None:
    """Until the end, Ctrl-C or a signal to terminate; the state is saved whichever it is."""
    console = make_console()
    if follower.resumed and not as_json:
        console.print(f"Going on after {follower.live.records:,} records of {follower.source}.")
    last, told = time.monotonic(), -1
    with follower.signals():
        try:
            for step in follower.steps(to_end):
                follower.take(step)
                if time.monotonic() - last >= every or len(follower.alarms) > follower.told:
                    follower.busy = True
                    follower.save()
                    console.print(_status(follower, as_json))
                    follower.busy, last, told = False, time.monotonic(), follower.live.records
        except KeyboardInterrupt:  # between two steps
            pass
        finally:
            follower.busy = True
            follower.save()
    if follower.live.records != told or not told:
        console.print(_status(follower, as_json))


def _status(follower: "Follower", as_json: bool) -> str:
    live, changes = follower.live, follower.alarms[follower.told :]
    follower.told += len(changes)
    content: dict[str, Any] = {"records": live.records, "line": follower.at.number, "skipped": follower.at.skipped}
    if live.ready and live.counts is not None:
        certificate = live.certificate
        content |= {
            "offers": live.counts.assortments.n_offers,
            "items": live.counts.assortments.n_items,
            "rankings": live.rankings,
            "distance": certificate.upper,
            "gap": certificate.gap,
        }
    if live.detect:
        content |= {"waiting": live.waiting, "alarms": len(live.alarms), "changes": [asdict(one) for one in changes]}
    if as_json:
        return to_json(content, indent=None)
    shown = f"{live.records:,} records saved"
    if "gap" in content:
        offers = "1 offer" if content["offers"] == 1 else f"{content['offers']:,} offers"
        shown += (
            f"; {offers} of {content['items']} items; {content['rankings']:,} rankings, "
            f"l2 distance {content['distance']:.4f}, within {content['gap']:.4f} of the best"
        )
    for one in changes:
        shown += f"; a change noticed at choice {one.record:,} (since {one.since:,}): the counts begin again"
    return shown + (f"; {follower.at.skipped:,} bad lines skipped" if follower.at.skipped else "")
