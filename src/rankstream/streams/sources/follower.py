"""Follow a stream record by record, and save what a restart needs."""

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from rankstream._core.types import Label
from rankstream._core.watch import handling
from rankstream.data.decay import as_reach
from rankstream.data.readers.roles import IN_OFFERS
from rankstream.streams.files.checkpoint import explained
from rankstream.streams.live import Live, Record
from rankstream.streams.live_settings import RecordRules
from rankstream.streams.sources.lines import FileSource, Line, PipedSource
from rankstream.streams.sources.parser import LineReader
from rankstream.streams.sources.rotation import Place

BATCH_RECORDS = 1000  # that are learned at once; not tuned
DIALECT = ("decimal", "dates")  # options detected from records
END: Final = "end"


class Step(NamedTuple):
    """New records, the place in the source after them, and how many bad records were skipped so far."""

    records: list[Record]
    place: Place
    skipped: int


class Follower:
    """Feeds records into a ``Live`` model step by step, and saves everything every few seconds.

    ``state.npz`` has counts, solver and the place in the source, written atomically. After a crash, the next process
    resumes after the last record in the file, so no record is lost or counted twice. ``model.json`` is written after
    it. A signal stops the work between two steps. Only one process may use the folder (``own_folder``).

    The ``source`` is a file, or "-" for standard input; a state in the folder ``out`` is resumed. ``live`` has settings
    of ``Live`` and ``reading`` options of ``LineReader``; None means the default, or the saved value. At a bad record,
    ``on_error`` is "stop", or "skip" to count it and go on.
    """

    def __init__(
        self, source: str, out: Path, live: dict[str, Any], reading: dict[str, str | None], on_error: str
    ) -> None:
        if on_error not in ("stop", "skip"):
            raise ValueError(f"on_error is {on_error!r}: choose 'stop' or 'skip'.")
        self.source, self.out, self.reading, self.on_error = source, out, dict(reading), on_error
        settings = {name: value for name, value in live.items() if value is not None}
        settings |= {name: as_reach(settings[name]) for name in ("half_life", "window") if name in settings}
        self.at, self.resumed = Step([], Place(), 0), False
        self.stopped, self.unfinished = False, False
        if self.state.exists():
            self._resume(settings)
        else:
            self.live = Live(**settings)
        if self.live.prices is not None and self.reading.get("prices") is None:
            self.reading["prices"] = IN_OFFERS
        elif self.live.prices is None and self.reading.get("prices") is not None:
            raise ValueError(
                "A stream needs its price levels before the first record: give them, as in "
                """price_levels='{"tea": [3, 3.5]}'."""
            )
        self.reader = LineReader(source, **self.reading)
        self.live.no_choice = self.reader.no_choice
        self.told = len(self.live.alarms)
        self.rules = RecordRules(self.live.rules, self._known())

    @property
    def state(self) -> Path:
        """The file of the state."""
        return self.out / "state.npz"

    def _resume(self, settings: dict[str, Any]) -> None:
        self.live = Live.load(self.state)
        before = self.live.notes.get("source")
        if before != self.source:
            raise ValueError(
                f"{self.out} follows {before!r}, not {self.source!r}: use that source, or another folder (out=...)."
            )
        for name, value in settings.items():
            if getattr(self.live, name) != value:
                raise self._other_setting(name, getattr(self.live, name), value)
        with explained(self.state):
            if self.live.ready:
                _ = self.live.model, self.live.certificate  # fails if the state is damaged
            self.at, self.resumed = _place_in(self.live.notes), True
            noted = _reading_in(self.live.notes)
        for name, value in noted.items():
            if value is None and name in DIALECT:
                continue  # not detected yet, so it may still be set
            if self.reading.get(name) not in (None, value):
                raise self._other_setting(name, value, self.reading[name])
            self.reading[name] = value

    def _other_setting(self, name: str, before: Any, now: Any) -> ValueError:
        return ValueError(f"{self.out} was started with {name} {before}, not {now}: use another folder (out=...).")

    def _known(self) -> Iterator[Label]:
        """Iterate over the items so far, including those of waiting choices."""
        if self.live.counts is not None:
            yield from map(self.live.own_item, self.live.counts.assortments.items)
        for offered, *_ in self.live._waiting:
            yield from map(self.live.own_item, offered)

    def save(self) -> None:
        """Save what a restart needs, then the model. A failed start leaves the folder unchanged."""
        if self.live.records or self.at.skipped:
            end, number, device, inode, digest = self.at.place
            file = {"device": device, "inode": inode, "digest": digest}
            at = [end, number, self.at.skipped]
            reading = self.reading | {name: getattr(self.reader.dialect, name) for name in DIALECT}
            self.live.save(self.state, {"source": self.source, "at": at, "file": file, "reading": reading})
        if self.live.ready:
            self.live.model.save(self.out / "model.json")

    def take(self, step: Step) -> None:
        """Count the records of a step and move on to its place."""
        self.live.observe(step.records)
        self.at = step

    def steps(self, to_end: bool) -> Iterator[Step]:
        """Iterate over the records as they arrive; after a signal, return those already read, and stop."""
        place, batch, skipped = self.at.place, list[Record](), self.at.skipped
        with closing(
            PipedSource(self.reader, place) if self.source == "-" else FileSource(self.source, self.reader, place)
        ) as source:
            lines = source.lines(to_end)
            while True:
                line = END if self.stopped else next(lines, END)
                if isinstance(line, Line):
                    try:
                        read = self.reader.record(line.text)
                        record = None if read is None else self.rules.checked(read)
                    except ValueError as error:
                        if self.on_error == "stop":
                            yield Step(batch, source.place(before=True), skipped)
                            raise ValueError(f"{line.path}, line {line.number}: {error}.") from None
                        record, skipped = None, skipped + 1
                    if record is not None:
                        batch.append(record)
                if line is END or line is None or len(batch) >= BATCH_RECORDS:
                    yield Step(batch, source.place(), skipped)
                    batch = []
                if line is END:
                    self.unfinished = to_end and not self.stopped and bool(source.rest.strip())
                    return

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Stop between two lines on Ctrl-C, SIGTERM, or a hang-up (unless it is ignored, as under nohup)."""

        def stop(*_: object) -> None:
            self.stopped = True

        kinds = [signal.SIGINT, signal.SIGTERM]
        hang_up = getattr(signal, "SIGHUP", None)  # Windows has none
        if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:
            kinds.append(hang_up)
        with handling(stop, *kinds):
            yield


def _place_in(notes: dict[str, Any]) -> Step:
    """Return the saved place; version 0.2 did not store the file."""
    end, number, skipped = notes["at"]
    file = notes.get("file") or {}
    place = Place(end, number, file.get("device"), file.get("inode"), file.get("digest"))
    return Step([], place, skipped)


def _reading_in(notes: dict[str, Any]) -> dict[str, str | None]:
    """Return the saved reading options; version 0.2 had none."""
    noted = notes.get("reading", {})
    return {name: noted[name] for name in ("columns", "no_choice", "separator", "prices", *DIALECT) if name in noted}
