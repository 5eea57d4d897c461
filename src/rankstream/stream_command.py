"""The command ``rankstream stream``: follow choices as they arrive, and keep a current model on disk."""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.console import Console

from rankstream.follow import Line, lines, record_of
from rankstream.live import Live, Record

BATCH = 1000


class Step(NamedTuple):
    """Records that have come, and the place in the source behind them."""

    records: list[Record]
    place: int
    number: int
    skipped: int


class Follower:
    """Records into a ``Live`` model, step by step, and everything onto disk every few seconds.

    ``state.npz`` holds counts, solver and the place in the source, written at once: whenever the process dies, the next
    one goes on behind the last record that the file knows of, so that no record is lost or counted twice.
    ``model.json`` is written after it. A signal ends the work between two steps, never within one.
    """

    def __init__(self, source: str, out: Path, live: dict[str, Any], on_error: str) -> None:
        if on_error not in ("stop", "skip"):
            raise ValueError(f"on_error is {on_error!r}: choose 'stop' or 'skip'.")
        if out.exists() and not out.is_dir():
            raise ValueError(f"{out} is a file: name a folder for state and model with --out.")
        out.mkdir(parents=True, exist_ok=True)
        self.source, self.out, self.on_error = source, out, on_error
        given = {name: value for name, value in live.items() if value is not None}
        self.live, self.resumed = Live(**given), False
        self.at = Step([], 0, 0, 0)
        self.busy, self.stopped = False, False
        if (out / "state.npz").exists():
            self.live, more = Live.load(out / "state.npz")
            if more["source"] != source:
                raise ValueError(
                    f"{out} follows {more['source']!r}, not {source!r}: name another folder with --out, or that source."
                )
            for name, value in given.items():
                before = getattr(self.live, name)
                if before != value:
                    raise ValueError(
                        f"{out} was begun with {name} {before}, not {value}: name another folder with --out."
                    )
            self.at, self.resumed = Step([], *more["at"]), True

    def save(self) -> None:
        """Everything that a restart needs, then the model."""
        self.live.save(self.out / "state.npz", {"source": self.source, "at": self.at[1:]})
        if self.live.records:
            self.live.model.save(self.out / "model.json")

    def take(self, step: Step) -> None:
        """Count a step and move behind it, whatever signals come meanwhile."""
        self.busy = True
        self.live.observe(step.records)
        self.at = step
        self.busy = False

    def steps(self, to_end: bool) -> Iterator[Step]:
        """As many records as have come, again and again; after an interrupt, those that were read, and the end."""
        batch: list[Record] = []
        _, place, number, skipped = self.at
        source = lines(self.source, place, number, to_end)
        while not self.stopped:
            try:
                line = next(source, END)
            except KeyboardInterrupt:
                line = END
            if isinstance(line, Line):
                try:
                    record = record_of(line.text)
                except ValueError as error:
                    if self.on_error == "stop":
                        yield Step(batch, place, number, skipped)
                        raise ValueError(f"{self.source}, line {line.number}: {error}.") from None
                    record, skipped = None, skipped + 1
                place, number = line.end, line.number
                batch += [] if record is None else [record]
            if line is END or line is None or len(batch) >= BATCH:
                yield Step(batch, place, number, skipped)
                batch = []
            if line is END:
                return

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Ctrl-C and a signal to terminate interrupt the waiting for records; within a step they have to wait."""

        def stop(*_: object) -> None:
            self.stopped = True
            if not self.busy:
                raise KeyboardInterrupt

        before = {kind: signal.signal(kind, stop) for kind in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)


END: Final = "end"


def run(
    source: str, out: Path, every: float, to_end: bool, on_error: str, as_json: bool, live: dict[str, Any]
) -> Follower:
    """Follow until the end, Ctrl-C or a signal to terminate; the state is saved whichever it is."""
    follower = Follower(source, out, live, on_error)
    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    if follower.resumed and not as_json:
        console.print(f"Going on after {follower.live.records:,} records of {source}.")
    last, told = time.monotonic(), -1
    with follower.signals():
        try:
            for step in follower.steps(to_end):
                follower.take(step)
                if time.monotonic() - last >= every:
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
    return follower


def _status(follower: Follower, as_json: bool) -> str:
    live = follower.live
    content: dict[str, Any] = {"records": live.records, "line": follower.at.number, "skipped": follower.at.skipped}
    if live.run is not None and live.counts is not None:
        certificate = live.certificate
        content |= {
            "offers": live.counts.assortments.n_offers,
            "items": live.counts.assortments.n_items,
            "rankings": len(live.run.state.weights),
            "distance": certificate.upper,
            "gap": certificate.gap,
        }
    if as_json:
        return json.dumps(content)
    shown = f"{live.records:,} records saved"
    if "gap" in content:
        shown += (
            f"; {content['offers']:,} offers of {content['items']} items; {content['rankings']:,} rankings, "
            f"l2 distance {content['distance']:.4f}, within {content['gap']:.4f} of the best"
        )
    return shown + (f"; {follower.at.skipped:,} bad lines skipped" if follower.at.skipped else "")
