"""A model that follows a stream and begins again when the market changes: a change detector, fed with records."""

import os
from collections.abc import Sequence
from typing import Any, ClassVar

from rankstream._core.types import Label
from rankstream.certificate import Certificate
from rankstream.data.assortments import Assortments
from rankstream.data.counts import ChoiceCounts
from rankstream.models.rankings import RankingModel
from rankstream.streams.checkpoint import read, write
from rankstream.streams.detector import Alarm, ChangeDetector, DetectorSettings
from rankstream.streams.live import Live, Record
from rankstream.streams.packing import Parts

LARGEST = 100_000


class Watched:
    """Batches of records in, the detector's served model out; ``save`` and ``load`` as for ``Live``.

    Choices are handed on in blocks, and what does not fill a block yet waits: so the model, the counts and the alarms
    depend on the records and their order alone, to the last bit, however they come in batches. ``half_life`` is that
    of the fast-forgetting copy; ``rounds`` are played for each block.

    >>> watched = Watched(rounds=20)
    >>> watched.observe([Record(("tea", "pie"), "tea", 30), Record(("tea", "pie"), "pie", 30)])
    >>> watched.records, watched.waiting, watched.counts.observations, watched.ready
    (2, 10, 50, True)
    """

    detect: ClassVar[bool] = True
    window: ClassVar[int | None] = None

    def __init__(self, *, half_life: float = 500.0, threshold: float = 15.0, rounds: int = 50, seed: int = 0) -> None:
        self.settings = DetectorSettings(half_life=half_life, threshold=threshold, rounds=rounds, seed=seed)
        self.half_life, self.threshold, self.rounds, self.seed = half_life, threshold, rounds, seed
        self.records = 0
        self.detector: ChangeDetector | None = None
        self._waiting: list[tuple[tuple[Label, ...], Label]] = []

    @property
    def waiting(self) -> int:
        """How many choices wait for their block to be full; the detector may hold some more that it has scored."""
        return len(self._waiting)

    def check(self, record: Record) -> None:
        """Refuse records that cannot be scored choice by choice."""
        if not (float(record.times).is_integer() and 0 <= record.times <= LARGEST):
            raise ValueError(
                f"its count {record.times:g} is not a whole number up to {LARGEST:,}: a change is looked for choice by "
                "choice"
            )

    def observe(self, batch: Sequence[Record]) -> None:
        """Score and learn block by block; nothing is counted if a record is wrong."""
        for record in batch:
            if record.chosen not in record.offered:
                raise ValueError(f"The choice {record.chosen!r} is not in its offer {record.offered!r}.")
            self.check(record)
        for record in batch:
            self._waiting += [(record.offered, record.chosen)] * int(record.times)
            while len(self._waiting) >= self.settings.block:
                self._learn(self._waiting[: self.settings.block])
                del self._waiting[: self.settings.block]
        self.records += len(batch)

    def _learn(self, block: list[tuple[tuple[Label, ...], Label]]) -> None:
        offers = {frozenset(offered): offered for offered, _ in block}
        if self.detector is None:
            self.detector = ChangeDetector(Assortments(offers.values()), self.settings)
        else:
            self.detector.extend(offers.values())
        self.detector.observe([offered for offered, _ in block], [chosen for _, chosen in block])

    @property
    def ready(self) -> bool:
        """Whether there is a model yet: once the first block is full."""
        return self.detector is not None

    @property
    def _found(self) -> ChangeDetector:
        if self.detector is None:
            raise ValueError(f"There is no model before the first {self.settings.block} choices.")
        return self.detector

    @property
    def counts(self) -> ChoiceCounts:
        """What the model learns from: the choices since the last change."""
        return self._found.counts

    @property
    def rankings(self) -> int:
        """How many rankings the model has."""
        return 0 if self.detector is None else len(self.detector.served.state.weights)

    @property
    def model(self) -> RankingModel:
        """The model now."""
        return self._found.model

    @property
    def certificate(self) -> Certificate:
        """What is proven about it, at its counts."""
        return self._found.certificate

    @property
    def alarms(self) -> list[Alarm]:
        """The changes noticed so far, by the number of the choice."""
        return [] if self.detector is None else self.detector.alarms

    def save(self, path: str | os.PathLike[str], more: dict[str, Any]) -> None:
        """Write everything, and ``more``, to one file; a crash leaves the old file, never half a new one."""
        settings = {name: getattr(self, name) for name in ("half_life", "threshold", "rounds", "seed", "records")}
        runs, found = ([], None) if self.detector is None else self.detector.packed()
        watched = {"settings": settings, "waiting": self._waiting, "found": found}
        write(path, runs, {"watched": watched, **more})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "tuple[Watched, dict[str, Any]]":
        """Read what ``save`` wrote: it goes on bit for bit."""
        loaded, more = load_live(path)
        if not isinstance(loaded, cls):
            raise ValueError(f"{path} holds a model without a change detector: read it with Live.load.")
        return loaded, more


def load_live(path: str | os.PathLike[str]) -> tuple[Live | Watched, dict[str, Any]]:
    """Whichever of the two a checkpoint holds, and what else was saved with it."""
    runs, more = read(path, Parts())
    kept = more.pop("watched", None)
    if not isinstance(kept, dict):
        return Live.load(path)
    records = kept["settings"].pop("records")
    watched = Watched(**kept["settings"])
    watched.records = records
    watched._waiting = [(tuple(offered), chosen) for offered, chosen in kept["waiting"]]
    if kept["found"] is not None:
        watched.detector = ChangeDetector.unpacked(runs, kept["found"])
    return watched, more
