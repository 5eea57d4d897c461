"""A stream that is followed record by record, with everything on disk that a restart needs."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from rankstream.data.forgetting import as_reach
from rankstream.streams.detector import Alarm
from rankstream.streams.follow import Line, lines, record_of
from rankstream.streams.live import Live, Record

BATCH = 1000
END: Final = "end"


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
        for left in (*out.glob(".state.npz.*.tmp"), *out.glob(".model.json.*.tmp")):
            left.unlink(missing_ok=True)  # by a process that was killed while it wrote
        self.source, self.out, self.on_error = source, out, on_error
        given = {name: value for name, value in live.items() if value is not None}
        given |= {name: as_reach(given[name]) for name in ("half_life", "window") if name in given}
        self.at, self.resumed, self.busy, self.stopped = Step([], 0, 0, 0), False, False, False
        if (out / "state.npz").exists():
            self.live = Live.load(out / "state.npz")
            before = self.live.notes.get("source")
            if before != source:
                raise ValueError(
                    f"{out} follows {before!r}, not {source!r}: name another folder with --out, or that source."
                )
            for name, value in given.items():
                before = getattr(self.live, name)
                if before != value:
                    raise ValueError(
                        f"{out} was begun with {name} {before}, not {value}: name another folder with --out."
                    )
            self.at, self.resumed = Step([], *self.live.notes["at"]), True
        else:
            self.live = Live(**given)
        self.told = len(self.alarms)

    @property
    def alarms(self) -> list[Alarm]:
        """The changes noticed so far."""
        return self.live.alarms

    def save(self) -> None:
        """Everything that a restart needs, then the model; nothing before a line was read: a slip binds no folder."""
        if self.at.number:
            self.live.save(self.out / "state.npz", {"source": self.source, "at": self.at[1:]})
        if self.live.ready:
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
                    if record is not None:
                        self.live.check(record)
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
