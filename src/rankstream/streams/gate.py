"""Which records a live model may be given: what can be counted, saved, and asked for later."""

import time
from collections.abc import Iterable, Mapping

from rankstream._core.types import Label
from rankstream.streams.choices import check_record
from rankstream.streams.live import Live, Record

AHEAD = 86_400.0  # seconds that the time of a record may be ahead of the clock


class Gate:
    """Checks records before they are counted or written down, for a file that is followed and for a service alike.

    ``live`` says what its settings need of a record, and ``known`` are the items that came before.

    >>> gate = Gate(Live(), [7])
    >>> gate.checked(Record((7, "tea"), "tea"))
    Record(offered=(7, 'tea'), chosen='tea', times=1.0, time=None)
    >>> gate.checked(Record(("7", "tea"), "tea"))
    Traceback (most recent call last):
    ValueError: its item '7' reads like 7, which came before: write both the same way
    """

    def __init__(self, live: Live, known: Iterable[Label] = ()) -> None:
        self.live = live
        self._labels: dict[str, Label] = {str(item).strip(): item for item in known}

    def checked(self, record: Record) -> Record:
        """The record with its items as they are known; or a ValueError.

        A number and a text that read alike are two items that nobody can tell apart at the command line.
        """
        names = {item: self._labels.get(str(item).strip(), item) for item in record.offered}
        for item, known in names.items():
            if type(item) is not type(known):
                raise ValueError(f"its item {item!r} reads like {known!r}, which came before: write both the same way")
        offered, chosen = record.offered, names.get(record.chosen, record.chosen)
        own = {names[item]: offered[item] for item in names} if isinstance(offered, Mapping) else tuple(names.values())
        record = record._replace(offered=own, chosen=chosen)
        self.live.at_levels(record)
        self.check_amount(record)
        self._labels.update((str(item).strip(), item) for item in record.offered)
        return record

    def check_amount(self, record: Record) -> None:
        """Refuse a count or a time that the settings cannot use; prices are not looked at."""
        check_record(record, self.live.timed, self.live.detect)
        if self.live.timed and record.time is not None and record.time > time.time() + AHEAD:
            raise ValueError(
                f"its time {record.time:.12g} is more than a day ahead of the clock: give seconds since 1970, not "
                "milliseconds, or correct the clock"
            )
        if self.live.window is not None and not record.times.is_integer():
            raise ValueError(f"its count {record.times:g} is not a whole number: a window counts whole choices")
