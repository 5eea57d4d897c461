"""The settings of a live model: forgetting, change detection, price levels; and checks of records."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from rankstream._core.arguments import number_between, whole_number
from rankstream._core.types import Label
from rankstream.data.attributes import Attributes, Rows, read_attributes
from rankstream.data.decay import as_reach
from rankstream.data.prices import PriceLevels
from rankstream.streams.record import Record, RecordLevels, check_record

ROUNDS_PER_BATCH = 20  # benchmarks/streams.py shows what a batch takes; not tuned
MAX_SECONDS_AHEAD = 86_400.0  # that the time of a record may be ahead of the clock
PUBLISHED_KINDS = ("max-entropy", "sparse")
Reach = float | str | timedelta


@dataclass(frozen=True)
class DetectorSettings:
    """The settings of a change detector.

    Parameters
    ----------
    half_life : float
        Number of choices after which one counts half in the fast-forgetting copy. A shorter one reacts faster, but
        misses small changes, because the copy is noisier.
    threshold : float
        Lead in log-likelihood that raises an alarm. If every choice followed the prediction from all choices, there
        would be at least e^threshold choices on average before a false alarm.
    block : int
        Number of choices after which the copy learns.
    """

    half_life: float = 500.0
    threshold: float = 15.0
    block: int = 50

    def __post_init__(self) -> None:
        number_between("half_life", self.half_life, 1e-300)
        number_between("threshold", self.threshold, 0.0)
        whole_number("block", self.block, least=1)


@dataclass(frozen=True)
class LiveSettings:
    """Checked settings of ``Live``, with the same attributes; they can check records without a model.

    ``automatic`` says that nobody asked for the detector: a record that is not one choice stops it, and is no error.
    """

    half_life: float | timedelta | None
    window: float | timedelta | None
    detector: DetectorSettings | None
    rounds: int
    seed: int
    publish: str
    levels: RecordLevels
    attributes: Attributes | None = None
    automatic: bool = False

    @classmethod
    def of(
        cls,
        *,
        half_life: Reach | None = None,
        window: Reach | None = None,
        detect: bool | DetectorSettings | None = None,
        threshold: float | None = None,
        rounds: int | None = None,
        seed: int | None = None,
        publish: str = "max-entropy",
        prices: PriceLevels | Mapping[Any, Any] | None = None,
        attributes: Attributes | Rows | None = None,
    ) -> "LiveSettings":
        """Check the arguments of ``Live`` and return them as settings.

        >>> LiveSettings.of(half_life="7d").timed, LiveSettings.of(detect=True, threshold=8).rounds
        (True, 20)
        >>> LiveSettings.of().detect, LiveSettings.of(window=9).detect
        (True, False)
        """
        if publish not in PUBLISHED_KINDS:
            raise ValueError(f"publish is {publish!r}: choose 'max-entropy' or 'sparse'.")
        half, span = (None if reach is None else as_reach(reach) for reach in (half_life, window))
        levels, table = RecordLevels(prices), None if attributes is None else read_attributes(attributes)
        if table is not None and prices is not None:
            raise ValueError("Attributes do not work with prices yet: set one of them.")
        rounds = whole_number("rounds", ROUNDS_PER_BATCH if rounds is None else rounds, least=1)
        seed = whole_number("seed", 0 if seed is None else seed)
        automatic = detect is None
        if detect or (automatic and half is None and span is None):
            if span is not None:
                raise ValueError("With a change detector the counts restart when the market changes: leave out window.")
            if isinstance(half, timedelta):
                raise ValueError("With a change detector the half-life is in choices: give a number.")
            changes: dict[str, Any] = {"half_life": half, "threshold": threshold}
            changes = {name: value for name, value in changes.items() if value is not None}
            detector = replace(detect if isinstance(detect, DetectorSettings) else DetectorSettings(), **changes)
            half = None if automatic else detector.half_life
            return cls(half, None, detector, rounds, seed, publish, levels, table, automatic)
        if threshold is not None:
            raise ValueError("threshold is for a change detector: set detect as well, or leave it out.")
        if half is not None and span is not None:
            raise ValueError("half_life and window cannot be combined: set one of them.")
        if isinstance(span, int | float):
            span = whole_number("window", int(span) if span % 1 == 0 else span, least=1)
        return cls(half, span, None, rounds, seed, publish, levels, table)

    @property
    def detect(self) -> bool:
        """Whether there is a change detector."""
        return self.detector is not None

    @property
    def timed(self) -> bool:
        """Whether choices fade by time, so that every record needs one."""
        return any(isinstance(reach, timedelta) for reach in (self.half_life, self.window))


class RecordRules:
    """Checks of records before they are counted or logged, by a file follower or a service.

    ``settings`` are those of the live model, which need not exist yet, and ``known`` are the items seen so far.

    >>> rules = RecordRules(LiveSettings.of(), [7])
    >>> rules.checked(Record((7, "tea"), "tea"))
    Record(offered=(7, 'tea'), chosen='tea', times=1.0, time=None)
    >>> rules.checked(Record(("7", "tea"), "tea"))
    Traceback (most recent call last):
    ValueError: its item '7' looks like 7, seen earlier: write both the same way
    """

    def __init__(self, settings: LiveSettings, known: Iterable[Label] = ()) -> None:
        self.settings = settings
        self._labels: dict[str, Label] = {str(item).strip(): item for item in known}

    def checked(self, record: Record) -> Record:
        """Return the record with its items in their known form; raise a ValueError if it is wrong.

        A number and a text that look the same are refused: the command line could not tell them apart.
        """
        names = {item: self._labels.get(str(item).strip(), item) for item in record.offered}
        for item, known in names.items():
            if type(item) is not type(known):
                raise ValueError(f"its item {item!r} looks like {known!r}, seen earlier: write both the same way")
        offered, chosen = record.offered, names.get(record.chosen, record.chosen)
        if isinstance(offered, Mapping):
            record = record._replace(offered={names[item]: offered[item] for item in names}, chosen=chosen)
        else:
            record = record._replace(offered=tuple(names.values()), chosen=chosen)
        self.settings.levels.of(record)
        self.check_amount(record)
        self._labels.update((str(item).strip(), item) for item in record.offered)
        return record

    def check_amount(self, record: Record) -> None:
        """Refuse a count or a time that does not suit the settings; prices are not checked."""
        check_record(record, self.settings.timed, self.settings.detect and not self.settings.automatic)
        if self.settings.timed and record.time is not None and record.time > time.time() + MAX_SECONDS_AHEAD:
            raise ValueError(
                f"its time {record.time:.12g} is more than a day ahead of the clock: give seconds since 1970, not "
                "milliseconds, or correct the clock"
            )
        if self.settings.window is not None and not record.times.is_integer():
            raise ValueError(f"its count {record.times:g} is not a whole number: a window counts whole choices")
